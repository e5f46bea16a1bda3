package compare

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// NoiseFloor is how far a metric moves between equal runs: what a difference of few runs must
// exceed to be called one. Its JSON is the file of --noise.
type NoiseFloor struct {
	Runs   int           `json:"runs"`    // that it was learnt from
	BaseN  int           `json:"base_n"`  // for sides of so many runs
	NewN   int           `json:"new_n"`   //
	Draws  int           `json:"draws"`   // A/A comparisons that it rests on
	Seed   uint64        `json:"seed"`    //
	Factor float64       `json:"factor"`  // floors are this many times the metric's A/A scale
	Floors []MetricFloor `json:"metrics"` //
}

// MetricFloor is the floor of one metric.
type MetricFloor struct {
	Metric
	FloorRatio float64 `json:"floor_ratio"` // the larger side over the smaller, minus 1
}

const (
	// minNoiseRuns is how many equal runs a floor is learnt from at least.
	minNoiseRuns = 10
	noiseDraws   = 4000
	noiseSeed    = 1
)

// LearnNoise learns the floor for sides of n1 and n2 runs from runs that should be equal: one
// commit, one setting, one machine. It draws pairs of sides at random, scales each outcome's
// relative difference by its own root mean square, and takes the factor that the largest over all
// outcomes stays below in all but Alpha of the draws (Westfall and Young's maxT): so all outcomes
// together are held to Alpha. An error says why nothing can be learnt.
func LearnNoise(runs []*Run, n1, n2 int) (*NoiseFloor, error) {
	if len(runs) < max(minNoiseRuns, n1+n2) {
		return nil, fmt.Errorf("learn noise: %d equal runs: %d are needed",
			len(runs), max(minNoiseRuns, n1+n2))
	}
	metrics := commonMetrics(runs)
	draws := drawDifferences(runs, metrics, n1, n2)
	scale := make([]float64, len(metrics))
	for _, d := range draws {
		for j, v := range d {
			scale[j] += v * v
		}
	}
	for j := range scale {
		scale[j] = math.Sqrt(scale[j] / float64(len(draws)))
	}
	f := &NoiseFloor{
		Runs: len(runs), BaseN: n1, NewN: n2, Draws: len(draws), Seed: noiseSeed,
		Factor: noiseFactor(draws, scale, metrics),
	}
	for j, m := range metrics {
		f.Floors = append(f.Floors, MetricFloor{m, math.Expm1(f.Factor * scale[j])})
	}
	return f, nil
}

// commonMetrics are the metrics that every run has, in the order of a report.
func commonMetrics(runs []*Run) []Metric {
	var list []Metric
	for m := range runs[0].Values {
		if !slices.ContainsFunc(runs, func(r *Run) bool { _, ok := r.Values[m]; return !ok }) {
			list = append(list, m)
		}
	}
	sortMetrics(list)
	return list
}

// drawDifferences is the logarithm of the ratio of the medians of two random sides, by metric, for
// each draw.
func drawDifferences(runs []*Run, metrics []Metric, n1, n2 int) [][]float64 {
	rng := rand.New(rand.NewPCG(noiseSeed, uint64(len(runs))))
	order := make([]int, len(runs))
	for i := range order {
		order[i] = i
	}
	draws := make([][]float64, noiseDraws)
	a, b := make([]float64, n1), make([]float64, n2)
	for k := range draws {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		d := make([]float64, len(metrics))
		for j, m := range metrics {
			for i := range a {
				a[i] = runs[order[i]].Values[m]
			}
			for i := range b {
				b[i] = runs[order[n1+i]].Values[m]
			}
			d[j] = logRatio(median(b), median(a))
		}
		draws[k] = d
	}
	return draws
}

// logRatio is the logarithm of a over b; where one of them is 0 there is no ratio, and it says as
// much as a factor of e either way.
func logRatio(a, b float64) float64 {
	switch {
	case a == b:
		return 0
	case a <= 0 || b <= 0:
		return 1
	}
	return math.Log(a / b)
}

// noiseFactor is the quantile of the largest scaled difference over the outcomes, and at least what
// normal noise would need: few runs say little of the tail.
func noiseFactor(draws [][]float64, scale []float64, metrics []Metric) float64 {
	largest := make([]float64, len(draws))
	outcomes := 0
	for j, m := range metrics {
		if !m.Outcome() || scale[j] == 0 {
			continue
		}
		outcomes++
		for k, d := range draws {
			largest[k] = max(largest[k], math.Abs(d[j])/scale[j])
		}
	}
	normal := normalQuantile(1 - Alpha/2/float64(max(outcomes, 1)))
	return max(normal, quantileOf(largest, 1-Alpha))
}

// lookup is the floors by metric.
func (f *NoiseFloor) lookup() map[Metric]float64 {
	floors := map[Metric]float64{}
	for _, x := range f.Floors {
		floors[x.Metric] = x.FloorRatio
	}
	return floors
}

// EqualGroups sorts runs into groups that should be equal: one commit (not dirty), equal traits, no
// flaw. The largest comes first.
func EqualGroups(runs []*Run) [][]*Run {
	groups := map[string][]*Run{}
	for _, r := range runs {
		if len(r.Traits.flaws) == 0 {
			k := r.Traits.identity()
			groups[k] = append(groups[k], r)
		}
	}
	list := make([][]*Run, 0, len(groups))
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, groups[k])
	}
	slices.SortStableFunc(list, func(a, b []*Run) int { return len(b) - len(a) })
	return list
}

// identity is everything that must be equal for two runs to be repeats of each other.
func (x *Traits) identity() string {
	keys := slices.SortedFunc(maps.Keys(x.values), func(a, b trait) int {
		return compareTraits(a, b)
	})
	text := fmt.Sprintf("%s %v\n", x.Commit, x.Dirty)
	for _, k := range keys {
		text += fmt.Sprintf("%s %s %s\n", k.kind, k.name, x.values[k])
	}
	return text
}
