#include "groth16/bench.h"

#include <cstring>

#include "core/mathematics.h"
#include "core/ring.h"
#include "groth16/generators.h"
#include "groth16/operations.h"
#include "groth16/samples.h"
#include "groth16/srs.h"

namespace highwater {

namespace {

constexpr uint64_t logs_seed = 0x5eed; // of the points' logarithms, beside the scalars' own seed

void check(const hw_bench_spec& s) {
    const char* wrong = nullptr;
    if (s.log_size > max_log_domain) wrong = "log_size is not in 0..26";
    if (s.repeats < 1 || s.repeats > HW_BENCH_MAX_REPEATS) wrong = "repeats is not in 1..64";
    if (s.warmups > HW_BENCH_MAX_REPEATS) wrong = "more than 64 warm-ups";
    if (s.profile > HW_SCALARS_ONE_VALUE || s.order > HW_ORDER_RR || s.path > HW_MSM_AFFINE)
        wrong = "no such choice";
    if (!window_bits_possible(s.window_bits)) wrong = "window_bits is not 0 or 4..24";
    if (wrong) throw failure(HW_INVALID_ARGUMENT, std::string("bench: ") + wrong);
}

[[noreturn]] void wrong_result(const char* what) {
    throw failure(HW_INTERNAL, std::string("bench: wrong result of ") + what);
}

[[noreturn]] void unsupported(const char* what) {
    throw failure(HW_UNSUPPORTED, std::string("bench: this library has no ") + what);
}

// One benchmark on a lane.
class run {
public:
    run(lane& on, const hw_bench_spec& spec, hw_bench_result& out)
        : on_(on), spec_(spec), out_(out), n_(uint64_t(1) << spec.log_size),
          group_(spec.group == HW_G2 ? HW_G2 : HW_G1) {}

    // Times f, which leaves the lane synchronised.
    template <class F> void time(F f) {
        for (uint32_t i = 0; i < spec_.warmups; i++) f();
        for (uint32_t i = 0; i < spec_.repeats; i++) {
            on_.sync();
            int64_t begin = clock_ns();
            f();
            out_.ns[i] = clock_ns() - begin;
        }
        out_.repeats = spec_.repeats;
    }

    device_array<char> upload(const std::vector<fr_t>& x) {
        auto d = on_.alloc<char>(x.size() * fr_bytes, "d_scratch");
        on_.h2d(on_.compute(), d, x.data(), x.size() * fr_bytes);
        on_.sync();
        return d;
    }

    void ntt(bool sppark) {
        const std::vector<fr_t> x = sample_scalars(n_, HW_SCALARS_UNIFORM, spec_.seed);
        auto d = upload(x);
        auto forward = [&] {
            if (!sppark) {
                highwater::ntt(on_, d, spec_.log_size, spec_.order, spec_.flags);
            } else if (!sppark_ntt(on_, d, spec_.log_size, spec_.order, spec_.flags)) {
                unsupported("sppark");
            }
            on_.sync();
        };
        time(forward);
        // The way back must give the inputs again.
        const uint32_t back[] = {HW_ORDER_NN, HW_ORDER_RN, HW_ORDER_NR, HW_ORDER_RR};
        d = upload(x);
        forward();
        highwater::ntt(on_, d, spec_.log_size, back[spec_.order], spec_.flags ^ HW_NTT_INVERSE);
        std::vector<fr_t> y(n_);
        on_.d2h(on_.compute(), y.data(), d, n_ * fr_bytes);
        on_.sync();
        if (memcmp(x.data(), y.data(), n_ * fr_bytes)) wrong_result("the transform");
        out_.checked = 1;
    }

    void msm(bool sppark) {
        const std::vector<fr_t> logs =
            sample_scalars(n_, HW_SCALARS_UNIFORM, spec_.seed ^ logs_seed);
        const std::vector<fr_t> scalars = sample_scalars(n_, spec_.profile, spec_.seed);
        auto points = on_.alloc<char>(n_ * point_bytes(group_), "d_srs");
        {
            auto d_logs = upload(logs);
            fixed_base(on_, group_, generator(group_), d_logs, points, n_);
            on_.sync();
        }
        auto d_scalars = upload(scalars);
        uint8_t got[g2_bytes] = {}, want[g2_bytes] = {};
        time([&] {
            if (sppark) {
                if (!sppark_msm(on_, points, d_scalars, n_, got)) unsupported("sppark");
                return;
            }
            msm_input in{group_, points, d_scalars, n_, spec_.path, spec_.window_bits};
            highwater::msm(on_, in, got, &out_.msm);
        });
        multiple_of_generator(dot(logs, scalars), want);
        if (memcmp(got, want, point_bytes(group_))) wrong_result("the msm");
        out_.checked = 1;
    }

    void fixed() {
        auto d_scalars = upload(sample_scalars(n_, spec_.profile, spec_.seed));
        auto points = on_.alloc<char>(n_ * point_bytes(group_), "d_scratch");
        time([&] {
            fixed_base(on_, group_, generator(group_), d_scalars, points, n_);
            on_.sync();
        });
    }

    void copy() {
        auto free = [this](void* p) { on_.of().host_free(p); };
        std::unique_ptr<void, decltype(free)> host(
            on_.of().host_alloc(n_ * fr_bytes, "bench", owner{}, nullptr), free);
        auto d = on_.alloc<char>(n_ * fr_bytes, "d_scratch");
        memset(host.get(), 1, n_ * fr_bytes);
        time([&] {
            on_.h2d(on_.copies(), d, host.get(), n_ * fr_bytes);
            on_.sync();
        });
    }

private:
    void multiple_of_generator(const fr_t& s, uint8_t* out) {
        auto d_scalar = upload({s});
        auto d_point = on_.alloc<char>(point_bytes(group_), "d_scratch");
        fixed_base(on_, group_, generator(group_), d_scalar, d_point, 1);
        on_.d2h(on_.compute(), out, d_point, point_bytes(group_));
        on_.sync();
    }

    lane& on_;
    const hw_bench_spec& spec_;
    hw_bench_result& out_;
    const uint64_t n_;
    const uint32_t group_;
};

} // namespace

void bench(context& of, const hw_bench_spec& spec, hw_bench_result& out) {
    check(spec);
    call c(of, owner{});
    run r(c.on(), spec, out);
    switch (spec.what) {
    case HW_BENCH_NTT:
        return r.ntt(false);
    case HW_BENCH_MSM:
        return r.msm(false);
    case HW_BENCH_SPPARK_NTT:
        return r.ntt(true);
    case HW_BENCH_SPPARK_MSM:
        return r.msm(true);
    case HW_BENCH_UPLOAD:
        return r.copy();
    case HW_BENCH_FIXED_BASE:
        return r.fixed();
    default:
        throw failure(HW_INVALID_ARGUMENT, "bench: no such operation");
    }
}

} // namespace highwater
