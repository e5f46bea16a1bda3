// The two groups as tags that kernels and drivers are instantiated with. A tag says what memory
// holds (as plain words, the same for host and device) and names the types to compute with.
#pragma once

#include "curve/field.hpp"

#include <cstring>

#include <ec/jacobian_t.hpp>
#include <ec/xyzz_t.hpp>

namespace highwater {

// 16 bytes, what one load moves.
struct alignas(16) word_t {
    uint32_t v[4];
};

// W words in memory: a field element.
template <int W> struct element_mem {
    word_t w[W];
};
template <int W> struct affine_mem {
    element_mem<W> x, y;
};
// x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2; infinity has ZZ = ZZZ = 0.
template <int W> struct xyzz_mem {
    element_mem<W> x, y, zzz, zz;
};

struct g1 {
    static constexpr int words = 3;      // of a field element
    static constexpr int min_blocks = 3; // a multiprocessor's, of 128 threads
    static constexpr uint32_t undivided = 100; // see make_chunks
    static constexpr const char* name = "g1";
    using field = fp_t;
    using affine = affine_mem<words>;
    using xyzz = xyzz_mem<words>;
};
struct g2 {
    static constexpr int words = 6;
    static constexpr int min_blocks = 2;
    static constexpr uint32_t undivided = 32;
    static constexpr const char* name = "g2";
    using field = fp2_t;
    using affine = affine_mem<words>;
    using xyzz = xyzz_mem<words>;
};

// The types to compute with.
template <class G> using field_of = typename G::field;
template <class G> using affine_of = Affine_t<typename G::field>;
template <class G> using xyzz_of = xyzz_t<typename G::field>;

template <class F, int W> HW_HD F load(const element_mem<W>& m) {
    union {
        F f;
        word_t w[W];
    } u = {F()};
    static_assert(sizeof(F) == sizeof(u.w), "an element fills its words");
#pragma unroll
    for (int i = 0; i < W; i++) u.w[i] = m.w[i];
    return u.f;
}
template <class F, int W> HW_HD void store(element_mem<W>& m, const F& f) {
    union {
        F f;
        word_t w[W];
    } u = {f};
#pragma unroll
    for (int i = 0; i < W; i++) m.w[i] = u.w[i];
}

// An XYZZ point with its coordinates at hand; sppark's are private.
template <class F> struct xyzz_parts {
    F x, y, zzz, zz;
};

template <class G> HW_HD affine_of<G> load_affine(const typename G::affine& m) {
    return affine_of<G>(load<field_of<G>>(m.x), load<field_of<G>>(m.y));
}
template <class G> HW_HD xyzz_of<G> load_xyzz(const typename G::xyzz& m) {
    xyzz_parts<field_of<G>> p{load<field_of<G>>(m.x), load<field_of<G>>(m.y),
                              load<field_of<G>>(m.zzz), load<field_of<G>>(m.zz)};
    xyzz_of<G> point;
    static_assert(sizeof p == sizeof point, "xyzz_t is its four coordinates");
    memcpy(static_cast<void*>(&point), static_cast<const void*>(&p), sizeof p);
    return point;
}
template <class G> HW_HD void store_xyzz(typename G::xyzz& m, const xyzz_of<G>& point) {
    xyzz_parts<field_of<G>> p;
    memcpy(static_cast<void*>(&p), static_cast<const void*>(&point), sizeof p);
    store(m.x, p.x);
    store(m.y, p.y);
    store(m.zzz, p.zzz);
    store(m.zz, p.zz);
}

} // namespace highwater
