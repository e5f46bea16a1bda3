// The C interface: contexts, events, pinned memory. Keys, proofs and single operations are in
// groth16/api.cpp.
#include "core/api.h"

#include "core/names.h"

namespace highwater {

std::string& last_error() {
    thread_local std::string text;
    return text;
}

hw_status fail(hw_status status, const std::string& message) noexcept {
    try {
        last_error() = message;
    } catch (...) { // no memory for the message: the status says enough
    }
    return status;
}

} // namespace highwater

using namespace highwater;

extern "C" {

uint32_t hw_abi_version(void) { return HW_ABI_VERSION; }

const char* hw_backend(void) { return rt::backend_name(); }

const char* hw_build_info(void) {
    static const std::string text = rt::build_info(); // once
    return text.c_str();
}

const char* hw_status_name(hw_status status) {
    static const char* const names[] = {"ok",
                                        "invalid argument",
                                        "no driver",
                                        "no device",
                                        "out of device memory",
                                        "out of host memory",
                                        "out of pinned memory",
                                        "device error",
                                        "device lost",
                                        "unsupported",
                                        "internal error"};
    const size_t n = sizeof names / sizeof names[0];
    return status >= 0 && size_t(status) < n ? names[status] : "unknown status";
}

const char* hw_last_error(void) { return last_error().c_str(); }

hw_status hw_device_count(uint32_t* count) {
    return guarded(nullptr, [&] {
        need(count, "count devices: null pointer");
        *count = rt::device_count();
    });
}

hw_status hw_device_describe(int32_t device, hw_device_info* out) {
    return guarded(nullptr, [&] {
        hw_device_info info = in_struct(out, "describe device: null pointer or struct_bytes unset");
        need(device >= 0 && uint32_t(device) < rt::device_count(),
             "describe device: no such device");
        info = hw_device_info{};
        info.device = device;
        rt::describe(device, info);
        out_struct(out, info);
    });
}

hw_status hw_context_create(const hw_config* config, hw_context** out) {
    return guarded(nullptr, [&] {
        need(out, "create context: null pointer");
        *out = nullptr;
        *out = new hw_context(
            in_struct(config, "create context: no config, or its struct_bytes unset"));
    });
}

void hw_context_destroy(hw_context* context) { delete context; }

hw_status hw_context_memory(hw_context* context, hw_memory_info* out) {
    return guarded(context, [&] {
        need(context, "read memory: null context");
        in_struct(out, "read memory: null pointer or struct_bytes unset");
        hw_memory_info info{};
        context->memory(info);
        out_struct(out, info);
    });
}

hw_status hw_context_reset_peaks(hw_context* context) {
    return guarded(context, [&] {
        need(context, "reset peaks: null context");
        context->reset_peaks();
    });
}

int64_t hw_clock_now_ns(void) { return clock_ns(); }

hw_status hw_ring_read(hw_context* context, hw_event* out, size_t max, size_t* read) {
    return guarded(context, [&] {
        need(context && read && (out || !max), "read events: null pointer");
        *read = context->events().read(out, max);
    });
}

hw_status hw_ring_describe(hw_context* context, hw_ring_info* out) {
    return guarded(context, [&] {
        need(context, "describe ring: null context");
        in_struct(out, "describe ring: null pointer or struct_bytes unset");
        hw_ring_info info{};
        context->events().describe(info);
        out_struct(out, info);
    });
}

const char* hw_name(uint16_t name) { return name_text(name); }

hw_status hw_host_alloc(hw_context* context, uint64_t bytes, const char* class_name, int32_t job,
                        int32_t partition, void** out, uint64_t* buffer_id) {
    return guarded(context, [&] {
        need(context && class_name && out, "allocate pinned memory: null pointer");
        *out = context->host_alloc(bytes, class_name, owner{job, partition}, buffer_id);
    });
}

hw_status hw_host_free(hw_context* context, void* pointer) {
    return guarded(context, [&] {
        need(context, "free pinned memory: null context");
        context->host_free(pointer);
    });
}

hw_status hw_host_register(hw_context* context, void* pointer, uint64_t bytes,
                           const char* class_name, int32_t job, int32_t partition,
                           uint64_t* buffer_id) {
    return guarded(context, [&] {
        need(context && pointer && bytes && class_name,
             "register host memory: null pointer or no bytes");
        context->host_register(pointer, bytes, class_name, owner{job, partition}, buffer_id);
    });
}

hw_status hw_host_unregister(hw_context* context, void* pointer) {
    return guarded(context, [&] {
        need(context, "unregister host memory: null context");
        context->host_unregister(pointer);
    });
}

} // extern "C"
