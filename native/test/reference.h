// blst's own C interface as the reference: it shares no formula with the templates under test.
#pragma once

#include <cstring>

extern "C" {
#include "../bindings/blst.h"
}

#include "fixture.h"

namespace test {

inline blst_fr random_fr(random_source& r) {
    uint64_t limbs[4];
    for (uint64_t& l : limbs) l = r.next();
    limbs[3] >>= 2;
    blst_fr x;
    blst_fr_from_uint64(&x, limbs);
    return x;
}

inline blst_fr small_fr(uint64_t v) {
    uint64_t limbs[4] = {v, 0, 0, 0};
    blst_fr x;
    blst_fr_from_uint64(&x, limbs);
    return x;
}

inline blst_fr minus(const blst_fr& a) {
    blst_fr x;
    blst_fr_cneg(&x, &a, true);
    return x;
}

inline bool same(const void* a, const void* b, size_t n) { return memcmp(a, b, n) == 0; }

// The two groups of blst behind one set of names.
struct group1 {
    static constexpr uint32_t tag = HW_G1;
    using point = blst_p1;
    using affine = blst_p1_affine;
    static point generator() { return *blst_p1_generator(); }
    static void add(point& a, const point& b) { blst_p1_add_or_double(&a, &a, &b); }
    static void negate(point& a) { blst_p1_cneg(&a, true); }
    static point multiple(const point& a, const blst_fr& s) {
        blst_scalar k;
        blst_scalar_from_fr(&k, &s);
        point p;
        blst_p1_mult(&p, &a, k.b, 255);
        return p;
    }
    static affine to_affine(const point& p) {
        affine a{};
        if (!blst_p1_is_inf(&p)) blst_p1_to_affine(&a, &p);
        return a;
    }
};
struct group2 {
    static constexpr uint32_t tag = HW_G2;
    using point = blst_p2;
    using affine = blst_p2_affine;
    static point generator() { return *blst_p2_generator(); }
    static void add(point& a, const point& b) { blst_p2_add_or_double(&a, &a, &b); }
    static void negate(point& a) { blst_p2_cneg(&a, true); }
    static point multiple(const point& a, const blst_fr& s) {
        blst_scalar k;
        blst_scalar_from_fr(&k, &s);
        point p;
        blst_p2_mult(&p, &a, k.b, 255);
        return p;
    }
    static affine to_affine(const point& p) {
        affine a{};
        if (!blst_p2_is_inf(&p)) blst_p2_to_affine(&a, &p);
        return a;
    }
};

} // namespace test
