// Where things lie in the scratch memory of one group of windows. One allocation of the arena a
// group: its size is known before, so that a bound can be kept.
#pragma once

#include <algorithm>
#include <cstdint>

#include "msm/plan.hpp"

namespace highwater::msm_detail {

constexpr uint32_t block_threads = 128;
constexpr uint32_t max_steps = 144; // additions a thread between two inversions
constexpr uint32_t max_rounds = 32;
constexpr uint32_t merge_fan = 8;       // partial sums that a thread merges
constexpr uint32_t tail_slice = 8;      // additions a thread in the tail of the affine path
constexpr uint32_t tail_most = 1 << 16; // items that it takes
constexpr uint32_t tail_rounds = 5;     // rounds that the tail must save to pay

struct shape_t {
    path_t path;
    int words;       // of a field element
    uint32_t blocks; // that the card holds at once
    uint64_t digits;
    int windows, c;

    uint64_t affine_bytes() const { return 32ull * words; }
    uint64_t xyzz_bytes() const { return 64ull * words; }
    uint64_t element_bytes() const {
        return path == path_t::affine ? affine_bytes() : xyzz_bytes();
    }
    uint64_t threads() const { return uint64_t(blocks) * block_threads; }
    uint64_t buckets() const { return uint64_t(windows) << (c - 1); }
    // Levels that the reduction halves before blocks finish it: rows of 2^9 in G1, 2^8 in G2.
    int levels() const { return std::max(0, c - 1 - (words == g1::words ? 9 : 8)); }
    // Elements of all levels above the buckets: level t has t rows of 2^(c-1-t) a window.
    uint64_t level_elements() const {
        uint64_t sum = 0;
        for (int t = 1; t <= levels(); t++) sum += uint64_t(t) * (buckets() >> t);
        return sum;
    }
    uint32_t steps(uint64_t pairs) const {
        return uint32_t(std::clamp<uint64_t>((pairs + threads() - 1) / threads(), 1, max_steps));
    }
    // XYZZ: additions a thread, and how many threads that makes.
    uint64_t slice() const { return std::clamp<uint64_t>(digits / threads(), 8, 512); }
    // Items that the tail of the affine path takes at most.
    uint64_t tail() const { return std::clamp<uint64_t>(digits / 16, 256, tail_most); }
    uint64_t slices() const {
        return path == path_t::xyzz ? (digits + slice() - 1) / slice()
                                    : (tail() + tail_slice - 1) / tail_slice;
    }
};

struct layout_t {
    uint64_t keys[2], refs[2];   // digits and lists, 4 bytes each
    uint64_t lengths, begins[2]; // a bucket; begins for two rounds
    uint64_t sort, sort_bytes;
    uint64_t partial_keys[2], partials[2]; // of XYZZ sums
    uint64_t buckets;                      // elements
    uint64_t work;                         // affine: sums of pairs, later levels; XYZZ: levels
    uint64_t outputs;                      // XYZZ sums, c a window
    uint64_t folded;                       // of four outputs each
    // Of the affine path.
    uint64_t pairs, prefix;
    uint64_t tail_keys, tail_refs, tail_origins, tail_sums, tail_affine, tail_prefix;
    uint64_t total;
};

inline layout_t make_layout(const shape_t& s) {
    layout_t at{};
    auto take = [&](uint64_t bytes) {
        uint64_t begin = at.total;
        at.total += (bytes + 255) / 256 * 256;
        return begin;
    };
    for (int i = 0; i < 2; i++) at.keys[i] = take(4 * s.digits);
    for (int i = 0; i < 2; i++) at.refs[i] = take(4 * s.digits);
    at.lengths = take(4 * s.buckets());
    for (int i = 0; i < 2; i++) at.begins[i] = take(8 * s.buckets());
    at.sort_bytes = s.digits / 4 + s.buckets() / 16 + (4 << 20);
    at.sort = take(at.sort_bytes);
    at.buckets = take(s.element_bytes() * s.buckets());
    at.outputs = take(s.xyzz_bytes() * s.windows * s.c);
    at.folded = take(s.xyzz_bytes() * ((s.windows * s.c + 3) / 4));
    uint64_t levels = s.element_bytes() * s.level_elements();
    if (s.path == path_t::affine) {
        uint64_t most = std::max(s.digits, s.buckets() * 2) / 2;
        at.pairs = take(6 * s.digits); // of two rounds: a half and a quarter of the digits
        at.prefix = take(s.threads() * s.steps(most) * 16 * s.words);
        at.work = take(std::max(levels, s.affine_bytes() * (s.digits / 2)));
        at.tail_keys = take(4 * s.tail());
        at.tail_refs = take(4 * s.tail());
        at.tail_origins = take(4 * s.tail());
        at.tail_sums = take(s.xyzz_bytes() * s.tail());
        at.tail_affine = take(s.affine_bytes() * s.tail());
        at.tail_prefix = take(16 * s.words * s.tail());
    } else {
        at.work = take(levels);
    }
    uint64_t first = 2 * s.slices(), second = 2 * ((first + merge_fan - 1) / merge_fan);
    for (int i = 0; i < 2; i++) {
        at.partial_keys[i] = take(4 * (i ? second : first));
        at.partials[i] = take(s.xyzz_bytes() * (i ? second : first));
    }
    return at;
}

} // namespace highwater::msm_detail
