// MSMs of every kind of points and scalars through the C interface, against known logarithms: with
// points k_i G the sum is (sum of s_i k_i) G. Small on the twin; on a device up to 2^18, on both
// paths, with given windows, and with scratch so small that windows or points are divided.
#include <string>

#include "reference.h"

using namespace test;

namespace {

bool on_device() { return std::string(hw_backend()) == "cuda"; }

blst_fr dot(const std::vector<blst_fr>& a, const std::vector<blst_fr>& b, size_t n) {
    blst_fr sum = small_fr(0);
    for (size_t i = 0; i < n; i++) {
        blst_fr product;
        blst_fr_mul(&product, &a[i], &b[i]);
        blst_fr_add(&sum, &sum, &product);
    }
    return sum;
}

enum logs_kind { random_logs, one_log, special_logs, logs_kinds };

// Equal, opposite and infinite points among others, as in real keys.
std::vector<blst_fr> logs_of(logs_kind kind, size_t n, random_source& r) {
    const blst_fr one_of_them = random_fr(r);
    const blst_fr few[] = {small_fr(0), one_of_them, one_of_them, minus(one_of_them),
                           small_fr(1 + r.below(3))};
    std::vector<blst_fr> logs;
    for (size_t i = 0; i < n; i++) {
        uint64_t dice = r.below(6);
        if (kind == one_log) logs.push_back(one_of_them);
        else if (kind == special_logs && dice < 5) logs.push_back(few[dice]);
        else logs.push_back(random_fr(r));
    }
    return logs;
}

enum scalars_kind { uniform, label_like, mixed, zeros, ones, minus_ones, one_dense, scalars_kinds };

blst_fr scalar_of(scalars_kind kind, const blst_fr& dense, random_source& r) {
    const uint64_t dice = r.below(1000);
    switch (kind) {
    case zeros: return small_fr(0);
    case ones: return small_fr(1);
    case minus_ones: return minus(small_fr(1));
    case one_dense: return dense;
    case label_like:
        if (dice < 684) return small_fr(0);
        if (dice < 987) return small_fr(dice < 860 ? 1 : 2 + dice % 2);
        return dice < 997 ? minus(small_fr(1)) : random_fr(r);
    case mixed:
        if (dice < 200) return small_fr(0);
        if (dice < 600) return dice < 400 ? minus(small_fr(dice)) : dense;
        return dice < 800 ? small_fr(1ull << dice % 40) : random_fr(r);
    default: return random_fr(r);
    }
}

std::vector<hw_msm_options> ways() {
    struct {
        uint32_t path, window_bits;
        uint64_t scratch;
    } all[] = {
        {HW_MSM_AUTO, 0, 0},         {HW_MSM_XYZZ, 0, 0},        {HW_MSM_AFFINE, 0, 0},
        {HW_MSM_XYZZ, 5, 0},         {HW_MSM_AFFINE, 7, 0},      {HW_MSM_AFFINE, 12, 0},
        {HW_MSM_AFFINE, 16, 0},      {HW_MSM_AUTO, 0, 48 * mib}, {HW_MSM_AFFINE, 10, 32 * mib},
        {HW_MSM_XYZZ, 11, 24 * mib},
    };
    std::vector<hw_msm_options> options;
    for (auto& w : all) {
        hw_msm_options o{};
        o.struct_bytes = sizeof o;
        o.path = w.path;
        o.window_bits = w.window_bits;
        o.scratch_bytes = w.scratch;
        options.push_back(o);
        if (!on_device()) break; // the twin has one way
    }
    return options;
}

template <class G> class sums {
    test::context context_;
    random_source random_;
    std::vector<size_t> sizes_;
    std::vector<hw_msm_options> ways_;
    std::vector<blst_fr> logs_, scalars_;
    std::vector<typename G::affine> points_;

    void check(size_t n, const typename G::affine& want, const std::string& what) {
        for (const hw_msm_options& way : ways_) {
            typename G::affine out;
            hw_msm_stats stats{};
            CHECK_OK(hw_op_msm(context_, G::tag, points_.data(), scalars_.data(), n, &way, &out,
                               &stats));
            if (same(&out, &want, sizeof out)) continue;
            fail(__FILE__, __LINE__,
                 "wrong sum: " + what + " n=" + std::to_string(n) +
                     " path=" + std::to_string(way.path) + " window_bits=" +
                     std::to_string(stats.window_bits) + " groups=" + std::to_string(stats.groups) +
                     " rounds=" + std::to_string(stats.rounds));
        }
    }

public:
    sums(uint64_t seed, std::vector<size_t> sizes, uint64_t arena_bytes)
        : context_(config(arena_bytes)), random_(seed), sizes_(std::move(sizes)), ways_(ways()) {}

    void only(std::vector<hw_msm_options> these) { ways_ = std::move(these); }

    void run(int logs, int scalars) {
        const size_t most = sizes_.back();
        const auto base = G::to_affine(G::generator());
        logs_ = logs_of(logs_kind(logs), most, random_);
        points_.resize(most);
        CHECK_OK(hw_op_fixed_base(context_, G::tag, &base, logs_.data(), points_.data(), most));
        const blst_fr dense = random_fr(random_);
        scalars_.clear();
        for (size_t i = 0; i < most; i++)
            scalars_.push_back(scalar_of(scalars_kind(scalars), dense, random_));
        for (size_t n : sizes_) {
            auto want = G::to_affine(G::multiple(G::generator(), dot(logs_, scalars_, n)));
            check(n, want, "logs " + std::to_string(logs) + " scalars " + std::to_string(scalars));
        }
    }
};

template <class G> void every_kind(uint64_t seed, const std::vector<size_t>& sizes) {
    sums<G> all(seed, sizes, on_device() ? 4096 * mib : 64 * mib);
    for (int logs = 0; logs < logs_kinds; logs++)
        for (int scalars = 0; scalars < scalars_kinds; scalars++) all.run(logs, scalars);
}

hw_msm_options way(uint32_t path, uint32_t window_bits, uint64_t scratch) {
    hw_msm_options o{};
    o.struct_bytes = sizeof o;
    o.path = path;
    o.window_bits = window_bits;
    o.scratch_bytes = scratch;
    return o;
}

// Few sums that together run every kernel of the driver, for tools under which everything is slow:
// both paths, one group of windows and several, full rows and sparse ones, large buckets, points
// that add to themselves and to nothing.
template <class G> void sweep(uint64_t seed, size_t n) {
    sums<G> some(seed, {1, n / 16 + 1, n}, 256 * mib);
    some.only({way(HW_MSM_AUTO, 0, 0), way(HW_MSM_XYZZ, 11, 0), way(HW_MSM_AFFINE, 7, 0),
               way(HW_MSM_AFFINE, 12, 32 * mib)});
    some.run(random_logs, uniform);
    some.run(special_logs, mixed);
    some.only({way(HW_MSM_AUTO, 0, 0), way(HW_MSM_AFFINE, 14, 0)});
    some.run(random_logs, label_like);
    some.only({way(HW_MSM_AFFINE, 8, 0), way(HW_MSM_XYZZ, 8, 24 * mib)});
    some.run(one_log, ones);
}

} // namespace

TEST(sweep_msm_g1) { sweep<group1>(13, on_device() ? 1 << 14 : 150); }
TEST(sweep_msm_g2) { sweep<group2>(14, on_device() ? 1 << 13 : 50); }

TEST(msm_of_every_kind_g1) {
    if (on_device()) every_kind<group1>(11, {1, 2, 3, 33, 129, 1000, 4097, 70001, (1 << 18) - 1});
    else every_kind<group1>(11, {1, 2, 33, 150});
}
TEST(msm_of_every_kind_g2) {
    if (on_device()) every_kind<group2>(12, {1, 2, 3, 65, 1000, 5003, 40000});
    else every_kind<group2>(12, {1, 2, 50});
}
