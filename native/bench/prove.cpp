#include "prove.h"

#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <vector>

#include <dlfcn.h>

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

void note(result& r, const hw_proof_parts& p) {
    const char* names[HW_MSM_COUNT] = {"msm_h_ns", "msm_l_ns", "msm_a_ns", "msm_b_g1_ns",
                                       "msm_b_g2_ns"};
    r.values.emplace_back("ntt_ns", double(p.ntt_end_ns - p.begin_ns));
    r.values.emplace_back("upload_ns", double(p.upload_end_ns - p.begin_ns));
    for (int i = 0; i < HW_MSM_COUNT; i++) {
        r.values.emplace_back(names[i], double(p.msm[i].end_ns - p.msm[i].begin_ns));
    }
    r.values.emplace_back("device_peak_bytes", double(p.device_peak_bytes));
    r.values.emplace_back("last_ns", double(p.end_ns - p.begin_ns));
}

// What the last start spent in each kind of kernel and copy, by its events.
void note_kernels(result& r, const library& lib, const std::vector<hw_event>& events) {
    std::map<uint64_t, int64_t> begun;
    std::map<std::string, int64_t> spent;
    for (const hw_event& e : events) {
        if (e.kind == HW_EVENT_KERNEL_BEGIN || e.kind == HW_EVENT_COPY_BEGIN) {
            begun[e.id] = e.time_ns;
        } else if (e.kind == HW_EVENT_KERNEL_END || e.kind == HW_EVENT_COPY_END) {
            const char* name = lib.hw_name(e.name);
            spent[name ? name : "unknown"] += e.time_ns - begun[e.id];
        }
    }
    for (const auto& [name, ns] : spent)
        r.values.emplace_back("kernel_" + name + "_ns", double(ns));
}

// Tells the driver's profiler where to look. Without a driver (the twin) there is nobody to tell.
class profiler {
public:
    explicit profiler(bool wanted) {
        if (wanted) driver_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        tell("cuProfilerStart");
    }
    ~profiler() { tell("cuProfilerStop"); }
    profiler(const profiler&) = delete;
    profiler& operator=(const profiler&) = delete;

private:
    void tell(const char* name) {
        void* symbol = driver_ ? dlsym(driver_, name) : nullptr;
        if (symbol) reinterpret_cast<int (*)()>(symbol)();
    }
    void* driver_ = nullptr;
};

} // namespace

struct start::state {
    const library& lib;
    hw_context* context;
    const small_values values;
    key k;
    vector_of_fr a, b, c, w;
    hw_assignment in{};

    state(const library& l, hw_context* on, const prove_spec& spec, size_t n)
        : lib(l), context(on), values(l, on), k(l, on, spec.log_size, spec.b_g2),
          a(l, on, n, spec.pinned), b(l, on, n, spec.pinned), c(l, on, n, spec.pinned),
          w(l, on, n, spec.pinned) {
        for (size_t i = 0; i < n; i++) {
            a.data[i] = uniform(3 * i);
            b.data[i] = uniform(3 * i + 1);
            c.data[i] = uniform(3 * i + 2);
            w.data[i] = spec.label ? values.label(i) : uniform(i);
        }
        in.struct_bytes = sizeof in;
        in.flags = spec.b_g2 ? uint32_t(HW_PROVE_B_G2) : 0;
        in.a = a.data;
        in.b = b.data;
        in.c = c.data;
        in.w = w.data;
        in.constraints = n;
        in.job = in.partition = -1;
    }
};

start::start(const library& lib, hw_context* context, const prove_spec& spec)
    : state_(new state(lib, context, spec, size_t(1) << spec.log_size)) {}
start::~start() = default;

int64_t start::run(hw_proof_parts& parts) {
    parts = {};
    parts.struct_bytes = sizeof parts;
    const int64_t begin = now_ns();
    state_->lib.must(
        state_->lib.hw_prove_start(state_->context, state_->k.srs, &state_->in, &parts),
        "start proof");
    return now_ns() - begin;
}

void prove(const library& lib, hw_context* context, const prove_spec& spec, report& to) {
    start proof(lib, context, spec);
    result r;
    r.name = "ProveStart/scalars=" + std::string(spec.label ? "label" : "dense") +
             "/memory=" + (spec.pinned ? "pinned" : "pageable") +
             "/b_g2=" + (spec.b_g2 ? "device" : "none") + "/log=" + std::to_string(spec.log_size);
    hw_proof_parts parts{};
    proof.run(parts); // a warm-up
    std::vector<hw_event> events;
    {
        const profiler look(spec.profile);
        for (uint32_t i = 0; i < spec.repeats; i++) {
            lib.take_events(context);
            r.ns.push_back(proof.run(parts));
        }
        events = lib.take_events(context);
    }
    note(r, parts);
    note_kernels(r, lib, events);
    to.add(r);
}

} // namespace bench
