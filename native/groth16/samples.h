// Inputs for benchmarks and tests, made from a seed.
#pragma once

#include <vector>

#include "curve/field.hpp"

namespace highwater {

// n scalars of a profile (HW_SCALARS_…), in Montgomery form.
std::vector<fr_t> sample_scalars(uint64_t n, uint32_t profile, uint64_t seed);
// sum of a[i] * b[i].
fr_t dot(const std::vector<fr_t>& a, const std::vector<fr_t>& b);

} // namespace highwater
