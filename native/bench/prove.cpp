#include "prove.h"

#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

namespace bench {

namespace {

using fr = struct {
    uint64_t v[4];
};

uint64_t random_word(uint64_t at) {
    uint64_t x = (at + 1) * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

fr uniform(uint64_t at) {
    fr x;
    for (int k = 0; k < 4; k++) x.v[k] = random_word(at * 4 + uint64_t(k));
    x.v[3] &= 0x3fffffffffffffffull;
    return x;
}

int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// 0, 1, 2, 3 and -1 in Montgomery form.
struct small_values {
    fr of[5];
    small_values(const library& lib, hw_context* context) {
        fr plain[5] = {
            {{0, 0, 0, 0}},
            {{1, 0, 0, 0}},
            {{2, 0, 0, 0}},
            {{3, 0, 0, 0}},
            {{0xffffffff00000000, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48}}};
        lib.must(lib.hw_op_field(context, HW_FIELD_FR, HW_FIELD_TO_MONT, plain, nullptr, of, 5),
                 "make scalars");
    }
    // A wire of a bit-sliced SHA-256 circuit.
    fr label(uint64_t at) const {
        const uint64_t draw = random_word(~at), of_1000 = draw % 1000;
        if (of_1000 < 684) return of[0];
        if (of_1000 < 860) return of[1];
        if (of_1000 < 987) return of[2 + (draw >> 32) % 2];
        return of_1000 < 997 ? of[4] : uniform(at);
    }
};

// A vector in the pool or in plain memory.
class vector_of_fr {
public:
    vector_of_fr(const library& lib, hw_context* context, size_t n, bool pinned)
        : lib_(lib), context_(context) {
        if (pinned) {
            lib.must(lib.hw_host_alloc(context, n * sizeof(fr), "bench", -1, -1, &pool_, nullptr),
                     "take pinned memory");
            data = static_cast<fr*>(pool_);
        } else {
            plain_.reset(new fr[n]);
            data = plain_.get();
        }
    }
    ~vector_of_fr() {
        if (pool_) lib_.hw_host_free(context_, pool_);
    }
    vector_of_fr(const vector_of_fr&) = delete;
    vector_of_fr& operator=(const vector_of_fr&) = delete;
    fr* data = nullptr;

private:
    const library& lib_;
    hw_context* context_;
    void* pool_ = nullptr;
    std::unique_ptr<fr[]> plain_;
};

// A key whose A query holds 26 % of the wires and B 88 %, as the label circuit's.
class key {
public:
    key(const library& lib, hw_context* context, uint32_t log_size, bool b_g2) : lib_(lib) {
        const size_t n = size_t(1) << log_size;
        std::vector<fr> logs(n);
        for (size_t i = 0; i < n; i++) logs[i] = uniform(i);
        std::vector<uint64_t> absent_a((n + 63) / 64), absent_b((n + 63) / 64);
        hw_srs_desc d{};
        d.struct_bytes = sizeof d;
        d.log_domain = log_size;
        d.wires = n;
        d.public_wires = 2;
        for (size_t w = 0; w < n; w++) {
            const uint64_t draw = random_word(w + (uint64_t(1) << 40)) % 100;
            if (draw >= 26) absent_a[w / 64] |= uint64_t(1) << (w % 64);
            else d.a_points++;
            if (draw >= 88) absent_b[w / 64] |= uint64_t(1) << (w % 64);
            else d.b_points++;
        }
        d.z = d.k = d.a = d.b_g1 = logs.data();
        d.b_g2 = b_g2 ? logs.data() : nullptr;
        d.infinity_a = absent_a.data();
        d.infinity_b = absent_b.data();
        lib.must(lib.hw_srs_setup(context, &d, nullptr, &srs), "make key");
    }
    ~key() { lib_.hw_srs_destroy(srs); }
    key(const key&) = delete;
    key& operator=(const key&) = delete;
    hw_srs* srs = nullptr;

private:
    const library& lib_;
};

void note(result& r, const hw_proof_parts& p, int64_t upload_ns) {
    const char* names[HW_MSM_COUNT] = {"msm_h_ns", "msm_l_ns", "msm_a_ns", "msm_b_g1_ns",
                                       "msm_b_g2_ns"};
    r.values.emplace_back("ntt_ns", double(p.ntt_end_ns - p.begin_ns));
    r.values.emplace_back("upload_ns", double(upload_ns));
    for (int i = 0; i < HW_MSM_COUNT; i++) {
        r.values.emplace_back(names[i], double(p.msm[i].end_ns - p.msm[i].begin_ns));
    }
    r.values.emplace_back("device_peak_bytes", double(p.device_peak_bytes));
}

} // namespace

void prove(const library& lib, hw_context* context, const prove_spec& spec, report& to) {
    const size_t n = size_t(1) << spec.log_size;
    const small_values values(lib, context);
    key k(lib, context, spec.log_size, spec.b_g2);
    vector_of_fr a(lib, context, n, spec.pinned), b(lib, context, n, spec.pinned),
        c(lib, context, n, spec.pinned), w(lib, context, n, spec.pinned);
    for (size_t i = 0; i < n; i++) {
        a.data[i] = uniform(3 * i);
        b.data[i] = uniform(3 * i + 1);
        c.data[i] = uniform(3 * i + 2);
        w.data[i] = spec.label ? values.label(i) : uniform(i);
    }
    hw_assignment in{};
    in.struct_bytes = sizeof in;
    in.flags = spec.b_g2 ? uint32_t(HW_PROVE_B_G2) : 0;
    in.a = a.data;
    in.b = b.data;
    in.c = c.data;
    in.w = w.data;
    in.constraints = n;
    in.job = in.partition = -1;
    result r;
    r.name = "ProveStart/scalars=" + std::string(spec.label ? "label" : "dense") +
             "/memory=" + (spec.pinned ? "pinned" : "pageable") +
             "/b_g2=" + (spec.b_g2 ? "device" : "none") + "/log=" + std::to_string(spec.log_size);
    hw_proof_parts parts{};
    parts.struct_bytes = sizeof parts;
    for (uint32_t i = 0; i <= spec.repeats; i++) {
        int64_t begin = now_ns();
        lib.must(lib.hw_prove_start(context, k.srs, &in, &parts), "start proof");
        if (i) r.ns.push_back(now_ns() - begin); // the first is a warm-up
    }
    note(r, parts, parts.upload_end_ns - parts.begin_ns);
    to.add(r);
}

} // namespace bench
