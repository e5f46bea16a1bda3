// How an MSM is to be done: window bits, path, groups of windows. Decided from a histogram of the
// scalars' lengths alone, so that it costs the same whatever the scalars look like.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "msm/digits.hpp"

namespace highwater::msm_detail {

using histogram_t = std::array<uint32_t, 256>; // scalars by bit_length of |s|

enum class path_t { xyzz, affine };

// What a step costs, in nanoseconds; measured on an H200 (docs/bench/msm.md). Digits include
// sorting and lists, buckets their reduction; a start is what launches and small rounds cost
// whatever the size.
struct cost_model {
    double xyzz_digit, xyzz_bucket, xyzz_start;
    double affine_digit, affine_bucket, affine_start;
    double affine_round, affine_tail; // small rounds; what takes the place of the last ones
    double output;                    // a bit of a window, on the host
};
const cost_model& costs(uint32_t group);

struct window_range {
    int begin, end;
    uint64_t digits; // at most
};

struct plan_t {
    path_t path = path_t::xyzz;
    int c = 0;
    int windows = 0;     // those that can hold digits
    uint64_t digits = 0; // at most
    double nanos = 0;    // by the model
    std::vector<window_range> groups;
    uint64_t largest() const; // digits of the largest group, at most
    int widest() const;       // windows of the widest group
};

struct wish_t {
    uint32_t group = 1; // HW_G1, HW_G2
    uint32_t path = 0;  // HW_MSM_…
    uint32_t window_bits = 0;
    uint64_t scratch_bytes = 0; // bound
    uint32_t processors = 1;
};

// What a plan needs to know of the scalars.
class totals_t {
public:
    explicit totals_t(const histogram_t& lengths);
    int longest() const { return longest_; } // bits; 0: all scalars are 0
    uint64_t ones() const { return ones_; }  // scalars 1 and -1
    // Digits that window w can hold at most: |s| of L bits has windows 0 .. L/c, the last for its
    // highest bits, or a carry.
    uint64_t digits_of_window(int c, int w) const {
        int bits = std::max(1, w * c);
        return bits > scalar_bits ? 0 : at_least_[bits];
    }

private:
    uint64_t at_least_[scalar_bits + 2] = {}; // scalars by length
    uint64_t ones_ = 0;
    int longest_ = 0;
};

// Bytes that one group of windows takes.
uint64_t scratch_of(const plan_t& plan, const window_range& group, const wish_t& wish);
// The cheapest plan within the bound. One without groups: the bound is too small for any.
plan_t make_plan(const histogram_t& lengths, const wish_t& wish);

} // namespace highwater::msm_detail
