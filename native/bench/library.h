// The library under measurement, loaded at run time like any other program does.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "highwater_native.h"

namespace bench {

[[noreturn]] inline void die(const std::string& what) {
    fprintf(stderr, "highwater-native-bench: %s\n", what.c_str());
    exit(1);
}

struct library {
#define HW_BENCH_FUNCTIONS(F)                                                                      \
    F(hw_abi_version)                                                                              \
    F(hw_backend) F(hw_build_info) F(hw_last_error) F(hw_device_describe) F(hw_context_create)     \
        F(hw_context_destroy) F(hw_context_memory) F(hw_bench) F(hw_host_alloc) F(hw_host_free)    \
            F(hw_srs_setup) F(hw_srs_destroy) F(hw_prove_start) F(hw_op_field) F(hw_ring_describe) \
                F(hw_ring_read) F(hw_name) F(hw_context_reset_peaks)
#define HW_BENCH_DECLARE(name) decltype(&::name) name = nullptr;
    HW_BENCH_FUNCTIONS(HW_BENCH_DECLARE)
#undef HW_BENCH_DECLARE

    explicit library(const std::string& path) {
        void* so = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!so) die(std::string("load library: ") + dlerror());
#define HW_BENCH_LOAD(name)                                                                        \
    name = reinterpret_cast<decltype(name)>(dlsym(so, #name));                                     \
    if (!name) die(path + " lacks " #name);
        HW_BENCH_FUNCTIONS(HW_BENCH_LOAD)
#undef HW_BENCH_LOAD
        if (hw_abi_version() != HW_ABI_VERSION) die(path + " has another version of the interface");
    }

    void must(hw_status status, const char* what) const {
        if (status != HW_OK) die(std::string(what) + ": " + hw_last_error());
    }

    // All events that wait in the ring, which nobody else reads.
    std::vector<hw_event> take_events(hw_context* context) const {
        std::vector<hw_event> all, some(1 << 14);
        for (size_t n = 1; n;) {
            must(hw_ring_read(context, some.data(), some.size(), &n), "read events");
            all.insert(all.end(), some.begin(), some.begin() + long(n));
        }
        return all;
    }
};

} // namespace bench
