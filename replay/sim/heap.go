package sim

import "math"

// timer is one entry of a timerHeap: entity id ends its timed step at key.
type timer struct {
	key float64
	seq uint32 // order of insertion, for equal keys
	id  int32
}

func (a timer) before(b timer) bool {
	return a.key < b.key || a.key == b.key && a.seq < b.seq
}

// timerHeap is a 4-ary heap: half the depth of a binary one, and four 16-byte children lie in one
// cache line.
type timerHeap []timer

func (h *timerHeap) push(t timer) {
	a := append(*h, t)
	i := len(a) - 1
	for i > 0 {
		parent := (i - 1) >> 2
		if !t.before(a[parent]) {
			break
		}
		a[i] = a[parent]
		i = parent
	}
	a[i] = t
	*h = a
}

// pop removes the least entry; the heap is not empty.
func (h *timerHeap) pop() timer {
	a := *h
	top := a[0]
	n := len(a) - 1
	*h = a[:n]
	switch n {
	case 0:
	case 1:
		a[0] = a[1]
	default:
		sink(a[:n], a[n])
	}
	return top
}

// sink puts t in place of the root of a.
func sink(a []timer, t timer) {
	i, n := 0, len(a)
	for {
		child := i<<2 + 1
		if child >= n {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, n); c++ {
			if a[c].before(a[least]) {
				least = c
			}
		}
		if !a[least].before(t) {
			break
		}
		a[i] = a[least]
		i = least
	}
	a[i] = t
}

// second is the key that follows the root's; infinite where there is none.
func (h timerHeap) second() float64 {
	least := math.Inf(1)
	for i := 1; i < min(len(h), 5); i++ {
		least = min(least, h[i].key)
	}
	return least
}
