// Transforms of every size, order and kind that tools under which everything is slow can bear: the
// four orders give the same values, and each is undone by its inverse. The values themselves are
// checked by transforms_against_direct_evaluation, and by Go's tests at full size.
#include <string>

#include "reference.h"

using namespace test;

namespace {

using values = std::vector<blst_fr>;

values reversed(const values& v, uint32_t lg) {
    values out(v.size());
    for (size_t i = 0; i < v.size(); i++) {
        size_t j = 0;
        for (uint32_t bit = 0; bit < lg; bit++) j |= (i >> bit & 1) << (lg - 1 - bit);
        out[j] = v[i];
    }
    return out;
}

bool equal(const values& a, const values& b) {
    return same(a.data(), b.data(), a.size() * sizeof a[0]);
}

void check_orders(hw_context* context, const values& x, uint32_t lg, uint32_t flags) {
    values want = x;
    CHECK_OK(hw_op_ntt(context, want.data(), lg, HW_ORDER_NN, flags));
    const values x_reversed = reversed(x, lg), want_reversed = reversed(want, lg);
    const struct {
        uint32_t order, back;
        const values &in, &out;
    } cases[] = {{HW_ORDER_NN, HW_ORDER_NN, x, want},
                 {HW_ORDER_NR, HW_ORDER_RN, x, want_reversed},
                 {HW_ORDER_RN, HW_ORDER_NR, x_reversed, want},
                 {HW_ORDER_RR, HW_ORDER_RR, x_reversed, want_reversed}};
    for (auto& c : cases) {
        values y = c.in;
        CHECK_OK(hw_op_ntt(context, y.data(), lg, c.order, flags));
        CHECK(equal(y, c.out));
        CHECK_OK(hw_op_ntt(context, y.data(), lg, c.back, flags ^ HW_NTT_INVERSE));
        CHECK(equal(y, c.in));
    }
}

} // namespace

TEST(sweep_ntt) {
    const uint32_t most = std::string(hw_backend()) == "cuda" ? 14 : 8;
    test::context context;
    random_source r(21);
    for (uint32_t lg = 1; lg <= most; lg++) {
        values x(size_t(1) << lg);
        for (blst_fr& v : x) v = random_fr(r);
        for (uint32_t flags : {0u, uint32_t(HW_NTT_COSET)}) check_orders(context, x, lg, flags);
    }
}
