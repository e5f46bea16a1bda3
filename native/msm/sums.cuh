// The driver's middle: from sorted digits to bucket sums, on either path. Part of driver.cuh.
#pragma once

#include "msm/driver.cuh"

namespace highwater::msm_detail {

// Sums of count(length) over the buckets before each.
template <class G> template <class T, class F>
void driver<G>::scan_lengths(F count, T* sums) {
    auto counts = thrust::make_transform_iterator(lengths(), count);
    size_t bytes = 0;
    uint32_t n = uint32_t(shape_.buckets());
    check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, counts, sums, n, stream_), "size scan");
    if (bytes > at_.sort_bytes) throw failure(HW_INTERNAL, "scan lengths: scratch is too small");
    bytes = at_.sort_bytes;
    check(cub::DeviceScan::ExclusiveSum(at<void>(at_.sort), bytes, counts, sums, n, stream_),
          "scan lengths");
}

// Two rounds: the list in buffers `from` becomes pairs, those of the second behind those of the
// first, and the list in the others.
template <class G>
void driver<G>::pair_rounds(uint32_t round, const sizes_t& sizes, int from, uint32_t points) {
    static_assert(sizeof(begins_t) == sizeof(uint64_t), "scanned as one number");
    const int to = 1 - from, pass = round / 2 % 2;
    const uint32_t size = sizes.all[round];
    begins_t* after = begins(1 - pass);
    scan_lengths(items_after{round + 1}, reinterpret_cast<uint64_t*>(after));
    list_t list{keys(from), refs(from), begins(pass)};
    pair_t* pairs = at<pair_t>(at_.pairs);
    next_t next{after, keys(to), refs(to), pairs, pairs + (size - sizes.all[round + 1])};
    pair_up<<<blocks_for(size, list_threads * items_a_thread), list_threads, 0, stream_>>>(
        list, size, round, points, lengths(), next);
}

template <class G> sizes_t driver<G>::count_sizes() {
    {
        span k(on_, "msm_rounds");
        uint32_t blocks =
            std::min(blocks_for(shape_.buckets(), list_threads), wish_.processors * 4);
        count_rounds<<<blocks, list_threads, 0, stream_>>>(
            begins(0), lengths(), uint32_t(shape_.buckets()), &counters_.data()->sizes);
    }
    sizes_t sizes;
    on_.d2h(on_.compute(), on_.staging(), &counters_.data()->sizes, sizeof sizes);
    rt::synchronise(on_.compute());
    memcpy(&sizes, on_.staging(), sizeof sizes);
    return sizes;
}

// Rounds of affine additions, by twos, until each bucket has one item left, or a short tail.
template <class G>
void driver<G>::sum_affine(const affine* points, uint32_t n, const sizes_t& sizes) {
    const uint32_t rounds = sizes.rounds();
    list_source<G> source{points, at<affine>(at_.work), at<pair_t>(at_.pairs), n, true};
    int from = sorted_;
    on_.zero(on_.compute(), at<void>(at_.buckets), sizeof(affine) * shape_.buckets());
    span k(on_, "msm_additions");
    uint32_t round = 0;
    auto is_tail = [&] {
        return round && round + tail_rounds <= rounds &&
               sizes.all[round] - sizes.alone[round] <= shape_.tail();
    };
    for (; round < rounds && !is_tail(); from = 1 - from) {
        pair_rounds(round, sizes, from, n);
        source.pairs = at<pair_t>(at_.pairs);
        for (uint32_t end = round + 2; round < end; round++) {
            uint32_t pairs = round < rounds ? sizes.all[round] - sizes.all[round + 1] : 0;
            source.fresh = round == 0;
            if (pairs) add(source, pairs);
            source.pairs += pairs;
        }
    }
    stats_.rounds = std::max(stats_.rounds, std::min(round, rounds));
    list_t list{keys(from), refs(from), begins(round / 2 % 2)};
    if (round < rounds) return sum_tail(source, list, round, sizes);
    place_items<G><<<blocks_for(sizes.all[rounds], block_threads), block_threads, 0, stream_>>>(
        list, sizes.all[rounds], source, at<affine>(at_.buckets));
}

template <class G> void driver<G>::sum_tail(const list_source<G>& source, const list_t& list,
                                            uint32_t round, const sizes_t& sizes) {
    const uint32_t all = sizes.all[round], n = all - sizes.alone[round];
    tail_t tail{at<uint32_t>(at_.tail_keys), at<uint32_t>(at_.tail_refs),
                at<uint32_t>(at_.tail_origins)};
    uint32_t* tail_begins = at<uint32_t>(at_.begins[1 - round / 2 % 2]);
    scan_lengths(tail_items{round}, tail_begins);
    split_items<G><<<blocks_for(all, block_threads), block_threads, 0, stream_>>>(
        list, all, round, lengths(), tail_begins, tail, source, at<affine>(at_.buckets));
    on_.zero(on_.compute(), at<void>(at_.tail_sums), sizeof(xyzz) * n);
    sum_list(tail.keys, tail.refs, n, tail_slice, source, at<xyzz>(at_.tail_sums));
    normalise<G>(at<xyzz>(at_.tail_sums), n, at<element_mem<G::words>>(at_.tail_prefix),
                 at<affine>(at_.tail_affine), shape_.blocks, stream_);
    place_tail<G><<<blocks_for(n, block_threads), block_threads, 0, stream_>>>(
        tail.origins, n, at<affine>(at_.tail_affine), at<affine>(at_.buckets));
}

template <class G> void driver<G>::sum_xyzz(const affine* points, uint32_t n) {
    on_.zero(on_.compute(), at<void>(at_.buckets), sizeof(xyzz) * shape_.buckets());
    span k(on_, "msm_additions");
    list_source<G> source{points, nullptr, nullptr, n, true};
    sum_list(keys(sorted_), refs(sorted_), digits_, uint32_t(shape_.slice()), source,
             at<xyzz>(at_.buckets));
}

// XYZZ sums by key of a sorted list.
template <class G> void driver<G>::sum_list(const uint32_t* keys, const uint32_t* refs, uint32_t n,
                                            uint32_t slice, const list_source<G>& source,
                                            xyzz* sums) {
    const uint32_t slices = blocks_for(n, slice);
    sum_slices<G><<<blocks_for(slices, block_threads), block_threads, 0, stream_>>>(
        keys, refs, n, slice, source, partials(0), sums);
    stats_.xyzz += n;
    uint32_t left = 2 * slices;
    int from = 0;
    if (left > 1 << 15) {
        uint32_t threads = blocks_for(left, merge_fan);
        merge<G><<<blocks_for(threads, block_threads), block_threads, 0, stream_>>>(
            partials(0), left, partials(1), sums);
        left = 2 * threads;
        from = 1;
    }
    for (;; from = 1 - from) {
        uint32_t blocks = blocks_for(left, merge_block_threads<G>);
        merge_block<G><<<blocks, merge_block_threads<G>, 0, stream_>>>(partials(from), left,
                                                                       partials(1 - from), sums);
        if (blocks == 1) return;
        left = 2 * blocks;
    }
}

} // namespace highwater::msm_detail
