// The twin's single operations of fields and groups.
#include "core/mathematics.h"
#include "curve/group.hpp"

namespace highwater {

namespace {

template <class F> struct mont; // conversions, where a field has them
template <> struct mont<fr_t> {
    static void from(fr_t& x) { x.from(); }
    static void to(fr_t& x) { x.to(); }
};
template <> struct mont<fp_t> {
    static void from(fp_t& x) { x.from(); }
    static void to(fp_t& x) { x.to(); }
};
template <> struct mont<fp2_t> {
    static void from(fp2_t&) {}
    static void to(fp2_t&) {}
};

template <class F> F apply(uint32_t operation, const F& a, const F* b) {
    F x = a;
    switch (operation) {
    case HW_FIELD_ADD:
        x += *b;
        break;
    case HW_FIELD_SUB:
        x -= *b;
        break;
    case HW_FIELD_MUL:
        x *= *b;
        break;
    case HW_FIELD_SQR:
        x = x ^ 2;
        break;
    case HW_FIELD_NEG:
        x.cneg(true);
        break;
    case HW_FIELD_INV:
        x = x.reciprocal();
        break;
    case HW_FIELD_FROM_MONT:
        mont<F>::from(x);
        break;
    case HW_FIELD_TO_MONT:
        mont<F>::to(x);
        break;
    }
    return x;
}

template <class F>
void each(uint32_t operation, const void* a, const void* b, void* out, uint64_t n) {
    const F *x = static_cast<const F*>(a), *y = static_cast<const F*>(b);
    for (uint64_t i = 0; i < n; i++)
        static_cast<F*>(out)[i] = apply(operation, x[i], y ? y + i : nullptr);
}

template <class G>
void each_point(uint32_t operation, const void* a, const void* b, void* out, uint64_t n) {
    const auto *x = static_cast<const affine_of<G>*>(a), *y = static_cast<const affine_of<G>*>(b);
    for (uint64_t i = 0; i < n; i++) {
        affine_of<G> other = operation <= HW_POINT_SUB ? y[i] : x[i];
        xyzz_of<G> sum;
        sum.inf();
        if (operation == HW_POINT_NEG) {
            other.cneg(true);
            sum.add(other);
        } else {
            sum.add(x[i]);
            if (operation == HW_POINT_SUB) other.cneg(true);
            sum.add(other);
        }
        static_cast<affine_of<G>*>(out)[i] = sum;
    }
}

} // namespace

void field_op(lane& on, uint32_t field, uint32_t operation, const void* a, const void* b, void* out,
              uint64_t n) {
    span timed(on, "field");
    switch (field) {
    case HW_FIELD_FR:
        return each<fr_t>(operation, a, b, out, n);
    case HW_FIELD_FP:
        return each<fp_t>(operation, a, b, out, n);
    default:
        return each<fp2_t>(operation, a, b, out, n);
    }
}

void point_op(lane& on, uint32_t group, uint32_t operation, const void* a, const void* b, void* out,
              uint64_t n) {
    span timed(on, "point");
    if (group == HW_G1) return each_point<g1>(operation, a, b, out, n);
    each_point<g2>(operation, a, b, out, n);
}

} // namespace highwater
