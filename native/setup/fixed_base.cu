#include "setup/fixed_base.cuh"

namespace highwater {

namespace {

template <class G>
void fixed_base_of(lane& on, const void* base, const void* d_scalars, void* d_out, uint64_t n) {
    typename G::affine point;
    memcpy(&point, base, sizeof point);
    setup_detail::multiplier<G>(on, point, n)
        .run(static_cast<const element_mem<2>*>(d_scalars), static_cast<typename G::affine*>(d_out),
             n);
}

} // namespace

void fixed_base(lane& on, uint32_t group, const void* base, const void* d_scalars, void* d_out,
                uint64_t n) {
    if (n == 0) return;
    switch (group) {
    case HW_G1: return fixed_base_of<g1>(on, base, d_scalars, d_out, n);
    case HW_G2: return fixed_base_of<g2>(on, base, d_scalars, d_out, n);
    default: throw failure(HW_INVALID_ARGUMENT, "fixed base: no group " + std::to_string(group));
    }
}

} // namespace highwater
