#include "msm/plan.hpp"

#include <algorithm>

#include "highwater_native.h"
#include "msm/layout.hpp"

namespace highwater::msm_detail {

const cost_model& costs(uint32_t group) {
    static const cost_model g1{0.45, 0.30, 1.6, 0.75, 9e5, 700};
    static const cost_model g2{1.25, 0.86, 4.5, 2.1, 2.2e6, 2000};
    return group == HW_G2 ? g2 : g1;
}

uint64_t plan_t::largest() const {
    uint64_t most = 0;
    for (const window_range& g : groups) most = std::max(most, g.digits);
    return most;
}

int plan_t::widest() const {
    int most = 0;
    for (const window_range& g : groups) most = std::max(most, g.end - g.begin);
    return most;
}

uint64_t digits_of_window(const histogram_t& lengths, int c, int w) {
    // |s| of L bits has windows 0 .. L/c: the last holds its highest bits, or a carry.
    uint64_t sum = 0;
    for (int bits = std::max(1, w * c); bits <= scalar_bits; bits++) sum += lengths[bits];
    return sum;
}

static shape_t shape_of(const plan_t& plan, const window_range& g, const wish_t& wish) {
    bool second = wish.group == HW_G2;
    return shape_t{plan.path,
                   second ? g2::words : g1::words,
                   wish.processors * uint32_t(second ? g2::min_blocks : g1::min_blocks),
                   g.digits,
                   g.end - g.begin,
                   plan.c};
}

uint64_t scratch_of(const plan_t& plan, const window_range& group, const wish_t& wish) {
    return make_layout(shape_of(plan, group, wish)).total;
}

// Puts as many windows in each group as the bound allows; the groups are then of even size.
static bool divide(plan_t& plan, const std::vector<uint64_t>& digits, const wish_t& wish) {
    for (int count = 1; count <= plan.windows; count++) {
        plan.groups.clear();
        bool fits = true;
        for (int g = 0; g < count && fits; g++) {
            window_range range{plan.windows * g / count, plan.windows * (g + 1) / count, 0};
            for (int w = range.begin; w < range.end; w++) range.digits += digits[w];
            fits =
                range.digits < (1ull << 31) && scratch_of(plan, range, wish) <= wish.scratch_bytes;
            plan.groups.push_back(range);
        }
        if (fits) return true;
    }
    plan.groups.clear();
    return false;
}

static plan_t plan_for(const histogram_t& lengths, int c, path_t path, const wish_t& wish) {
    plan_t plan;
    plan.path = path;
    plan.c = c;
    int longest = 0;
    for (int bits = 1; bits <= scalar_bits; bits++)
        if (lengths[bits]) longest = bits;
    plan.windows = longest ? longest / c + 1 : 0;
    std::vector<uint64_t> digits;
    for (int w = 0; w < plan.windows; w++) {
        digits.push_back(digits_of_window(lengths, c, w));
        plan.digits += digits.back();
    }
    if (!divide(plan, digits, wish)) return plan;
    const cost_model& cost = costs(wish.group);
    double buckets = double(plan.windows) * double(1ull << (c - 1));
    plan.nanos = path == path_t::affine
                     ? plan.digits * cost.affine_digit + buckets * cost.affine_bucket +
                           plan.groups.size() * cost.affine_start
                     : plan.digits * cost.xyzz_digit + buckets * cost.xyzz_bucket;
    plan.nanos += plan.windows * c * cost.window;
    return plan;
}

plan_t make_plan(const histogram_t& lengths, const wish_t& wish) {
    plan_t best;
    for (path_t path : {path_t::xyzz, path_t::affine}) {
        if (wish.path == HW_MSM_XYZZ && path != path_t::xyzz) continue;
        if (wish.path == HW_MSM_AFFINE && path != path_t::affine) continue;
        for (int c = min_window; c <= max_window; c++) {
            if (wish.window_bits && c != int(wish.window_bits)) continue;
            plan_t plan = plan_for(lengths, c, path, wish);
            if (plan.groups.empty()) continue;
            if (best.groups.empty() || plan.nanos < best.nanos) best = plan;
        }
    }
    return best;
}

} // namespace highwater::msm_detail
