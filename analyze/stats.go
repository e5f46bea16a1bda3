package analyze

import (
	"cmp"
	"math"
	"slices"
)

// median of v, which it sorts; 0 for none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.SortFunc(v, cmp.Compare[float64])
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// mannKendall is the z of Mann and Kendall's test for a monotone trend, ties corrected: about
// normal without a trend. n is at most a few thousand (the test compares all pairs).
func mannKendall(y []float64) float64 {
	s, n := 0, len(y)
	for i := range y {
		for _, v := range y[i+1:] {
			s += cmp.Compare(v, y[i])
		}
	}
	variance := float64(n*(n-1)*(2*n+5)) - tieTerm(y)
	if variance <= 0 {
		return 0
	}
	sign := float64(cmp.Compare(s, 0))
	return (float64(s) - sign) / math.Sqrt(variance/18)
}

// tieTerm is the sum over groups of equal values of t(t-1)(2t+5).
func tieTerm(y []float64) float64 {
	sorted := slices.Sorted(slices.Values(y))
	sum := 0.0
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		t := float64(j - i)
		sum += t * (t - 1) * (2*t + 5)
		i = j
	}
	return sum
}

// theilSen is the median of the slopes between all pairs: the trend a step, whatever single values
// do.
func theilSen(y []float64) float64 {
	var slopes []float64
	for i := range y {
		for j := i + 1; j < len(y); j++ {
			slopes = append(slopes, (y[j]-y[i])/float64(j-i))
		}
	}
	return median(slopes)
}

// spread is mean and standard deviation (of the sample; 0 below two values).
func spread(v []float64) (mean, sd float64) {
	if len(v) == 0 {
		return 0, 0
	}
	for _, x := range v {
		mean += x
	}
	mean /= float64(len(v))
	if len(v) < 2 {
		return mean, 0
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / float64(len(v)-1))
}

// slower says that values a are larger than b beyond chance, as Welch's t has it: t >= 3 (about one
// in a thousand). It needs two values on each side.
func slower(a, b []float64) bool {
	if len(a) < 2 || len(b) < 2 {
		return false
	}
	ma, sa := spread(a)
	mb, sb := spread(b)
	se := math.Sqrt(sa*sa/float64(len(a)) + sb*sb/float64(len(b)))
	return ma > mb && (se == 0 || (ma-mb)/se >= 3)
}
