// Bucket sums by XYZZ additions: the fallback and test twin of affine.cuh, and the faster way for
// few digits. The sorted list is cut in slices of even length, whatever buckets they fall in, so
// that no bucket's size matters. A thread adds up its slice; a bucket that lies wholly inside is
// done; the first and the last of a slice are partial sums. Partial sums are again a sorted list,
// cut in slices (merge), until one block takes all (merge_block).
#pragma once

#include "msm/affine.cuh"

namespace highwater::msm_detail {

template <class G> struct partials_t {
    uint32_t* keys;
    typename G::xyzz* sums;
};

// Takes a slice's runs: all but the first and last are whole buckets.
template <class G> class run_writer {
    uint32_t slot_;
    partials_t<G> partials_;
    typename G::xyzz* buckets_;
    bool first_ = true;

    HW_HD void partial(uint32_t at, uint32_t key, const xyzz_of<G>& sum) {
        partials_.keys[at] = key;
        store_xyzz<G>(partials_.sums[at], sum);
    }

public:
    HW_HD run_writer(uint32_t slice, partials_t<G> partials, typename G::xyzz* buckets)
        : slot_(2 * slice), partials_(partials), buckets_(buckets) {}
    HW_HD void run(uint32_t key, const xyzz_of<G>& sum) {
        if (first_) partial(slot_, key, sum);
        else store_xyzz<G>(buckets_[key], sum);
        first_ = false;
    }
    HW_HD void last(uint32_t key, xyzz_of<G>& sum) {
        partial(slot_ + !first_, key, sum);
        if (!first_) return;
        sum.inf(); // keeps the list sorted and without holes
        partial(slot_ + 1, key, sum);
    }
};

#ifdef __CUDACC__

// Not inlined: a dozen kernels' code would be this.
template <class G> __device__ __noinline__ void add_point(xyzz_of<G>& sum,
                                                          const typename G::affine* p,
                                                          bool subtract) {
#ifdef __CUDA_ARCH__
    sum.add(load_affine<G>(*p), subtract);
#endif
}
template <class G>
__device__ __noinline__ void add_sum(xyzz_of<G>& sum, const typename G::xyzz* p) {
#ifdef __CUDA_ARCH__
    sum.add(load_xyzz<G>(*p));
#endif
}

// One thread a slice of the digits.
template <class G> __global__ void __launch_bounds__(block_threads, G::min_blocks)
    sum_slices(const uint32_t* keys, const uint32_t* refs, uint32_t n, uint32_t slice,
               list_source<G> from, partials_t<G> partials, typename G::xyzz* buckets) {
#ifdef __CUDA_ARCH__
    uint32_t t = blockIdx.x * block_threads + threadIdx.x;
    uint64_t begin = uint64_t(t) * slice;
    if (begin >= n) return;
    uint32_t end = uint32_t(min(begin + slice, uint64_t(n)));
    run_writer<G> runs(t, partials, buckets);
    xyzz_of<G> sum;
    sum.inf();
    uint32_t key = keys[begin];
    for (uint32_t i = uint32_t(begin); i < end; i++) {
        if (keys[i] != key) {
            runs.run(key, sum);
            key = keys[i];
            sum.inf();
        }
        sum.add(load_affine<G>(*from.at(refs[i])), bool(refs[i] & sign_bit));
    }
    runs.last(key, sum);
#endif
}

// One thread merge_fan partial sums.
template <class G> __global__ void __launch_bounds__(block_threads)
    merge(partials_t<G> in, uint32_t n, partials_t<G> partials, typename G::xyzz* buckets) {
#ifdef __CUDA_ARCH__
    uint32_t t = blockIdx.x * block_threads + threadIdx.x, begin = t * merge_fan;
    if (begin >= n) return;
    run_writer<G> runs(t, partials, buckets);
    xyzz_of<G> sum = load_xyzz<G>(in.sums[begin]);
    uint32_t key = in.keys[begin];
    for (uint32_t i = begin + 1; i < min(begin + merge_fan, n); i++) {
        if (in.keys[i] != key) {
            runs.run(key, sum);
            key = in.keys[i];
            sum.inf();
        }
        add_sum<G>(sum, &in.sums[i]);
    }
    runs.last(key, sum);
#endif
}

template <class G> constexpr uint32_t merge_block_threads = G::words == 3 ? 128 : 64;

// One block merge_block_threads partial sums, one a thread, in steps of doubling reach. The only
// block finishes the buckets, else its first and last are partial sums again.
template <class G> __global__ void __launch_bounds__(merge_block_threads<G>)
    merge_block(partials_t<G> in, uint32_t n, partials_t<G> partials, typename G::xyzz* buckets) {
#ifdef __CUDA_ARCH__
    constexpr uint32_t threads = merge_block_threads<G>;
    __shared__ typename G::xyzz sums[threads];
    __shared__ uint32_t keys[threads];
    const uint32_t tid = threadIdx.x, begin = blockIdx.x * threads, count = min(threads, n - begin);
    xyzz_of<G> sum;
    sum.inf();
    if (tid < count) {
        sum = load_xyzz<G>(in.sums[begin + tid]);
        keys[tid] = in.keys[begin + tid];
    }
    store_xyzz<G>(sums[tid], sum);
    __syncthreads();
    for (uint32_t reach = 1; reach < count; reach *= 2) {
        bool same = tid + reach < count && keys[tid + reach] == keys[tid];
        if (same) add_sum<G>(sum, &sums[tid + reach]);
        __syncthreads();
        if (same) store_xyzz<G>(sums[tid], sum);
        __syncthreads();
    }
    if (tid >= count || (tid && keys[tid - 1] == keys[tid])) return; // not the first of its run
    const uint32_t key = keys[tid], slot = 2 * blockIdx.x;
    const bool only = gridDim.x == 1, first = tid == 0, last = key == keys[count - 1];
    if (only || (!first && !last)) {
        store_xyzz<G>(buckets[key], sum);
        return;
    }
    partials.keys[slot + !first] = key;
    store_xyzz<G>(partials.sums[slot + !first], sum);
    if (!(first && last)) return;
    sum.inf();
    partials.keys[slot + 1] = key;
    store_xyzz<G>(partials.sums[slot + 1], sum);
#endif
}

#endif

} // namespace highwater::msm_detail
