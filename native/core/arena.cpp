#include "core/arena.h"

#include <algorithm>

namespace highwater {

arena::arena(void* base, uint64_t bytes, uint64_t alignment)
    : base_(static_cast<char*>(base)), bytes_(bytes / alignment * alignment), alignment_(alignment) {
    if (bytes_) blocks_[0] = {bytes_, state::free, none};
}

uint64_t arena::rounded(uint64_t bytes) const {
    bytes = std::max<uint64_t>(bytes, 1);
    if (bytes > UINT64_MAX - alignment_) return UINT64_MAX;
    return (bytes + alignment_ - 1) / alignment_ * alignment_;
}

arena::run arena::run_at(blocks::const_iterator first, uint32_t lane) const {
    run r{first, 0, false};
    for (; r.end != blocks_.end(); ++r.end) {
        const block& b = r.end->second;
        bool own = b.is == state::waiting && b.lane == lane && lane != none;
        if (b.is != state::free && !own) break;
        r.bytes += b.bytes;
        r.waiting |= own;
    }
    return r;
}

void* arena::alloc(uint64_t bytes, uint32_t lane) {
    bytes = rounded(bytes);
    auto best = blocks_.cend();
    run chosen{best, UINT64_MAX, false};
    for (auto it = blocks_.cbegin(); it != blocks_.cend();) {
        run r = run_at(it, lane);
        if (r.bytes >= bytes && r.bytes < chosen.bytes) best = it, chosen = r;
        it = r.end == it ? std::next(it) : r.end;
    }
    if (best == blocks_.cend()) return nullptr;
    uint64_t at = best->first, rest = chosen.bytes - bytes;
    blocks_.erase(best, chosen.end);
    blocks_[at] = {bytes, state::used, lane};
    // What is left over of a run with waiting parts is waiting as a whole: the safe answer.
    if (rest) {
        blocks_[at + bytes] = chosen.waiting ? block{rest, state::waiting, lane}
                                             : block{rest, state::free, none};
    }
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
    merge(it);
    return bytes;
}

void arena::settle(uint32_t lane) {
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
        if (it->second.is == state::waiting && it->second.lane == lane) {
            it->second = {it->second.bytes, state::free, none};
        }
    }
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) merge(it);
}

// Joins the block with free neighbours, if it is free itself.
void arena::merge(blocks::iterator it) {
    if (it->second.is != state::free) return;
    for (auto next = std::next(it); next != blocks_.end() && next->second.is == state::free;) {
        it->second.bytes += next->second.bytes;
        next = blocks_.erase(next);
    }
    if (it == blocks_.begin()) return;
    auto before = std::prev(it);
    if (before->second.is == state::free) {
        before->second.bytes += it->second.bytes;
        blocks_.erase(it);
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
