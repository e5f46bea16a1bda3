// Signed digits of a scalar. With |s| = min(s, r - s) < 2^254 and windows of c bits,
//
//     s = ± sum over w of d_w 2^(c w),   -2^(c-1) < d_w <= 2^(c-1),
//
// so that -1 costs one addition, as 1 does. The bucket of a digit is |d| mod 2^(c-1): |d| = 2^(c-1)
// takes the place of 0, which needs no bucket.
#pragma once

#include "curve/group.hpp"

namespace highwater::msm_detail {

constexpr int scalar_bits = 254; // of |s|
constexpr int min_window = 4, max_window = 24;

constexpr HW_HD int windows_of(int c) {
    return scalar_bits / c + 1;
} // the last may hold a carry only

struct magnitude_t {
    uint32_t v[8];
    bool negative;
};

// |s| of a scalar in Montgomery form, reduced.
HW_HD magnitude_t magnitude(const element_mem<2>& scalar) {
    union {
        fr_t f;
        uint32_t v[8];
    } s = {load<fr_t>(scalar)};
    s.f.from();
    constexpr uint32_t r[8] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
                               0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
    magnitude_t negated, m;
    int64_t borrow = 0, smaller = 0; // of r - s, and then of (r - s) - s
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int64_t d = int64_t(r[i]) - s.v[i] + borrow;
        negated.v[i] = uint32_t(d);
        borrow = d >> 32;
        smaller = (int64_t(negated.v[i]) - s.v[i] + smaller) >> 32;
    }
    m.negative = smaller != 0;
#pragma unroll
    for (int i = 0; i < 8; i++) m.v[i] = m.negative ? negated.v[i] : s.v[i];
    return m;
}

// Bits of |s|: 0 for 0.
HW_HD int bit_length(const magnitude_t& m) {
    int bits = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
#ifdef __CUDA_ARCH__
        if (m.v[i]) bits = 32 * i + 32 - __clz(m.v[i]);
#else
        if (m.v[i]) bits = 32 * i + 32 - __builtin_clz(m.v[i]);
#endif
    }
    return bits;
}

// Cuts a magnitude, lowest window first.
class digits_t {
public:
    HW_HD digits_t(const magnitude_t& m, int c) : rest_(m), c_(c) {}
    HW_HD int32_t next() {
        int32_t d = int32_t(rest_.v[0] & ((1u << c_) - 1)) + carry_;
        carry_ = d > (1 << (c_ - 1));
        if (carry_) d -= 1 << c_;
#pragma unroll
        for (int i = 0; i < 7; i++) rest_.v[i] = rest_.v[i] >> c_ | rest_.v[i + 1] << (32 - c_);
        rest_.v[7] >>= c_;
        return d;
    }

private:
    magnitude_t rest_;
    int c_;
    int32_t carry_ = 0;
};

// A digit as the lists hold it: which bucket, and which point with which sign.
struct digit_t {
    uint32_t key, ref;
};
constexpr uint32_t sign_bit = 0x80000000;

// Two items of a bucket to be added, as in lists: index | sign.
struct pair_t {
    uint32_t a, b;
};

HW_HD digit_t make_digit(int32_t d, bool negative, uint32_t window, int c, uint32_t index) {
    uint32_t size = uint32_t(d < 0 ? -d : d), half = 1u << (c - 1);
    return {window << (c - 1) | (size & (half - 1)), index | (negative != (d < 0) ? sign_bit : 0)};
}

} // namespace highwater::msm_detail
