package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHolm(t *testing.T) {
	for _, c := range []struct {
		name       string
		p          []float64
		degenerate []bool
		want       []float64
		tested     int
	}{
		{"none", nil, nil, []float64{}, 0},
		{"one", []float64{0.02}, []bool{false}, []float64{0.02}, 1},
		{
			"Holm's example", []float64{0.01, 0.04, 0.03, 0.005}, make([]bool, 4),
			[]float64{0.03, 0.06, 0.06, 0.02}, 4,
		},
		{
			"what cannot reject does not count", []float64{0.01, 1, 1}, []bool{false, true, true},
			[]float64{0.01, 1, 1}, 1,
		},
		{"at most 1", []float64{0.9, 0.8}, make([]bool, 2), []float64{1, 1}, 2},
	} {
		got, tested := holm(c.p, c.degenerate)
		if tested != c.tested || len(got) != len(c.want) {
			t.Errorf("%s: %v, %d tested", c.name, got, tested)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	}
}

func TestUTest(t *testing.T) {
	low, high := []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{11, 12, 13, 14, 15, 16, 17, 18}
	if p, _ := uTest(sample(low), sample(high)); math.Abs(p-2.0/12870) > 1e-9 {
		t.Errorf("8 against 8 apart: p %v, want 2/12870", p)
	}
	if _, never := uTest(sample([]float64{3, 3}), sample([]float64{3, 3, 3})); !never {
		t.Error("equal values can be told apart")
	}
	if p, never := uTest(sample(repeat(3, 8)), sample(repeat(4, 8))); never || p > 0.001 {
		t.Errorf("constant sides that differ: p %v", p)
	}
}

func repeat(v float64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// TestDetectable: the shift that is said to be found in 95 % of comparisons is found in about so
// many, drawn from normal noise with a fixed seed.
func TestDetectable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const n, noise, alpha, rounds = 10, 0.02, 0.001, 300
	shift := detectable(noise, n, n, alpha)
	found := 0
	for range rounds {
		a, b := make([]float64, n), make([]float64, n)
		for i := range n {
			a[i] = 1 + noise*rng.NormFloat64()
			b[i] = 1 + shift + noise*rng.NormFloat64()
		}
		if p, _ := uTest(sample(a), sample(b)); p <= alpha {
			found++
		}
	}
	if share := float64(found) / rounds; share < 0.90 || share > 0.995 {
		t.Errorf("a shift of %.1f %% is found in %.2f of comparisons, want about 0.95", 100*shift,
			share)
	}
}

func TestEDivisive(t *testing.T) {
	noise := func(seed uint64, n int) []float64 {
		rng := rand.New(rand.NewPCG(seed, 5))
		v := make([]float64, n)
		for i := range v {
			v[i] = 100 + rng.NormFloat64()
		}
		return v
	}
	step := func(v []float64, at int, by float64) []float64 {
		for i := at; i < len(v); i++ {
			v[i] += by
		}
		return v
	}
	all := func(n int) []bool {
		ok := make([]bool, n)
		for i := range ok {
			ok[i] = true
		}
		return ok
	}
	for _, c := range []struct {
		name   string
		values []float64
		want   []int
	}{
		{"empty", nil, nil},
		{"one value", []float64{1}, nil},
		{"constant", repeat(7, 30), nil},
		{"noise", noise(4, 40), nil},
		{"one step", step(noise(2, 40), 17, 5), []int{17}},
		{"two steps", step(step(noise(3, 60), 20, 5), 40, -5), []int{20, 40}},
		{"constant step", step(repeat(7, 30), 12, 1), []int{12}},
	} {
		var got []int
		for _, s := range eDivisive(c.values, all(len(c.values)), 0.01, 999, 1) {
			got = append(got, s.at)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: changes at %v, want %v", c.name, got, c.want)
		}
	}
	// Cuts are made where they are allowed only.
	values := step(noise(2, 40), 17, 5)
	allowed := make([]bool, 40)
	allowed[10], allowed[20], allowed[30] = true, true, true
	for _, s := range eDivisive(values, allowed, 0.01, 999, 1) {
		if !allowed[s.at] {
			t.Errorf("a cut at %d, inside a commit", s.at)
		}
	}
}

// TestCandidateIsTheDefinition: the statistic that is updated along the series is the one of the
// definition.
func TestCandidateIsTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	values := make([]float64, 25)
	for i := range values {
		values[i] = rng.Float64()
	}
	allowed := make([]bool, len(values))
	for k := minHalf; k <= len(values)-minHalf; k++ {
		allowed[k] = true
		at, got := (&divider{allowed: allowed}).candidate(values, 0)
		allowed[k] = false
		within := func(v []float64) (sum float64) {
			for i := range v {
				for j := range i {
					sum += math.Abs(v[i] - v[j])
				}
			}
			return sum
		}
		left, right := values[:k], values[k:]
		between := 0.0
		for _, x := range left {
			for _, y := range right {
				between += math.Abs(x - y)
			}
		}
		want := energy(within(left), within(right), between, float64(k), float64(len(values)-k))
		if at != k || math.Abs(got-want) > 1e-9 {
			t.Errorf("at %d: %v, the definition gives %v", at, got, want)
		}
	}
}
