// Windows of fixed-base multiplication: tables hold, for each window of c bits, the multiples 1 ..
// 2^(c-1) of 2^(c w) base, so that a product costs one addition a window (digits are signed:
// msm/digits.hpp).
#pragma once

#include <vector>

#include "msm/digits.hpp"

namespace highwater::setup_detail {

using msm_detail::windows_of;

constexpr int max_table_window = 16;
constexpr int fill_cost = 24; // additions and doublings an entry of the tables takes

// Minimises the additions of tables and n products together.
inline int table_window(uint64_t n) {
    int best = 0;
    double least = 0;
    for (int c = msm_detail::min_window; c <= max_table_window; c++) {
        double cost = windows_of(c) * (double(1u << (c - 1)) * fill_cost + double(n));
        if (best == 0 || cost < least) best = c, least = cost;
    }
    return best;
}

// The first entries: 2^(c w) base for each window.
template <class G>
std::vector<typename G::affine> window_bases(const typename G::affine& base, int c) {
    using jacobian = jacobian_t<field_of<G>>;
    std::vector<typename G::affine> bases(windows_of(c));
    affine_of<G> point = load_affine<G>(base);
    jacobian p = point;
    for (auto& b : bases) {
        b = {};
        if (!p.is_inf()) {
            affine_of<G> a = p;
            memcpy(static_cast<void*>(&b), static_cast<const void*>(&a), sizeof b);
        }
        for (int i = 0; i < c; i++) p.dbl();
    }
    return bases;
}

} // namespace highwater::setup_detail
