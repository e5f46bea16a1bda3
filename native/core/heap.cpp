#include "core/heap.h"

#include <algorithm>

#include "core/names.h"
#include "core/runtime.h"

namespace highwater {

namespace {
constexpr uint64_t device_alignment = 256, host_alignment = 4096;
}

void recorder::put(uint16_t kind, uint16_t name, bool on_host, uint64_t id, uint64_t bytes,
                   owner who, uint64_t arg) {
    if (!on()) return;
    hw_event e{};
    e.time_ns = clock_ns();
    e.kind = kind;
    e.name = name;
    e.device = int16_t(on_host ? -1 : device_);
    e.stream = 0xffff;
    e.id = id;
    e.bytes = bytes;
    e.job = who.job;
    e.partition = who.partition;
    e.thread = thread_number();
    e.arg = arg;
    ring_->push(e);
}

heap::heap(recorder& log, const char* name, bool on_host, void* base, uint64_t bytes, bool apart)
    : log_(log), on_host_(on_host), apart_(apart), name_(name_number(name)), id_(log.next_id()),
      arena_(base, bytes, on_host ? host_alignment : device_alignment) {
    if (bytes) log_.put(HW_EVENT_ALLOC, name_, on_host_, id_, bytes, owner{});
}

heap::~heap() {
    for (auto& [data, h] : held_) {
        log_.put(HW_EVENT_FREE, h.cls, on_host_, h.id, h.bytes, h.who, id_);
        if (apart_) rt::device_free(data);
    }
    if (arena_.bytes()) log_.put(HW_EVENT_FREE, name_, on_host_, id_, arena_.bytes(), owner{});
}

heap::block heap::alloc(uint64_t bytes, const char* cls, uint32_t lane, owner who) {
    uint16_t name = name_number(cls);
    std::lock_guard<std::mutex> hold(lock_);
    void *place = arena_.alloc(bytes, lane), *data = place;
    if (!place) return {nullptr, 0, 0};
    if (apart_) {
        try {
            data = rt::device_alloc(std::max<uint64_t>(bytes, 1));
        } catch (...) {
            arena_.free(place, lane);
            throw;
        }
    }
    held h{arena_.rounded(bytes), log_.next_id(), name, who, place};
    held_.emplace(data, h);
    log_.put(HW_EVENT_ALLOC, name, on_host_, h.id, h.bytes, who, id_);
    return {data, h.bytes, h.id};
}

bool heap::free(void* data, uint32_t lane, uint64_t* bytes) {
    std::lock_guard<std::mutex> hold(lock_);
    auto it = held_.find(data);
    if (it == held_.end()) return false;
    const held h = it->second;
    held_.erase(it);
    log_.put(HW_EVENT_FREE, h.cls, on_host_, h.id, h.bytes, h.who, id_);
    arena_.free(h.place, lane);
    if (apart_) rt::device_free(data); // waits for the device
    if (bytes) *bytes = h.bytes;
    return true;
}

void heap::settle(uint32_t lane) {
    std::lock_guard<std::mutex> hold(lock_);
    arena_.settle(lane);
}

heap::figures heap::now(uint32_t lane) {
    std::lock_guard<std::mutex> hold(lock_);
    return {arena_.bytes(), arena_.used(), arena_.peak(), arena_.largest(lane)};
}

void heap::reset_peak() {
    std::lock_guard<std::mutex> hold(lock_);
    arena_.reset_peak();
}

} // namespace highwater
