#include "groth16/operations.h"

#include "core/mathematics.h"
#include "groth16/prove.h"

namespace highwater {

namespace {

constexpr uint64_t max_elements = uint64_t(1) << 32;

uint64_t field_bytes(uint32_t field) {
    return field == HW_FIELD_FR ? 32 : field == HW_FIELD_FP ? 48 : 96;
}

device_array<char> upload(lane& on, const void* host, uint64_t bytes) {
    auto d = on.alloc<char>(bytes, "d_scratch");
    on.h2d(on.compute(), d, host, bytes);
    return d;
}

void download(lane& on, void* host, const void* device, uint64_t bytes) {
    on.d2h(on.compute(), host, device, bytes);
    on.sync();
}

void refuse_unless(bool ok, const char* what) {
    if (!ok) throw failure(HW_INVALID_ARGUMENT, what);
}

} // namespace

void run_field_op(context& of, uint32_t field, uint32_t operation, const void* a, const void* b,
                  void* out, uint64_t n) {
    const bool binary = operation <= HW_FIELD_MUL;
    refuse_unless(field <= HW_FIELD_FP2 && operation <= HW_FIELD_TO_MONT,
                  "field operation: no such one");
    refuse_unless(field != HW_FIELD_FP2 || operation < HW_FIELD_FROM_MONT,
                  "field operation: not of fp2");
    refuse_unless(n <= max_elements && (!n || (a && out && (b || !binary))),
                  "field operation: null pointer");
    if (!n) return;
    call c(of, owner{});
    lane& on = c.on();
    const uint64_t bytes = n * field_bytes(field);
    on.begin_op("field");
    auto d_a = upload(on, a, bytes);
    auto d_b = binary ? upload(on, b, bytes) : device_array<char>();
    auto d_out = on.alloc<char>(bytes, "d_scratch");
    field_op(on, field, operation, d_a, d_b, d_out, n);
    on.end_op();
    download(on, out, d_out, bytes);
}

void run_point_op(context& of, uint32_t group, uint32_t operation, const void* a, const void* b,
                  void* out, uint64_t n) {
    const bool binary = operation <= HW_POINT_SUB;
    refuse_unless((group == HW_G1 || group == HW_G2) && operation <= HW_POINT_NEG,
                  "point operation: no such one");
    refuse_unless(n <= max_elements && (!n || (a && out && (b || !binary))),
                  "point operation: null pointer");
    if (!n) return;
    call c(of, owner{});
    lane& on = c.on();
    const uint64_t bytes = n * point_bytes(group);
    on.begin_op("point");
    auto d_a = upload(on, a, bytes);
    auto d_b = binary ? upload(on, b, bytes) : device_array<char>();
    auto d_out = on.alloc<char>(bytes, "d_scratch");
    point_op(on, group, operation, d_a, d_b, d_out, n);
    on.end_op();
    download(on, out, d_out, bytes);
}

void run_ntt(context& of, void* inout, uint32_t lg, uint32_t order, uint32_t flags) {
    refuse_unless(lg <= max_log_domain, "ntt: log_size is not in 0..26");
    refuse_unless(inout && order <= HW_ORDER_RR && flags <= (HW_NTT_INVERSE | HW_NTT_COSET),
                  "ntt: null pointer, or no such order or flag");
    call c(of, owner{});
    lane& on = c.on();
    const uint64_t bytes = fr_bytes << lg;
    on.begin_op("ntt");
    on.attribute("size", uint64_t(1) << lg);
    auto d = upload(on, inout, bytes);
    ntt(on, d, lg, order, flags);
    on.end_op();
    download(on, inout, d, bytes);
}

void run_quotient(context& of, void* a, const void* b, const void* c, uint32_t lg) {
    refuse_unless(lg >= 1 && lg <= max_log_domain && a && b && c,
                  "quotient: null pointer, or log_size is not in 1..26");
    call on_call(of, owner{});
    lane& on = on_call.on();
    const uint64_t bytes = fr_bytes << lg;
    on.begin_op("quotient");
    auto d_a = upload(on, a, bytes), d_b = upload(on, b, bytes), d_c = upload(on, c, bytes);
    quotient(on, d_a, d_b, d_c, lg);
    on.end_op();
    download(on, a, d_a, bytes);
}

void run_fixed_base(context& of, uint32_t group, const void* base, const void* scalars, void* out,
                    uint64_t n) {
    refuse_unless(group == HW_G1 || group == HW_G2, "fixed base: no such group");
    refuse_unless(n <= max_elements && base && (!n || (scalars && out)),
                  "fixed base: null pointer");
    if (!n) return;
    call c(of, owner{});
    lane& on = c.on();
    on.begin_op("fixed base");
    on.attribute("points", n);
    auto d_scalars = upload(on, scalars, n * fr_bytes);
    auto d_out = on.alloc<char>(n * point_bytes(group), "d_scratch");
    fixed_base(on, group, base, d_scalars, d_out, n);
    on.end_op();
    download(on, out, d_out, n * point_bytes(group));
}

void run_msm(context& of, const msm_request& in, void* out, hw_msm_stats& stats) {
    refuse_unless(in.group == HW_G1 || in.group == HW_G2, "msm: no such group");
    refuse_unless(in.n < max_elements && out && (!in.n || (in.points && in.scalars)),
                  "msm: null pointer");
    refuse_unless(in.options.path <= HW_MSM_AFFINE, "msm: no such path");
    refuse_unless(window_bits_possible(in.options.window_bits), "msm: window_bits is not 0 or 4..24");
    call c(of, owner{});
    lane& on = c.on();
    auto points = upload(on, in.points, in.n * point_bytes(in.group));
    auto scalars = upload(on, in.scalars, in.n * fr_bytes);
    on.begin_op("msm");
    size_t begin = on.stamp(on.compute());
    msm_input device{in.group,
                     points,
                     scalars,
                     in.n,
                     in.options.path,
                     in.options.window_bits,
                     in.options.scratch_bytes};
    msm(on, device, out, &stats);
    note(on, stats);
    size_t end = on.stamp(on.compute());
    on.end_op();
    on.sync();
    stats.begin_ns = on.stamp_ns(begin);
    stats.end_ns = on.stamp_ns(end);
}

} // namespace highwater
