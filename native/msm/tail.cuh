// The end of the affine path. Rounds of pairing halve every bucket; when few items are left in
// large buckets, a round is all latency (55 us for nothing), and one pass of XYZZ sums over what is
// left takes the place of all further rounds.
#pragma once

#include "msm/lists.cuh"
#include "msm/normalise.cuh"

namespace highwater::msm_detail {

#ifdef __CUDACC__

template <class G>
HW_DEVICE void place_item(const typename G::affine& from, bool negate, typename G::affine& to) {
#ifdef __CUDA_ARCH__
    to.x = from.x;
    field_of<G> y = load<field_of<G>>(from.y);
    y.cneg(negate);
    store(to.y, y);
#endif
}

// One thread an item of the last list: alone in its bucket, it is the bucket's sum.
template <class G> __global__ void __launch_bounds__(block_threads)
    place_items(list_t list, uint32_t n, list_source<G> from, typename G::affine* buckets) {
#ifdef __CUDA_ARCH__
    uint32_t i = blockIdx.x * block_threads + threadIdx.x;
    if (i < n)
        place_item<G>(*from.at(list.refs[i]), list.refs[i] & sign_bit, buckets[list.keys[i]]);
#endif
}

// The same, while some are not alone: those go to the tail.
template <class G> __global__ void __launch_bounds__(block_threads)
    split_items(list_t list, uint32_t n, uint32_t round, const uint32_t* lengths,
                const uint32_t* tail_begins, tail_t tail, list_source<G> from,
                typename G::affine* buckets) {
#ifdef __CUDA_ARCH__
    uint32_t i = blockIdx.x * block_threads + threadIdx.x;
    if (i >= n || tail_item(list, i, round, lengths, tail_begins, tail)) return;
    place_item<G>(*from.at(list.refs[i]), list.refs[i] & sign_bit, buckets[list.keys[i]]);
#endif
}

// One thread a place of the tail.
template <class G> __global__ void __launch_bounds__(block_threads)
    place_tail(const uint32_t* origins, uint32_t n, const typename G::affine* sums,
               typename G::affine* buckets) {
#ifdef __CUDA_ARCH__
    uint32_t i = blockIdx.x * block_threads + threadIdx.x;
    if (i < n && origins[i] != no_bucket) buckets[origins[i]] = sums[i];
#endif
}

#endif

} // namespace highwater::msm_detail
