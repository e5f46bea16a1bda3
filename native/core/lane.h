// A lane is what one call holds of the device while it runs: a compute and a copy stream, memory
// of the arena, and the records of what it did there. Device code that allocates or launches gets a
// lane and touches nothing else of the context. Only one thread uses a lane at a time.
//
//     void msm(lane& on, …) {
//         on.begin_op("msm");                              // what follows is this operation's
//         auto keys = on.alloc<uint32_t>(n, "d_scratch");  // of the arena, until the scope ends
//         { span k(on, "sort"); sort<<<…>>>(…); }          // recorded by CUDA events
//         on.sync();                                       // waits, checks, resolves the times
//         on.attribute("window_bits", c);
//         on.end_op();
//     }
//
// Order: a buffer may be freed while the lane's own compute stream still works on it, and given out
// again to the same lane at once, since the stream keeps the order. It becomes free for other lanes
// only when this lane has synchronised (sync, or its end).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "core/failure.h"

namespace highwater {

class context;
class lane;

namespace rt {
struct stream; // a CUDA stream; on the twin, nothing
struct event;  // a CUDA event with timing; on the twin, a time
} // namespace rt

// Device memory of a lane, freed when it goes out of scope. T must be trivial; memory is 256-byte
// aligned and not zeroed.
template <class T> class device_array {
public:
    device_array() = default;
    device_array(lane* on, T* data, size_t size) : on_(on), data_(data), size_(size) {}
    device_array(device_array&& other) noexcept { *this = std::move(other); }
    device_array& operator=(device_array&& other) noexcept {
        std::swap(on_, other.on_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~device_array() { reset(); }
    void reset();
    T* data() const { return data_; }
    operator T*() const { return data_; } // NOLINT: kernels take it as a pointer
    size_t size() const { return size_; }

private:
    lane* on_ = nullptr;
    T* data_ = nullptr;
    size_t size_ = 0;
};

// Who a lane works for.
struct owner {
    int32_t job = -1, partition = -1;
};

class lane {
public:
    lane(context& of, uint32_t index, void* staging);
    ~lane();
    lane(const lane&) = delete;
    lane& operator=(const lane&) = delete;

    context& of() const { return of_; }
    int device() const; // CUDA's number of the device
    uint32_t index() const { return index_; }
    rt::stream* compute() const { return compute_; }
    rt::stream* copies() const { return copies_; }

    // Device memory. `cls` is the buffer's class in the events, a literal. Throws failure
    // HW_OUT_OF_DEVICE_MEMORY with the sizes. A size of 0 gives one byte's worth.
    void* alloc_bytes(uint64_t bytes, const char* cls);
    void free_bytes(void* data) noexcept;
    template <class T> device_array<T> alloc(size_t n, const char* cls) {
        return device_array<T>(this, static_cast<T*>(alloc_bytes(n * sizeof(T), cls)), n);
    }
    // The largest alloc that would succeed now, and the bound that the settings put on an MSM's
    // scratch (never above largest_free).
    uint64_t largest_free() const;
    uint64_t scratch_limit() const;
    // Most bytes that this lane held since its call began.
    uint64_t peak_bytes() const { return peak_; }

    // A page of pinned host memory of this lane, for small results; nothing else uses it during a
    // call.
    static constexpr size_t staging_bytes = 1 << 20;
    void* staging() const { return staging_; }

    // Copies on one of the lane's streams, recorded as spans copy_h2d, copy_d2h, copy_d2d, memset.
    void h2d(rt::stream* on, void* device, const void* host, uint64_t bytes);
    void d2h(rt::stream* on, void* host, const void* device, uint64_t bytes);
    void d2d(rt::stream* on, void* to, const void* from, uint64_t bytes);
    void zero(rt::stream* on, void* device, uint64_t bytes);
    // Makes `later` wait for all that is on `earlier` now.
    void order(rt::stream* earlier, rt::stream* later);

    // A point in a stream's time: stamp now, ask after the next sync. Works with recording off,
    // too.
    size_t stamp(rt::stream* on);
    int64_t stamp_ns(size_t stamp) const { return stamps_.at(stamp).ns; }

    // Operations nest: kernels, copies and attributes belong to the innermost. Names are literals.
    void begin_op(const char* name);
    void attribute(const char* name, uint64_t value);
    void end_op(); // its end is the compute stream's position now

    // Kernels: use span.
    void begin_kernel(const char* name, rt::stream* on);
    void end_kernel(rt::stream* on); // throws what the launches failed with

    // Waits for both streams, throws what they failed with, and puts all finished spans in the
    // ring.
    void sync();

    // Begins and ends a call: context::acquire and release do. end_call waits for the streams.
    void begin_call(owner who);
    void end_call() noexcept;
    owner who() const { return owner_; }

private:
    // One record whose time is known once its event has happened; without an event it takes the
    // time of the record before it.
    struct mark {
        hw_event record;
        rt::event* event;
    };
    struct open {
        uint64_t id;
        uint16_t name;
    };
    struct stamped {
        rt::event* event;
        int64_t ns;
    };

    // The last event recorded on a stream, while nothing has been put there behind it.
    struct tip {
        rt::event* event = nullptr;
        int64_t since_ns = 0;
    };

    tip& tip_of(const rt::stream* on) { return tips_[on == copies_]; }
    void busy(const rt::stream* on) { tip_of(on) = {}; } // something is put there
    rt::event* take_event(rt::stream* on);
    void add_mark(uint16_t kind, const open& span, rt::stream* on, uint64_t bytes, uint64_t arg);
    template <class F> void copy(const char* name, rt::stream* on, uint64_t bytes, F enqueue);
    void set_anchor();
    int64_t time_of(rt::event* e) const;
    void flush() noexcept;
    uint64_t operation() const { return ops_.empty() ? 0 : ops_.back().id; }

    context& of_;
    const uint32_t index_;
    rt::stream* compute_ = nullptr;
    rt::stream* copies_ = nullptr;
    rt::event* order_ = nullptr;
    void* staging_ = nullptr;
    owner owner_;
    uint64_t held_ = 0, peak_ = 0;
    std::vector<rt::event*> events_; // all of the lane's; the first used_ are on their way
    size_t used_ = 0;
    tip tips_[2];
    std::vector<mark> marks_;
    std::vector<stamped> stamps_;
    std::vector<open> ops_, kernels_;
    rt::event* anchor_ = nullptr; // happened at anchor_ns_
    int64_t anchor_ns_ = 0;
};

// Records the launches of its scope as one kernel span on the compute stream, and checks them.
class span {
public:
    span(lane& on, const char* name)
        : on_(on), stream_(on.compute()), unwinding_(std::uncaught_exceptions()) {
        on_.begin_kernel(name, stream_);
    }
    ~span() noexcept(false) {
        if (std::uncaught_exceptions() == unwinding_) {
            on_.end_kernel(stream_);
            return;
        }
        try {
            on_.end_kernel(stream_);
        } catch (const failure&) { // the first failure is the one to tell
        }
    }
    span(const span&) = delete;
    span& operator=(const span&) = delete;

private:
    lane& on_;
    rt::stream* stream_;
    int unwinding_;
};

template <class T> void device_array<T>::reset() {
    if (data_) on_->free_bytes(data_);
    data_ = nullptr;
    size_ = 0;
}

} // namespace highwater
