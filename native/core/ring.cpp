#include "core/ring.h"

#include <cstring>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace highwater {

int64_t clock_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

uint32_t thread_number() {
    thread_local const uint32_t tid = uint32_t(syscall(SYS_gettid));
    return tid;
}

ring::ring(uint32_t capacity) : capacity_(capacity), cells_(new cell[capacity]) {
    for (uint32_t i = 0; i < capacity; i++) cells_[i].turn.store(i, std::memory_order_relaxed);
}

bool ring::push(const hw_event& e) noexcept {
    uint64_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
        cell& c = cells_[at & (capacity_ - 1)];
        uint64_t turn = c.turn.load(std::memory_order_acquire);
        if (turn == at) {
            if (!head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) continue;
            memcpy(c.rest, reinterpret_cast<const char*>(&e) + sizeof(uint64_t), sizeof c.rest);
            c.turn.store(at + 1, std::memory_order_release);
            return true;
        }
        if (turn < at) { // the consumer has not freed the cell of the lap before
            dropped_.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        at = head_.load(std::memory_order_relaxed);
    }
}

size_t ring::read(hw_event* out, size_t max) noexcept {
    uint64_t at = tail_.load(std::memory_order_relaxed);
    uint64_t waiting = head_.load(std::memory_order_relaxed) - at;
    if (waiting > peak_.load(std::memory_order_relaxed)) {
        peak_.store(waiting, std::memory_order_relaxed);
    }
    size_t n = 0;
    for (; n < max; n++, at++) {
        cell& c = cells_[at & (capacity_ - 1)];
        if (c.turn.load(std::memory_order_acquire) != at + 1) break;
        out[n].seq = at;
        memcpy(reinterpret_cast<char*>(&out[n]) + sizeof(uint64_t), c.rest, sizeof c.rest);
        c.turn.store(at + capacity_, std::memory_order_release);
    }
    tail_.store(at, std::memory_order_relaxed);
    return n;
}

void ring::describe(hw_ring_info& out) const noexcept {
    uint64_t tail = tail_.load(std::memory_order_relaxed);
    uint64_t head = head_.load(std::memory_order_relaxed);
    out.capacity = capacity_;
    out.written = head;
    out.dropped = dropped_.load(std::memory_order_relaxed);
    out.waiting = head > tail ? head - tail : 0;
    out.peak_waiting = peak_.load(std::memory_order_relaxed);
}

} // namespace highwater
