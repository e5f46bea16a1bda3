// The fields of BLS12-381, for both passes of nvcc and for g++: sppark's device types on the
// device, blst's on the host. Types of one name differ between the passes (class, alignment), so
// kernels must not take them by value; memory is passed as bytes and read with load and store.
// Include <cub/cub.cuh> before this header where both are needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ff/bls12-381.hpp>
#ifndef __CUDA_ARCH__
#include <ff/bls12-381-fp2.hpp>
#endif

#ifdef __CUDACC__
#define HW_HD __host__ __device__ __forceinline__
#define HW_DEVICE __device__ __forceinline__
#else
#define HW_HD inline
#endif

namespace highwater {

using bls12_381::fp_t;
using bls12_381::fr_t;

#ifdef __CUDA_ARCH__

// a0 + a1 u with u^2 = -1. One thread holds a whole element: lane pairs, as in sppark's own fp2_t,
// would halve the pairs that a block of threads has in flight.
class fp2_t {
public:
    static const unsigned int degree = 1; // threads an element
    using mem_t = fp2_t;
    fp_t a0, a1;

    HW_DEVICE fp2_t() {}
    HW_DEVICE fp2_t(const fp_t& re, const fp_t& im) : a0(re), a1(im) {}

    HW_DEVICE fp2_t& operator+=(const fp2_t& b) {
        a0 += b.a0;
        a1 += b.a1;
        return *this;
    }
    HW_DEVICE fp2_t& operator-=(const fp2_t& b) {
        a0 -= b.a0;
        a1 -= b.a1;
        return *this;
    }
    HW_DEVICE fp2_t& operator*=(const fp2_t& b) { return *this = product(*this, b); }
    HW_DEVICE fp2_t& cneg(bool flag) {
        a0.cneg(flag);
        a1.cneg(flag);
        return *this;
    }
    friend HW_DEVICE fp2_t operator+(fp2_t a, const fp2_t& b) { return a += b; }
    friend HW_DEVICE fp2_t operator-(fp2_t a, const fp2_t& b) { return a -= b; }
    friend HW_DEVICE fp2_t operator*(const fp2_t& a, const fp2_t& b) { return product(a, b); }
    friend HW_DEVICE fp2_t operator^(const fp2_t& a, int) { return square(a); } // only ^ 2
    HW_DEVICE fp2_t& operator^=(int) { return *this = square(*this); }
    HW_DEVICE fp2_t& operator<<=(unsigned l) {
        a0 <<= l;
        a1 <<= l;
        return *this;
    }
    friend HW_DEVICE fp2_t operator<<(fp2_t a, unsigned l) { return a <<= l; }
    friend HW_DEVICE fp2_t operator/(int, const fp2_t& a) { return a.reciprocal(); } // only 1 /

    HW_DEVICE bool is_zero() const { return a0.is_zero(a1); }
    HW_DEVICE bool is_zero(const fp2_t& b) const { return is_zero() && b.is_zero(); }
    HW_DEVICE void zero() {
        a0.zero();
        a1.zero();
    }
    static HW_DEVICE fp2_t one(int or_zero = 0) {
        fp2_t one;
        one.a0 = fp_t::one(or_zero);
        one.a1.zero();
        return one;
    }
    // All threads of a warp must call it together; see fp_t::reciprocal.
    HW_DEVICE fp2_t reciprocal() const {
        fp_t norm = sqr(a0);
        norm += sqr(a1);
        norm = norm.reciprocal();
        fp2_t r(a0 * norm, a1 * norm);
        r.a1.cneg(true);
        return r;
    }

private:
    // Not inlined: inlined, the code of one addition outgrows the instruction cache (0.54 against
    // 0.87 G additions a second).
    static __device__ __noinline__ fp2_t product(fp2_t a, fp2_t b) {
        fp_t t0 = a.a0 * b.a0, t1 = a.a1 * b.a1;
        a.a0 += a.a1;
        b.a0 += b.a1;
        a.a0 *= b.a0;
        a.a0 -= t0;
        a.a0 -= t1;
        t0 -= t1;
        return fp2_t(t0, a.a0);
    }
    static __device__ __noinline__ fp2_t square(fp2_t a) {
        fp_t sum = a.a0 + a.a1, difference = a.a0 - a.a1;
        a.a1 *= a.a0;
        sum *= difference;
        a.a1 += a.a1;
        return fp2_t(sum, a.a1);
    }
};

#else

using bls12_381::fp2_t;

#endif

} // namespace highwater
