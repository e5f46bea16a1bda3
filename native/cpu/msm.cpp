// The twin's MSM and fixed-base products: the device's digits and formulas, plainly scheduled.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/mathematics.h"
#include "msm/digits.hpp"

namespace highwater {

namespace {

using namespace msm_detail;

constexpr int base_window = 8;

int window_for(uint64_t n, uint32_t wish) {
    if (wish) return std::clamp(int(wish), min_window, max_window);
    int c = min_window;
    while (c < 13 && n >> (c + 2)) c++;
    return c;
}

// sum of j * bucket[j], bucket 0 standing for 2^(c-1).
template <class G> xyzz_of<G> reduce(const xyzz_of<G>* buckets, uint32_t half) {
    xyzz_of<G> running = buckets[0], sum = buckets[0];
    for (uint32_t j = half - 1; j; j--) {
        running.add(buckets[j]);
        sum.add(running);
    }
    return sum;
}

// Bucket sums, window by window from the top; each needs a pass over all digits.
template <class G> class pippenger {
public:
    pippenger(lane& on, const msm_input& in, hw_msm_stats& stats)
        : in_(in), stats_(stats), c_(window_for(in.n, in.window_bits)), half_(1u << (c_ - 1)),
          buckets_(on.alloc<xyzz_of<G>>(half_, "d_scratch")),
          digits_(on.alloc<int32_t>(in.n * windows_of(c_), "d_scratch")) {
        stats_ = hw_msm_stats{};
        stats_.points = in.n;
        stats_.window_bits = uint32_t(c_);
        stats_.windows = uint32_t(windows_of(c_));
        stats_.groups = 1;
        stats_.scratch_bytes = half_ * sizeof(xyzz_of<G>) + in.n * windows_of(c_) * sizeof(int32_t);
    }

    xyzz_of<G> run() {
        cut();
        xyzz_of<G> sum;
        sum.inf();
        for (int w = windows_of(c_) - 1; w >= 0; w--) {
            for (int i = 0; i < c_; i++) sum.add(xyzz_of<G>(sum));
            sum.add(window(w));
        }
        return sum;
    }

private:
    void cut() {
        const auto* scalars = static_cast<const element_mem<2>*>(in_.d_scalars);
        for (uint64_t i = 0; i < in_.n; i++) {
            magnitude_t m = magnitude(scalars[i]);
            digits_t d(m, c_);
            for (int w = 0; w < windows_of(c_); w++) {
                int32_t digit = d.next();
                digits_[w * in_.n + i] = m.negative ? -digit : digit;
                stats_.digits += digit != 0;
            }
        }
        stats_.xyzz = stats_.digits;
    }

    xyzz_of<G> window(int w) {
        const auto* points = static_cast<const affine_of<G>*>(in_.d_points);
        for (uint32_t j = 0; j < half_; j++) buckets_[j].inf();
        for (uint64_t i = 0; i < in_.n; i++) {
            int32_t d = digits_[w * in_.n + i];
            if (!d) continue;
            affine_of<G> p = points[i];
            p.cneg(d < 0);
            buckets_[uint32_t(d < 0 ? -d : d) & (half_ - 1)].add(p);
        }
        return reduce<G>(buckets_, half_);
    }

    const msm_input& in_;
    hw_msm_stats& stats_;
    const int c_;
    const uint32_t half_;
    device_array<xyzz_of<G>> buckets_;
    device_array<int32_t> digits_;
};

template <class G> void msm_of(lane& on, const msm_input& in, void* out, hw_msm_stats& stats) {
    span timed(on, "msm");
    affine_of<G> sum = pippenger<G>(on, in, stats).run();
    memcpy(out, &sum, sizeof sum);
}

// The multiples 1 .. 255 of 2^(8w) base, w = 0 .. 31.
template <class G> std::vector<affine_of<G>> table_of(const void* base) {
    const int row = 1 << base_window;
    std::vector<affine_of<G>> table(size_t(256 / base_window) * row);
    affine_of<G> step;
    memcpy(&step, base, sizeof step);
    for (size_t w = 0; w < table.size(); w += row) {
        xyzz_of<G> sum;
        sum.inf();
        for (int i = 0; i < row; i++) {
            table[w + i] = sum;
            sum.add(step);
        }
        step = sum;
    }
    return table;
}

template <class G>
void fixed_base_of(const void* base, const void* d_scalars, void* d_out, uint64_t n) {
    const std::vector<affine_of<G>> table = table_of<G>(base);
    for (uint64_t i = 0; i < n; i++) {
        fr_t s = static_cast<const fr_t*>(d_scalars)[i];
        s.from();
        uint8_t bytes[sizeof s];
        memcpy(bytes, &s, sizeof s);
        xyzz_of<G> sum;
        sum.inf();
        for (size_t w = 0; w < sizeof bytes; w++) sum.add(table[w << base_window | bytes[w]]);
        static_cast<affine_of<G>*>(d_out)[i] = sum;
    }
}

} // namespace

void msm(lane& on, const msm_input& in, void* out, hw_msm_stats* stats) {
    if (in.group == HW_G2) return msm_of<g2>(on, in, out, *stats);
    msm_of<g1>(on, in, out, *stats);
}

void fixed_base(lane& on, uint32_t group, const void* base, const void* d_scalars, void* d_out,
                uint64_t n) {
    span timed(on, "fixed_base");
    if (group == HW_G2) return fixed_base_of<g2>(base, d_scalars, d_out, n);
    fixed_base_of<g1>(base, d_scalars, d_out, n);
}

bool sppark_ntt(lane&, void*, uint32_t, uint32_t, uint32_t) { return false; }
bool sppark_msm(lane&, const void*, const void*, uint64_t, void*) { return false; }

} // namespace highwater
