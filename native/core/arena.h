// An arena cuts one range of memory into blocks: best fit, coalescing, no memory of its own in the
// range.
//
// A block freed by a lane may still be in use by work on that lane's stream. It can go to the same
// lane at once, since the stream keeps the order, and to others once the lane has settled (its
// stream was waited for). Blocks that belong to no lane (lane `none`) are free for all at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace highwater {

// Not thread-safe: its heap has the lock. Ranges are never dereferenced.
class arena {
public:
    static constexpr uint32_t none = UINT32_MAX;

    arena(void* base, uint64_t bytes, uint64_t alignment);

    // nullptr when no block is large enough; bytes is rounded up to the alignment (size tells).
    void* alloc(uint64_t bytes, uint32_t lane);
    // Gives a block back; its size, or 0 if none begins there.
    uint64_t free(void* block, uint32_t lane);
    // The lane's freed blocks become free for all.
    void settle(uint32_t lane);

    uint64_t rounded(uint64_t bytes) const;
    uint64_t bytes() const { return bytes_; }
    uint64_t used() const { return used_; }
    uint64_t peak() const { return peak_; }
    void reset_peak() { peak_ = used_; }
    // The largest block that the lane could get now.
    uint64_t largest(uint32_t lane) const;

private:
    enum class state { free, used, waiting }; // waiting: freed by `lane`, not settled
    struct block {
        uint64_t bytes;
        state is;
        uint32_t lane;
    };
    using blocks = std::map<uint64_t, block>; // by offset; they cover the range

    // The run of blocks that the lane could use as one, from `first` on.
    struct run {
        blocks::const_iterator end;
        uint64_t bytes;
    };
    run run_at(blocks::const_iterator first, uint32_t lane) const;
    void absorb(blocks::iterator it);

    char* const base_;
    const uint64_t bytes_, alignment_;
    uint64_t used_ = 0, peak_ = 0;
    blocks blocks_;
};

} // namespace highwater
