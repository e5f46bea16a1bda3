#include "msm/plan.hpp"

#include <algorithm>
#include <cmath>

#include "highwater_native.h"
#include "msm/layout.hpp"

namespace highwater::msm_detail {

const cost_model& costs(uint32_t group) {
    //                          digit, bucket, start
    static const cost_model g1{0.57,  1.30, 4.5e5,               // XYZZ
                               0.333, 0.64, 7.0e5, 5.5e4, 3.0e5, // affine; round, tail
                               200};
    static const cost_model g2{2.25, 3.00, 1.0e6, 0.90, 2.04, 2.0e5, 1.3e5, 9.0e5, 600};
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

totals_t::totals_t(const histogram_t& lengths) {
    for (int bits = scalar_bits; bits > 0; bits--) {
        at_least_[bits] = at_least_[bits + 1] + lengths[bits];
        if (!longest_ && lengths[bits]) longest_ = bits;
    }
    ones_ = lengths[1];
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

// What rounds of pairing cost beside their digits: until the usual bucket, four times the mean, is
// one point, and the bucket of the scalars 1 and -1, as far as lengths tell, is short enough for
// the tail.
static double rounds_cost(const plan_t& plan, const totals_t& totals, const cost_model& cost) {
    const double buckets = double(plan.windows) * double(1ull << (plan.c - 1));
    const double usual = std::log2(std::max(2.0, 4 * double(plan.digits) / buckets));
    const double ones = double(totals.ones());
    const bool tail = ones > 1024;
    const double large = tail ? std::log2(std::max(2.0, ones / tail_most)) : 0;
    return std::ceil(std::max(usual, large)) * cost.affine_round + (tail ? cost.affine_tail : 0);
}

static double nanos_of(const plan_t& plan, const totals_t& totals, const cost_model& cost) {
    const double buckets = double(plan.windows) * double(1ull << (plan.c - 1));
    const double groups = double(plan.groups.size()), digits = double(plan.digits);
    const double host = plan.windows * plan.c * cost.output;
    if (plan.path == path_t::xyzz)
        return host + digits * cost.xyzz_digit + buckets * cost.xyzz_bucket +
               groups * cost.xyzz_start;
    return host + digits * cost.affine_digit + buckets * cost.affine_bucket +
           groups * (cost.affine_start + rounds_cost(plan, totals, cost));
}

static plan_t plan_for(const totals_t& totals, int c, path_t path, const wish_t& wish) {
    plan_t plan;
    plan.path = path;
    plan.c = c;
    plan.windows = totals.longest() ? totals.longest() / c + 1 : 0;
    std::vector<uint64_t> digits;
    for (int w = 0; w < plan.windows; w++) {
        digits.push_back(totals.digits_of_window(c, w));
        plan.digits += digits.back();
    }
    if (divide(plan, digits, wish)) plan.nanos = nanos_of(plan, totals, costs(wish.group));
    return plan;
}

plan_t make_plan(const histogram_t& lengths, const wish_t& wish) {
    plan_t best;
    const totals_t totals(lengths);
    for (path_t path : {path_t::xyzz, path_t::affine}) {
        if (wish.path == HW_MSM_XYZZ && path != path_t::xyzz) continue;
        if (wish.path == HW_MSM_AFFINE && path != path_t::affine) continue;
        for (int c = min_window; c <= max_window; c++) {
            if (wish.window_bits && c != int(wish.window_bits)) continue;
            plan_t plan = plan_for(totals, c, path, wish);
            if (plan.groups.empty()) continue;
            if (best.groups.empty() || plan.nanos < best.nanos) best = plan;
        }
    }
    return best;
}

} // namespace highwater::msm_detail
