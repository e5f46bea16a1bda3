// Batch-affine additions: many independent a + b at 5 multiplications and a square each, because a
// block of threads shares one inversion.
//
// For sums x3 = l^2 - xa - xb, y3 = l (xa - x3) - ya with l = (yb - ya) / (xb - xa), a thread goes
// over its pairs forwards, keeping the product of the denominators before each (prefix), the block
// inverts the product of all, and the thread goes backwards: inverse of the i-th denominator =
// inverse of the product up to i times prefix i. Doubling has the denominator 2 ya; where the
// result needs no division (an operand or the result is infinity) it is 1.
#pragma once

#include "msm/pairs.cuh"

namespace highwater::msm_detail {

enum class sum_kind { add, twice, first, second, infinity };

// What a + b is, of operands whose x are equal, or one of which may be infinity.
template <class F> HW_HD sum_kind kind_of(const F& xa, const F& ya, const F& xb, const F& yb) {
    if (xb.is_zero() && yb.is_zero()) return sum_kind::first;
    if (xa.is_zero() && ya.is_zero()) return sum_kind::second;
    F d = xb;
    d -= xa;
    if (!d.is_zero()) return sum_kind::add;
    d = yb;
    d -= ya;
    // y = 0 has order 2: no such point is on either curve's subgroup, but a + a would be infinity.
    return d.is_zero() && !ya.is_zero() ? sum_kind::twice : sum_kind::infinity;
}

template <class F> HW_HD F denominator(sum_kind kind, const F& xa, const F& ya, const F& xb) {
    F d;
    switch (kind) {
    case sum_kind::add:
        d = xb;
        d -= xa;
        return d;
    case sum_kind::twice:
        d = ya;
        d += ya;
        return d;
    default: return F::one(0);
    }
}

template <class F> HW_HD F numerator(sum_kind kind, const F& xa, const F& ya, const F& yb) {
    F n;
    if (kind == sum_kind::twice) {
        n = xa ^ 2;
        F once = n;
        n += once;
        n += once;
    } else {
        n = yb;
        n -= ya;
    }
    return n;
}

// The sum, given the inverse of its denominator.
template <class F> HW_HD void finish(sum_kind kind, const F& inverse, const F& xa, const F& ya,
                                     const F& xb, const F& yb, F& x, F& y) {
    F slope = numerator(kind, xa, ya, yb);
    slope *= inverse;
    x = slope ^ 2;
    x -= xa;
    x -= xb;
    y = xa;
    y -= x;
    y *= slope;
    y -= ya;
    switch (kind) {
    case sum_kind::first:
        x = xa;
        y = ya;
        break;
    case sum_kind::second:
        x = xb;
        y = yb;
        break;
    case sum_kind::infinity:
        x.zero();
        y.zero();
        break;
    default: break;
    }
}

#ifdef __CUDACC__

#ifdef __CUDA_ARCH__

HW_DEVICE void copy_async(void* to, const void* from) {
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(to))),
        "l"(from));
}
HW_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;"); }
template <int N> HW_DEVICE void wait_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }

// Inverse of each thread's value, one inversion a warp of pairs: 4 warps' values are multiplied
// together lane by lane, one warp inverts. `shared` has block_threads elements.
template <class F> __device__ __noinline__ F block_inverse(F value, F* shared) {
    constexpr uint32_t half = block_threads / 2, quarter = block_threads / 4;
    static_assert(block_threads == 128, "one warp inverts for four");
    const uint32_t tid = threadIdx.x;
    shared[tid] = value;
    __syncthreads();
    F two;
    if (tid < half) {
        two = value;
        two *= shared[tid + half];
    }
    __syncthreads();
    F other;
    if (tid >= half) other = shared[tid - half];
    else other = shared[tid + half];
    __syncthreads();
    if (tid < half) shared[tid] = two;
    __syncthreads();
    if (tid < quarter) {
        F second = shared[tid + quarter];
        F four = two;
        four *= second;
        F inverse = four.reciprocal();
        second *= inverse; // of the first two
        two *= inverse;    // of the second two
        shared[tid] = second;
        shared[tid + quarter] = two;
    }
    __syncthreads();
    F result = shared[tid % half];
    result *= other;
    __syncthreads();
    return result;
}

// Where coordinates wait for the thread that asked for them: words of a warp side by side.
template <int W> struct slot_t {
    word_t words[W][block_threads];

    HW_DEVICE void ask(const element_mem<W>& from) {
#pragma unroll
        for (int i = 0; i < W; i++) copy_async(&words[i][threadIdx.x], &from.w[i]);
    }
    template <class F> HW_DEVICE F take() const {
        element_mem<W> m;
#pragma unroll
        for (int i = 0; i < W; i++) m.w[i] = words[i][threadIdx.x];
        return load<F>(m);
    }
};

// Slots of one pair: forwards only the first two are used, so four pairs find room.
enum { of_xa, of_xb, of_ya, of_yb };

template <class G, class S> class pair_adder {
    using F = field_of<G>;
    using ticket = typename S::ticket;
    static constexpr int W = G::words;
    S from_;
    chunks_t chunks_;
    word_t* prefix_; // of this thread; the next word is stride_ on
    size_t stride_;
    slot_t<W>* slots_; // eight
    uint32_t first_ = 0, steps_ = 0;

    HW_DEVICE uint32_t pair(uint32_t step) const {
        return first_ + step * block_threads + threadIdx.x;
    }
    HW_DEVICE uint32_t clamped(uint32_t step) const { return min(pair(step), chunks_.count - 1); }
    HW_DEVICE slot_t<W>* narrow(uint32_t step) const { return slots_ + 2 * (step & 3); }
    HW_DEVICE slot_t<W>* wide(uint32_t step) const { return slots_ + 4 * (step & 1); }
    HW_DEVICE void ask_x(slot_t<W>* slots, ticket t) {
        slots[of_xa].ask(from_.a(t)->x);
        slots[of_xb].ask(from_.b(t)->x);
        commit_copies();
    }
    HW_DEVICE void ask_all(slot_t<W>* slots, ticket t) {
        const auto *a = from_.a(t), *b = from_.b(t);
        slots[of_xa].ask(a->x);
        slots[of_ya].ask(a->y);
        slots[of_xb].ask(b->x);
        slots[of_yb].ask(b->y);
        commit_copies();
    }
    static HW_DEVICE bool is_special(const F& xa, const F& xb, const F& d) {
        return d.is_zero() || xa.is_zero() || xb.is_zero();
    }
    static __device__ __noinline__ F special_denominator(const typename S::affine* a,
                                                         const typename S::affine* b,
                                                         bool subtract) {
        F xa = load<F>(a->x), ya = load<F>(a->y), xb = load<F>(b->x), yb = load<F>(b->y);
        yb.cneg(subtract);
        return denominator(kind_of(xa, ya, xb, yb), xa, ya, xb);
    }

public:
    HW_DEVICE pair_adder(const S& from, const chunks_t& chunks, word_t* prefix, void* shared)
        : from_(from),
          chunks_(chunks),
          prefix_(prefix + size_t(blockIdx.x) * block_threads + threadIdx.x),
          stride_(size_t(gridDim.x) * block_threads),
          slots_(static_cast<slot_t<W>*>(shared)) {}

    HW_DEVICE bool take(uint32_t chunk) {
        chunk_t taken;
        if (!chunk_of(chunks_, chunk, taken)) return false;
        first_ = taken.first;
        steps_ = taken.steps;
        return true;
    }

    // The product of all denominators; prefixes are kept.
    HW_DEVICE F forwards() {
        F product = F::one(0);
        word_t* prefix = prefix_;
        ticket now = from_.fetch(clamped(0)), next = from_.fetch(clamped(1));
        ticket after = from_.fetch(clamped(2));
        ask_x(narrow(0), now);
        ask_x(narrow(1), next);
        for (uint32_t step = 0; step < steps_; step++) {
            ticket later = from_.fetch(clamped(step + 3));
            ask_x(narrow(step + 2), after);
            wait_copies<2>();
            const slot_t<W>* slots = narrow(step);
            F xa = slots[of_xa].template take<F>(), xb = slots[of_xb].template take<F>();
            F d = xb;
            d -= xa;
            if (is_special(xa, xb, d))
                d = special_denominator(from_.a(now), from_.b(now), from_.subtract(now));
            element_mem<W> kept;
            store(kept, product);
#pragma unroll
            for (int i = 0; i < W; i++, prefix += stride_) *prefix = kept.w[i];
            if (pair(step) < chunks_.count) product *= d;
            now = next;
            next = after;
            after = later;
        }
        wait_copies<0>();
        return product;
    }

    // Given the inverse of the product of all, the sums, last first.
    HW_DEVICE void backwards(F inverse) {
        const word_t* prefix = prefix_ + steps_ * W * stride_;
        ticket now = from_.fetch(clamped(steps_ - 1)), next = from_.fetch(clamped(steps_ - 2));
        ask_all(wide(steps_ - 1), now);
        for (uint32_t step = steps_; step-- > 0;) {
            element_mem<W> kept;
#pragma unroll
            for (int i = W; i-- > 0;) kept.w[i] = *(prefix -= stride_);
            ticket later = from_.fetch(clamped(step - 2));
            ask_all(wide(step - 1), next);
            wait_copies<1>();
            if (pair(step) < chunks_.count) sum(step, now, load<F>(kept), inverse);
            now = next;
            next = later;
        }
        wait_copies<0>();
    }

private:
    HW_DEVICE void sum(uint32_t step, ticket t, const F& kept, F& inverse) {
        const slot_t<W>* slots = wide(step);
        F xa = slots[of_xa].template take<F>(), xb = slots[of_xb].template take<F>();
        F d = xb;
        d -= xa;
        sum_kind kind = sum_kind::add;
        if (is_special(xa, xb, d)) {
            F ya = slots[of_ya].template take<F>(), yb = slots[of_yb].template take<F>();
            yb.cneg(from_.subtract(t));
            kind = kind_of(xa, ya, xb, yb);
            d = denominator(kind, xa, ya, xb);
        }
        F next = inverse; // first: what was kept may still be on its way
        next *= d;
        F mine = inverse;
        mine *= kept;
        inverse = next;
        F ya = slots[of_ya].template take<F>(), yb = slots[of_yb].template take<F>(), x, y;
        yb.cneg(from_.subtract(t));
        auto* to = from_.out(t, pair(step));
        if (kind == sum_kind::add) {
            finish(sum_kind::add, mine, xa, ya, xb, yb, x, y);
        } else {
            point p = finish_special(kind, mine, {xa, ya}, {xb, yb});
            x = p.x;
            y = p.y;
        }
        store(to->x, x);
        store(to->y, y);
    }
    // By value: taking addresses would keep the common path's values in memory.
    struct point {
        F x, y;
    };
    static __device__ __noinline__ point finish_special(sum_kind kind, F inverse, point a,
                                                        point b) {
        point sum;
        finish(kind, inverse, a.x, a.y, b.x, b.y, sum.x, sum.y);
        return sum;
    }
};

#endif

// Adds pairs. Blocks take chunks by a counter; a thread has every 128th pair of its block's chunk.
template <class G, class S> __global__ void __launch_bounds__(block_threads, G::min_blocks)
    add_pairs(S from, chunks_t chunks, word_t* prefix, uint32_t* next_chunk) {
#ifdef __CUDA_ARCH__
    extern __shared__ word_t shared[];
    __shared__ uint32_t taken;
    pair_adder<G, S> adder(from, chunks, prefix, shared);
    for (;;) {
        if (threadIdx.x == 0) taken = atomicAdd(next_chunk, 1);
        __syncthreads();
        uint32_t chunk = taken;
        __syncthreads();
        if (!adder.take(chunk)) return;
        field_of<G> product = adder.forwards();
        __syncthreads(); // the stages become the inversion's
        adder.backwards(block_inverse(product, reinterpret_cast<field_of<G>*>(shared)));
    }
#endif
}

template <class G> constexpr size_t add_pairs_shared() {
    return 2 * 4 * G::words * 16 * block_threads;
}

#endif

} // namespace highwater::msm_detail
