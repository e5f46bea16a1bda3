// prove_start on small keys whose points have known logarithms: each part must be the multiple of
// the generator that plain arithmetic over the scalars gives.
#include <thread>

#include "reference.h"

using namespace test;

namespace {

using scalars = std::vector<blst_fr>;

blst_fr product(const blst_fr& a, const blst_fr& b) {
    blst_fr x;
    blst_fr_mul(&x, &a, &b);
    return x;
}

blst_fr inverse(const blst_fr& a) {
    blst_fr x;
    blst_fr_inverse(&x, &a);
    return x;
}

blst_fr power(blst_fr base, uint64_t e) {
    blst_fr result = small_fr(1);
    for (; e; e >>= 1) {
        if (e & 1) result = product(result, base);
        base = product(base, base);
    }
    return result;
}

blst_fr root_of_unity(uint32_t lg) {
    uint64_t odd[4] = {0xfffe5bfeffffffffull, 0x09a1d80553bda402ull, 0x299d7d483339d808ull,
                       0x73eda753};
    blst_fr root = small_fr(1);
    for (int bit = 222; bit >= 0; bit--) {
        root = product(root, root);
        if (odd[bit / 64] >> (bit % 64) & 1) root = product(root, small_fr(7));
    }
    for (uint32_t i = lg; i < 32; i++) root = product(root, root);
    return root;
}

// sum of c[j] x^j.
blst_fr evaluate(const scalars& c, const blst_fr& x) {
    blst_fr sum = small_fr(0);
    for (size_t j = c.size(); j-- > 0;) {
        sum = product(sum, x);
        blst_fr_add(&sum, &sum, &c[j]);
    }
    return sum;
}

// Values at shift w^k, k = 0 .. n-1, to coefficients.
scalars interpolate(const scalars& values, const blst_fr& root, const blst_fr& shift) {
    const size_t n = values.size();
    const blst_fr over_n = inverse(small_fr(n)), over_shift = inverse(shift),
                  over_root = inverse(root);
    scalars c(n);
    for (size_t j = 0; j < n; j++) {
        c[j] =
            product(product(evaluate(values, power(over_root, j)), over_n), power(over_shift, j));
    }
    return c;
}

scalars quotient(const scalars& a, const scalars& b, const scalars& c, uint32_t lg) {
    const size_t n = size_t(1) << lg;
    const blst_fr root = root_of_unity(lg), one = small_fr(1), shift = small_fr(7);
    scalars ca = interpolate(a, root, one), cb = interpolate(b, root, one),
            cc = interpolate(c, root, one);
    blst_fr z = power(shift, n);
    blst_fr_sub(&z, &z, &one);
    z = inverse(z);
    scalars values(n);
    for (size_t k = 0; k < n; k++) {
        blst_fr x = product(shift, power(root, k)), minus_c = evaluate(cc, x);
        values[k] = product(evaluate(ca, x), evaluate(cb, x));
        blst_fr_sub(&values[k], &values[k], &minus_c);
        values[k] = product(values[k], z);
    }
    return interpolate(values, root, shift);
}

blst_fr dot(const scalars& a, const scalars& b) {
    blst_fr sum = small_fr(0);
    for (size_t i = 0; i < a.size(); i++) {
        blst_fr x = product(a[i], b[i]);
        blst_fr_add(&sum, &sum, &x);
    }
    return sum;
}

template <class G> bool is_multiple(const void* got, const blst_fr& s) {
    typename G::affine want = G::to_affine(G::multiple(G::generator(), s));
    return same(got, &want, sizeof want);
}

// A key of random logarithms and an assignment for it.
struct instance {
    uint32_t lg;
    size_t wires, public_wires, constraints;
    scalars z, k, a_logs, b_logs, a, b, c, w;
    std::vector<uint64_t> infinity_a, infinity_b;

    instance(uint32_t log_domain, size_t n_wires, uint64_t seed) : lg(log_domain), wires(n_wires) {
        random_source r(seed);
        public_wires = 1 + r.below(wires - 1);
        constraints = (size_t(1) << lg) - r.below(size_t(1) << (lg - 1));
        infinity_a.resize((wires + 63) / 64);
        infinity_b.resize((wires + 63) / 64);
        auto fill = [&](scalars& v, size_t n) {
            while (v.size() < n) v.push_back(r.below(3) ? random_fr(r) : small_fr(r.below(3)));
        };
        fill(z, (size_t(1) << lg) - 1);
        fill(k, wires - public_wires);
        for (size_t i = 0; i < wires; i++) {
            if (r.below(3) == 0) infinity_a[i / 64] |= uint64_t(1) << (i % 64);
            else fill(a_logs, a_logs.size() + 1);
            if (r.below(3) == 0) infinity_b[i / 64] |= uint64_t(1) << (i % 64);
            else fill(b_logs, b_logs.size() + 1);
        }
        fill(a, constraints);
        fill(b, constraints);
        fill(c, constraints);
        fill(w, wires);
    }

    hw_srs_desc desc() const {
        hw_srs_desc d{};
        d.struct_bytes = sizeof d;
        d.log_domain = lg;
        d.wires = wires;
        d.public_wires = public_wires;
        d.a_points = a_logs.size();
        d.b_points = b_logs.size();
        d.z = z.data();
        d.k = k.data();
        d.a = a_logs.data();
        d.b_g1 = d.b_g2 = b_logs.data();
        d.infinity_a = infinity_a.data();
        d.infinity_b = infinity_b.data();
        return d;
    }

    hw_assignment assignment() const {
        hw_assignment in{};
        in.struct_bytes = sizeof in;
        in.flags = HW_PROVE_B_G2;
        in.a = a.data();
        in.b = b.data();
        in.c = c.data();
        in.w = w.data();
        in.constraints = constraints;
        in.job = 4;
        in.partition = 2;
        return in;
    }

    scalars present(const std::vector<uint64_t>& absent) const {
        scalars v;
        for (size_t i = 0; i < wires; i++) {
            if (!(absent[i / 64] >> (i % 64) & 1)) v.push_back(w[i]);
        }
        return v;
    }

    void check(const hw_proof_parts& p) const {
        const size_t n = size_t(1) << lg;
        auto padded = [&](scalars v) {
            v.resize(n, small_fr(0));
            return v;
        };
        scalars h = quotient(padded(a), padded(b), padded(c), lg), in_order(n - 1);
        for (size_t i = 0; i + 1 < n; i++) {
            size_t j = 0;
            for (uint32_t bit = 0; bit < lg; bit++) j |= (i >> bit & 1) << (lg - 1 - bit);
            in_order[i] = h[j];
        }
        CHECK(is_multiple<group1>(p.h, dot(z, in_order)));
        CHECK(is_multiple<group1>(p.l, dot(k, scalars(w.begin() + long(public_wires), w.end()))));
        CHECK(is_multiple<group1>(p.a, dot(a_logs, present(infinity_a))));
        const blst_fr b_sum = dot(b_logs, present(infinity_b));
        CHECK(is_multiple<group1>(p.b_g1, b_sum));
        CHECK_EQUAL(p.has_b_g2, 1u);
        CHECK(is_multiple<group2>(p.b_g2, b_sum));
    }
};

hw_proof_parts prove(hw_context* context, hw_srs* srs, const instance& x) {
    hw_proof_parts parts{};
    parts.struct_bytes = sizeof parts;
    hw_assignment in = x.assignment();
    CHECK_OK(hw_prove_start(context, srs, &in, &parts));
    return parts;
}

// The points of a key, as set-up hands them to the host.
struct points {
    std::vector<blst_p1_affine> z, k, a, b_g1;
    std::vector<blst_p2_affine> b_g2;
    hw_srs_host host{};

    explicit points(const instance& x)
        : z(x.z.size()), k(x.k.size()), a(x.a_logs.size()), b_g1(x.b_logs.size()),
          b_g2(x.b_logs.size()) {
        host.struct_bytes = sizeof host;
        host.z = z.data();
        host.k = k.data();
        host.a = a.data();
        host.b_g1 = b_g1.data();
        host.b_g2 = b_g2.data();
    }
    hw_srs_desc desc(const instance& x) const {
        hw_srs_desc d = x.desc();
        d.z = z.data();
        d.k = k.data();
        d.a = a.data();
        d.b_g1 = b_g1.data();
        d.b_g2 = b_g2.data();
        return d;
    }
};

} // namespace

TEST(prove_start_on_a_key_set_up_and_loaded) {
    test::context context;
    for (uint32_t lg = 1; lg <= 5; lg++) {
        instance x(lg, 5 + 20 * lg, lg);
        points p(x);
        hw_srs *made = nullptr, *loaded = nullptr;
        hw_srs_desc logs = x.desc();
        CHECK_OK(hw_srs_setup(context, &logs, &p.host, &made));
        x.check(prove(context, made, x));
        hw_srs_desc desc = p.desc(x);
        CHECK_OK(hw_srs_load(context, &desc, &loaded));
        CHECK_EQUAL(hw_srs_device_bytes(made), hw_srs_device_bytes(loaded));
        CHECK(hw_srs_device_bytes(made) <= context.memory().arena_used_bytes);
        x.check(prove(context, loaded, x));
        hw_srs_destroy(made);
        hw_srs_destroy(loaded);
        CHECK_EQUAL(context.memory().arena_used_bytes, 0u);
    }
}

TEST(prove_start_tells_what_it_did) {
    test::context context;
    instance x(4, 40, 77);
    hw_srs* srs = nullptr;
    hw_srs_desc logs = x.desc();
    CHECK_OK(hw_srs_setup(context, &logs, nullptr, &srs));
    context.events();
    hw_proof_parts parts = prove(context, srs, x);
    CHECK(parts.begin_ns <= parts.upload_end_ns);
    CHECK(parts.upload_end_ns <= parts.end_ns);
    CHECK(parts.ntt_end_ns <= parts.msm[HW_MSM_H].end_ns);
    CHECK(parts.device_peak_bytes >= 3 * 16 * 32);
    uint64_t uploaded = 0;
    std::vector<std::string> ops;
    bool digits = false;
    for (const hw_event& e : context.events()) {
        CHECK_EQUAL(e.job, 4);
        CHECK_EQUAL(e.partition, 2);
        std::string name = hw_name(e.name);
        if (e.kind == HW_EVENT_COPY_BEGIN && name == "copy_h2d") uploaded += e.bytes;
        if (e.kind == HW_EVENT_OP_BEGIN) ops.push_back(name);
        digits |=
            e.kind == HW_EVENT_ATTRIBUTE && name == "digits" && e.arg == parts.msm[HW_MSM_H].digits;
    }
    CHECK(uploaded >= (3 * x.constraints + x.wires) * 32);
    CHECK(digits);
    CHECK(ops == std::vector<std::string>({"ntt a b c", "quotient", "msm h", "msm l", "gather a",
                                           "msm a", "gather b", "msm b_g1", "msm b_g2"}));
    hw_srs_destroy(srs);
}

TEST(keys_that_contradict_themselves_are_refused) {
    test::context context;
    instance x(3, 20, 5);
    struct {
        const char* name;
        void (*spoil)(hw_srs_desc&);
    } cases[] = {
        {"domain", [](hw_srs_desc& d) { d.log_domain = 0; }},
        {"large domain", [](hw_srs_desc& d) { d.log_domain = 40; }},
        {"wires", [](hw_srs_desc& d) { d.wires = 0; }},
        {"public", [](hw_srs_desc& d) { d.public_wires = d.wires + 1; }},
        {"a mask", [](hw_srs_desc& d) { d.a_points--; }},
        {"b mask", [](hw_srs_desc& d) { d.b_points++; }},
        {"pointer", [](hw_srs_desc& d) { d.z = nullptr; }},
    };
    for (auto& c : cases) {
        hw_srs_desc d = x.desc();
        c.spoil(d);
        hw_srs* srs = nullptr;
        CHECK_EQUAL(hw_srs_setup(context, &d, nullptr, &srs), HW_INVALID_ARGUMENT);
        CHECK(!srs);
        CHECK_EQUAL(context.memory().arena_used_bytes, 0u);
    }
    hw_srs_desc d = x.desc();
    d.b_g2 = nullptr;
    hw_srs* srs = nullptr;
    CHECK_OK(hw_srs_setup(context, &d, nullptr, &srs));
    hw_proof_parts parts{};
    parts.struct_bytes = sizeof parts;
    hw_assignment in = x.assignment();
    // B_g2 without its points.
    CHECK_EQUAL(hw_prove_start(context, srs, &in, &parts), HW_INVALID_ARGUMENT);
    in.flags = 0;
    in.constraints = 9;
    CHECK_EQUAL(hw_prove_start(context, srs, &in, &parts), HW_INVALID_ARGUMENT);
    in.constraints = x.constraints;
    CHECK_OK(hw_prove_start(context, srs, &in, &parts));
    CHECK_EQUAL(parts.has_b_g2, 0u);
    test::context other;
    CHECK_EQUAL(hw_prove_start(other, srs, &in, &parts), HW_INVALID_ARGUMENT);
    hw_srs_destroy(srs);
}

// A fault at any device operation of a proof fails that proof alone.
TEST(prove_start_survives_a_fault_anywhere) {
    instance x(3, 20, 6);
    bool reached_end = false;
    for (uint64_t n = 1; !reached_end; n++) {
        CHECK(n < 1000);
        hw_config c = config(32 * mib);
        c.fault_operation = n;
        test::context context(c);
        hw_srs* srs = nullptr;
        hw_srs_desc logs = x.desc();
        hw_status setup = hw_srs_setup(context, &logs, nullptr, &srs);
        if (setup == HW_DEVICE_ERROR) {
            CHECK_EQUAL(context.memory().arena_used_bytes, 0u);
            CHECK_OK(hw_srs_setup(context, &logs, nullptr, &srs));
        }
        hw_proof_parts parts{};
        parts.struct_bytes = sizeof parts;
        hw_assignment in = x.assignment();
        hw_status first = hw_prove_start(context, srs, &in, &parts);
        reached_end = setup == HW_OK && first == HW_OK;
        if (first == HW_OK) {
            x.check(parts);
        } else {
            CHECK_EQUAL(first, HW_DEVICE_ERROR);
            x.check(prove(context, srs, x));
        }
        hw_srs_destroy(srs);
        CHECK_EQUAL(context.memory().arena_used_bytes, 0u);
        if (n > 6) n += 10; // the rest is like what was tried
    }
}

// Four threads prove on two lanes from one key.
TEST(proofs_side_by_side) {
    test::context context;
    instance x(4, 30, 8);
    hw_srs* srs = nullptr;
    hw_srs_desc logs = x.desc();
    CHECK_OK(hw_srs_setup(context, &logs, nullptr, &srs));
    std::vector<hw_proof_parts> parts(4);
    std::vector<hw_status> statuses(4, HW_INTERNAL);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < parts.size(); t++) {
        threads.emplace_back([&, t] {
            parts[t] = {};
            parts[t].struct_bytes = sizeof parts[t];
            hw_assignment in = x.assignment();
            statuses[t] = hw_prove_start(context, srs, &in, &parts[t]);
        });
    }
    for (std::thread& t : threads) t.join();
    for (size_t t = 0; t < parts.size(); t++) {
        CHECK_EQUAL(statuses[t], HW_OK);
        x.check(parts[t]);
    }
    hw_srs_destroy(srs);
}

TEST(benchmarks_check_their_results) {
    test::context context;
    hw_bench_spec spec{};
    spec.struct_bytes = sizeof spec;
    spec.log_size = 5;
    spec.repeats = 2;
    spec.seed = 1;
    for (uint32_t what : {HW_BENCH_NTT, HW_BENCH_MSM, HW_BENCH_UPLOAD, HW_BENCH_FIXED_BASE}) {
        for (uint32_t profile : {HW_SCALARS_UNIFORM, HW_SCALARS_LABEL, HW_SCALARS_ONE_VALUE}) {
            spec.what = what;
            spec.profile = profile;
            spec.group = profile == HW_SCALARS_LABEL ? HW_G2 : HW_G1;
            hw_bench_result result{};
            result.struct_bytes = sizeof result;
            CHECK_OK(hw_bench(context, &spec, &result));
            CHECK_EQUAL(result.repeats, 2u);
            CHECK_EQUAL(result.checked, what <= HW_BENCH_MSM ? 1u : 0u);
        }
    }
    hw_bench_result result{};
    result.struct_bytes = sizeof result;
    spec.repeats = 0;
    CHECK_EQUAL(hw_bench(context, &spec, &result), HW_INVALID_ARGUMENT);
}
