package compare

import (
	"math/rand/v2"
	"slices"
)

// split is a place where a series changes: before the value at it.
type split struct {
	at int
	p  float64
}

// eDivisive finds the change points of a series (Matteson and James 2014, for means: exponent 1).
//
//  1. In a stretch, each allowed place cuts it into two; their energy distance, weighted by
//     n·m/(n+m), says how much the halves differ. The place with the largest is the candidate.
//  2. The stretch is permuted rounds times; p is the share of permutations, the original among
//     them, whose largest statistic is as large.
//  3. Where p is at most alpha, the place is a change point, and both halves are searched in turn.
//
// Values may only be cut apart where allowed says so, and permutations move the blocks' values like
// any others: repeats of one commit lie in one block. Halves have minHalf values at least. Equal
// seeds give equal results.
func eDivisive(values []float64, allowed []bool, alpha float64, rounds int, seed uint64) []split {
	e := &divider{
		allowed: allowed, alpha: alpha, rounds: rounds, rng: rand.New(rand.NewPCG(seed, 1)),
	}
	e.search(values, 0)
	slices.SortFunc(e.found, func(a, b split) int { return a.at - b.at })
	return e.found
}

type divider struct {
	allowed []bool
	alpha   float64
	rounds  int
	rng     *rand.Rand
	found   []split
}

// minHalf is how many values each half of a cut has at least.
const minHalf = 2

func (e *divider) search(values []float64, offset int) {
	at, best := e.candidate(values, offset)
	if at < 0 || best <= 0 {
		return
	}
	shuffled := slices.Clone(values)
	asLarge := 1
	for range e.rounds {
		e.rng.Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		if _, q := e.candidate(shuffled, offset); q >= best {
			asLarge++
		}
		if float64(asLarge) > e.alpha*float64(e.rounds+1) {
			return // p is above alpha whatever the other rounds give
		}
	}
	e.found = append(e.found, split{offset + at, float64(asLarge) / float64(e.rounds+1)})
	e.search(values[:at], offset)
	e.search(values[at:], offset+at)
}

// candidate is the allowed place with the largest statistic; -1 where none is allowed.
//
// Moving one value x from the right half to the left changes the sums of distances within and
// between by sums over x's row of distances, so all places cost one pass over the matrix.
func (e *divider) candidate(values []float64, offset int) (at int, best float64) {
	n := len(values)
	var left, right, between float64 // sums over pairs
	for i := range values {
		for j := i + 1; j < n; j++ {
			right += distance(values[i], values[j])
		}
	}
	at = -1
	for k := 1; k < n; k++ {
		x := values[k-1]
		var toLeft, toRight float64
		for i := range k - 1 {
			toLeft += distance(x, values[i])
		}
		for j := k; j < n; j++ {
			toRight += distance(x, values[j])
		}
		left += toLeft
		right -= toRight
		between += toRight - toLeft
		if k < minHalf || n-k < minHalf || !e.allowed[offset+k] {
			continue
		}
		if q := energy(left, right, between, float64(k), float64(n-k)); at < 0 || q > best {
			at, best = k, q
		}
	}
	return at, best
}

func distance(a, b float64) float64 {
	if a > b {
		return a - b
	}
	return b - a
}

// energy is the weighted energy distance of halves of n and m values.
func energy(left, right, between, n, m float64) float64 {
	return n * m / (n + m) *
		(2*between/(n*m) - left/(n*(n-1)/2) - right/(m*(m-1)/2))
}
