// What every function of the C interface does round its body: check the structs' sizes, run, turn a
// failure into a status and this thread's message.
#pragma once

#include <cstring>
#include <new>
#include <string>

#include "core/context.h"

namespace highwater {

// This thread's last message.
std::string& last_error();
hw_status fail(hw_status status, const std::string& message) noexcept;

template <class F> hw_status guarded(context* of, F body) noexcept {
    try {
        last_error().clear();
        body();
        return HW_OK;
    } catch (const failure& f) {
        if (f.status() == HW_DEVICE_LOST && of) of->lose();
        return fail(f.status(), f.what());
    } catch (const std::bad_alloc&) {
        return fail(HW_OUT_OF_HOST_MEMORY, "out of host memory");
    } catch (const std::exception& e) {
        return fail(HW_INTERNAL, e.what());
    } catch (...) {
        return fail(HW_INTERNAL, "unknown exception");
    }
}

inline void need(bool ok, const char* what) {
    if (!ok) throw failure(HW_INVALID_ARGUMENT, what);
}

// A caller's struct in the size this library knows: fields that an older caller lacks are zero.
template <class T> T in_struct(const T* given, const char* what) {
    T own{};
    need(given != nullptr, what);
    need(given->struct_bytes >= sizeof(uint32_t) && given->struct_bytes <= 4096, what);
    memcpy(&own, given, given->struct_bytes < sizeof own ? given->struct_bytes : sizeof own);
    own.struct_bytes = sizeof own;
    return own;
}

// Writes an answer into a caller's struct, as far as it reaches.
template <class T> void out_struct(T* given, T own) {
    const uint32_t bytes = given->struct_bytes;
    own.struct_bytes = bytes;
    memcpy(given, &own, bytes < sizeof own ? bytes : sizeof own);
}

} // namespace highwater

struct hw_context : highwater::context {
    using context::context;
};
