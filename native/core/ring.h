// The event ring: bounded, many producers, one consumer, no locks. A producer claims a cell with
// one compare-and-swap, fills it and publishes it; when no cell is free the record is counted as
// dropped and the producer goes on. (Vyukov's bounded queue; a cell's turn counts laps.)
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "highwater_native.h"

namespace highwater {

int64_t clock_ns();       // CLOCK_MONOTONIC
uint32_t thread_number(); // the kernel's tid of this thread

class ring {
public:
    // capacity is a power of two.
    explicit ring(uint32_t capacity);

    // Puts a record in, its seq aside. False when the ring was full: the loss is counted.
    bool push(const hw_event& e) noexcept;
    // Counts records that could not even be made.
    void lose(uint64_t n) noexcept { dropped_.fetch_add(n, std::memory_order_relaxed); }
    // Takes up to max records; one consumer at a time.
    size_t read(hw_event* out, size_t max) noexcept;
    void describe(hw_ring_info& out) const noexcept;

private:
    struct alignas(64) cell {
        std::atomic<uint64_t> turn; // position: free for the producer of that position; +1: filled
        unsigned char rest[sizeof(hw_event) - sizeof(uint64_t)];
    };
    static_assert(sizeof(hw_event) == 64 && sizeof(cell) == 64, "a record is one cache line");

    const uint32_t capacity_;
    std::unique_ptr<cell[]> cells_;
    alignas(64) std::atomic<uint64_t> head_{0}; // next position to write
    alignas(64) std::atomic<uint64_t> tail_{0}; // next position to read
    std::atomic<uint64_t> peak_{0};
    alignas(64) std::atomic<uint64_t> dropped_{0};
};

} // namespace highwater
