// A context of the twin for a test, and its events.
#pragma once

#include <cstdlib>
#include <vector>

#include "check.h"
#include "highwater_native.h"

namespace test {

constexpr uint64_t mib = 1 << 20;

// With HW_TEST_SEPARATE set, blocks of device memory are allocations of their own: for checkers.
inline hw_config config(uint64_t arena_bytes = 64 * mib) {
    hw_config c{};
    c.struct_bytes = sizeof c;
    c.arena_bytes = arena_bytes;
    c.pinned_pool_bytes = mib;
    if (getenv("HW_TEST_SEPARATE")) c.flags = HW_CONFIG_SEPARATE_BLOCKS;
    return c;
}

class context {
public:
    explicit context(const hw_config& c = config()) { CHECK_OK(hw_context_create(&c, &handle_)); }
    ~context() { hw_context_destroy(handle_); }
    context(const context&) = delete;
    context& operator=(const context&) = delete;
    operator hw_context*() const { return handle_; } // NOLINT

    std::vector<hw_event> events() {
        std::vector<hw_event> all(1 << 16);
        size_t n = 0;
        CHECK_OK(hw_ring_read(handle_, all.data(), all.size(), &n));
        all.resize(n);
        return all;
    }
    hw_memory_info memory() {
        hw_memory_info info{};
        info.struct_bytes = sizeof info;
        CHECK_OK(hw_context_memory(handle_, &info));
        return info;
    }

private:
    hw_context* handle_ = nullptr;
};

} // namespace test
