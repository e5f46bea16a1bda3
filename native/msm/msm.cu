// Multi-scalar multiplication: sum of s_i P_i over many points, on the device.
//
//  1. |s_i| <= r/2 are counted by length: that fixes window bits, path and scratch (plan.hpp).
//  2. Their digits that are not zero are listed as (bucket, point | sign) and sorted by bucket.
//  3. Buckets are summed: by rounds of batch-affine additions of neighbours (affine.cuh), or by
//     slices in XYZZ form (xyzz.cuh). Neither cares how digits spread over buckets.
//  4. Buckets are reduced to c sums a window, on the whole card (reduce.cuh).
//  5. The host combines those (combine.hpp).
//
// Where the scratch is bounded, 2 to 4 run for one group of windows after the other.
#include "msm/msm.cuh"

namespace highwater {

void msm(lane& on, const msm_input& in, void* out, hw_msm_stats* stats) {
    switch (in.group) {
    case HW_G1: return msm_detail::msm_g1(on, in, out, stats);
    case HW_G2: return msm_detail::msm_g2(on, in, out, stats);
    default: throw failure(HW_INVALID_ARGUMENT, "msm: no group " + std::to_string(in.group));
    }
}

} // namespace highwater
