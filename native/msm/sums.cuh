// The driver's middle: from sorted digits to bucket sums, on either path. Part of driver.cuh.
#pragma once

#include "msm/driver.cuh"

namespace highwater::msm_detail {

template <class G> void driver<G>::scan_lengths(halve to, uint32_t* starts) {
    auto halves = thrust::make_transform_iterator(lengths(), to);
    size_t bytes = 0;
    uint32_t n = uint32_t(shape_.buckets());
    check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, halves, starts, n, stream_), "size scan");
    if (bytes > at_.sort_bytes) throw failure(HW_INTERNAL, "scan lengths: scratch is too small");
    bytes = at_.sort_bytes;
    check(cub::DeviceScan::ExclusiveSum(at<void>(at_.sort), bytes, halves, starts, n, stream_),
          "scan lengths");
}

// One round: the list in buffers `from` becomes pairs and the list in the others.
template <class G>
void driver<G>::pair_round(uint32_t round, uint32_t size, int from, uint32_t points) {
    int to = 1 - from;
    uint32_t *before = starts(round % 2), *after = starts(1 - round % 2);
    scan_lengths({round + 1, 1}, after);
    list_t list{keys(from), refs(from), before};
    next_t next{after, keys(to), refs(to), at<pair_t>(at_.pairs)};
    pair_up<<<blocks_for(size, list_threads * pair_items), list_threads, 0, stream_>>>(
        list, size, round, points, lengths(), next);
}

template <class G> sizes_t driver<G>::count_sizes() {
    {
        span k(on_, "msm_rounds");
        uint32_t blocks =
            std::min(blocks_for(shape_.buckets(), list_threads), wish_.processors * 4);
        count_rounds<<<blocks, list_threads, 0, stream_>>>(
            starts(0), lengths(), uint32_t(shape_.buckets()), &counters_.data()->sizes);
    }
    sizes_t sizes;
    on_.d2h(on_.compute(), on_.staging(), &counters_.data()->sizes, sizeof sizes);
    rt::synchronise(on_.compute());
    memcpy(&sizes, on_.staging(), sizeof sizes);
    return sizes;
}

// Rounds of affine additions until each bucket has one item left, or a short tail.
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
    for (; round < rounds && !is_tail(); round++) {
        source.fresh = round == 0;
        pair_round(round, sizes.all[round], from, n);
        add(source, sizes.all[round] - sizes.all[round + 1]);
        from = 1 - from;
    }
    stats_.rounds = std::max(stats_.rounds, round);
    list_t list{keys(from), refs(from), starts(round % 2)};
    if (round < rounds) return sum_tail(source, list, round, sizes);
    place_items<G><<<blocks_for(sizes.all[round], block_threads), block_threads, 0, stream_>>>(
        list, sizes.all[round], source, at<affine>(at_.buckets));
}

template <class G> void driver<G>::sum_tail(const list_source<G>& source, const list_t& list,
                                            uint32_t round, const sizes_t& sizes) {
    const uint32_t all = sizes.all[round], n = all - sizes.alone[round];
    tail_t tail{at<uint32_t>(at_.tail_keys), at<uint32_t>(at_.tail_refs),
                at<uint32_t>(at_.tail_origins)};
    uint32_t* begins = starts(1 - round % 2);
    scan_lengths({round, 2}, begins);
    split_items<G><<<blocks_for(all, block_threads), block_threads, 0, stream_>>>(
        list, all, round, lengths(), begins, tail, source, at<affine>(at_.buckets));
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
