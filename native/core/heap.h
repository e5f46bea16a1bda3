// A heap is an arena with a lock, an owner of its memory, and a record of every block in the ring.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "core/arena.h"
#include "core/lane.h"
#include "core/ring.h"

namespace highwater {

// Where records go. With recording off (no ring) or paused nothing is written.
class recorder {
public:
    recorder(ring* to, int device) : ring_(to), device_(device) {}
    bool on() const { return ring_ && !paused_; }
    void pause(bool paused) { paused_ = paused; }
    uint64_t next_id() { return ids_.fetch_add(1, std::memory_order_relaxed) + 1; }
    int device() const { return device_; }
    // A record of now, of no stream.
    void put(uint16_t kind, uint16_t name, bool on_host, uint64_t id, uint64_t bytes, owner who,
             uint64_t arg = 0);

private:
    ring* const ring_;
    const int device_;
    std::atomic<uint64_t> ids_{0};
    bool paused_ = false; // only while the context is being made, by one thread
};

class heap {
public:
    struct block {
        void* data;
        uint64_t bytes, id;
    };
    struct figures {
        uint64_t bytes, used, peak, largest;
    };

    // `name` is the class of the whole range, whose buffer is recorded now. on_host: pinned memory.
    // apart: blocks are placed in the range as ever, and each is then an allocation of the driver's
    // (HW_CONFIG_SEPARATE_BLOCKS); the range itself stays untouched.
    heap(recorder& log, const char* name, bool on_host, void* base, uint64_t bytes,
         bool apart = false);
    // Records the range's end; its memory is the owner's to give back.
    ~heap();

    // No memory is the caller's to say: nullptr data then.
    block alloc(uint64_t bytes, const char* cls, uint32_t lane, owner who);
    // False when no block begins there.
    bool free(void* data, uint32_t lane, uint64_t* bytes = nullptr);
    void settle(uint32_t lane);
    figures now(uint32_t lane = arena::none);
    void reset_peak();

private:
    struct held {
        uint64_t bytes, id;
        uint16_t cls;
        owner who;
        void* place; // in the arena; where the block is, unless blocks are apart
    };
    recorder& log_;
    const bool on_host_, apart_;
    const uint16_t name_;
    const uint64_t id_;
    std::mutex lock_;
    arena arena_;
    std::unordered_map<void*, held> held_;
};

} // namespace highwater
