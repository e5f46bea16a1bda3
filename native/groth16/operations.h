// Single operations on host memory, for tests: upload, compute, download.
#pragma once

#include "core/context.h"

namespace highwater {

void run_field_op(context& of, uint32_t field, uint32_t operation, const void* a, const void* b,
                  void* out, uint64_t n);
void run_point_op(context& of, uint32_t group, uint32_t operation, const void* a, const void* b,
                  void* out, uint64_t n);
void run_ntt(context& of, void* inout, uint32_t lg, uint32_t order, uint32_t flags);
void run_quotient(context& of, void* a, const void* b, const void* c, uint32_t lg);
void run_fixed_base(context& of, uint32_t group, const void* base, const void* scalars, void* out,
                    uint64_t n);

// What a caller may ask for: 0 leaves it to the cost model.
inline bool window_bits_possible(uint32_t bits) { return bits == 0 || (bits >= 4 && bits <= 24); }

struct msm_request {
    uint32_t group;
    const void* points;
    const void* scalars;
    uint64_t n;
    hw_msm_options options;
};
void run_msm(context& of, const msm_request& in, void* out, hw_msm_stats& stats);

} // namespace highwater
