// A context owns one device's share of this process: arena, pinned pool, lanes, event ring.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/heap.h"
#include "core/lane.h"
#include "core/ring.h"
#include "core/runtime.h"

namespace highwater {

class context {
public:
    explicit context(const hw_config& config);
    ~context();
    context(const context&) = delete;
    context& operator=(const context&) = delete;

    int device() const { return config_.device; }
    const hw_config& config() const { return config_; }
    recorder& log() { return log_; }
    ring& events() { return ring_; }
    heap& arena_heap() { return *arena_; }
    heap& pool_heap() { return *pool_; }

    void memory(hw_memory_info& out);
    void reset_peaks();

    // Waits for a lane; the calls' order is theirs to settle.
    lane& acquire(owner who);
    void release(lane& l) noexcept;

    // Device memory that outlives a call: keys.
    void* alloc_resident(uint64_t bytes, const char* cls);
    void free_resident(void* data) noexcept;
    [[noreturn]] void throw_out_of_memory(uint64_t wanted, const char* cls, uint32_t lane);

    void* host_alloc(uint64_t bytes, const char* cls, owner who, uint64_t* id);
    void host_free(void* data);
    void host_register(void* data, uint64_t bytes, const char* cls, owner who, uint64_t* id);
    void host_unregister(void* data);

    // Counts a device operation, and fails it when the configuration says so.
    void count_operation(const char* what);
    void saw_clock_error(int64_t ns);
    // A sticky error was seen: nothing more runs here.
    void lose() noexcept { lost_.store(true); }
    void check_lost() const;

private:
    struct pinned {
        uint64_t bytes, id;
        uint16_t cls;
        owner who;
    };
    struct waiting {
        uint64_t id;
        owner who;
    };

    uint64_t staging_bytes() const { return config_.lanes * lane::staging_bytes; }
    void take_arena();
    void take_pool();
    void measure_context();
    void give_back() noexcept;

    hw_config config_;
    ring ring_;
    recorder log_;
    rt::memory base_{}; // before anything of this context
    uint64_t context_bytes_ = 0, context_id_ = 0;
    void* arena_base_ = nullptr;
    void* pool_base_ = nullptr;
    std::unique_ptr<heap> arena_, pool_;
    std::vector<std::unique_ptr<lane>> lanes_;

    std::mutex lanes_lock_;
    std::condition_variable lane_freed_;
    uint64_t next_ticket_ = 0, serving_ = 0; // lanes go to those who wait in their order
    std::vector<lane*> free_lanes_;
    std::vector<uint64_t> held_ids_; // by lane index: the request that holds it
    std::vector<owner> holders_;

    std::mutex pinned_lock_;
    std::map<void*, pinned> registered_;
    uint64_t registered_bytes_ = 0;

    bool ready_ = false; // made; faults count from here
    std::atomic<uint64_t> operations_{0};
    std::atomic<int64_t> clock_error_{-1};
    std::atomic<bool> lost_{false};
};

// A lane for a scope.
class call {
public:
    call(context& c, owner who) : context_(c), lane_(c.acquire(who)) {}
    ~call() { context_.release(lane_); }
    call(const call&) = delete;
    call& operator=(const call&) = delete;
    lane& on() { return lane_; }

private:
    context& context_;
    lane& lane_;
};

} // namespace highwater
