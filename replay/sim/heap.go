package sim

import (
	"math"
	"math/bits"
)

// timer is one entry of a timerHeap: an entity ends its timed step at a time, which is not negative.
type timer struct {
	key   uint64 // bits of the time, which compare as the times do
	order uint64 // order of insertion, for equal times, above the entity's 32 bits
}

func newTimer(at float64, seq uint32, id int32) timer {
	return timer{math.Float64bits(at), uint64(seq)<<32 | uint64(uint32(id))}
}

func (t *timer) id() int32   { return int32(uint32(t.order)) }
func (t *timer) at() float64 { return math.Float64frombits(t.key) }

// after is t later by so much.
func (t timer) after(by float64) timer {
	t.key = math.Float64bits(t.at() + by)
	return t
}

// before is 1 where a comes before b, else 0.
func before(a, b timer) uint64 {
	_, less := bits.Sub64(a.order, b.order, 0)
	_, less = bits.Sub64(a.key, b.key, less)
	return less
}

// earlier is the one of two that comes first, and 1 where that is b, else 0: without a branch, which
// would be foretold wrongly half the time.
func earlier(a, b timer) (first timer, second uint64) {
	second = before(b, a)
	a.key ^= (a.key ^ b.key) & -second
	a.order ^= (a.order ^ b.order) & -second
	return a, second
}

// noTimer comes after all others.
var noTimer = timer{key: never}

// timerHeap is a binary heap. Behind its n entries there is a noTimer at least, so that every entry
// with a child has two.
type timerHeap struct {
	n int
	a []timer
}

func newTimerHeap(n int) (h timerHeap) {
	h.grow(n)
	return h
}

// grow makes room for n entries.
func (h *timerHeap) grow(n int) {
	for len(h.a) < n+3 {
		h.a = append(h.a, noTimer)
	}
}

func (h *timerHeap) reset() {
	for i := range h.n {
		h.a[i] = noTimer
	}
	h.n = 0
}

// first is the time of the first entry, infinite where there is none.
func (h *timerHeap) first() float64 { return h.a[0].at() }

// entity is whose entry the first one is.
func (h *timerHeap) entity() int32 { return h.a[0].id() }

func (h *timerHeap) push(t timer) {
	i := h.n
	if h.n++; h.n+3 > len(h.a) {
		h.grow(2 * h.n)
	}
	a := h.a
	for i > 0 {
		parent := (i - 1) >> 1
		if before(t, a[parent]) == 0 {
			break
		}
		a[i] = a[parent]
		i = parent
	}
	a[i] = t
}

// pop removes the first entry; the heap is not empty.
func (h *timerHeap) pop() {
	h.n--
	last := h.a[h.n]
	h.a[h.n] = noTimer
	if h.n > 0 {
		h.replace(last)
	}
}

// replace puts t in place of the first entry.
func (h *timerHeap) replace(t timer) {
	a, i := h.a, 0
	for child := 1; child < h.n; child = i<<1 + 1 {
		least, second := earlier(a[child], a[child+1])
		if before(least, t) == 0 {
			break
		}
		a[i] = least
		i = child + int(second)
	}
	a[i] = t
}

// second is the time of the entry after the first; infinite where there is none.
func (h *timerHeap) second() float64 {
	return math.Float64frombits(min(h.a[1].key, h.a[2].key))
}
