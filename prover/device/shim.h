// The functions of highwater_native.h by pointers from dlsym. Each wrapper copies the library's message in the
// same call: it belongs to the thread, which a goroutine may change between two calls.
#ifndef HIGHWATER_SHIM_H
#define HIGHWATER_SHIM_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "highwater_native.h"

#define HWX_MESSAGE 1024

#define HWX_FUNCTIONS(X)                                                                                       \
    X(abi_version) X(backend) X(build_info) X(last_error) X(device_count) X(device_describe)                   \
    X(context_create) X(context_destroy) X(context_memory) X(context_reset_peaks) X(clock_now_ns)              \
    X(ring_read) X(ring_describe) X(name) X(host_alloc) X(host_free) X(host_register) X(host_unregister)       \
    X(srs_load) X(srs_setup) X(srs_device_bytes) X(srs_destroy) X(prove_start) X(op_field) X(op_point)         \
    X(op_ntt) X(op_msm) X(op_fixed_base) X(op_quotient) X(bench)

typedef struct hwx_library {
    void *handle;
#define HWX_POINTER(name) __typeof__(&hw_##name) name;
    HWX_FUNCTIONS(HWX_POINTER)
#undef HWX_POINTER
} hwx_library;

enum { HWX_OK = 0, HWX_NOT_LOADED = 1, HWX_NO_SYMBOL = 2, HWX_OTHER_VERSION = 3 };

static int hwx_open(const char *path, hwx_library *lib, char *message) {
    dlerror();
    lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib->handle) {
        const char *why = dlerror();
        snprintf(message, HWX_MESSAGE, "%s", why ? why : "unknown reason");
        return HWX_NOT_LOADED;
    }
    *(void **)(&lib->abi_version) = dlsym(lib->handle, "hw_abi_version");
    if (lib->abi_version && lib->abi_version() != HW_ABI_VERSION) {
        snprintf(message, HWX_MESSAGE, "it implements version %u of the interface, this program needs version %u",
                 lib->abi_version(), HW_ABI_VERSION);
        dlclose(lib->handle);
        return HWX_OTHER_VERSION;
    }
#define HWX_RESOLVE(name)                                                                                      \
    if (!(*(void **)(&lib->name) = dlsym(lib->handle, "hw_" #name))) {                                         \
        snprintf(message, HWX_MESSAGE, "it has no function hw_" #name);                                        \
        dlclose(lib->handle);                                                                                  \
        return HWX_NO_SYMBOL;                                                                                  \
    }
    HWX_FUNCTIONS(HWX_RESOLVE)
#undef HWX_RESOLVE
    return HWX_OK;
}

static hw_status hwx_done(hwx_library *l, hw_status s, char *message) {
    if (s != HW_OK) snprintf(message, HWX_MESSAGE, "%s", l->last_error());
    return s;
}

#define HWX_CALL(name, ...) return hwx_done(l, l->name(__VA_ARGS__), message)

static uint32_t hwx_abi_version(hwx_library *l) { return l->abi_version(); }
static const char *hwx_backend(hwx_library *l) { return l->backend(); }
static const char *hwx_build_info(hwx_library *l) { return l->build_info(); }
static const char *hwx_name(hwx_library *l, uint16_t n) { return l->name(n); }
static int64_t hwx_clock(hwx_library *l) { return l->clock_now_ns(); }

static hw_status hwx_device_count(hwx_library *l, uint32_t *n, char *message) { HWX_CALL(device_count, n); }
static hw_status hwx_device_describe(hwx_library *l, int32_t device, hw_device_info *out, char *message) {
    HWX_CALL(device_describe, device, out);
}
static hw_status hwx_context_create(hwx_library *l, const hw_config *config, hw_context **out, char *message) {
    HWX_CALL(context_create, config, out);
}
static void hwx_context_destroy(hwx_library *l, hw_context *c) { l->context_destroy(c); }
static hw_status hwx_context_memory(hwx_library *l, hw_context *c, hw_memory_info *out, char *message) {
    HWX_CALL(context_memory, c, out);
}
static hw_status hwx_reset_peaks(hwx_library *l, hw_context *c, char *message) { HWX_CALL(context_reset_peaks, c); }
static hw_status hwx_ring_read(hwx_library *l, hw_context *c, void *out, size_t max, size_t *n, char *message) {
    HWX_CALL(ring_read, c, (hw_event *)out, max, n);
}
static hw_status hwx_ring_describe(hwx_library *l, hw_context *c, hw_ring_info *out, char *message) {
    HWX_CALL(ring_describe, c, out);
}
static hw_status hwx_host_alloc(hwx_library *l, hw_context *c, uint64_t bytes, const char *class_name, int32_t job,
                                int32_t partition, void **out, char *message) {
    uint64_t id = 0;
    HWX_CALL(host_alloc, c, bytes, class_name, job, partition, out, &id);
}
static hw_status hwx_host_free(hwx_library *l, hw_context *c, void *p, char *message) { HWX_CALL(host_free, c, p); }
static hw_status hwx_host_register(hwx_library *l, hw_context *c, void *p, uint64_t bytes, const char *class_name,
                                   int32_t job, int32_t partition, char *message) {
    uint64_t id = 0;
    HWX_CALL(host_register, c, p, bytes, class_name, job, partition, &id);
}
static hw_status hwx_host_unregister(hwx_library *l, hw_context *c, void *p, char *message) {
    HWX_CALL(host_unregister, c, p);
}
static hw_status hwx_srs_load(hwx_library *l, hw_context *c, const hw_srs_desc *d, hw_srs **out, char *message) {
    HWX_CALL(srs_load, c, d, out);
}
static hw_status hwx_srs_setup(hwx_library *l, hw_context *c, const hw_srs_desc *d, const hw_srs_host *h,
                               hw_srs **out, char *message) {
    HWX_CALL(srs_setup, c, d, h, out);
}
static uint64_t hwx_srs_bytes(hwx_library *l, hw_srs *s) { return l->srs_device_bytes(s); }
static void hwx_srs_destroy(hwx_library *l, hw_srs *s) { l->srs_destroy(s); }
static hw_status hwx_prove_start(hwx_library *l, hw_context *c, hw_srs *s, const hw_assignment *a,
                                 hw_proof_parts *out, char *message) {
    HWX_CALL(prove_start, c, s, a, out);
}
static hw_status hwx_op_field(hwx_library *l, hw_context *c, uint32_t field, uint32_t op, const void *a,
                              const void *b, void *out, uint64_t n, char *message) {
    HWX_CALL(op_field, c, field, op, a, b, out, n);
}
static hw_status hwx_op_point(hwx_library *l, hw_context *c, uint32_t group, uint32_t op, const void *a,
                              const void *b, void *out, uint64_t n, char *message) {
    HWX_CALL(op_point, c, group, op, a, b, out, n);
}
static hw_status hwx_op_ntt(hwx_library *l, hw_context *c, void *inout, uint32_t lg, uint32_t order, uint32_t flags,
                            char *message) {
    HWX_CALL(op_ntt, c, inout, lg, order, flags);
}
static hw_status hwx_op_msm(hwx_library *l, hw_context *c, uint32_t group, const void *points, const void *scalars,
                            uint64_t n, const hw_msm_options *o, void *out, hw_msm_stats *stats, char *message) {
    HWX_CALL(op_msm, c, group, points, scalars, n, o, out, stats);
}
static hw_status hwx_op_fixed_base(hwx_library *l, hw_context *c, uint32_t group, const void *base,
                                   const void *scalars, void *out, uint64_t n, char *message) {
    HWX_CALL(op_fixed_base, c, group, base, scalars, out, n);
}
static hw_status hwx_op_quotient(hwx_library *l, hw_context *c, void *a, const void *b, const void *cc, uint32_t lg,
                                 char *message) {
    HWX_CALL(op_quotient, c, a, b, cc, lg);
}
static hw_status hwx_bench(hwx_library *l, hw_context *c, const hw_bench_spec *spec, hw_bench_result *out,
                           char *message) {
    HWX_CALL(bench, c, spec, out);
}

#endif
