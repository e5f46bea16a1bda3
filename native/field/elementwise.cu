// Kernels that do one thing to each element: the pointwise step of h, the gather of a query's
// scalars, and single operations of fields and groups for tests. One thread an element.
#include <algorithm>

#include "core/mathematics.h"
#include "cuda/check.h"
#include "curve/group.hpp"

namespace highwater {

namespace {

constexpr uint32_t threads = 256;

using fr_mem = element_mem<2>;

uint32_t blocks_for(uint64_t n) { return uint32_t((n + threads - 1) / threads); }

__launch_bounds__(threads) __global__
    void quotient_kernel(fr_mem* a, const fr_mem* b, const fr_mem* c, fr_mem over_z, uint64_t n) {
    uint64_t i = blockIdx.x * uint64_t(threads) + threadIdx.x;
    if (i >= n) return;
    fr_t x = load<fr_t>(a[i]) * load<fr_t>(b[i]);
    x -= load<fr_t>(c[i]);
    x *= load<fr_t>(over_z);
    store(a[i], x);
}

__launch_bounds__(threads) __global__
    void gather_kernel(fr_mem* out, const fr_mem* in, const uint32_t* index, uint64_t n) {
    uint64_t i = blockIdx.x * uint64_t(threads) + threadIdx.x;
    if (i < n) out[i] = in[index[i]];
}

#ifdef __CUDA_ARCH__
template <class F> HW_DEVICE void from_mont(F& x) { x.from(); }
template <class F> HW_DEVICE void to_mont(F& x) { x.to(); }
HW_DEVICE void from_mont(fp2_t&) {}
HW_DEVICE void to_mont(fp2_t&) {}
#endif

// Kernels are named by tags: the classes of fp2 differ between nvcc's passes, and so would the
// names.
struct of_fr {
    using field = fr_t;
    using mem = element_mem<2>;
};
struct of_fp {
    using field = fp_t;
    using mem = element_mem<3>;
};
struct of_fp2 {
    using field = fp2_t;
    using mem = element_mem<6>;
};

// All threads of a warp compute, those past the end on the last element: an inversion works on
// pairs.
template <class T> __launch_bounds__(threads) __global__
    void field_kernel(uint32_t operation, const typename T::mem* a, const typename T::mem* b,
                      typename T::mem* out, uint64_t n) {
#ifdef __CUDA_ARCH__
    using F = typename T::field;
    uint64_t own = blockIdx.x * uint64_t(threads) + threadIdx.x, i = own < n ? own : n - 1;
    F x = load<F>(a[i]);
    F y = operation <= HW_FIELD_MUL ? load<F>(b[i]) : x;
    switch (operation) {
    case HW_FIELD_ADD:
        x += y;
        break;
    case HW_FIELD_SUB:
        x -= y;
        break;
    case HW_FIELD_MUL:
        x = x * y;
        break;
    case HW_FIELD_SQR:
        x = x ^ 2;
        break;
    case HW_FIELD_NEG:
        x.cneg(true);
        break;
    case HW_FIELD_INV:
        x = x.reciprocal();
        break;
    case HW_FIELD_FROM_MONT:
        from_mont(x);
        break;
    case HW_FIELD_TO_MONT:
        to_mont(x);
        break;
    }
    if (own < n) store(out[i], x);
#endif
}

template <class G> __launch_bounds__(threads) __global__
    void point_kernel(uint32_t operation, const typename G::affine* a, const typename G::affine* b,
                      typename G::affine* out, uint64_t n) {
#ifdef __CUDA_ARCH__
    using F = field_of<G>;
    uint64_t own = blockIdx.x * uint64_t(threads) + threadIdx.x, i = own < n ? own : n - 1;
    xyzz_of<G> sum;
    sum.inf();
    affine_of<G> p = load_affine<G>(a[i]);
    affine_of<G> q = operation <= HW_POINT_SUB ? load_affine<G>(b[i]) : p;
    if (operation == HW_POINT_NEG) p.cneg(true);
    sum.add(p);
    if (operation == HW_POINT_SUB) q.cneg(true);
    if (operation != HW_POINT_NEG) sum.add(q);
    const auto& s = reinterpret_cast<const xyzz_parts<F>&>(sum);
    F y = s.zzz.reciprocal(), x = y * s.zz; // 1/ZZZ, 1/Z
    x = x ^ 2;
    x *= s.x;
    y *= s.y;
    if (own < n) {
        store(out[i].x, x);
        store(out[i].y, y);
    }
#endif
}

// 1 / (7^n - 1): the vanishing polynomial is the same everywhere on the coset.
fr_mem over_vanishing(uint32_t lg) {
    fr_mem m{};
#ifndef __CUDA_ARCH__
    fr_t g(uint64_t(7));
    for (uint32_t i = 0; i < lg; i++) g *= g;
    store(m, (g - fr_t::one()).reciprocal());
#endif
    return m;
}

template <class T>
void run_field(lane& on, uint32_t operation, const void* a, const void* b, void* out, uint64_t n) {
    using mem = typename T::mem;
    field_kernel<T><<<blocks_for(n), threads, 0, cuda::stream(on)>>>(
        operation, static_cast<const mem*>(a), static_cast<const mem*>(b), static_cast<mem*>(out),
        n);
}

template <class G>
void run_point(lane& on, uint32_t operation, const void* a, const void* b, void* out, uint64_t n) {
    using mem = typename G::affine;
    point_kernel<G><<<blocks_for(n), threads, 0, cuda::stream(on)>>>(
        operation, static_cast<const mem*>(a), static_cast<const mem*>(b), static_cast<mem*>(out),
        n);
}

} // namespace

void quotient(lane& on, void* d_a, const void* d_b, const void* d_c, uint32_t lg) {
    const uint64_t n = uint64_t(1) << lg;
    span timed(on, "pointwise");
    quotient_kernel<<<blocks_for(n), threads, 0, cuda::stream(on)>>>(
        static_cast<fr_mem*>(d_a), static_cast<const fr_mem*>(d_b), static_cast<const fr_mem*>(d_c),
        over_vanishing(lg), n);
}

void gather(lane& on, void* d_out, const void* d_in, const uint32_t* d_index, uint64_t n) {
    if (!n) return;
    span timed(on, "gather");
    gather_kernel<<<blocks_for(n), threads, 0, cuda::stream(on)>>>(
        static_cast<fr_mem*>(d_out), static_cast<const fr_mem*>(d_in), d_index, n);
}

void field_op(lane& on, uint32_t field, uint32_t operation, const void* d_a, const void* d_b,
              void* d_out, uint64_t n) {
    span timed(on, "field");
    switch (field) {
    case HW_FIELD_FR:
        return run_field<of_fr>(on, operation, d_a, d_b, d_out, n);
    case HW_FIELD_FP:
        return run_field<of_fp>(on, operation, d_a, d_b, d_out, n);
    default:
        return run_field<of_fp2>(on, operation, d_a, d_b, d_out, n);
    }
}

void point_op(lane& on, uint32_t group, uint32_t operation, const void* d_a, const void* d_b,
              void* d_out, uint64_t n) {
    span timed(on, "point");
    if (group == HW_G1) return run_point<g1>(on, operation, d_a, d_b, d_out, n);
    run_point<g2>(on, operation, d_a, d_b, d_out, n);
}

} // namespace highwater
