// The device's MSM driver, one kernel after the other, in loops: the same functions on the same
// lists, an inversion a pair instead of one a block.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "check.h"
#include "groth16/generators.h"
#include "highwater_native.h"
#include "msm/combine.hpp"
#include "msm/lists.cuh"
#include "msm/reduce.cuh"
#include "setup/fixed_base.hpp"

namespace highwater::msm_detail {

template <class G> class twin {
    using F = field_of<G>;
    using affine = typename G::affine;
    using xyzz = typename G::xyzz;

    int c_ = 0, windows_ = 0;
    uint32_t tail_from_ = 0;
    std::vector<uint32_t> keys_, refs_, begins_, lengths_;

public:
    affine affine_of_sum(const xyzz_of<G>& sum) const {
        affine out{};
        if (sum.is_inf()) return out;
        affine_of<G> a = sum;
        memcpy(&out, static_cast<const void*>(&a), sizeof out);
        return out;
    }

    // k times the generator, by set-up's tables.
    affine multiple(const fr_t& k) const {
        affine base;
        memcpy(&base, generator(G::words == 3 ? HW_G1 : HW_G2), sizeof base);
        static const std::vector<affine> bases = setup_detail::window_bases<G>(base, 4);
        element_mem<2> m;
        memcpy(&m, static_cast<const void*>(&k), sizeof m);
        magnitude_t magnitude_of_k = magnitude(m);
        digits_t digits(magnitude_of_k, 4);
        xyzz_of<G> sum;
        sum.inf();
        for (const affine& b : bases) {
            int32_t d = digits.next();
            for (int i = 0; i < std::abs(d); i++)
                sum.add(load_affine<G>(b), magnitude_of_k.negative != (d < 0));
        }
        return affine_of_sum(sum);
    }

    affine msm(path_t path, int c, const std::vector<affine>& points,
               const std::vector<fr_t>& scalars, uint32_t tail_from = max_rounds) {
        c_ = c;
        tail_from_ = tail_from;
        windows_ = windows_of(c);
        cut(scalars);
        combiner<G> sums(windows_ * c);
        if (path == path_t::affine) {
            find_buckets();
            reduce(sum_affine(points), sums);
        } else {
            reduce(sum_xyzz(points), sums);
        }
        jacobian_t<F> total;
        memset(static_cast<void*>(&total), 0, sizeof total);
        sums.add_to(total);
        affine out{};
        if (!total.is_inf()) {
            affine_of<G> a = total;
            memcpy(&out, static_cast<const void*>(&a), sizeof out);
        }
        return out;
    }

private:
    size_t buckets() const { return size_t(windows_) << (c_ - 1); }

    void cut(const std::vector<fr_t>& scalars) {
        std::vector<digit_t> all;
        for (size_t i = 0; i < scalars.size(); i++) {
            element_mem<2> m;
            memcpy(&m, static_cast<const void*>(&scalars[i]), sizeof m);
            magnitude_t s = magnitude(m);
            digits_t digits(s, c_);
            for (int w = 0; w < windows_; w++)
                if (int32_t d = digits.next())
                    all.push_back(make_digit(d, s.negative, w, c_, uint32_t(i)));
        }
        std::stable_sort(all.begin(), all.end(),
                         [](digit_t a, digit_t b) { return a.key < b.key; });
        keys_.clear();
        refs_.clear();
        for (digit_t d : all) keys_.push_back(d.key), refs_.push_back(d.ref);
    }

    void find_buckets() {
        begins_.assign(buckets(), 0);
        lengths_.assign(buckets(), 0);
        for (uint32_t i = 0; i < keys_.size(); i++) {
            if (i == 0 || keys_[i - 1] != keys_[i]) begins_[keys_[i]] = i;
            lengths_[keys_[i]]++;
        }
    }

    // Adds a pair as the device does, but for the shared inversion.
    template <class S> static void add_pair(const S& from, uint32_t i) {
        auto t = from.fetch(i);
        const affine *a = from.a(t), *b = from.b(t);
        F xa = load<F>(a->x), ya = load<F>(a->y), xb = load<F>(b->x), yb = load<F>(b->y), x, y;
        yb.cneg(from.subtract(t));
        sum_kind kind = kind_of(xa, ya, xb, yb);
        F d = denominator(kind, xa, ya, xb);
        finish(kind, F(1 / d), xa, ya, xb, yb, x, y);
        affine* out = from.out(t, i);
        store(out->x, x);
        store(out->y, y);
    }

    // By twos, as the device does.
    std::vector<affine> sum_affine(const std::vector<affine>& points) {
        std::vector<affine> pool(keys_.size() / 2 + 1), sums(buckets());
        std::vector<uint32_t> keys = keys_, refs = refs_;
        std::vector<begins_t> begins(buckets());
        for (size_t b = 0; b < buckets(); b++) begins[b].second = begins_[b];
        list_source<G> source{points.data(), pool.data(), nullptr, uint32_t(points.size()), true};
        uint32_t round = 0;
        for (; size_after(round) != size_after(max_rounds - 1); round += 2) {
            if (round >= tail_from_) {
                sum_tail({keys.data(), refs.data(), begins.data()}, uint32_t(keys.size()), round,
                         source, sums);
                return sums;
            }
            const uint32_t size = size_after(round + 2);
            const uint32_t counts[2] = {uint32_t(keys.size()) - size_after(round + 1),
                                        size_after(round + 1) - size};
            std::vector<begins_t> next = begins_after(round + 1);
            std::vector<uint32_t> next_keys(size, ~0u), next_refs(size, ~0u);
            std::vector<pair_t> pairs[2]{std::vector<pair_t>(counts[0] + 1),
                                         std::vector<pair_t>(counts[1] + 1)};
            list_t list{keys.data(), refs.data(), begins.data()};
            next_t to{next.data(), next_keys.data(), next_refs.data(), pairs[0].data(),
                      pairs[1].data()};
            for (uint32_t i = 0; i < keys.size(); i++)
                pair_items(list, i, round, uint32_t(points.size()), lengths_.data(), to);
            for (uint32_t k = 0; k < 2; k++) {
                source.pairs = pairs[k].data();
                source.fresh = round + k == 0;
                for (uint32_t i = 0; i < counts[k]; i++) add_pair(source, i);
            }
            keys = next_keys;
            refs = next_refs;
            begins = next;
        }
        for (size_t i = 0; i < keys.size(); i++) sums[keys[i]] = item(source, refs[i]);
        return sums;
    }

    uint32_t size_after(uint32_t rounds) const {
        uint32_t size = 0;
        for (size_t b = 0; b < buckets(); b++) size += halved(lengths_[b], rounds);
        return size;
    }

    std::vector<begins_t> begins_after(uint32_t rounds) const {
        std::vector<begins_t> begins(buckets());
        begins_t sum{};
        for (size_t b = 0; b < buckets(); b++) {
            begins[b] = sum;
            sum.first += halved(lengths_[b], rounds);
            sum.second += halved(lengths_[b], rounds + 1);
        }
        return begins;
    }

    static affine item(const list_source<G>& source, uint32_t ref) {
        affine p = *source.at(ref);
        F y = load<F>(p.y);
        y.cneg(ref & sign_bit);
        store(p.y, y);
        return p;
    }

    void sum_tail(const list_t& list, uint32_t size, uint32_t round, const list_source<G>& source,
                  std::vector<affine>& sums) {
        std::vector<uint32_t> begins(buckets());
        uint32_t n = 0;
        for (size_t b = 0; b < buckets(); b++) {
            begins[b] = n;
            uint32_t left = halved(lengths_[b], round);
            n += left < 2 ? 0 : left;
        }
        std::vector<uint32_t> keys(n, no_bucket), refs(n), origins(n);
        tail_t tail{keys.data(), refs.data(), origins.data()};
        for (uint32_t i = 0; i < size; i++) {
            if (!tail_item(list, i, round, lengths_.data(), begins.data(), tail))
                sums[list.keys[i]] = item(source, list.refs[i]);
        }
        CHECK(std::is_sorted(keys.begin(), keys.end()));
        std::vector<xyzz> totals(n);
        sum_list(keys, refs, source, totals);
        for (uint32_t p = 0; p < n; p++)
            if (origins[p] != no_bucket) sums[origins[p]] = affine_of_sum(load_xyzz<G>(totals[p]));
    }

    struct partial_list {
        std::vector<uint32_t> keys;
        std::vector<xyzz> sums;
        explicit partial_list(size_t n) : keys(n), sums(n) {}
        partials_t<G> view() { return {keys.data(), sums.data()}; }
    };

    std::vector<xyzz> sum_xyzz(const std::vector<affine>& points) {
        std::vector<xyzz> out(buckets()); // zeros: infinity
        list_source<G> source{points.data(), nullptr, nullptr, uint32_t(points.size()), true};
        sum_list(keys_, refs_, source, out);
        return out;
    }

    void sum_list(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& refs,
                  const list_source<G>& source, std::vector<xyzz>& out) {
        if (keys.empty()) return;
        const size_t slice = 5;
        partial_list list(2 * ((keys.size() + slice - 1) / slice));
        for (size_t t = 0, begin = 0; begin < keys.size(); t++, begin += slice) {
            run_writer<G> runs(uint32_t(t), list.view(), out.data());
            xyzz_of<G> sum;
            sum.inf();
            uint32_t key = keys[begin];
            for (size_t i = begin; i < std::min(begin + slice, keys.size()); i++) {
                if (keys[i] != key) {
                    runs.run(key, sum);
                    key = keys[i];
                    sum.inf();
                }
                sum.add(load_affine<G>(*source.at(refs[i])), bool(refs[i] & sign_bit));
            }
            runs.last(key, sum);
        }
        while (list.keys.size() > 20) list = merged(list, merge_fan, out);
        merged(list, list.keys.size(), out); // its one slice's ends are whole buckets, too
    }

    partial_list merged(partial_list& in, size_t fan, std::vector<xyzz>& out) {
        size_t n = in.keys.size();
        partial_list list(2 * ((n + fan - 1) / fan));
        for (size_t t = 0, begin = 0; begin < n; t++, begin += fan) {
            run_writer<G> runs(uint32_t(t), list.view(), out.data());
            xyzz_of<G> sum = load_xyzz<G>(in.sums[begin]);
            uint32_t key = in.keys[begin];
            for (size_t i = begin + 1; i < std::min(begin + fan, n); i++) {
                if (in.keys[i] != key) {
                    runs.run(key, sum);
                    key = in.keys[i];
                    sum.inf();
                }
                sum.add(load_xyzz<G>(in.sums[i]));
            }
            runs.last(key, sum);
        }
        if (list.keys.size() == 2) {
            out[list.keys[0]] = list.sums[0];
            if (list.keys[1] != list.keys[0]) out[list.keys[1]] = list.sums[1];
        }
        return list;
    }

    static void add_level(const level_source<affine>& from, uint32_t i) { add_pair(from, i); }
    static void add_level(const level_source<xyzz>& from, uint32_t i) {
        xyzz_of<G> sum = load_xyzz<G>(*from.a(i));
        sum.add(load_xyzz<G>(*from.b(i)));
        store_xyzz<G>(*from.out(i, i), sum);
    }
    static void add_to(xyzz_of<G>& sum, const affine& e) { sum.add(load_affine<G>(e)); }
    static void add_to(xyzz_of<G>& sum, const xyzz& e) { sum.add(load_xyzz<G>(e)); }

    template <class E> void reduce(const std::vector<E>& sums, combiner<G>& outputs) {
        const uint32_t windows = uint32_t(windows_), c = uint32_t(c_);
        std::vector<std::vector<E>> levels{sums};
        uint32_t lg = c - 1, level = 0;
        for (; lg > 3; level++) { // sooner than on the device, so that small windows have levels
            lg--;
            std::vector<E> next(size_t(level + 1) * windows << lg);
            const E* before = level ? levels[level - 1].data() : nullptr;
            level_source<E> source{levels[level].data(), before, next.data(), windows, level, lg};
            for (uint32_t i = 0; i < next.size(); i++) add_level(source, i);
            levels.push_back(next);
        }
        const E* before = level ? levels[level - 1].data() : nullptr;
        rows_t<E> rows{sums.data(), before, levels[level].data(), windows, level, lg, c};
        for (uint32_t o = 0; o < windows * c; o++) {
            xyzz_of<G> sum;
            sum.inf();
            for (uint32_t i = 0; i < 1u << lg; i++)
                if (const E* e = rows.share(o / c, o % c, i)) add_to(sum, *e);
            xyzz out{};
            store_xyzz<G>(out, sum);
            outputs.put(int(o), out);
        }
    }
};

} // namespace highwater::msm_detail
