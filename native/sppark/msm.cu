// sppark's own MSM of G1 on resident points and scalars, as it is: the yardstick of native/bench.
// It allocates outside the arena and creates what it needs at each call.
#include <cub/cub.cuh>

#include <cstring>

#include "core/mathematics.h"
#include "cuda/check.h"
#include "curve/field.hpp"

#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

using highwater::fp_t;
using highwater::fr_t;
typedef jacobian_t<fp_t> point_t;
typedef xyzz_t<fp_t> bucket_t;
typedef bucket_t::affine_t affine_t;
typedef fr_t scalar_t;
#include <msm/pippenger.cuh>

namespace highwater {

#ifndef __CUDA_ARCH__
bool sppark_msm(lane& on, const void* d_points, const void* d_scalars, uint64_t n, void* out) {
    on.sync();
    try {
        msm_t<bucket_t, point_t, affine_t, scalar_t> msm(nullptr, size_t(n), sizeof(affine_t),
                                                         on.device());
        // Of affine_t, not of its mem_t: with the latter invoke() calls itself for ever.
        dev_ptr_t<affine_t> points(static_cast<affine_t*>(const_cast<void*>(d_points)), n);
        dev_ptr_t<scalar_t> scalars(static_cast<scalar_t*>(const_cast<void*>(d_scalars)), n);
        point_t sum;
        RustError e = msm.invoke(sum, points, size_t(n), scalars, true);
        if (e.code) throw failure(HW_DEVICE_ERROR, "sppark's msm: error " + std::to_string(e.code));
        affine_t a = sum;
        if (sum.is_inf()) memset(static_cast<void*>(&a), 0, sizeof a);
        memcpy(out, static_cast<const void*>(&a), sizeof a);
    } catch (const cuda_error& e) {
        throw failure(cuda::status_of(cudaError_t(-e.code())), e.what());
    }
    return true;
}
#endif

} // namespace highwater
