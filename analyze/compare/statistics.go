package compare

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// thresholds is benchmath's setting; this package corrects for many tests itself.
var thresholds = benchmath.DefaultThresholds

// confidence of the interval shown around a median.
const confidence = 0.95

// sample is the values of one side for benchmath, which sorts them.
func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &thresholds)
}

// middle is a side's median and the interval around it; the interval's ends are nil where there
// are too few runs for one.
type middle struct {
	center    float64
	low, high *float64
}

func middleOf(s *benchmath.Sample) middle {
	x := benchmath.AssumeNothing.Summary(s, confidence)
	m := middle{center: x.Center}
	if !math.IsInf(x.Lo, 0) && !math.IsInf(x.Hi, 0) {
		m.low, m.high = &x.Lo, &x.Hi
	}
	return m
}

// uTest is the p-value of the Mann-Whitney U test; degenerate says that all values of both sides
// are equal, where nothing can ever be rejected.
func uTest(a, b *benchmath.Sample) (p float64, degenerate bool) {
	if a.Values[0] == b.Values[len(b.Values)-1] && b.Values[0] == a.Values[len(a.Values)-1] &&
		a.Values[0] == b.Values[0] {
		return 1, true
	}
	return benchmath.AssumeNothing.Compare(a, b).P, false
}

// holm corrects p-values for their number: the k-th smallest is multiplied by how many are as large
// or larger, and never falls below the one before. Tests that cannot reject (degenerate) are not
// counted (Tarone 1990): their outcome is known before looking at the sides.
func holm(p []float64, degenerate []bool) (corrected []float64, tested int) {
	order := make([]int, 0, len(p))
	corrected = make([]float64, len(p))
	for i := range p {
		corrected[i] = 1
		if !degenerate[i] {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(p[a], p[b]), a-b) })
	last := 0.0
	for k, i := range order {
		last = max(last, min(1, p[i]*float64(len(order)-k)))
		corrected[i] = last
	}
	return corrected, len(order)
}

// variation is the standard deviation over the mean of one side, NaN below two runs.
func variation(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	if slices.Min(values) == slices.Max(values) {
		return 0 // exactly, where the mean is rounded
	}
	mean := 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	square := 0.0
	for _, v := range values {
		square += (v - mean) * (v - mean)
	}
	if mean == 0 {
		return math.NaN()
	}
	return math.Sqrt(square/float64(len(values)-1)) / math.Abs(mean)
}

// detectable is the relative shift that the test finds with probability 0.95 at level alpha, for
// normal noise of that variation and sides of n1 and n2 runs; NaN where no shift would do, because
// the sides are too small for such a level.
//
//  1. The test rejects where U, which is n1·n2/2 if nothing differs, falls to a critical value.
//  2. Shifted by d standard deviations, a new run lies above a base run with probability
//     q = Φ(d/√2), and U is n1·n2·(1-q), with the variance of Hanley and McNeil (1982).
//  3. The shift is the least whose U stays below the critical value in 95 %.
func detectable(variation float64, n1, n2 int, alpha float64) float64 {
	const power = 0.95
	n, m := float64(n1), float64(n2)
	critical := n*m/2 - normalQuantile(1-alpha/2)*math.Sqrt(n*m*(n+m+1)/12)
	if critical < 0 {
		return math.NaN()
	}
	low, high := 0.5, 1-1e-12 // q
	for range 60 {
		q := (low + high) / 2
		spread := q*(1-q) + (n-1)*(q/(2-q)-q*q) + (m-1)*(2*q*q/(1+q)-q*q)
		if n*m*(1-q)+normalQuantile(power)*math.Sqrt(n*m*spread) > critical {
			low = q
		} else {
			high = q
		}
	}
	return math.Sqrt2 * normalQuantile(high) * variation
}

// normalQuantile is the standard normal distribution's quantile.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// median of a sample that is not empty.
func median(values []float64) float64 {
	s := slices.Clone(values)
	slices.Sort(s)
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// quantileOf is the nearest-rank quantile of a sample that is not empty; it sorts it.
func quantileOf(values []float64, q float64) float64 {
	slices.Sort(values)
	i := int(math.Ceil(q*float64(len(values)))) - 1
	return values[min(max(i, 0), len(values)-1)]
}
