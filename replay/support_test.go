package replay

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSeenByFewServices(t *testing.T) {
	if low, high := seenBy(make([]float64, MinServices-1)); low != nil || high != nil {
		t.Errorf("%d services support something", MinServices-1)
	}
	for n := MinServices; n < 4*MinServices; n++ {
		var x []float64
		for i := range n {
			x = append(x, float64(i+1))
		}
		low, high := seenBy(x)
		s := StageSupport{Seen: int64(n), SeenLow: low, SeenHigh: high}
		below, above := int64(*low), int64(n)-int64(*high)+1
		if *low > *high || below < s.witnesses() || above < s.witnesses() {
			t.Errorf("%d services: %g to %g, at most and at least which %d and %d saw, not %d",
				n, *low, *high, below, above, s.witnesses())
		}
		s.Concurrency = (*low + *high) / 2
		if why := s.outside(); why != "" {
			t.Errorf("%d services: %s", n, why)
		}
	}
}

// Low never lies above high, whatever services saw, and both within it.
func TestSeenByIsOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(1, 64), MinServices, 100).Draw(t, "services")
		slices.Sort(x)
		low, high := seenBy(x)
		if *low > *high || *low < x[0] || *high > x[len(x)-1] {
			t.Fatalf("%d services of %g to %g support %g to %g", len(x), x[0], x[len(x)-1], *low, *high)
		}
	})
}
