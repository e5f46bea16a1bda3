#include "core/context.h"

#include <algorithm>
#include <sstream>

#include "core/names.h"
#include "core/warmup.h"

namespace highwater {

namespace {

// The driver gives device memory in pieces of this size.
constexpr uint64_t driver_granule = 2 << 20;
constexpr uint32_t default_lanes = 2, max_lanes = 64;
constexpr uint32_t default_ring = 1 << 16, max_ring = 1 << 24;

hw_config checked(hw_config c) {
    if (c.lanes == 0) c.lanes = default_lanes;
    if (c.ring_records == 0) c.ring_records = default_ring;
    if (c.lanes > max_lanes)
        throw failure(HW_INVALID_ARGUMENT, "create context: more than 64 lanes");
    if (c.ring_records & (c.ring_records - 1) || c.ring_records > max_ring) {
        throw failure(HW_INVALID_ARGUMENT,
                      "create context: ring_records is no power of two up to 2^24");
    }
    uint32_t devices = rt::device_count();
    if (c.device < 0 || uint32_t(c.device) >= devices) {
        throw failure(HW_NO_DEVICE, "create context: device " + std::to_string(c.device) +
                                        " asked for, " + std::to_string(devices) + " found");
    }
    return c;
}

} // namespace

context::context(const hw_config& config)
    : config_(checked(config)), ring_(config_.ring_records),
      log_(config_.flags & HW_CONFIG_NO_EVENTS ? nullptr : &ring_, config_.device) {
    try {
        base_ = rt::driver_memory(config_.device);
        rt::open(config_.device);
        take_pool();
        take_arena();
        log_.pause(true);
        warm_up(*lanes_[0]);
        log_.pause(false);
        arena_->reset_peak();
        measure_context();
        ready_ = true;
    } catch (...) {
        give_back();
        throw;
    }
}

context::~context() {
    try {
        rt::use(config_.device);
    } catch (const failure&) { // the frees below will say so to nobody
    }
    give_back();
}

void context::give_back() noexcept {
    lanes_.clear();
    for (auto& [data, p] : registered_) {
        try {
            rt::unpin(data);
        } catch (const failure&) { // the driver unpins at the process's end
        }
    }
    if (context_id_) {
        log_.put(HW_EVENT_FREE, name_number("context"), false, context_id_, context_bytes_,
                 owner{});
    }
    arena_.reset();
    pool_.reset();
    if (arena_base_) rt::device_free(arena_base_);
    if (pool_base_) rt::pinned_free(pool_base_, staging_bytes() + config_.pinned_pool_bytes);
    arena_base_ = pool_base_ = nullptr;
}

// One pinned range: the lanes' staging pages first, then the pool.
void context::take_pool() {
    const uint64_t staging = staging_bytes();
    pool_base_ = rt::pinned_alloc(staging + config_.pinned_pool_bytes);
    char* base = static_cast<char*>(pool_base_);
    log_.put(HW_EVENT_ALLOC, name_number("pinned_staging"), true, log_.next_id(), staging, owner{});
    pool_ = std::make_unique<heap>(log_, "pinned_pool", true, base + staging,
                                   config_.pinned_pool_bytes);
    for (uint32_t i = 0; i < config_.lanes; i++) {
        lanes_.push_back(std::make_unique<lane>(*this, i, base + i * lane::staging_bytes));
        free_lanes_.push_back(lanes_.back().get());
    }
    held_ids_.resize(config_.lanes);
    holders_.resize(config_.lanes);
}

void context::take_arena() {
    uint64_t free = rt::free_bytes();
    if (config_.fault_device_bytes) free = std::min(free, config_.fault_device_bytes);
    uint64_t want = config_.arena_bytes ? config_.arena_bytes : free / 10 * 9;
    want = (want + driver_granule - 1) / driver_granule * driver_granule;
    if (want > free) {
        std::ostringstream text;
        text << "create context: arena of " << want << " bytes wanted, device " << config_.device
             << " has " << free << " bytes free";
        throw failure(HW_OUT_OF_DEVICE_MEMORY, text.str());
    }
    arena_base_ = rt::device_alloc(want);
    arena_ = std::make_unique<heap>(log_, "d_arena", false, arena_base_, want,
                                    (config_.flags & HW_CONFIG_SEPARATE_BLOCKS) != 0);
}

// Code, tables, streams, events and what the driver keeps for itself, by the driver's own figures.
// Another process that takes or gives back memory of the device meanwhile would be counted in.
void context::measure_context() {
    rt::memory now = rt::driver_memory(config_.device);
    if (!now.known || !base_.known) return;
    uint64_t arena = arena_->now().bytes;
    if (now.used < base_.used + arena) return;
    context_bytes_ = now.used - base_.used - arena;
    if (!context_bytes_) return; // another context of this process has taken it all
    context_id_ = log_.next_id();
    log_.put(HW_EVENT_ALLOC, name_number("context"), false, context_id_, context_bytes_, owner{});
}

void context::memory(hw_memory_info& out) {
    rt::memory now = rt::driver_memory(config_.device);
    out.driver_known = now.known && base_.known;
    if (out.driver_known) {
        out.driver_used_bytes = now.used;
        out.driver_base_bytes = base_.used;
        out.driver_total_bytes = now.total;
    }
    out.context_bytes = context_bytes_;
    heap::figures arena = arena_->now(), pool = pool_->now();
    out.arena_bytes = arena.bytes;
    out.arena_used_bytes = arena.used;
    out.arena_peak_bytes = arena.peak;
    out.arena_largest_free_bytes = arena.largest;
    out.pool_bytes = pool.bytes;
    out.pool_used_bytes = pool.used;
    out.pool_peak_bytes = pool.peak;
    out.clock_error_ns = clock_error_.load();
    std::lock_guard<std::mutex> hold(pinned_lock_);
    out.registered_bytes = registered_bytes_;
}

void context::reset_peaks() {
    arena_->reset_peak();
    pool_->reset_peak();
}

lane& context::acquire(owner who) {
    check_lost();
    rt::use(config_.device);
    lane* got;
    {
        std::unique_lock<std::mutex> hold(lanes_lock_);
        uint64_t id = log_.next_id();
        log_.put(HW_EVENT_LOCK_WAIT, name_number("lane"), false, id, 0, who);
        const uint64_t ticket = next_ticket_++;
        lane_freed_.wait(hold, [&] { return !free_lanes_.empty() && serving_ == ticket; });
        serving_++;
        got = free_lanes_.back();
        free_lanes_.pop_back();
        held_ids_[got->index()] = id;
        holders_[got->index()] = who;
        log_.put(HW_EVENT_LOCK_ACQUIRE, name_number("lane"), false, id, 0, who);
    }
    lane_freed_.notify_all(); // the next in line may find another lane free
    try {
        got->begin_call(who);
    } catch (...) {
        release(*got);
        throw;
    }
    return *got;
}

void context::release(lane& l) noexcept {
    l.end_call();
    {
        std::lock_guard<std::mutex> hold(lanes_lock_);
        free_lanes_.push_back(&l);
        log_.put(HW_EVENT_LOCK_RELEASE, name_number("lane"), false, held_ids_[l.index()], 0,
                 holders_[l.index()]);
    }
    lane_freed_.notify_all();
}

void* context::alloc_resident(uint64_t bytes, const char* cls) {
    heap::block b = arena_->alloc(bytes, cls, arena::none, owner{});
    if (!b.data) throw_out_of_memory(bytes, cls, arena::none);
    return b.data;
}

void context::free_resident(void* data) noexcept {
    if (data) arena_->free(data, arena::none);
}

void context::throw_out_of_memory(uint64_t wanted, const char* cls, uint32_t lane) {
    heap::figures now = arena_->now(lane);
    std::ostringstream text;
    text << "out of device memory: " << wanted << " bytes for " << cls << " wanted, arena of "
         << now.bytes << " bytes has " << now.bytes - now.used << " free, largest block "
         << now.largest;
    throw failure(HW_OUT_OF_DEVICE_MEMORY, text.str());
}

void context::count_operation(const char* what) {
    if (!config_.fault_operation || !ready_) return;
    if (operations_.fetch_add(1) + 1 == config_.fault_operation) {
        throw failure(HW_DEVICE_ERROR, std::string("injected fault at ") + what);
    }
}

void context::saw_clock_error(int64_t ns) {
    int64_t seen = clock_error_.load();
    while (ns > seen && !clock_error_.compare_exchange_weak(seen, ns)) {}
}

void context::check_lost() const {
    if (lost_.load()) {
        throw failure(HW_DEVICE_LOST, "device " + std::to_string(config_.device) +
                                          " failed before in a way that ends its context");
    }
}

} // namespace highwater
