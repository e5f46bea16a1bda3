#include "core/arena.h"

#include <algorithm>

namespace highwater {

arena::arena(void* base, uint64_t bytes, uint64_t alignment)
    : base_(static_cast<char*>(base)), bytes_(bytes / alignment * alignment),
      alignment_(alignment) {
    if (bytes_) blocks_[0] = {bytes_, state::free, none};
}

uint64_t arena::rounded(uint64_t bytes) const {
    bytes = std::max<uint64_t>(bytes, 1);
    if (bytes > UINT64_MAX - alignment_) return UINT64_MAX;
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
}

arena::run arena::run_at(blocks::const_iterator first, uint32_t lane) const {
    run r{first, 0};
    for (; r.end != blocks_.end(); ++r.end) {
        const block& b = r.end->second;
        bool own = b.is == state::waiting && b.lane == lane && lane != none;
        if (b.is != state::free && !own) break;
        r.bytes += b.bytes;
    }
    return r;
}

void* arena::alloc(uint64_t bytes, uint32_t lane) {
    bytes = rounded(bytes);
    auto best = blocks_.cend();
    run chosen{best, UINT64_MAX};
    for (auto it = blocks_.cbegin(); it != blocks_.cend();) {
        run r = run_at(it, lane);
        if (r.bytes >= bytes && r.bytes < chosen.bytes) best = it, chosen = r;
        it = r.end == it ? std::next(it) : r.end;
    }
    if (best == blocks_.cend()) return nullptr;
    const uint64_t at = best->first;
    // Blocks are used up from the front; the last one's rest stays what it was.
    for (auto it = blocks_.find(at); it != blocks_.end() && it->first < at + bytes;) {
        const uint64_t end = it->first + it->second.bytes;
        block rest = it->second;
        it = blocks_.erase(it);
        if (end <= at + bytes) continue;
        rest.bytes = end - (at + bytes);
        it = blocks_.emplace(at + bytes, rest).first;
    }
    blocks_[at] = {bytes, state::used, lane};
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return base_ + at;
}

uint64_t arena::free(void* pointer, uint32_t lane) {
    auto it = blocks_.find(uint64_t(static_cast<char*>(pointer) - base_));
    if (it == blocks_.end() || it->second.is != state::used) return 0;
    uint64_t bytes = it->second.bytes;
    used_ -= bytes;
    it->second.is = lane == none ? state::free : state::waiting;
    it->second.lane = lane;
    absorb(it);
    if (it != blocks_.begin()) absorb(std::prev(it));
    return bytes;
}

void arena::settle(uint32_t lane) {
    for (auto& [at, b] : blocks_) {
        if (b.is == state::waiting && b.lane == lane) b = {b.bytes, state::free, none};
    }
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) absorb(it);
}

// Joins a free block with the free ones behind it.
void arena::absorb(blocks::iterator it) {
    if (it->second.is != state::free) return;
    for (auto next = std::next(it); next != blocks_.end() && next->second.is == state::free;) {
        it->second.bytes += next->second.bytes;
        next = blocks_.erase(next);
    }
}

uint64_t arena::largest(uint32_t lane) const {
    uint64_t most = 0;
    for (auto it = blocks_.cbegin(); it != blocks_.cend();) {
        run r = run_at(it, lane);
        most = std::max(most, r.bytes);
        it = r.end == it ? std::next(it) : r.end;
    }
    return most;
}

} // namespace highwater
