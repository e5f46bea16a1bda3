// Kernels over digits and their lists; nothing here knows of points.
#pragma once

#include "msm/digits.hpp"
#include "msm/layout.hpp"

namespace highwater::msm_detail {

constexpr int list_threads = 256;
constexpr unsigned full_warp = 0xffffffff;

// Items of a bucket after some rounds of pairing, of 2^31 at most.
HW_HD uint32_t halved(uint32_t length, uint32_t rounds) {
    return length ? ((length - 1) >> (rounds < 31 ? rounds : 31)) + 1 : 0;
}

// Where a bucket begins in the lists after a round and after the next. A pass over a list makes the
// pairs of two rounds, so `second` is where it begins in the list that the pass leaves.
struct begins_t {
    uint32_t first, second;
};

struct list_t {
    const uint32_t *keys, *refs;
    const begins_t* begins; // by bucket: `second` is of this list
};
struct next_t {
    const begins_t* begins;
    uint32_t *keys, *refs;
    pair_t *first, *second; // of the two rounds
};

// Makes a and b pair p, and says where the sum goes: where the pair's first item of the pool lies
// (no other pair reads that), or, in the first round of all, to a new place; pool places are
// counted on from `points`. The sum has the first item's sign.
HW_HD uint32_t pair_two(pair_t* pairs, uint32_t p, uint32_t a, uint32_t b, bool fresh,
                        uint32_t points) {
    pairs[p] = pair_t{a, b};
    uint32_t sum = points + p;
    if (!fresh) sum = (a & ~sign_bit) >= points ? a & ~sign_bit : b & ~sign_bit;
    return sum | (a & sign_bit);
}

// What becomes of the four items of a bucket from item i of the list of `round` on, in this round
// and the next: neighbours become pairs, an odd last one goes on alone, and the pairs' sums become
// a pair. Other i do nothing.
HW_HD void pair_items(const list_t& in, uint32_t i, uint32_t round, uint32_t points,
                      const uint32_t* lengths, const next_t& next) {
    uint32_t key = in.keys[i], begin = in.begins[key].second, offset = i - begin;
    if (offset % 4) return;
    const begins_t after = next.begins[key];
    const uint32_t left = halved(lengths[key], round) - offset;
    const uint32_t p = begin - after.first + offset / 2;
    uint32_t a = in.refs[i];
    if (left > 1) a = pair_two(next.first, p, a, in.refs[i + 1], round == 0, points);
    if (left > 2) {
        uint32_t b = in.refs[i + 2];
        if (left > 3) b = pair_two(next.first, p + 1, b, in.refs[i + 3], round == 0, points);
        a = pair_two(next.second, after.first - after.second + offset / 4, a, b, false, points);
    }
    next.keys[after.second + offset / 4] = key;
    next.refs[after.second + offset / 4] = a;
}

// The tail: what is left when few buckets, but large ones, are. Its items are listed again, with
// the place where their bucket begins as key; origins says at those places which bucket it is.
struct tail_t {
    uint32_t *keys, *refs, *origins;
};
constexpr uint32_t no_bucket = 0xffffffff;

// Lists item i in the tail; false: it is alone in its bucket. tail_begins: by bucket.
HW_HD bool tail_item(const list_t& in, uint32_t i, uint32_t round, const uint32_t* lengths,
                     const uint32_t* tail_begins, const tail_t& tail) {
    uint32_t key = in.keys[i];
    if (halved(lengths[key], round) == 1) return false;
    uint32_t begin = tail_begins[key], offset = i - in.begins[key].second;
    tail.keys[begin + offset] = begin;
    tail.refs[begin + offset] = in.refs[i];
    tail.origins[begin + offset] = offset ? no_bucket : key;
    return true;
}

// Lists by their length after each round of pairing: of all items, and of those alone in a bucket.
struct sizes_t {
    uint32_t all[max_rounds], alone[max_rounds];

    // Rounds until all are alone.
    HW_HD uint32_t rounds() const {
        uint32_t r = 0;
        while (r + 1 < max_rounds && all[r] != alone[r]) r++;
        return r;
    }
};

#ifdef __CUDACC__

// One thread a scalar, in strides: counts scalars by the length of |s|.
static __global__ void __launch_bounds__(list_threads)
    count_lengths(const element_mem<2>* scalars, uint32_t n, uint32_t* histogram) {
#ifdef __CUDA_ARCH__
    __shared__ uint32_t bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * list_threads + threadIdx.x; i < n;
         i += gridDim.x * list_threads) {
        int bits = bit_length(magnitude(scalars[i]));
        // One atomic for all lanes of a length: nearly all scalars of a circuit are 0 or 1.
        unsigned mine = __match_any_sync(__activemask(), bits);
        if (__ffs(mine) - 1 == int(threadIdx.x % 32)) atomicAdd(&bins[bits], __popc(mine));
    }
    __syncthreads();
    if (bins[threadIdx.x]) atomicAdd(&histogram[threadIdx.x], bins[threadIdx.x]);
#endif
}

struct cut_t {
    int c, begin, end; // windows begin .. end-1 of this group
};

// One thread a scalar: appends its non-zero digits to the list, a warp's digits of one window side
// by side. The order of the list is free.
static __global__ void __launch_bounds__(list_threads)
    cut_digits(const element_mem<2>* scalars, uint32_t n, cut_t cut, uint32_t* keys, uint32_t* refs,
               uint32_t* total) {
#ifdef __CUDA_ARCH__
    __shared__ uint32_t warp_counts[list_threads / 32], block_begin;
    const uint32_t index = blockIdx.x * list_threads + threadIdx.x, lane = threadIdx.x % 32,
                   warp = threadIdx.x / 32;
    magnitude_t m = {};
    if (index < n) m = magnitude(scalars[index]);
    // Most warps of a circuit's scalars have short ones only.
    const int end = min(cut.end, int(__reduce_max_sync(full_warp, bit_length(m))) / cut.c + 1);
    uint32_t count = 0;
    digits_t counting(m, cut.c);
    for (int w = 0; w < end; w++) count += counting.next() != 0 && w >= cut.begin;
    uint32_t warp_count = __reduce_add_sync(full_warp, count);
    if (lane == 0) warp_counts[warp] = warp_count;
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t sum = 0;
        for (uint32_t& c : warp_counts) {
            uint32_t before = sum;
            sum += c;
            c = before;
        }
        block_begin = sum ? atomicAdd(total, sum) : 0;
    }
    __syncthreads();
    if (warp_count == 0) return;
    uint32_t at = block_begin + warp_counts[warp];
    digits_t digits(m, cut.c);
    for (int w = 0; w < end; w++) {
        int32_t d = digits.next();
        if (w < cut.begin) continue;
        unsigned present = __ballot_sync(full_warp, d != 0);
        if (d != 0) {
            digit_t digit = make_digit(d, m.negative, w - cut.begin, cut.c, index);
            uint32_t to = at + __popc(present & ((1u << lane) - 1));
            keys[to] = digit.key;
            refs[to] = digit.ref;
        }
        at += __popc(present);
    }
#endif
}

// One thread a digit of the sorted list: where each bucket begins and ends. Empty buckets keep the
// zeros that are there.
static __global__ void __launch_bounds__(list_threads)
    find_bounds(const uint32_t* keys, uint32_t n, begins_t* begins, uint32_t* ends) {
#ifdef __CUDA_ARCH__
    uint32_t i = blockIdx.x * list_threads + threadIdx.x;
    if (i >= n) return;
    uint32_t key = keys[i];
    if (i == 0) {
        begins[key].second = 0;
    } else if (uint32_t before = keys[i - 1]; before != key) {
        begins[key].second = i;
        ends[before] = i;
    }
    if (i == n - 1) ends[key] = n;
#endif
}

// One thread a bucket, in strides: ends become lengths, and their sizes after each round are added
// up.
static __global__ void __launch_bounds__(list_threads)
    count_rounds(const begins_t* begins, uint32_t* lengths, uint32_t buckets, sizes_t* sizes) {
#ifdef __CUDA_ARCH__
    __shared__ sizes_t block_sums;
    if (threadIdx.x < max_rounds) block_sums.all[threadIdx.x] = block_sums.alone[threadIdx.x] = 0;
    __syncthreads();
    uint32_t all[max_rounds] = {}, alone[max_rounds] = {};
    for (uint32_t b = blockIdx.x * list_threads + threadIdx.x; b < buckets;
         b += gridDim.x * list_threads) {
        uint32_t length = lengths[b] - begins[b].second;
        lengths[b] = length;
#pragma unroll
        for (uint32_t r = 0; r < max_rounds; r++) {
            all[r] += halved(length, r);
            alone[r] += halved(length, r) == 1;
        }
    }
#pragma unroll
    for (uint32_t r = 0; r < max_rounds; r++) {
        uint32_t a = __reduce_add_sync(full_warp, all[r]),
                 b = __reduce_add_sync(full_warp, alone[r]);
        if (threadIdx.x % 32 == 0) {
            atomicAdd(&block_sums.all[r], a);
            atomicAdd(&block_sums.alone[r], b);
        }
    }
    __syncthreads();
    if (threadIdx.x >= max_rounds) return;
    if (block_sums.all[threadIdx.x])
        atomicAdd(&sizes->all[threadIdx.x], block_sums.all[threadIdx.x]);
    if (block_sums.alone[threadIdx.x])
        atomicAdd(&sizes->alone[threadIdx.x], block_sums.alone[threadIdx.x]);
#endif
}

constexpr uint32_t items_a_thread = 4; // so that its loads overlap

// One thread an item, in strides.
static __global__ void __launch_bounds__(list_threads)
    pair_up(list_t in, uint32_t size, uint32_t round, uint32_t points, const uint32_t* lengths,
            next_t next) {
#ifdef __CUDA_ARCH__
    uint32_t i = blockIdx.x * list_threads * items_a_thread + threadIdx.x;
#pragma unroll
    for (uint32_t k = 0; k < items_a_thread; k++, i += list_threads)
        if (i < size) pair_items(in, i, round, points, lengths, next);
#endif
}

#endif

} // namespace highwater::msm_detail
