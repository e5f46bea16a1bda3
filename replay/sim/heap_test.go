package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// A heap gives its entries in the order of their times, and those of one time in the order in which
// they came, whatever is pushed, popped and replaced in between.
func TestHeapKeepsTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	heap, want := newTimerHeap(0), []timer(nil)
	for seq := range uint32(20_000) {
		added := newTimer(float64(random.IntN(50)), seq, int32(random.IntN(9)))
		full := len(want) > 40 || seq%1000 > 900 // to the last one, now and then
		switch {
		case len(want) == 0 || !full && random.IntN(2) == 0:
			heap.push(added)
			want = append(want, added)
		case full || random.IntN(2) == 0:
			heap.pop()
			want = want[1:]
		default:
			heap.replace(added)
			want[0] = added
		}
		slices.SortFunc(want, func(a, b timer) int {
			return cmp.Or(cmp.Compare(a.at(), b.at()), cmp.Compare(a.order>>32, b.order>>32))
		})
		least := append(slices.Clone(want), noTimer, noTimer)
		if heap.n != len(want) || heap.a[0] != least[0] || heap.second() != least[1].at() {
			t.Fatalf("after %d steps: %d entries, first %v, then %v; want %d, %v, %v", seq+1, heap.n,
				heap.a[0], heap.second(), len(want), least[0], least[1].at())
		}
	}
	heap.reset()
	if heap.first() != noTimer.at() || heap.second() != noTimer.at() {
		t.Errorf("after a reset: first %v, then %v", heap.first(), heap.second())
	}
}

// What is kept of programs is bounded: the oldest go.
func TestProgramsLetTheOldestGo(t *testing.T) {
	var k Programs
	var made []*program
	for range 3 {
		p := &program{steps: make([]step, maxKept/2)}
		made = append(made, p)
		k.keep(p)
	}
	if !slices.Equal(k.kept, made[1:]) {
		t.Errorf("%d of 3 programs kept, or not the latest", len(k.kept))
	}
	if k.keep(&program{steps: make([]step, maxKept+1)}); len(k.kept) != 0 {
		t.Errorf("%d programs kept beside one that is too large by itself", len(k.kept))
	}
}
