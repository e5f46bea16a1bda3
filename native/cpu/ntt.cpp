// The twin's transforms: radix 2, one thread. Gentleman-Sande takes natural order to bit-reversed,
// Cooley- Tukey back, as on the device.
#include <vector>

#include "core/mathematics.h"
#include "curve/field.hpp"

namespace highwater {

namespace {

constexpr uint32_t two_adicity = 32;

fr_t power(fr_t base, uint64_t exponent) {
    fr_t result = fr_t::one();
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) result *= base;
        base *= base;
    }
    return result;
}

// 7^((r-1)/2^32), a root of unity of order 2^32; its square root of order 2^lg.
fr_t root_of_unity(uint32_t lg) {
    static const fr_t top = [] {
        const uint64_t odd[4] = {0xfffe5bfeffffffffull, 0x09a1d80553bda402ull,
                                 0x299d7d483339d808ull, 0x73eda753};
        fr_t result = fr_t::one(), base = fr_t(uint64_t(7));
        for (int bit = 0; bit < 223; bit++) {
            if (odd[bit / 64] >> (bit % 64) & 1) result *= base;
            base *= base;
        }
        return result;
    }();
    fr_t root = top;
    for (uint32_t i = lg; i < two_adicity; i++) root *= root;
    return root;
}

uint64_t reversed(uint64_t i, uint32_t lg) {
    uint64_t r = 0;
    for (uint32_t bit = 0; bit < lg; bit++) r |= (i >> bit & 1) << (lg - 1 - bit);
    return r;
}

void reverse_order(fr_t* x, uint32_t lg) {
    for (uint64_t i = 0; i < uint64_t(1) << lg; i++) {
        uint64_t j = reversed(i, lg);
        if (i < j) std::swap(x[i], x[j]);
    }
}

std::vector<fr_t> powers(fr_t root, uint64_t n) {
    std::vector<fr_t> all(n);
    fr_t p = fr_t::one();
    for (fr_t& x : all) {
        x = p;
        p *= root;
    }
    return all;
}

void gentleman_sande(fr_t* x, uint32_t lg, const std::vector<fr_t>& w) {
    const uint64_t n = uint64_t(1) << lg;
    for (uint64_t half = n / 2, step = 1; half; half /= 2, step *= 2) {
        for (uint64_t begin = 0; begin < n; begin += 2 * half) {
            for (uint64_t i = 0; i < half; i++) {
                fr_t& low = x[begin + i];
                fr_t& high = x[begin + half + i];
                fr_t difference = low - high;
                low += high;
                high = difference * w[i * step];
            }
        }
    }
}

void cooley_tukey(fr_t* x, uint32_t lg, const std::vector<fr_t>& w) {
    const uint64_t n = uint64_t(1) << lg;
    for (uint64_t half = 1, step = n / 2; half < n; half *= 2, step /= 2) {
        for (uint64_t begin = 0; begin < n; begin += 2 * half) {
            for (uint64_t i = 0; i < half; i++) {
                fr_t& low = x[begin + i];
                fr_t& high = x[begin + half + i];
                fr_t term = high * w[i * step];
                high = low - term;
                low += term;
            }
        }
    }
}

// x[i] *= g^i, where x may be in bit-reversed order.
void distribute(fr_t* x, uint32_t lg, const fr_t& g, bool bit_reversed) {
    fr_t p = fr_t::one();
    for (uint64_t i = 0; i < uint64_t(1) << lg; i++) {
        x[bit_reversed ? reversed(i, lg) : i] *= p;
        p *= g;
    }
}

} // namespace

void ntt(lane& on, void* d_inout, uint32_t lg, uint32_t order, uint32_t flags) {
    span timed(on, "ntt");
    fr_t* x = static_cast<fr_t*>(d_inout);
    const bool inverse = flags & HW_NTT_INVERSE, coset = flags & HW_NTT_COSET;
    const bool from_reversed = order == HW_ORDER_RN || order == HW_ORDER_RR;
    const bool to_reversed = order == HW_ORDER_NR || order == HW_ORDER_RR;
    const fr_t shift(uint64_t(7));
    fr_t root = root_of_unity(lg);
    if (inverse) root = root.reciprocal();
    if (coset && !inverse) distribute(x, lg, shift, from_reversed);
    const std::vector<fr_t> w = powers(root, ((uint64_t(1) << lg) + 1) / 2);
    if (from_reversed && !to_reversed) {
        cooley_tukey(x, lg, w);
    } else {
        if (from_reversed) reverse_order(x, lg);
        gentleman_sande(x, lg, w);
        if (!to_reversed) reverse_order(x, lg);
    }
    if (!inverse) return;
    const fr_t scale = fr_t(uint64_t(1) << lg).reciprocal();
    for (uint64_t i = 0; i < uint64_t(1) << lg; i++) x[i] *= scale;
    if (coset) distribute(x, lg, shift.reciprocal(), to_reversed);
}

void quotient(lane& on, void* d_a, const void* d_b, const void* d_c, uint32_t lg) {
    span timed(on, "pointwise");
    fr_t* a = static_cast<fr_t*>(d_a);
    const fr_t *b = static_cast<const fr_t*>(d_b), *c = static_cast<const fr_t*>(d_c);
    const fr_t z = (power(fr_t(uint64_t(7)), uint64_t(1) << lg) - fr_t::one()).reciprocal();
    for (uint64_t i = 0; i < uint64_t(1) << lg; i++) a[i] = (a[i] * b[i] - c[i]) * z;
}

void gather(lane& on, void* d_out, const void* d_in, const uint32_t* d_index, uint64_t n) {
    span timed(on, "gather");
    fr_t* out = static_cast<fr_t*>(d_out);
    const fr_t* in = static_cast<const fr_t*>(d_in);
    for (uint64_t i = 0; i < n; i++) out[i] = in[d_index[i]];
}

} // namespace highwater
