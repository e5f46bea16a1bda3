// Pinned host memory of a context: blocks of the pool, and memory that the caller registers.
#include "core/context.h"
#include "core/names.h"

namespace highwater {

void* context::host_alloc(uint64_t bytes, const char* cls, owner who, uint64_t* id) {
    heap::block b = pool_->alloc(bytes, cls, arena::none, who);
    if (!b.data) {
        heap::figures now = pool_->now();
        throw failure(HW_OUT_OF_PINNED_MEMORY,
                      "out of pinned memory: " + std::to_string(bytes) + " bytes for " + cls +
                          " wanted, pool of " + std::to_string(now.bytes) + " bytes has " +
                          std::to_string(now.bytes - now.used) + " free, largest block " +
                          std::to_string(now.largest));
    }
    if (id) *id = b.id;
    return b.data;
}

void context::host_free(void* data) {
    if (!pool_->free(data, arena::none)) {
        throw failure(HW_INVALID_ARGUMENT, "free pinned memory: no block of the pool begins there");
    }
}

void context::host_register(void* data, uint64_t bytes, const char* cls, owner who, uint64_t* id) {
    std::lock_guard<std::mutex> hold(pinned_lock_);
    if (registered_.count(data)) {
        throw failure(HW_INVALID_ARGUMENT, "register host memory: it is registered already");
    }
    rt::use(config_.device);
    rt::pin(data, bytes);
    pinned p{bytes, log_.next_id(), name_number(cls), who};
    registered_.emplace(data, p);
    registered_bytes_ += bytes;
    log_.put(HW_EVENT_PIN, p.cls, true, p.id, bytes, who);
    if (id) *id = p.id;
}

void context::host_unregister(void* data) {
    std::lock_guard<std::mutex> hold(pinned_lock_);
    auto it = registered_.find(data);
    if (it == registered_.end()) {
        throw failure(HW_INVALID_ARGUMENT, "unregister host memory: it is not registered");
    }
    const pinned p = it->second;
    log_.put(HW_EVENT_UNPIN, p.cls, true, p.id, p.bytes, p.who);
    registered_.erase(it);
    registered_bytes_ -= p.bytes;
    rt::use(config_.device);
    rt::unpin(data);
}

} // namespace highwater
