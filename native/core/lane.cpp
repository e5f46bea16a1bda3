#include "core/lane.h"

#include <algorithm>

#include "core/context.h"
#include "core/names.h"

namespace highwater {

namespace {
// Of a lane between two syncs; further spans are lost, and counted.
constexpr size_t max_events = 1 << 14;
constexpr int anchor_tries = 3;
// An event costs the stream some 2 us. Where one span ends and the next begins at once, the same
// event serves both: the stream had nothing between them, and waited no longer than this for the
// host.
constexpr int64_t same_ns = 3000;
} // namespace

lane::lane(context& of, uint32_t index, void* staging) : of_(of), index_(index), staging_(staging) {
    compute_ = rt::make_stream();
    copies_ = rt::make_stream();
    order_ = rt::make_event();
    anchor_ = rt::make_event();
}

lane::~lane() {
    for (rt::event* e : events_) rt::destroy(e);
    rt::destroy(order_);
    rt::destroy(anchor_);
    rt::destroy(compute_);
    rt::destroy(copies_);
}

int lane::device() const { return of_.device(); }

void* lane::alloc_bytes(uint64_t bytes, const char* cls) {
    heap::block b = of_.arena_heap().alloc(bytes, cls, index_, owner_);
    if (!b.data) of_.throw_out_of_memory(bytes, cls, index_);
    held_ += b.bytes;
    peak_ = std::max(peak_, held_);
    return b.data;
}

void lane::free_bytes(void* data) noexcept {
    uint64_t bytes = 0;
    of_.arena_heap().free(data, index_, &bytes);
    held_ -= bytes;
}

uint64_t lane::largest_free() const { return of_.arena_heap().now(index_).largest; }

uint64_t lane::scratch_limit() const {
    uint64_t bound = of_.config().msm_scratch_bytes;
    uint64_t free = largest_free();
    return bound ? std::min(bound, free) : free;
}

template <class F> void lane::copy(const char* name, rt::stream* on, uint64_t bytes, F enqueue) {
    if (!bytes) return;
    of_.count_operation(name);
    open span{of_.log().next_id(), of_.log().on() ? name_number(name) : uint16_t(0)};
    add_mark(HW_EVENT_COPY_BEGIN, span, on, bytes, operation());
    busy(on);
    enqueue();
    add_mark(HW_EVENT_COPY_END, span, on, bytes, operation());
}

void lane::h2d(rt::stream* on, void* device, const void* host, uint64_t bytes) {
    copy("copy_h2d", on, bytes, [&] { rt::h2d(on, device, host, bytes); });
}

void lane::d2h(rt::stream* on, void* host, const void* device, uint64_t bytes) {
    copy("copy_d2h", on, bytes, [&] { rt::d2h(on, host, device, bytes); });
}

void lane::d2d(rt::stream* on, void* to, const void* from, uint64_t bytes) {
    copy("copy_d2d", on, bytes, [&] { rt::d2d(on, to, from, bytes); });
}

void lane::zero(rt::stream* on, void* device, uint64_t bytes) {
    copy("memset", on, bytes, [&] { rt::zero(on, device, bytes); });
}

void lane::order(rt::stream* earlier, rt::stream* later) {
    // The wait refers to the event's state at this call: it may be recorded anew at once.
    rt::record(order_, earlier);
    busy(later);
    rt::wait(later, order_);
}

rt::event* lane::take_event(rt::stream* on) {
    tip& last = tip_of(on);
    if (last.event && clock_ns() - last.since_ns < same_ns) return last.event;
    if (used_ == events_.size()) {
        if (used_ == max_events) return nullptr;
        events_.push_back(rt::make_event());
    }
    rt::event* e = events_[used_++];
    rt::record(e, on);
    last = {e, clock_ns()};
    return e;
}

void lane::add_mark(uint16_t kind, const open& span, rt::stream* on, uint64_t bytes, uint64_t arg) {
    if (!of_.log().on()) return;
    rt::event* event = on ? take_event(on) : nullptr;
    if (on && !event) return of_.events().lose(1);
    hw_event e{};
    e.kind = kind;
    e.name = span.name;
    e.device = int16_t(device());
    e.stream = uint16_t(on == copies_ ? index_ * 2 + 1 : index_ * 2);
    e.id = span.id;
    e.bytes = bytes;
    e.job = owner_.job;
    e.partition = owner_.partition;
    e.thread = thread_number();
    e.arg = arg;
    marks_.push_back({e, event});
}

size_t lane::stamp(rt::stream* on) {
    stamps_.push_back({take_event(on), 0});
    return stamps_.size() - 1;
}

void lane::begin_op(const char* name) {
    open op{of_.log().next_id(), of_.log().on() ? name_number(name) : uint16_t(0)};
    add_mark(HW_EVENT_OP_BEGIN, op, compute_, 0, operation());
    ops_.push_back(op);
}

void lane::attribute(const char* name, uint64_t value) {
    if (ops_.empty() || !of_.log().on()) return;
    add_mark(HW_EVENT_ATTRIBUTE, {operation(), name_number(name)}, nullptr, 0, value);
}

void lane::end_op() {
    if (ops_.empty()) return;
    open op = ops_.back();
    ops_.pop_back();
    add_mark(HW_EVENT_OP_END, op, compute_, 0, operation());
}

void lane::begin_kernel(const char* name, rt::stream* on) {
    of_.count_operation(name);
    open kernel{of_.log().next_id(), of_.log().on() ? name_number(name) : uint16_t(0)};
    add_mark(HW_EVENT_KERNEL_BEGIN, kernel, on, 0, operation());
    busy(on);
    kernels_.push_back(kernel);
}

void lane::end_kernel(rt::stream* on) {
    if (kernels_.empty()) return;
    open kernel = kernels_.back();
    kernels_.pop_back();
    busy(on); // launches may follow a copy within the span
    add_mark(HW_EVENT_KERNEL_END, kernel, on, 0, operation());
    rt::check_launch();
}

void lane::sync() {
    rt::synchronise(copies_);
    rt::synchronise(compute_);
    of_.arena_heap().settle(index_);
    flush();
}

// Finds the host's time of an event: the stream is idle, so it happens between two readings of the
// clock. The closest of a few pairs bounds the error.
void lane::set_anchor() {
    int64_t best = INT64_MAX;
    for (int i = 0; i < anchor_tries; i++) {
        rt::event* e = i == 0 ? anchor_ : order_;
        int64_t before = clock_ns();
        rt::record(e, compute_);
        rt::synchronise(compute_);
        int64_t after = clock_ns();
        if (after - before >= best) continue;
        best = after - before;
        anchor_ns_ = before + best / 2;
        if (e != anchor_) std::swap(anchor_, order_);
    }
    of_.saw_clock_error(best / 2 + 1);
}

int64_t lane::time_of(rt::event* e) const { return anchor_ns_ + rt::elapsed_ns(anchor_, e); }

void lane::flush() noexcept {
    int64_t now = clock_ns(), time = anchor_ns_;
    size_t done = 0;
    try {
        for (stamped& s : stamps_) {
            if (s.event) s.ns = std::min(time_of(s.event), now);
            s.event = nullptr;
        }
        for (; done < marks_.size(); done++) {
            mark& m = marks_[done];
            if (m.event) time = std::min(time_of(m.event), now);
            m.record.time_ns = time;
            of_.events().push(m.record);
        }
    } catch (const failure&) { // the device is gone: these times will never be known
        of_.events().lose(marks_.size() - done);
    }
    marks_.clear();
    tips_[0] = tips_[1] = {};
    used_ = 0;
}

void lane::begin_call(owner who) {
    owner_ = who;
    held_ = peak_ = 0;
    stamps_.clear();
    set_anchor();
}

// What the call left open (it failed) ends now.
void lane::end_call() noexcept {
    try {
        while (!kernels_.empty()) {
            add_mark(HW_EVENT_KERNEL_END, kernels_.back(), compute_, 0, operation());
            kernels_.pop_back();
        }
        while (!ops_.empty()) end_op();
        sync();
    } catch (const failure& f) {
        if (f.status() == HW_DEVICE_LOST) of_.lose();
        kernels_.clear();
        ops_.clear();
        of_.arena_heap().settle(index_);
        flush();
    }
    owner_ = owner{};
}

} // namespace highwater
