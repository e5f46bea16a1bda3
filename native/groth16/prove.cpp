#include "groth16/prove.h"

#include "core/mathematics.h"
#include "core/ring.h"

namespace highwater {

namespace {

constexpr uint32_t inverse = HW_NTT_INVERSE, coset = HW_NTT_COSET;

// One call of prove_start.
class start {
public:
    start(lane& on, const srs& key, const hw_assignment& in, hw_proof_parts& out)
        : on_(on), key_(key), in_(in), out_(out), n_(uint64_t(1) << key.log_domain) {}

    void run() {
        auto w = on_.alloc<char>(key_.wires * fr_bytes, "d_aux");
        {
            auto h = quotient(w);
            msm(HW_MSM_H, "msm h", key_.z, h);
        }
        msm(HW_MSM_L, "msm l", key_.k, w + key_.public_wires * fr_bytes);
        {
            auto scalars = gather("gather a", w, key_.wires_of_a, key_.a.points);
            msm(HW_MSM_A, "msm a", key_.a, scalars);
        }
        auto scalars = gather("gather b", w, key_.wires_of_b, key_.b_g1.points);
        msm(HW_MSM_B_G1, "msm b_g1", key_.b_g1, scalars);
        if (in_.flags & HW_PROVE_B_G2) {
            msm(HW_MSM_B_G2, "msm b_g2", key_.b_g2, scalars);
            out_.has_b_g2 = 1;
        }
    }

    void times() {
        on_.sync();
        out_.upload_end_ns = on_.stamp_ns(upload_end_);
        out_.ntt_end_ns = on_.stamp_ns(ntt_end_);
        for (int i = 0; i < HW_MSM_COUNT; i++) {
            if (!ran_[i]) continue;
            out_.msm[i].begin_ns = on_.stamp_ns(begins_[i]);
            out_.msm[i].end_ns = on_.stamp_ns(ends_[i]);
        }
        out_.device_peak_bytes = on_.peak_bytes();
    }

private:
    // Uploads the vectors on the copy stream, each transformed as soon as it is there; w goes last,
    // behind the transforms. Returns h, whose coefficients are in bit-reversed order.
    device_array<char> quotient(char* w) {
        auto a = on_.alloc<char>(n_ * fr_bytes, "d_a");
        auto b = on_.alloc<char>(n_ * fr_bytes, "d_b");
        auto c = on_.alloc<char>(n_ * fr_bytes, "d_c");
        on_.begin_op("ntt a b c");
        on_.attribute("size", n_);
        on_.attribute("transforms", 6);
        evaluate(a, in_.a);
        evaluate(b, in_.b);
        evaluate(c, in_.c);
        on_.h2d(on_.copies(), w, in_.w, key_.wires * fr_bytes);
        upload_end_ = on_.stamp(on_.copies());
        on_.end_op();
        on_.begin_op("quotient");
        on_.attribute("size", n_);
        on_.attribute("transforms", 1);
        highwater::quotient(on_, a, b, c, key_.log_domain);
        ntt(on_, a, key_.log_domain, HW_ORDER_NR, inverse | coset);
        on_.end_op();
        ntt_end_ = on_.stamp(on_.compute());
        on_.order(on_.copies(), on_.compute()); // w must be there for what follows
        return a;
    }

    // Values on the domain to values on the coset. All memory was the lane's before any work of
    // this call, so that copies need not wait for the compute stream.
    void evaluate(char* d, const void* h) {
        const uint64_t bytes = in_.constraints * fr_bytes;
        on_.h2d(on_.copies(), d, h, bytes);
        on_.zero(on_.compute(), d + bytes, n_ * fr_bytes - bytes);
        on_.order(on_.copies(), on_.compute());
        ntt(on_, d, key_.log_domain, HW_ORDER_NR, inverse);
        ntt(on_, d, key_.log_domain, HW_ORDER_RN, coset);
    }

    device_array<char> gather(const char* name, const char* w, const resident& wires, uint64_t n) {
        auto out = on_.alloc<char>(n * fr_bytes, "split");
        on_.begin_op(name);
        on_.attribute("scalars", n);
        highwater::gather(on_, out, w, static_cast<const uint32_t*>(wires.data()), n);
        on_.end_op();
        return out;
    }

    void msm(int which, const char* name, const query& q, const char* scalars) {
        void* outs[HW_MSM_COUNT] = {out_.h, out_.l, out_.a, out_.b_g1, out_.b_g2};
        hw_msm_stats& stats = out_.msm[which];
        on_.begin_op(name);
        begins_[which] = on_.stamp(on_.compute());
        msm_input in{q.group, q.data.data(), scalars, q.points};
        highwater::msm(on_, in, outs[which], &stats);
        note(on_, stats);
        ends_[which] = on_.stamp(on_.compute());
        on_.end_op();
        ran_[which] = true;
    }

    lane& on_;
    const srs& key_;
    const hw_assignment& in_;
    hw_proof_parts& out_;
    const uint64_t n_;
    size_t upload_end_ = 0, ntt_end_ = 0, begins_[HW_MSM_COUNT] = {}, ends_[HW_MSM_COUNT] = {};
    bool ran_[HW_MSM_COUNT] = {};
};

void check(const srs& key, const hw_assignment& in) {
    const char* wrong = nullptr;
    if (!in.a || !in.b || !in.c || !in.w) wrong = "a pointer is null";
    if (in.constraints > uint64_t(1) << key.log_domain)
        wrong = "more constraints than the key's domain holds";
    if (in.flags & HW_PROVE_B_G2 && !key.has_b_g2())
        wrong = "b_g2 asked for, but the key was loaded without";
    if (wrong) throw failure(HW_INVALID_ARGUMENT, std::string("start proof: ") + wrong);
}

} // namespace

void note(lane& on, const hw_msm_stats& s) {
    on.attribute("points", s.points);
    on.attribute("digits", s.digits);
    on.attribute("pairs", s.pairs);
    on.attribute("xyzz", s.xyzz);
    on.attribute("window_bits", s.window_bits);
    on.attribute("windows", s.windows);
    on.attribute("groups", s.groups);
    on.attribute("rounds", s.rounds);
    on.attribute("scratch_bytes", s.scratch_bytes);
}

void prove_start(context& of, const srs& key, const hw_assignment& in, hw_proof_parts& out) {
    check(key, in);
    call c(of, owner{in.job, in.partition});
    out.begin_ns = clock_ns();
    start s(c.on(), key, in, out);
    s.run();
    s.times();
    out.end_ns = clock_ns();
}

} // namespace highwater
