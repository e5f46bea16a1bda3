// The C interface: keys, proofs, single operations, benchmarks.
#include "core/api.h"
#include "groth16/bench.h"
#include "groth16/operations.h"
#include "groth16/prove.h"

using namespace highwater;

struct hw_srs {
    std::unique_ptr<srs> key;
};

namespace {

hw_srs_desc described(const hw_srs_desc* desc) {
    return in_struct(desc, "make key: no description, or its struct_bytes unset");
}

} // namespace

extern "C" {

hw_status hw_srs_load(hw_context* context, const hw_srs_desc* desc, hw_srs** out) {
    return guarded(context, [&] {
        need(context && out, "load key: null pointer");
        *out = nullptr;
        *out = new hw_srs{srs::load(*context, described(desc))};
    });
}

hw_status hw_srs_setup(hw_context* context, const hw_srs_desc* scalars, const hw_srs_host* host,
                       hw_srs** out) {
    return guarded(context, [&] {
        need(context && out, "set up key: null pointer");
        *out = nullptr;
        hw_srs_host to{};
        if (host) to = in_struct(host, "set up key: struct_bytes of host unset");
        *out = new hw_srs{srs::setup(*context, described(scalars), &to)};
    });
}

uint64_t hw_srs_device_bytes(const hw_srs* srs) { return srs ? srs->key->device_bytes() : 0; }

void hw_srs_destroy(hw_srs* srs) { delete srs; }

hw_status hw_prove_start(hw_context* context, hw_srs* srs, const hw_assignment* assignment,
                         hw_proof_parts* out) {
    return guarded(context, [&] {
        need(context && srs, "start proof: null pointer");
        need(&srs->key->of() == context, "start proof: the key is another context's");
        in_struct(out, "start proof: no result, or its struct_bytes unset");
        hw_proof_parts parts{};
        prove_start(*context, *srs->key, in_struct(assignment, "start proof: no assignment"),
                    parts);
        out_struct(out, parts);
    });
}

hw_status hw_op_field(hw_context* context, uint32_t field, uint32_t operation, const void* a,
                      const void* b, void* out, uint64_t n) {
    return guarded(context, [&] {
        need(context, "field operation: null context");
        run_field_op(*context, field, operation, a, b, out, n);
    });
}

hw_status hw_op_point(hw_context* context, uint32_t group, uint32_t operation, const void* a,
                      const void* b, void* out, uint64_t n) {
    return guarded(context, [&] {
        need(context, "point operation: null context");
        run_point_op(*context, group, operation, a, b, out, n);
    });
}

hw_status hw_op_ntt(hw_context* context, void* inout, uint32_t log_size, uint32_t order,
                    uint32_t flags) {
    return guarded(context, [&] {
        need(context, "ntt: null context");
        run_ntt(*context, inout, log_size, order, flags);
    });
}

hw_status hw_op_msm(hw_context* context, uint32_t group, const void* points, const void* scalars,
                    uint64_t n, const hw_msm_options* options, void* out, hw_msm_stats* stats) {
    return guarded(context, [&] {
        need(context, "msm: null context");
        msm_request in{group, points, scalars, n, {}};
        if (options) in.options = in_struct(options, "msm: struct_bytes of options unset");
        hw_msm_stats own{};
        run_msm(*context, in, out, own);
        if (stats) *stats = own;
    });
}

hw_status hw_op_fixed_base(hw_context* context, uint32_t group, const void* base,
                           const void* scalars, void* out, uint64_t n) {
    return guarded(context, [&] {
        need(context, "fixed base: null context");
        run_fixed_base(*context, group, base, scalars, out, n);
    });
}

hw_status hw_op_quotient(hw_context* context, void* a, const void* b, const void* c,
                         uint32_t log_size) {
    return guarded(context, [&] {
        need(context, "quotient: null context");
        run_quotient(*context, a, b, c, log_size);
    });
}

hw_status hw_bench(hw_context* context, const hw_bench_spec* spec, hw_bench_result* out) {
    return guarded(context, [&] {
        need(context, "bench: null context");
        in_struct(out, "bench: no result, or its struct_bytes unset");
        hw_bench_result result{};
        bench(*context, in_struct(spec, "bench: no spec, or its struct_bytes unset"), result);
        out_struct(out, result);
    });
}

} // extern "C"
