// What a backend computes: native/cuda (with native/msm and native/setup) and native/cpu implement
// these, one of them in each library. All pointers named d_ are device memory; layouts as in
// highwater_native.h. Each only enqueues on the lane's compute stream, unless it says otherwise.
#pragma once

#include "core/lane.h"

namespace highwater {

// In place, 2^lg elements.
void ntt(lane& on, void* d_inout, uint32_t lg, uint32_t order, uint32_t flags);
// d_a = (d_a d_b - d_c) / (7^n - 1).
void quotient(lane& on, void* d_a, const void* d_b, const void* d_c, uint32_t lg);
// d_out[i] = d_in[d_index[i]], fr.
void gather(lane& on, void* d_out, const void* d_in, const uint32_t* d_index, uint64_t n);
void field_op(lane& on, uint32_t field, uint32_t operation, const void* d_a, const void* d_b,
              void* d_out, uint64_t n);
void point_op(lane& on, uint32_t group, uint32_t operation, const void* d_a, const void* d_b,
              void* d_out, uint64_t n);

struct msm_input {
    uint32_t group;        // HW_G1, HW_G2
    const void* d_points;  // affine
    const void* d_scalars; // fr in Montgomery form
    uint64_t n;            // 0 is fine
    uint32_t path = HW_MSM_AUTO;
    uint32_t window_bits = 0;
    uint64_t scratch_bytes = 0; // 0: the lane's limit
};
// Writes the affine sum to host memory (96 or 192 bytes) and what it did to stats (times are the
// caller's). Synchronises the lane. The caller has begun an operation; attributes are the caller's,
// too.
void msm(lane& on, const msm_input& in, void* out, hw_msm_stats* stats);

// d_out[i] = d_scalars[i] * base, affine; base is host memory. Tables come from the arena and are
// freed.
void fixed_base(lane& on, uint32_t group, const void* base, const void* d_scalars, void* d_out,
                uint64_t n);

// sppark's own drivers, for comparison. False where the library has none (the twin).
bool sppark_ntt(lane& on, void* d_inout, uint32_t lg, uint32_t order, uint32_t flags);
// G1; synchronises. It allocates outside the arena.
bool sppark_msm(lane& on, const void* d_points, const void* d_scalars, uint64_t n, void* out);

} // namespace highwater
