// From bucket sums to c sums a window. With A the buckets of a window, A_0 holding the digit
// 2^(c-1),
//
//     A'_i = A_2i + A_2i+1,   sum over i of i A_i = sum over levels t of 2^t U_t + 2^(c-1) A_0,
//
// where U_t is the sum of the elements of odd index of level t (A_0 goes along in even places and
// is in none). All levels' U shrink together, by halves, as rows beside A: level t has, for each
// window, row 0, its A of 2^(c-1-t) elements, and rows 1 .. t-1, what is left of U_0 .. U_t-2;
// U_t-1 is not copied but read from level t-1. Every element of level t+1 is one addition of two of
// the levels before: independent additions, in affine or XYZZ form. When rows are short, or nearly
// empty, a block sums each (finish_rows).
#pragma once

#include "msm/affine.cuh"
#include "msm/xyzz.cuh"

namespace highwater::msm_detail {

// What finish_rows adds up: the levels 0, before the last, and last.
template <class E> struct rows_t {
    const E *buckets, *before, *last; // `before` is null where the last is level 0
    uint32_t windows, level, lg, c;   // 2^lg elements a row of the last level

    // Element i < 2^lg of output s of window w; null: it is not in it.
    HW_HD const E* share(uint32_t w, uint32_t s, uint32_t i) const {
        if (s == c - 1) return i == 0 ? buckets + (size_t(w) << (c - 1)) : nullptr;
        if (s + 1 < level) return last + (size_t((s + 1) * windows + w) << lg) + i;
        if (s + 1 == level) return before + (size_t(w) << (lg + 1)) + 2 * i + 1;
        return i >> (s - level) & 1 ? last + (size_t(w) << lg) + i : nullptr;
    }
};

#ifdef __CUDACC__

// One thread an element of the next level.
template <class G> __global__ void __launch_bounds__(block_threads)
    add_level(level_source<typename G::xyzz> from, uint32_t n) {
#ifdef __CUDA_ARCH__
    uint32_t i = blockIdx.x * block_threads + threadIdx.x;
    if (i >= n) return;
    xyzz_of<G> sum = load_xyzz<G>(*from.a(i));
    add_sum<G>(sum, from.b(i));
    store_xyzz<G>(*from.out(i, i), sum);
#endif
}

#ifdef __CUDA_ARCH__

template <class G> HW_DEVICE void add_element(xyzz_of<G>& sum, const affine_mem<G::words>& e) {
    add_point<G>(sum, &e, false);
}
template <class G> HW_DEVICE void add_element(xyzz_of<G>& sum, const xyzz_mem<G::words>& e) {
    add_sum<G>(sum, &e);
}

#endif

// One block an output: window blockIdx.x / c, its bit blockIdx.x % c.
template <class G, class E> __global__ void __launch_bounds__(merge_block_threads<G>)
    finish_rows(rows_t<E> rows, typename G::xyzz* out) {
#ifdef __CUDA_ARCH__
    constexpr uint32_t threads = merge_block_threads<G>;
    __shared__ typename G::xyzz sums[threads];
    const uint32_t w = blockIdx.x / rows.c, s = blockIdx.x % rows.c, tid = threadIdx.x;
    xyzz_of<G> sum;
    sum.inf();
    for (uint32_t i = tid; i < 1u << rows.lg; i += threads)
        if (const E* e = rows.share(w, s, i)) add_element<G>(sum, *e);
    store_xyzz<G>(sums[tid], sum);
    __syncthreads();
    for (uint32_t half = threads / 2; half; half /= 2) {
        if (tid < half) {
            add_sum<G>(sum, &sums[tid + half]);
            store_xyzz<G>(sums[tid], sum);
        }
        __syncthreads();
    }
    if (tid == 0) store_xyzz<G>(out[blockIdx.x], sum);
#endif
}

// One thread outputs 4q .. 4q+3, of one bit more each: their sum, so that the host adds a quarter.
template <class G> __global__ void __launch_bounds__(32)
    fold_outputs(const typename G::xyzz* in, uint32_t n, typename G::xyzz* out) {
#ifdef __CUDA_ARCH__
    uint32_t q = blockIdx.x * 32 + threadIdx.x;
    if (4 * q >= n) return;
    xyzz_of<G> sum;
    sum.inf();
    for (uint32_t k = 4; k-- > 0;) {
        store_xyzz<G>(out[q], sum);
        add_sum<G>(sum, &out[q]);
        if (4 * q + k < n) add_sum<G>(sum, &in[4 * q + k]);
    }
    store_xyzz<G>(out[q], sum);
#endif
}

#endif

} // namespace highwater::msm_detail
