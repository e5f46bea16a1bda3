#include "core/warmup.h"

#include <vector>

#include "core/mathematics.h"
#include "groth16/generators.h"

namespace highwater {

namespace {

constexpr uint32_t lg = 8;
constexpr uint64_t n = uint64_t(1) << lg, few = 16;

void warm_up_group(lane& on, uint32_t group, const void* d_scalars) {
    auto points = on.alloc<char>(few * 192, "d_scratch");
    fixed_base(on, group, generator(group), d_scalars, points, few);
    unsigned char sum[192];
    hw_msm_stats stats;
    for (uint32_t path : {HW_MSM_XYZZ, HW_MSM_AFFINE}) {
        msm(on, msm_input{group, points, d_scalars, few, path, 8}, sum, &stats);
    }
}

void warm_up_all(lane& on) {
    // Any words below r are scalars.
    std::vector<uint64_t> words(n * 4);
    for (size_t i = 0; i < words.size(); i++) words[i] = i * 0x9e3779b97f4a7c15ull >> 4;
    auto x = on.alloc<char>(n * 32, "d_scratch"), y = on.alloc<char>(n * 32, "d_scratch");
    on.h2d(on.compute(), x, words.data(), n * 32);
    on.d2d(on.compute(), y, x, n * 32);
    ntt(on, x, lg, HW_ORDER_NR, HW_NTT_INVERSE);
    ntt(on, x, lg, HW_ORDER_RN, HW_NTT_COSET);
    quotient(on, x, y, y, lg);
    warm_up_group(on, HW_G1, y);
    warm_up_group(on, HW_G2, y);
}

} // namespace

void warm_up(lane& on) {
    on.begin_call(owner{});
    try {
        warm_up_all(on);
    } catch (const failure& f) {
        on.end_call();
        // An arena too small for this is too small for most work, but that is its owner's to find.
        if (f.status() != HW_OUT_OF_DEVICE_MEMORY) throw;
        return;
    }
    on.end_call();
}

} // namespace highwater
