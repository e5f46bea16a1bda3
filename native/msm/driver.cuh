// The MSM of one group, from scalars and points on the device to the affine sum on the host. See
// msm.cu for the steps.
#pragma once

#include <cub/cub.cuh>
#include <thrust/iterator/transform_iterator.h>

#include <cstring>
#include <string>

#include "core/mathematics.h"
#include "core/runtime.h"
#include "msm/combine.hpp"
#include "msm/reduce.cuh"
#include "msm/tail.cuh"

namespace highwater::msm_detail {

inline cudaStream_t stream_of(const lane& on) {
    return reinterpret_cast<cudaStream_t>(on.compute());
}

inline void check(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    throw failure(HW_DEVICE_ERROR, std::string(what) + ": " + cudaGetErrorString(code));
}

inline uint32_t blocks_for(uint64_t n, uint32_t threads) {
    return uint32_t((n + threads - 1) / threads);
}

// What kernels count in, zeroed for each group of windows.
struct counters_t {
    uint32_t histogram[256];
    sizes_t sizes;
    uint32_t digits;
    uint32_t next_chunk[max_rounds + max_window];
};

// Items of a bucket after a round, and after the next, as begins_t has them: two sums in one scan.
struct items_after {
    uint32_t rounds;
    HW_HD uint64_t operator()(uint32_t length) const {
        return halved(length, rounds) | uint64_t(halved(length, rounds + 1)) << 32;
    }
};
// Items of a bucket after some rounds that the tail takes: not those that are alone.
struct tail_items {
    uint32_t rounds;
    HW_HD uint32_t operator()(uint32_t length) const {
        uint32_t left = halved(length, rounds);
        return left < 2 ? 0 : left;
    }
};

template <class G> class driver {
    using affine = typename G::affine;
    using xyzz = typename G::xyzz;

    lane& on_;
    cudaStream_t stream_;
    msm_input in_;
    hw_msm_stats stats_{};
    wish_t wish_;
    device_array<counters_t> counters_;

    // Of the group of windows at work.
    device_array<uint8_t> scratch_;
    shape_t shape_{};
    layout_t at_{};
    uint32_t digits_ = 0, chunk_counter_ = 0;
    int sorted_ = 0; // which of keys and refs holds the list

public:
    driver(lane& on, const msm_input& in) : on_(on), stream_(stream_of(on)), in_(in) {}

    void run(void* out, hw_msm_stats* stats) {
        prepare();
        jacobian_t<field_of<G>> total;
        memset(static_cast<void*>(&total), 0, sizeof total);
        add_part(total, 0, in_.n);
        on_.sync();
        affine result{};
        if (!total.is_inf()) {
            affine_of<G> a = total;
            memcpy(static_cast<void*>(&result), static_cast<const void*>(&a), sizeof result);
        }
        memcpy(out, &result, sizeof result);
        stats_.points = in_.n;
        if (stats) *stats = stats_;
    }

private:
    template <class T> T* at(uint64_t offset) {
        return reinterpret_cast<T*>(scratch_.data() + offset);
    }
    uint32_t* keys(int i) { return at<uint32_t>(at_.keys[i]); }
    uint32_t* refs(int i) { return at<uint32_t>(at_.refs[i]); }
    begins_t* begins(int i) { return at<begins_t>(at_.begins[i]); }
    uint32_t* lengths() { return at<uint32_t>(at_.lengths); }
    partials_t<G> partials(int i) {
        return {at<uint32_t>(at_.partial_keys[i]), at<xyzz>(at_.partials[i])};
    }

    void prepare();
    void add_part(jacobian_t<field_of<G>>& total, uint64_t begin, uint64_t n);
    histogram_t measure(const element_mem<2>* scalars, uint32_t n);
    void run_group(const plan_t& plan, const window_range& group, const affine* points,
                   const element_mem<2>* scalars, uint32_t n, combiner<G>& sums);
    void cut(const window_range& group, const element_mem<2>* scalars, uint32_t n);
    void sort();
    void find_buckets();
    void sum_affine(const affine* points, uint32_t n, const sizes_t& sizes);
    void sum_xyzz(const affine* points, uint32_t n);
    void pair_rounds(uint32_t round, const sizes_t& sizes, int from, uint32_t points);
    template <class T, class F> void scan_lengths(F count, T* sums);
    sizes_t count_sizes();
    void sum_tail(const list_source<G>& source, const list_t& list, uint32_t round,
                  const sizes_t& sizes);
    void sum_list(const uint32_t* keys, const uint32_t* refs, uint32_t n, uint32_t slice,
                  const list_source<G>& source, xyzz* sums);
    template <class S> void add(const S& source, uint64_t pairs);
    template <class E> void reduce(uint32_t levels);
    template <class E> void add_one_level(const level_source<E>& source, uint64_t n);
    void take_outputs(const window_range& group, combiner<G>& sums);
};

template <class G> void driver<G>::prepare() {
    int processors = 0;
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, on_.device()),
          "ask for processors");
    wish_.group = in_.group;
    wish_.path = in_.path;
    wish_.window_bits = in_.window_bits;
    wish_.processors = processors;
    constexpr int bytes = add_pairs_shared<G>();
    check(cudaFuncSetAttribute(add_pairs<G, list_source<G>>,
                               cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "size shared memory");
    check(cudaFuncSetAttribute(add_pairs<G, level_source<affine>>,
                               cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "size shared memory");
    counters_ = on_.alloc<counters_t>(1, "d_scratch");
    wish_.scratch_bytes =
        std::min(in_.scratch_bytes ? in_.scratch_bytes : on_.scratch_limit(), on_.largest_free());
}

template <class G> histogram_t driver<G>::measure(const element_mem<2>* scalars, uint32_t n) {
    on_.zero(on_.compute(), counters_, sizeof(counters_t));
    {
        span k(on_, "msm_lengths");
        uint32_t blocks = std::min(blocks_for(n, list_threads), wish_.processors * 8);
        count_lengths<<<blocks, list_threads, 0, stream_>>>(scalars, n,
                                                            counters_.data()->histogram);
    }
    histogram_t lengths;
    on_.d2h(on_.compute(), on_.staging(), counters_.data()->histogram, sizeof lengths);
    rt::synchronise(on_.compute());
    memcpy(&lengths, on_.staging(), sizeof lengths);
    return lengths;
}

// Adds the products begin .. begin+n-1, in halves where the scratch for all is too large.
template <class G>
void driver<G>::add_part(jacobian_t<field_of<G>>& total, uint64_t begin, uint64_t n) {
    if (n == 0) return;
    const auto* scalars = static_cast<const element_mem<2>*>(in_.d_scalars) + begin;
    const auto* points = static_cast<const affine*>(in_.d_points) + begin;
    plan_t plan;
    if (n < (1u << 30)) {
        histogram_t lengths = measure(scalars, uint32_t(n));
        plan = make_plan(lengths, wish_);
        if (lengths[0] == n) return;
    }
    if (plan.groups.empty()) {
        if (n < 1024) {
            throw failure(HW_OUT_OF_DEVICE_MEMORY,
                          "scratch of an MSM: " + std::to_string(wish_.scratch_bytes) +
                              " bytes are too few for any windows; free device memory or raise "
                              "msm_scratch_bytes");
        }
        add_part(total, begin, n / 2);
        add_part(total, begin + n / 2, n - n / 2);
        return;
    }
    combiner<G> sums(plan.windows * plan.c);
    for (const window_range& group : plan.groups)
        run_group(plan, group, points, scalars, uint32_t(n), sums);
    sums.add_to(total);
    stats_.window_bits = plan.c;
    stats_.windows = plan.windows;
    stats_.groups += uint32_t(plan.groups.size());
}

template <class G> void driver<G>::run_group(const plan_t& plan, const window_range& group,
                                             const affine* points, const element_mem<2>* scalars,
                                             uint32_t n, combiner<G>& sums) {
    if (group.digits == 0) return;
    shape_ = shape_t{plan.path,
                     G::words,
                     wish_.processors * uint32_t(G::min_blocks),
                     group.digits,
                     group.end - group.begin,
                     plan.c};
    at_ = make_layout(shape_);
    scratch_ = on_.alloc<uint8_t>(at_.total, "d_scratch");
    stats_.scratch_bytes = std::max(stats_.scratch_bytes, at_.total + sizeof(counters_t));
    chunk_counter_ = 0;
    cut(group, scalars, n);
    stats_.digits += digits_;
    if (digits_) {
        sort();
        if (plan.path == path_t::affine) {
            find_buckets();
            const sizes_t sizes = count_sizes();
            sum_affine(points, n, sizes);
            // Rows that are nearly empty are summed as they are.
            bool sparse = sizes.all[max_rounds - 1] < shape_.buckets() / 64;
            reduce<affine>(sparse ? 0 : shape_.levels());
        } else {
            sum_xyzz(points, n);
            reduce<xyzz>(shape_.levels());
        }
        take_outputs(group, sums);
    }
    scratch_.reset();
}

template <class G>
void driver<G>::cut(const window_range& group, const element_mem<2>* scalars, uint32_t n) {
    on_.zero(on_.compute(), counters_, sizeof(counters_t));
    {
        span k(on_, "msm_digits");
        cut_t cut{shape_.c, group.begin, group.end};
        cut_digits<<<blocks_for(n, list_threads), list_threads, 0, stream_>>>(
            scalars, n, cut, keys(0), refs(0), &counters_.data()->digits);
    }
    on_.d2h(on_.compute(), on_.staging(), &counters_.data()->digits, 4);
    rt::synchronise(on_.compute());
    memcpy(&digits_, on_.staging(), 4);
    if (digits_ > group.digits)
        throw failure(HW_INTERNAL, "cut digits: more than the lengths allow");
}

template <class G> void driver<G>::sort() {
    int bits = 1;
    while (1ull << bits < shape_.buckets()) bits++;
    cub::DoubleBuffer<uint32_t> k(keys(0), keys(1)), r(refs(0), refs(1));
    size_t bytes = 0;
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, r, digits_, 0, bits, stream_),
          "size sort");
    if (bytes > at_.sort_bytes) throw failure(HW_INTERNAL, "sort digits: scratch is too small");
    bytes = at_.sort_bytes;
    span s(on_, "msm_sort");
    check(
        cub::DeviceRadixSort::SortPairs(at<void>(at_.sort), bytes, k, r, digits_, 0, bits, stream_),
        "sort digits");
    sorted_ = k.Current() == keys(0) ? 0 : 1;
    if ((r.Current() == refs(0) ? 0 : 1) != sorted_)
        throw failure(HW_INTERNAL, "sort digits: keys and values parted");
}

template <class G> void driver<G>::find_buckets() {
    on_.zero(on_.compute(), begins(0), sizeof(begins_t) * shape_.buckets());
    on_.zero(on_.compute(), lengths(), 4 * shape_.buckets());
    span k(on_, "msm_buckets");
    find_bounds<<<blocks_for(digits_, list_threads), list_threads, 0, stream_>>>(
        keys(sorted_), digits_, begins(0), lengths());
}

template <class G> template <class S> void driver<G>::add(const S& source, uint64_t pairs) {
    chunks_t chunks = make_chunks(pairs, shape_.blocks, G::undivided);
    uint32_t blocks = uint32_t(std::min<uint64_t>(shape_.blocks, blocks_for(pairs, block_threads)));
    add_pairs<G><<<blocks, block_threads, add_pairs_shared<G>(), stream_>>>(
        source, chunks, at<word_t>(at_.prefix), &counters_.data()->next_chunk[chunk_counter_++]);
    stats_.pairs += pairs;
}

template <class G> template <class E>
void driver<G>::add_one_level(const level_source<E>& source, uint64_t n) {
    if constexpr (sizeof(E) == sizeof(affine)) {
        add(source, n);
    } else {
        add_level<G>
            <<<blocks_for(n, block_threads), block_threads, 0, stream_>>>(source, uint32_t(n));
    }
}

template <class G> template <class E> void driver<G>::reduce(uint32_t levels) {
    span k(on_, "msm_reduction");
    const uint32_t windows = shape_.windows, c = shape_.c;
    const E *last = at<E>(at_.buckets), *before = nullptr;
    E* to = at<E>(at_.work);
    uint32_t lg = c - 1, level = 0;
    for (; level < levels; level++) {
        lg--;
        uint64_t n = uint64_t(level + 1) * windows << lg;
        add_one_level<E>({last, before, to, windows, level, lg}, n);
        before = last;
        last = to;
        to += n;
    }
    rows_t<E> rows{at<E>(at_.buckets), before, last, windows, level, lg, c};
    finish_rows<G, E>
        <<<windows * c, merge_block_threads<G>, 0, stream_>>>(rows, at<xyzz>(at_.outputs));
}

template <class G> void driver<G>::take_outputs(const window_range& group, combiner<G>& sums) {
    const uint32_t outputs = uint32_t(shape_.windows) * shape_.c, count = (outputs + 3) / 4;
    {
        span k(on_, "msm_outputs");
        fold_outputs<G><<<blocks_for(count, 32), 32, 0, stream_>>>(at<xyzz>(at_.outputs), outputs,
                                                                   at<xyzz>(at_.folded));
    }
    on_.d2h(on_.compute(), on_.staging(), at<xyzz>(at_.folded), count * sizeof(xyzz));
    rt::synchronise(on_.compute());
    const xyzz* folded = static_cast<const xyzz*>(on_.staging());
    for (uint32_t q = 0; q < count; q++) sums.put(group.begin * shape_.c + 4 * int(q), folded[q]);
}

} // namespace highwater::msm_detail

#include "msm/sums.cuh"
