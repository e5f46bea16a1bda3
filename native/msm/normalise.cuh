// XYZZ sums made affine, a block's share with one inversion.
#pragma once

#include <algorithm>

#include "msm/affine.cuh"
#include "msm/xyzz.cuh"

namespace highwater::msm_detail {

#ifdef __CUDACC__

// A block makes block_threads * steps sums affine, a thread every 128th of them.
template <class G> __global__ void __launch_bounds__(block_threads, G::min_blocks)
    normalise_chunks(const typename G::xyzz* in, uint32_t n, uint32_t steps,
                     element_mem<G::words>* prefix, typename G::affine* out) {
#ifdef __CUDA_ARCH__
    using F = field_of<G>;
    __shared__ element_mem<G::words> shared[block_threads];
    const uint32_t first = blockIdx.x * steps * block_threads + threadIdx.x;
    F product = F::one(0);
    for (uint32_t i = first, s = 0; s < steps && i < n; s++, i += block_threads) {
        store(prefix[i], product);
        F zzz = load<F>(in[i].zzz);
        if (!zzz.is_zero()) product *= zzz;
    }
    F inverse = block_inverse(product, reinterpret_cast<F*>(shared));
    for (uint32_t s = steps; s-- > 0;) {
        uint32_t i = first + s * block_threads;
        if (i >= n) continue;
        F zzz = load<F>(in[i].zzz), x, y;
        x.zero();
        y.zero();
        if (!zzz.is_zero()) {
            y = inverse;
            y *= load<F>(prefix[i]); // 1/ZZZ
            inverse *= zzz;
            x = load<F>(in[i].zz);
            x *= y;    // 1/Z
            x = x ^ 2; // 1/ZZ
            x *= load<F>(in[i].x);
            y *= load<F>(in[i].y);
        }
        store(out[i].x, x);
        store(out[i].y, y);
    }
#endif
}

// n sums on a card that holds `blocks` of these blocks at once. prefix: n elements of scratch.
template <class G> void normalise(const typename G::xyzz* in, uint32_t n,
                                  element_mem<G::words>* prefix, typename G::affine* out,
                                  uint32_t blocks, cudaStream_t stream) {
    const uint32_t needed = (n + block_threads - 1) / block_threads;
    const uint32_t steps = std::clamp(needed / blocks, 1u, max_steps);
    normalise_chunks<G>
        <<<(needed + steps - 1) / steps, block_threads, 0, stream>>>(in, n, steps, prefix, out);
}

#endif

} // namespace highwater::msm_detail
