// Fields, groups, transforms and sums against blst's own C interface.
#include "reference.h"

using namespace test;

TEST(fr_operations) {
    test::context context;
    random_source r(1);
    std::vector<blst_fr> a{small_fr(0), small_fr(0), small_fr(1), minus(small_fr(1))},
        b{small_fr(0), minus(small_fr(1)), minus(small_fr(1)), minus(small_fr(1))};
    while (a.size() < 300) a.push_back(random_fr(r)), b.push_back(random_fr(r));
    std::vector<blst_fr> out(a.size());
    struct {
        uint32_t operation;
        void (*want)(blst_fr*, const blst_fr*, const blst_fr*);
    } cases[] = {
        {HW_FIELD_ADD, blst_fr_add},
        {HW_FIELD_SUB, blst_fr_sub},
        {HW_FIELD_MUL, blst_fr_mul},
        {HW_FIELD_SQR, [](blst_fr* x, const blst_fr* a, const blst_fr*) { blst_fr_sqr(x, a); }},
        {HW_FIELD_NEG,
         [](blst_fr* x, const blst_fr* a, const blst_fr*) { blst_fr_cneg(x, a, true); }},
        {HW_FIELD_INV, [](blst_fr* x, const blst_fr* a, const blst_fr*) { blst_fr_inverse(x, a); }},
        {HW_FIELD_FROM_MONT,
         [](blst_fr* x, const blst_fr* a, const blst_fr*) { blst_uint64_from_fr(x->l, a); }},
        {HW_FIELD_TO_MONT,
         [](blst_fr* x, const blst_fr* a, const blst_fr*) { blst_fr_from_uint64(x, a->l); }},
    };
    for (auto& c : cases) {
        CHECK_OK(hw_op_field(context, HW_FIELD_FR, c.operation, a.data(), b.data(), out.data(),
                             a.size()));
        for (size_t i = 0; i < a.size(); i++) {
            blst_fr want;
            c.want(&want, &a[i], &b[i]);
            CHECK(same(&want, &out[i], sizeof want));
        }
    }
}

TEST(fp_and_fp2_operations) {
    test::context context;
    random_source r(2);
    std::vector<blst_fp2> a(100), b(100), out(100);
    for (auto* v : {&a, &b}) {
        for (blst_fp2& x : *v) {
            for (blst_fp& c : x.fp) {
                uint64_t limbs[6];
                for (uint64_t& l : limbs) l = r.next();
                limbs[5] >>= 4;
                blst_fp_from_uint64(&c, limbs);
            }
        }
    }
    memset(&a[0], 0, sizeof a[0]);
    memset(&b[1], 0, sizeof b[1]);
    struct {
        uint32_t operation;
        void (*two)(blst_fp2*, const blst_fp2*, const blst_fp2*);
        void (*one)(blst_fp*, const blst_fp*, const blst_fp*);
    } cases[] = {
        {HW_FIELD_ADD, blst_fp2_add, blst_fp_add},
        {HW_FIELD_SUB, blst_fp2_sub, blst_fp_sub},
        {HW_FIELD_MUL, blst_fp2_mul, blst_fp_mul},
        {HW_FIELD_SQR, [](blst_fp2* x, const blst_fp2* a, const blst_fp2*) { blst_fp2_sqr(x, a); },
         [](blst_fp* x, const blst_fp* a, const blst_fp*) { blst_fp_sqr(x, a); }},
        {HW_FIELD_INV,
         [](blst_fp2* x, const blst_fp2* a, const blst_fp2*) { blst_fp2_inverse(x, a); },
         [](blst_fp* x, const blst_fp* a, const blst_fp*) { blst_fp_inverse(x, a); }},
        {HW_FIELD_NEG,
         [](blst_fp2* x, const blst_fp2* a, const blst_fp2*) {
             *x = *a;
             blst_fp2_cneg(x, x, true);
         },
         [](blst_fp* x, const blst_fp* a, const blst_fp*) {
             *x = *a;
             blst_fp_cneg(x, x, true);
         }},
    };
    for (auto& c : cases) {
        CHECK_OK(hw_op_field(context, HW_FIELD_FP2, c.operation, a.data(), b.data(), out.data(),
                             a.size()));
        for (size_t i = 0; i < a.size(); i++) {
            blst_fp2 want;
            c.two(&want, &a[i], &b[i]);
            CHECK(same(&want, &out[i], sizeof want));
        }
        CHECK_OK(hw_op_field(context, HW_FIELD_FP, c.operation, a.data(), b.data(), out.data(),
                             2 * a.size()));
        for (size_t i = 0; i < 2 * a.size(); i++) {
            blst_fp want;
            c.one(&want, &a[i / 2].fp[i % 2], &b[i / 2].fp[i % 2]);
            CHECK(same(&want, &out[i / 2].fp[i % 2], sizeof want));
        }
    }
}

// Direct evaluation: y[k] = sum of x[j] (shift w^k)^j.
TEST(transforms_against_direct_evaluation) {
    test::context context(test::config(4 * test::mib));
    random_source r(3);
    for (uint32_t lg = 0; lg <= 5; lg++) {
        const size_t n = size_t(1) << lg;
        blst_fr root = small_fr(7), one = small_fr(1);
        uint64_t odd[4] = {0xfffe5bfeffffffffull, 0x09a1d80553bda402ull, 0x299d7d483339d808ull,
                           0x73eda753};
        blst_fr power = one;
        for (int bit = 222; bit >= 0; bit--) {
            blst_fr_sqr(&power, &power);
            if (odd[bit / 64] >> (bit % 64) & 1) blst_fr_mul(&power, &power, &root);
        }
        for (uint32_t i = lg; i < 32; i++) blst_fr_sqr(&power, &power);
        for (uint32_t coset : {0u, uint32_t(HW_NTT_COSET)}) {
            std::vector<blst_fr> x(n), want(n);
            for (blst_fr& v : x) v = random_fr(r);
            blst_fr at = coset ? small_fr(7) : one;
            for (size_t k = 0; k < n; k++) {
                blst_fr sum = small_fr(0);
                for (size_t j = n; j-- > 0;)
                    blst_fr_mul(&sum, &sum, &at), blst_fr_add(&sum, &sum, &x[j]);
                want[k] = sum;
                blst_fr_mul(&at, &at, &power);
            }
            auto reversed = [&](const std::vector<blst_fr>& v) {
                std::vector<blst_fr> out(n);
                for (size_t i = 0; i < n; i++) {
                    size_t j = 0;
                    for (uint32_t bit = 0; bit < lg; bit++) j |= (i >> bit & 1) << (lg - 1 - bit);
                    out[j] = v[i];
                }
                return out;
            };
            for (uint32_t order : {HW_ORDER_NN, HW_ORDER_NR, HW_ORDER_RN, HW_ORDER_RR}) {
                bool in_reversed = order == HW_ORDER_RN || order == HW_ORDER_RR;
                bool out_reversed = order == HW_ORDER_NR || order == HW_ORDER_RR;
                std::vector<blst_fr> forward = in_reversed ? reversed(x) : x;
                CHECK_OK(hw_op_ntt(context, forward.data(), lg, order, coset));
                CHECK(same(forward.data(), (out_reversed ? reversed(want) : want).data(), n * 32));
                std::vector<blst_fr> back = in_reversed ? reversed(want) : want;
                CHECK_OK(hw_op_ntt(context, back.data(), lg, order, coset | HW_NTT_INVERSE));
                CHECK(same(back.data(), (out_reversed ? reversed(x) : x).data(), n * 32));
            }
        }
    }
}

namespace {

template <class G> struct sum_case {
    std::vector<typename G::affine> points;
    std::vector<blst_fr> scalars;
    typename G::point want{};
    void add(const typename G::point& p, const blst_fr& s) {
        points.push_back(G::to_affine(p));
        scalars.push_back(s);
        G::add(want, G::multiple(p, s));
    }
};

template <class G> void check_sum(hw_context* context, const sum_case<G>& c) {
    typename G::affine got, want = G::to_affine(c.want);
    hw_msm_stats stats{};
    CHECK_OK(hw_op_msm(context, G::tag, c.points.data(), c.scalars.data(), c.points.size(), nullptr,
                       &got, &stats));
    CHECK(same(&got, &want, sizeof got));
    CHECK_EQUAL(stats.points, c.points.size());
    for (uint32_t bits : {4u, 7u}) {
        hw_msm_options o{};
        o.struct_bytes = sizeof o;
        o.window_bits = bits;
        CHECK_OK(hw_op_msm(context, G::tag, c.points.data(), c.scalars.data(), c.points.size(), &o,
                           &got, &stats));
        CHECK(same(&got, &want, sizeof got));
        if (stats.digits) CHECK_EQUAL(stats.window_bits, bits);
    }
}

// Equal and opposite points, infinity, and the scalars that take odd paths.
template <class G> void sums(uint64_t seed) {
    test::context context(test::config(16 * test::mib));
    random_source r(seed);
    const blst_fr zero = small_fr(0), one = small_fr(1);
    check_sum<G>(context, {});
    std::vector<typename G::point> p;
    for (int i = 0; i < 5; i++) p.push_back(G::multiple(G::generator(), random_fr(r)));
    typename G::point opposite = p[0], infinity{};
    G::negate(opposite);
    sum_case<G> c;
    c.add(p[0], random_fr(r));
    check_sum(context, c);
    for (const blst_fr& s :
         {zero, one, minus(one), small_fr(2), small_fr(1u << 30), random_fr(r)}) {
        for (const auto& q : {p[0], p[0], opposite, infinity, p[1]}) c.add(q, s);
    }
    check_sum(context, c);
    sum_case<G> cancelled; // the sum is infinity
    cancelled.add(p[2], small_fr(5));
    cancelled.add(p[2], minus(small_fr(5)));
    check_sum(context, cancelled);
    sum_case<G> nothing;
    for (int i = 0; i < 7; i++) nothing.add(p[1], zero);
    check_sum(context, nothing);
    sum_case<G> dense;
    for (int i = 0; i < 40; i++) dense.add(p[size_t(i) % p.size()], random_fr(r));
    check_sum(context, dense);
}

template <class G> void points(uint64_t seed) {
    test::context context(test::config(4 * test::mib));
    random_source r(seed);
    typename G::point p = G::multiple(G::generator(), random_fr(r)),
                      q = G::multiple(p, random_fr(r));
    typename G::point np = p, infinity{};
    G::negate(np);
    std::vector<typename G::point> a{p, p, p, p, infinity, infinity},
        b{q, p, np, infinity, q, infinity};
    std::vector<typename G::affine> aa, bb, out(a.size());
    for (size_t i = 0; i < a.size(); i++)
        aa.push_back(G::to_affine(a[i])), bb.push_back(G::to_affine(b[i]));
    for (uint32_t operation : {HW_POINT_ADD, HW_POINT_SUB, HW_POINT_DOUBLE, HW_POINT_NEG}) {
        CHECK_OK(
            hw_op_point(context, G::tag, operation, aa.data(), bb.data(), out.data(), a.size()));
        for (size_t i = 0; i < a.size(); i++) {
            typename G::point want = a[i], other = b[i];
            if (operation == HW_POINT_SUB) G::negate(other);
            if (operation == HW_POINT_NEG) G::negate(want);
            if (operation <= HW_POINT_SUB) G::add(want, other);
            if (operation == HW_POINT_DOUBLE) G::add(want, typename G::point(want));
            typename G::affine w = G::to_affine(want);
            CHECK(same(&w, &out[i], sizeof w));
        }
    }
}

template <class G> void fixed(uint64_t seed) {
    test::context context(test::config(64 * test::mib));
    random_source r(seed);
    std::vector<blst_fr> s{small_fr(0), small_fr(1), minus(small_fr(1)), small_fr(255),
                           small_fr(256)};
    while (s.size() < 12) s.push_back(random_fr(r));
    typename G::point base = G::multiple(G::generator(), random_fr(r));
    typename G::affine b = G::to_affine(base);
    std::vector<typename G::affine> out(s.size());
    CHECK_OK(hw_op_fixed_base(context, G::tag, &b, s.data(), out.data(), s.size()));
    for (size_t i = 0; i < s.size(); i++) {
        typename G::affine want = G::to_affine(G::multiple(base, s[i]));
        CHECK(same(&want, &out[i], sizeof want));
    }
}

} // namespace

TEST(impossible_windows_are_refused) {
    test::context context(test::config(4 * test::mib));
    blst_p1_affine out;
    for (uint32_t bits : {1u, 3u, 25u, 1000u}) {
        hw_msm_options o{};
        o.struct_bytes = sizeof o;
        o.window_bits = bits;
        CHECK_EQUAL(hw_op_msm(context, HW_G1, nullptr, nullptr, 0, &o, &out, nullptr),
                    HW_INVALID_ARGUMENT);
    }
}

TEST(sums_g1) { sums<group1>(4); }
TEST(sums_g2) { sums<group2>(5); }
TEST(points_g1) { points<group1>(6); }
TEST(points_g2) { points<group2>(7); }
TEST(fixed_base_g1) { fixed<group1>(8); }
TEST(fixed_base_g2) { fixed<group2>(9); }
