// Many multiples of one point, on the device: one addition a window of the scalar from tables that
// stay in the cache, then batches of sums made affine with one inversion a block.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/mathematics.h"
#include "core/runtime.h"
#include "msm/affine.cuh"
#include "msm/normalise.cuh"
#include "setup/fixed_base.hpp"

namespace highwater::setup_detail {

using namespace msm_detail;

constexpr uint64_t batch_products = 1 << 20; // bounds the scratch: 240 bytes a product of G1

#ifdef __CUDACC__

// One thread an entry: (j+1) times its window's base, by doubling.
template <class G> __global__ void __launch_bounds__(block_threads)
    fill_tables(const typename G::affine* bases, int c, uint32_t first, uint32_t n,
                typename G::xyzz* out) {
#ifdef __CUDA_ARCH__
    uint32_t i = blockIdx.x * block_threads + threadIdx.x;
    if (i >= n) return;
    uint32_t entry = first + i, window = entry >> (c - 1),
             multiple = (entry & ((1u << (c - 1)) - 1)) + 1;
    xyzz_of<G> sum;
    sum.inf();
    for (int bit = 31 - __clz(multiple); bit >= 0; bit--) {
        store_xyzz<G>(out[i], sum);
        add_sum<G>(sum, &out[i]);
        if (multiple >> bit & 1) add_point<G>(sum, &bases[window], false);
    }
    store_xyzz<G>(out[i], sum);
#endif
}

// One thread a scalar.
template <class G> __global__ void __launch_bounds__(block_threads, G::min_blocks)
    multiply(const element_mem<2>* scalars, uint32_t n, int c, const typename G::affine* tables,
             typename G::xyzz* out) {
#ifdef __CUDA_ARCH__
    uint32_t i = blockIdx.x * block_threads + threadIdx.x;
    if (i >= n) return;
    magnitude_t m = magnitude(scalars[i]);
    digits_t digits(m, c);
    xyzz_of<G> sum;
    sum.inf();
    for (int w = 0; w < windows_of(c); w++) {
        int32_t d = digits.next();
        if (d == 0) continue;
        uint32_t row = uint32_t(w) << (c - 1);
        sum.add(load_affine<G>(tables[row + (d < 0 ? -d : d) - 1]), m.negative != (d < 0));
    }
    store_xyzz<G>(out[i], sum);
#endif
}

template <class G> class multiplier {
    using affine = typename G::affine;
    using xyzz = typename G::xyzz;
    using element = element_mem<G::words>;

    lane& on_;
    cudaStream_t stream_;
    uint32_t blocks_;
    int c_;
    device_array<affine> bases_, tables_;
    device_array<xyzz> sums_;
    device_array<element> prefix_;

    static uint32_t blocks(uint64_t n) { return uint32_t((n + block_threads - 1) / block_threads); }

    void make_affine(uint32_t n, affine* out) {
        normalise<G>(sums_, n, prefix_, out, blocks_, stream_);
    }
    void fill(const affine& base) {
        std::vector<affine> bases = window_bases<G>(base, c_);
        bases_ = on_.alloc<affine>(bases.size(), "d_scratch");
        memcpy(on_.staging(), bases.data(), bases.size() * sizeof(affine));
        on_.h2d(on_.compute(), bases_, on_.staging(), bases.size() * sizeof(affine));
        tables_ = on_.alloc<affine>(bases.size() << (c_ - 1), "d_scratch");
        span k(on_, "setup_tables");
        for (uint64_t first = 0; first < tables_.size(); first += sums_.size()) {
            uint32_t n = uint32_t(std::min<uint64_t>(sums_.size(), tables_.size() - first));
            fill_tables<G>
                <<<blocks(n), block_threads, 0, stream_>>>(bases_, c_, uint32_t(first), n, sums_);
            make_affine(n, tables_.data() + first);
        }
    }

public:
    multiplier(lane& on, const affine& base, uint64_t n)
        : on_(on), stream_(reinterpret_cast<cudaStream_t>(on.compute())), c_(table_window(n)) {
        int processors = 0;
        if (cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, on.device()) !=
            cudaSuccess)
            throw failure(HW_DEVICE_ERROR, "ask for processors");
        blocks_ = uint32_t(processors * G::min_blocks);
        uint64_t batch =
            std::min(batch_products, std::max(n, uint64_t(windows_of(c_)) << (c_ - 1)));
        sums_ = on.alloc<xyzz>(batch, "d_scratch");
        prefix_ = on.alloc<element>(batch, "d_scratch");
        fill(base);
    }
    void run(const element_mem<2>* scalars, affine* out, uint64_t n) {
        span k(on_, "setup_products");
        for (uint64_t first = 0; first < n; first += sums_.size()) {
            uint32_t size = uint32_t(std::min<uint64_t>(sums_.size(), n - first));
            multiply<G><<<blocks(size), block_threads, 0, stream_>>>(scalars + first, size, c_,
                                                                     tables_, sums_);
            make_affine(size, out + first);
        }
    }
};

#endif

} // namespace highwater::setup_detail
