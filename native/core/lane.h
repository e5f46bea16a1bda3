// A lane is what one call holds of the device while it runs: a compute stream, a copy stream, memory of
// the arena, and the records of what it did there. Device code that allocates or launches gets a lane and
// touches nothing else of the context. Only one thread uses a lane at a time.
//
//     void msm(lane& on, …) {
//         on.begin_op("msm");                                   // a span; later attributes and kernels are its
//         auto keys = on.alloc<uint32_t>(n, "d_scratch");       // of the arena; freed at the end of its scope
//         { span k(on, "sort"); sort<<<…, stream(on)>>>(…); }   // recorded with CUDA events, if recording is on
//         on.sync();                                            // waits, checks, resolves the events' times
//         on.attribute("window_bits", c);
//         on.end_op();
//     }
//
// Order: a buffer may be freed while the lane's own compute stream still works on it, and given out again
// to the same lane at once, since the stream keeps the order. It becomes free for other lanes only when
// this lane has synchronised (sync, or its end).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "failure.h"

namespace highwater {

class context;
class lane;

namespace rt {
struct stream;  // a CUDA stream; on the twin, nothing
struct event;   // a CUDA event with timing; on the twin, a time
} // namespace rt

// Device memory of a lane, freed when it goes out of scope. T must be trivial; memory is 256-byte aligned
// and not zeroed.
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
    lane(context& of, uint32_t index);
    ~lane();
    lane(const lane&) = delete;
    lane& operator=(const lane&) = delete;

    context& of() const { return of_; }
    int device() const;                 // CUDA's number of the device
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
    // The largest alloc that would succeed now, and the bound that the settings put on an MSM's scratch
    // (never above largest_free).
    uint64_t largest_free() const;
    uint64_t scratch_limit() const;
    // Most bytes that this lane held since its call began.
    uint64_t peak_bytes() const { return peak_; }

    // A page of pinned host memory of this lane, for small results; nothing else uses it during a call.
    static constexpr size_t staging_bytes = 1 << 20;
    void* staging() const { return staging_; }

    // Copies on one of the lane's streams, recorded as spans copy_h2d, copy_d2h, copy_d2d, memset.
    void h2d(rt::stream* on, void* device, const void* host, uint64_t bytes);
    void d2h(rt::stream* on, void* host, const void* device, uint64_t bytes);
    void d2d(rt::stream* on, void* to, const void* from, uint64_t bytes);
    void zero(rt::stream* on, void* device, uint64_t bytes);
    // Makes `later` wait for all that is on `earlier` now.
    void order(rt::stream* earlier, rt::stream* later);

    // Operations nest: kernels, copies and attributes belong to the innermost. Names are literals.
    void begin_op(const char* name);
    void attribute(const char* name, uint64_t value);
    void end_op(); // its end is the compute stream's position now

    // Kernels: use span. mark_* record an event on the stream, where recording is on.
    void begin_kernel(const char* name, rt::stream* on);
    void end_kernel(rt::stream* on);

    // Waits for both streams, throws what they failed with, and puts all finished spans in the ring.
    void sync();

    // Begins and ends a call: see context::acquire.
    void begin_call(owner who);
    void end_call() noexcept;

private:
    friend class span;
    struct mark {               // one begin or end on a stream, its time known after sync
        uint16_t kind, name, stream;
        uint64_t id, bytes, arg;
        rt::event* event;       // null: `time` is known already, or it is an attribute
    };
    struct buffer { void* data; uint64_t bytes; };

    rt::event* take_event(rt::stream* on);
    uint64_t open_span(uint16_t kind, const char* name, rt::stream* on, uint64_t bytes);
    void close_span(uint16_t kind, const char* name, rt::stream* on, uint64_t id, uint64_t bytes);
    void flush() noexcept;
    uint16_t stream_number(const rt::stream* on) const;

    context& of_;
    const uint32_t index_;
    rt::stream* compute_ = nullptr;
    rt::stream* copies_ = nullptr;
    void* staging_ = nullptr;
    owner owner_;
    uint64_t held_ = 0, peak_ = 0;
    std::vector<mark> marks_;
    std::vector<rt::event*> events_; // all of the lane's, the first used_ of them on their way
    size_t used_ = 0;
    struct open { uint64_t id; const char* name; rt::stream* on; };
    std::vector<open> ops_, kernels_;
    rt::event* anchor_ = nullptr;
    int64_t anchor_ns_ = 0;
    std::vector<buffer> live_;       // of this call
};

// Records the launches of its scope as one kernel span on the compute stream. Checks them at its end.
class span {
public:
    span(lane& on, const char* name) : on_(on), stream_(on.compute()) { on_.begin_kernel(name, stream_); }
    ~span() noexcept(false) { on_.end_kernel(stream_); }
    span(const span&) = delete;
    span& operator=(const span&) = delete;

private:
    lane& on_;
    rt::stream* stream_;
};

template <class T> void device_array<T>::reset() {
    if (data_) on_->free_bytes(data_);
    data_ = nullptr;
    size_ = 0;
}

} // namespace highwater
