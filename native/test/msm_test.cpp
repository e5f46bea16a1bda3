// The MSM's parts that are the same on the device and here: digits, plans, lists, chunks, formulas;
// and a twin of the device's driver that calls them in the same order.
#include <algorithm>
#include <cstring>
#include <map>

#include "check.h"
#include "msm/combine.hpp"
#include "msm/plan.hpp"
#include "msm_twin.h"

using namespace highwater;
using namespace highwater::msm_detail;

namespace {

fr_t small(int64_t k) {
    fr_t f(uint64_t(k < 0 ? -k : k));
    if (k < 0) f.cneg(true);
    return f;
}

fr_t random_fr(test::random_source& r) {
    uint64_t v[4] = {r.next(), r.next(), r.next(), r.next() >> 2};
    fr_t f;
    memcpy(static_cast<void*>(&f), v, sizeof v);
    return f;
}

fr_t power_of_two(int k) {
    fr_t f = small(1), two = small(2);
    while (k--) f *= two;
    return f;
}

element_mem<2> memory_of(const fr_t& f) {
    element_mem<2> m;
    memcpy(&m, static_cast<const void*>(&f), sizeof m);
    return m;
}

// Every kind of scalar that has been wrong somewhere.
std::vector<fr_t> edge_scalars() {
    std::vector<fr_t> all;
    for (int64_t k : {0, 1, 2, 3, 255, 256, 257, 65535, 65536}) {
        all.push_back(small(k));
        all.push_back(small(-k));
    }
    fr_t half = small(1) / small(2); // (r + 1) / 2: the least whose negative is the smaller
    all.push_back(half);
    all.push_back(half - small(1));
    for (int k = 1; k < 255; k++) {
        all.push_back(power_of_two(k));
        all.push_back(power_of_two(k) - small(1));
        all.push_back(small(0) - power_of_two(k));
    }
    return all;
}

fr_t value_of(const fr_t& scalar, int c, int& highest) {
    magnitude_t m = magnitude(memory_of(scalar));
    digits_t digits(m, c);
    fr_t sum = small(0);
    highest = -1;
    for (int w = 0; w < windows_of(c); w++) {
        int32_t d = digits.next();
        CHECK(d > -(1 << (c - 1)) && d <= 1 << (c - 1));
        if (d) highest = w;
        sum += small(m.negative ? -d : d) * power_of_two(c * w);
    }
    CHECK_EQUAL(digits.next(), 0);
    return sum;
}

} // namespace

TEST(digits_add_up_to_the_scalar) {
    test::random_source r(1);
    std::vector<fr_t> scalars = edge_scalars();
    for (int i = 0; i < 50; i++) scalars.push_back(random_fr(r));
    for (int c : {4, 5, 8, 13, 16, 17, 20, 24}) {
        for (const fr_t& s : scalars) {
            int highest;
            CHECK(value_of(s, c, highest) == s);
            int bits = bit_length(magnitude(memory_of(s)));
            CHECK(bits <= scalar_bits);
            CHECK(highest <= bits / c); // what totals_t counts on
        }
    }
}

TEST(minus_one_is_one_digit) {
    magnitude_t m = magnitude(memory_of(small(-1)));
    CHECK(m.negative);
    CHECK_EQUAL(bit_length(m), 1);
    digit_t d = make_digit(1, m.negative, 3, 8, 42);
    CHECK_EQUAL(d.key, 3u << 7 | 1);
    CHECK_EQUAL(d.ref, 42u | sign_bit);
    CHECK_EQUAL(make_digit(128, false, 3, 8, 42).key, 3u << 7); // 2^(c-1) takes the place of 0
    CHECK_EQUAL(make_digit(-1, true, 0, 8, 42).ref, 42u);
}

TEST(plans_keep_the_bound_and_cover_all_windows) {
    histogram_t lengths{};
    lengths[0] = 700000;
    lengths[1] = 200000;
    lengths[254] = 1 << 20;
    wish_t wish;
    wish.processors = 132;
    for (uint64_t bound : {1ull << 40, 4ull << 30, 1ull << 30, 600ull << 20, 400ull << 20}) {
        wish.scratch_bytes = bound;
        plan_t plan = make_plan(lengths, wish);
        CHECK(!plan.groups.empty());
        int next = 0;
        for (const window_range& g : plan.groups) {
            CHECK_EQUAL(g.begin, next);
            CHECK(g.end > g.begin);
            CHECK(scratch_of(plan, g, wish) <= bound);
            next = g.end;
        }
        CHECK_EQUAL(next, plan.windows);
        CHECK(plan.windows * plan.c >= 254);
    }
    wish.scratch_bytes = 1 << 20;
    CHECK(make_plan(lengths, wish).groups.empty());
}

TEST(short_scalars_get_few_windows) {
    histogram_t lengths{};
    lengths[1] = 1 << 20;
    wish_t wish;
    wish.scratch_bytes = 1ull << 40;
    wish.processors = 132;
    plan_t plan = make_plan(lengths, wish);
    CHECK_EQUAL(plan.windows, 1);
    CHECK_EQUAL(plan.digits, uint64_t(1) << 20);
    wish.window_bits = 17;
    wish.path = HW_MSM_AFFINE;
    plan = make_plan(lengths, wish);
    CHECK(plan.path == path_t::affine);
    CHECK_EQUAL(plan.c, 17);
}

TEST(chunks_deal_each_pair_once) {
    for (uint32_t blocks : {1u, 6u, 264u, 396u}) {
        for (uint64_t pairs :
             {1ull, 127ull, 128ull, 129ull, 5000ull, 50688ull, 50689ull, 1000003ull, 9000001ull}) {
            const uint32_t undivided = blocks == 264 ? g2::undivided : g1::undivided;
            chunks_t chunks = make_chunks(pairs, blocks, undivided);
            uint64_t next = 0;
            chunk_t chunk;
            for (uint32_t q = 0; chunk_of(chunks, q, chunk); q++) {
                CHECK_EQUAL(chunk.first, next);
                CHECK(chunk.steps >= 1 && chunk.steps <= max_steps);
                next =
                    std::min<uint64_t>(pairs, chunk.first + uint64_t(chunk.steps) * block_threads);
            }
            CHECK_EQUAL(next, pairs);
        }
    }
}

namespace {

template <class G>
typename G::affine sum_of(const typename G::affine& a, const typename G::affine& b) {
    using F = field_of<G>;
    F xa = load<F>(a.x), ya = load<F>(a.y), xb = load<F>(b.x), yb = load<F>(b.y), x, y;
    sum_kind kind = kind_of(xa, ya, xb, yb);
    F d = denominator(kind, xa, ya, xb);
    CHECK(!d.is_zero());
    finish(kind, F(1 / d), xa, ya, xb, yb, x, y);
    typename G::affine out;
    store(out.x, x);
    store(out.y, y);
    return out;
}

template <class G> typename G::affine negative(typename G::affine a) {
    field_of<G> y = load<field_of<G>>(a.y);
    y.cneg(true);
    store(a.y, y);
    return a;
}

template <class G> void affine_sums() {
    test::random_source r(3);
    twin<G> t;
    using affine = typename G::affine;
    affine none{}, p = t.multiple(random_fr(r)), q = t.multiple(random_fr(r));
    struct {
        affine a, b;
    } cases[] = {{p, q},    {p, p},       {p, negative<G>(p)}, {p, none},
                 {none, p}, {none, none}, {negative<G>(p), p}, {negative<G>(p), negative<G>(p)}};
    for (auto& c : cases) {
        xyzz_of<G> want;
        want.inf();
        want.add(load_affine<G>(c.a));
        want.add(load_affine<G>(c.b));
        affine got = sum_of<G>(c.a, c.b), expected = t.affine_of_sum(want);
        CHECK(!memcmp(&got, &expected, sizeof got));
    }
}

// Points with known logarithms, of the kinds that real keys hold: equal, opposite, infinity.
template <class G> void whole_sums(size_t n, const std::vector<int>& windows) {
    test::random_source r(n);
    twin<G> t;
    fr_t once = random_fr(r), minus = once;
    minus.cneg(true);
    std::vector<fr_t> logs;
    std::vector<typename G::affine> points;
    std::map<int, typename G::affine> few;
    std::vector<fr_t> choices{small(0),     once,         minus,       small(1),
                              random_fr(r), random_fr(r), random_fr(r)};
    for (size_t k = 0; k < choices.size(); k++) few[int(k)] = t.multiple(choices[k]);
    for (size_t i = 0; i < n; i++) {
        int k = int(r.below(choices.size()));
        logs.push_back(choices[k]);
        points.push_back(few[k]);
    }
    const fr_t dense = random_fr(r);
    for (int profile = 0; profile < 5; profile++) {
        std::vector<fr_t> scalars;
        fr_t log = small(0);
        for (size_t i = 0; i < n; i++) {
            uint64_t dice = r.below(100);
            switch (profile) {
            case 0: scalars.push_back(random_fr(r)); break;
            case 1:
                scalars.push_back(small(dice < 68 ? 0 : dice < 86 ? 1 : dice < 99 ? 2 : -1));
                break;
            case 2: scalars.push_back(dense); break;
            case 3: scalars.push_back(small(1)); break;
            default: scalars.push_back(dice < 50 ? small(0) : minus); break;
            }
            log += scalars[i] * logs[i];
        }
        typename G::affine want = t.multiple(log);
        for (int c : windows) {
            struct {
                path_t path;
                uint32_t tail_from;
            } ways[] = {{path_t::xyzz, 0},
                        {path_t::affine, max_rounds},
                        {path_t::affine, 2},
                        {path_t::affine, 4}};
            for (auto& way : ways) {
                typename G::affine got = t.msm(way.path, c, points, scalars, way.tail_from);
                CHECK(!memcmp(&got, &want, sizeof got));
            }
        }
    }
}

} // namespace

TEST(affine_sums_of_g1) { affine_sums<g1>(); }
TEST(affine_sums_of_g2) { affine_sums<g2>(); }
TEST(twin_of_the_driver_g1) {
    whole_sums<g1>(1, {4, 10});
    whole_sums<g1>(37, {5, 9});
    whole_sums<g1>(200, {7});
}
TEST(twin_of_the_driver_g2) {
    whole_sums<g2>(3, {4, 8});
    whole_sums<g2>(100, {6});
}
