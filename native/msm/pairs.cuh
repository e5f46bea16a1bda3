// Which additions a launch does, in what portions: of a round of lists, or of a level of the
// reduction.
#pragma once

#include <algorithm>

#include "msm/digits.hpp"
#include "msm/layout.hpp"

namespace highwater::msm_detail {

// How a launch's pairs are dealt to blocks: rows of equal chunks, one a block, then chunks of a
// quarter, so that blocks end together. (Blocks of one multiprocessor in step are faster than
// blocks that are kept out of step, by 3 %.)
struct chunks_t {
    uint32_t count;             // pairs
    uint32_t steps, last_steps; // a thread's, in a whole chunk and in a quarter
    uint32_t whole;             // chunks
};

// Fewer than `undivided` additions a thread are one chunk a block: quarters cost one more inversion
// (some 50 us, as long as 4 additions a thread in G1), which is more than they save.
inline chunks_t make_chunks(uint64_t pairs, uint32_t blocks, uint32_t undivided) {
    const uint64_t threads = uint64_t(blocks) * block_threads;
    const uint32_t share = uint32_t((pairs + threads - 1) / threads); // a thread's
    if (share < std::min(undivided, max_steps)) return {uint32_t(pairs), share, share, blocks};
    const uint32_t rows =
        std::max(1u, (4 * share + 3 * max_steps - 1) / (4 * max_steps)); // and a quarter
    const uint32_t steps = std::min(max_steps, 4 * share / (4 * rows + 1) + 1);
    return {uint32_t(pairs), steps, (steps + 3) / 4, rows * blocks};
}

// Pairs first .. of a chunk, `steps` a thread.
struct chunk_t {
    uint32_t first, steps;
};
HW_HD bool chunk_of(const chunks_t& chunks, uint32_t q, chunk_t& out) {
    const uint64_t whole = uint64_t(chunks.steps) * block_threads;
    const uint64_t quarter = uint64_t(chunks.last_steps) * block_threads;
    const bool is_whole = q < chunks.whole;
    uint64_t first = is_whole ? q * whole : chunks.whole * whole + (q - chunks.whole) * quarter;
    if (first >= chunks.count) return false;
    uint32_t rest = uint32_t((chunks.count - first + block_threads - 1) / block_threads);
    uint32_t steps = is_whole ? chunks.steps : chunks.last_steps;
    out = {uint32_t(first), steps < rest ? steps : rest};
    return true;
}

// The pairs of a round of lists. Items are (index | sign) in points, or, above, in the pool.
template <class G> struct list_source {
    using affine = typename G::affine;
    using ticket = pair_t;
    const affine* points;
    affine* pool;
    const pair_t* pairs;
    uint32_t size; // of points
    bool fresh;    // first round: sums go to new places

    HW_HD const affine* at(uint32_t ref) const {
        ref &= ~sign_bit;
        return ref < size ? points + ref : pool + (ref - size);
    }
    HW_HD ticket fetch(uint32_t i) const { return pairs[i]; }
    HW_HD const affine* a(ticket t) const { return at(t.a); }
    HW_HD const affine* b(ticket t) const { return at(t.b); }
    HW_HD bool subtract(ticket t) const { return (t.a ^ t.b) & sign_bit; }
    HW_HD affine* out(ticket t, uint32_t i) const {
        if (fresh) return pool + i;
        uint32_t first = t.a & ~sign_bit;
        return pool + ((first >= size ? first : t.b & ~sign_bit) - size);
    }
};

// The pairs of one level of the reduction: see reduce.cuh.
template <class E> struct level_source {
    using affine = E;
    using ticket = uint32_t;
    const E *in, *before;
    E* to;
    uint32_t windows, level, lg; // 2^lg elements a row come out

    HW_HD ticket fetch(uint32_t i) const { return i; }
    HW_HD const E* first(ticket i, uint32_t which) const {
        uint32_t j = i & ((1u << lg) - 1), row = i >> lg;
        if (level == 0 || row < level * windows)
            return in + ((size_t(row) << (lg + 1)) + 2 * j + which);
        return before + ((size_t(row - level * windows) << (lg + 2)) + 4 * j + 1 + 2 * which);
    }
    HW_HD const E* a(ticket i) const { return first(i, 0); }
    HW_HD const E* b(ticket i) const { return first(i, 1); }
    HW_HD bool subtract(ticket) const { return false; }
    HW_HD E* out(ticket, uint32_t i) const { return to + i; }
};

} // namespace highwater::msm_detail
