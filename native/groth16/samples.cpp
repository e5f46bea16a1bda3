#include "groth16/samples.h"

#include <cstring>

#include "core/parallel.h"
#include "highwater_native.h"

namespace highwater {

namespace {

// splitmix64 of a position: any part can be made alone.
uint64_t random_word(uint64_t seed, uint64_t at) {
    uint64_t x = seed + (at + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Uniform below 2^254: any value is as good in Montgomery form as out of it.
fr_t uniform(uint64_t seed, uint64_t i) {
    uint64_t limbs[4];
    for (int k = 0; k < 4; k++) limbs[k] = random_word(seed, i * 5 + k);
    limbs[3] &= 0x3fffffffffffffffull;
    fr_t x;
    memcpy(&x, limbs, sizeof limbs);
    return x;
}

// As the wires of a bit-sliced SHA-256 circuit; in tenths of a per cent.
fr_t label_like(uint64_t seed, uint64_t i) {
    const uint64_t draw = random_word(seed, i * 5 + 4), of_1000 = draw % 1000;
    if (of_1000 < 684) return fr_t(uint64_t(0));
    if (of_1000 < 860) return fr_t(uint64_t(1));
    if (of_1000 < 987) return fr_t(2 + (draw >> 32) % 2);
    if (of_1000 < 997) return -fr_t(uint64_t(1));
    return uniform(seed, i);
}

} // namespace

std::vector<fr_t> sample_scalars(uint64_t n, uint32_t profile, uint64_t seed) {
    std::vector<fr_t> all(n);
    const fr_t one_value = uniform(seed, 0);
    parallel(n, [&](uint64_t begin, uint64_t end, unsigned) {
        for (uint64_t i = begin; i < end; i++) {
            all[i] = profile == HW_SCALARS_LABEL       ? label_like(seed, i)
                     : profile == HW_SCALARS_ONE_VALUE ? one_value
                                                       : uniform(seed, i);
        }
    });
    return all;
}

fr_t dot(const std::vector<fr_t>& a, const std::vector<fr_t>& b) {
    std::vector<fr_t> sums(most_parts(), fr_t(uint64_t(0)));
    parallel(a.size(), [&](uint64_t begin, uint64_t end, unsigned part) {
        fr_t sum(uint64_t(0));
        for (uint64_t i = begin; i < end; i++) sum += a[i] * b[i];
        sums[part] = sum;
    });
    fr_t sum(uint64_t(0));
    for (const fr_t& s : sums) sum += s;
    return sum;
}

} // namespace highwater
