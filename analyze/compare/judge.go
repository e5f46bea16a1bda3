package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"highwater/internal/units"
)

// judge holds what rows are judged by.
type judge struct {
	base, next []*Run
	opts       Options
	tests      bool // enough runs for the U test
	floors     map[Metric]float64
	busy       bool    // a run shared its machine with other programs
	heldGiBSec float64 // what jobs held in all of the base, for the default floor
	liveBytes  float64 // peak live of the base, likewise
}

func newJudge(base, next []*Run, opts Options) *judge {
	j := &judge{base: base, next: next, opts: opts}
	j.tests = min(len(base), len(next)) >= MinTestRuns
	if opts.Noise != nil {
		j.floors = opts.Noise.lookup()
	}
	if !j.tests {
		j.prepareFloors()
	}
	return j
}

// prepareFloors learns what the default floors depend on.
func (j *judge) prepareFloors() {
	for _, r := range slices.Concat(j.base, j.next) {
		j.busy = j.busy || r.busy()
	}
	held, live := make([]float64, len(j.base)), make([]float64, len(j.base))
	for i, r := range j.base {
		live[i] = r.Values[Metric{PeakLive, ""}]
		for _, m := range commonMetrics([]*Run{r}) { // sorted: one sum, whatever the map's order
			if m.Name == ClassArea {
				held[i] += r.Values[m]
			}
		}
	}
	j.heldGiBSec, j.liveBytes = median(held), median(live)
}

// rows judges all outcomes, or all explanations.
func (j *judge) rows(outcomes bool) ([]Row, int) {
	rows := []Row{}
	var p []float64
	var degenerate []bool
	for _, m := range j.metrics(outcomes) {
		r := Row{Metric: m, ThresholdRatio: j.threshold(m)}
		a, b, ok := j.measured(m)
		if !ok {
			r.Verdict, r.Why = Inconclusive, "not known of every run"
			rows, p, degenerate = append(rows, r), append(p, 1), append(degenerate, true)
			continue
		}
		pValue, never := j.measure(&r, a, b)
		rows, p, degenerate = append(rows, r), append(p, pValue), append(degenerate, never)
	}
	corrected, tested := holm(p, degenerate)
	for i := range rows {
		if rows[i].Verdict == "" {
			j.decide(&rows[i], p[i], corrected[i], tested)
		}
	}
	if !j.tests {
		tested = 0
	}
	return rows, tested
}

// metrics are those of any run that were asked for, in the order of a report.
func (j *judge) metrics(outcomes bool) []Metric {
	set := map[Metric]bool{}
	for _, r := range slices.Concat(j.base, j.next) {
		for m := range r.Values {
			set[m] = true
		}
	}
	var list []Metric
	for m := range set {
		if m.Outcome() == outcomes && (len(j.opts.Metrics) == 0 ||
			slices.Contains(j.opts.Metrics, m.Name) ||
			slices.Contains(j.opts.Metrics, m.String())) {
			list = append(list, m)
		}
	}
	sortMetrics(list)
	return list
}

// absentIsZero are metrics of which a run without the subject has none: no buffer of a class is 0
// bytes of it.
var absentIsZero = map[string]bool{ClassPeak: true, ClassArea: true, ClassMade: true}

// measured are the metric's values on both sides; false where a run lacks it.
func (j *judge) measured(m Metric) (a, b []float64, ok bool) {
	side := func(runs []*Run) (values []float64, ok bool) {
		for _, r := range runs {
			v, ok := r.Values[m]
			if !ok && !absentIsZero[m.Name] {
				return nil, false
			}
			values = append(values, v)
		}
		return values, true
	}
	a, ok = side(j.base)
	if !ok {
		return nil, nil, false
	}
	b, ok = side(j.next)
	return a, b, ok
}

// measure fills in what both sides say.
func (j *judge) measure(r *Row, a, b []float64) (p float64, degenerate bool) {
	x, y := sample(a), sample(b)
	mx, my := middleOf(x), middleOf(y)
	r.BaseMedian, r.BaseLow, r.BaseHigh = &mx.center, mx.low, mx.high
	r.NewMedian, r.NewLow, r.NewHigh = &my.center, my.low, my.high
	delta := my.center - mx.center
	r.Delta, r.DeltaRatio = &delta, ratioOf(my.center, mx.center)
	r.NoiseRatio = finite(max(variation(a), variation(b)))
	return uTest(x, y)
}

// threshold is the least relative change of m that matters.
func (j *judge) threshold(m Metric) float64 {
	if v, ok := j.opts.Thresholds[m.String()]; ok {
		return v
	}
	if v, ok := j.opts.Thresholds[m.Name]; ok {
		return v
	}
	return m.quantity().threshold
}

const (
	// preemptionNS is how long a thread may be kept from running: what a single run's time may be
	// off by, however short it is.
	preemptionNS = 10e6
	// wakeupNS is what a single run's time may be off by where history gives the rest: stages of 0.2
	// to 1 ms took 1 ms more in one run of a hundred, whatever the floor learnt from half of them.
	wakeupNS = 1e6
	// classNoise is the share of all bytes, and of all bytes times time, that a class may be off by:
	// whether a second small buffer of its kind is alive at once is chance.
	classNoise = 0.01
)

// floor is the noise floor of a row. One that was learnt adds for a time a wake-up. The default one
// is relative, and adds for a time a preemption, for a class's bytes, and its bytes times time, a
// share of those of all: short stages and small classes vary by more than themselves.
func (j *judge) floor(r *Row) float64 {
	floor, learnt := j.floors[r.Metric]
	if !learnt {
		floor = r.quantity().floor
	}
	switch {
	case *r.BaseMedian <= 0:
		return floor
	case learnt && r.Name == StageTime:
		return floor + wakeupNS / *r.BaseMedian
	case learnt:
		return floor
	}
	switch r.Name {
	case ProofInterval, StageTime, StageCPU, OpTime, KernelTime, CopyTime, ClassLifetime, QueueWait:
		floor += preemptionNS / *r.BaseMedian
	case ClassArea:
		floor += classNoise * j.heldGiBSec / *r.BaseMedian
	case ClassPeak:
		floor += classNoise * j.liveBytes / *r.BaseMedian
	}
	return floor
}

// unfit says that the default floor does not hold for m: other programs stretched its times.
func (j *judge) unfit(m Metric) bool {
	_, learnt := j.floors[m]
	return j.busy && !learnt &&
		(strings.HasSuffix(m.Name, "_ns") || m.Name == ClassArea || m.Name == QueueDepth)
}

// decide gives a measured row its verdict.
func (j *judge) decide(r *Row, p, corrected float64, tested int) {
	if !j.tests {
		j.decideByFloor(r)
		return
	}
	r.P, r.PCorrected = &p, &corrected
	if r.NoiseRatio != nil {
		least := detectable(*r.NoiseRatio, len(j.base), len(j.next), Alpha/float64(max(tested, 1)))
		r.DetectableRatio = finite(least)
	}
	switch {
	case corrected <= Alpha && r.matters():
		r.Verdict = r.direction()
	case r.matters():
		r.Verdict = Inconclusive
		r.Why = "the difference is above the threshold, and noise may explain it"
	default:
		r.Verdict = Neutral
	}
}

// decideByFloor judges few runs: what does not exceed the noise of equal runs is no change, and
// that there is none is only said where the floor is not above what matters.
func (j *judge) decideByFloor(r *Row) {
	floor := j.floor(r)
	r.FloorRatio = &floor
	switch {
	case *r.Delta == 0:
		r.Verdict = Neutral
	case j.unfit(r.Metric):
		r.Verdict = Inconclusive
		r.Why = "other programs used the machine too: the default floor does not hold"
	case r.spread() > floor && r.matters():
		r.Verdict = r.direction()
	case !r.matters() && floor <= r.ThresholdRatio:
		r.Verdict = Neutral
	default:
		r.Verdict = Inconclusive
		r.Why = fmt.Sprintf("equal runs differ by up to %s", units.Percent(floor))
	}
}

// effect is the size of the relative change; from nothing to something is beyond any.
func (r *Row) effect() float64 {
	switch {
	case r.DeltaRatio != nil:
		return math.Abs(*r.DeltaRatio)
	case *r.Delta == 0:
		return 0
	}
	return math.Inf(1)
}

// spread is how many times the larger side is the smaller, minus 1: what floors are held against,
// since twice and half are as far from equal. From nothing to something is beyond any.
func (r *Row) spread() float64 {
	if r.DeltaRatio == nil || *r.DeltaRatio <= -1 {
		return math.Inf(1)
	}
	return max(1+*r.DeltaRatio, 1/(1+*r.DeltaRatio)) - 1
}

// matters says that the change reaches its threshold, and the grain of what is measured.
func (r *Row) matters() bool {
	return *r.Delta != 0 && r.effect() >= r.ThresholdRatio &&
		math.Abs(*r.Delta) >= r.quantity().least
}

func (r *Row) direction() string {
	switch {
	case !r.Outcome():
		return Moved
	case *r.Delta > 0:
		return Regression
	}
	return Improvement
}

// basis says what the verdicts rest on.
func (j *judge) basis(d *Diff) (basis, text string) {
	if j.tests {
		return BasisTest, fmt.Sprintf("Mann-Whitney U test on %d and %d runs; %d outcomes tested, "+
			"held together to %s by Holm's correction", len(j.base), len(j.next), d.Tested,
			units.Percent(Alpha))
	}
	few := fmt.Sprintf("%d and %d runs are too few for a test (%d a side are needed)",
		len(j.base), len(j.next), MinTestRuns)
	if n := j.opts.Noise; n != nil {
		return BasisHistory, few + fmt.Sprintf(": judged by a noise floor learnt from %d equal runs",
			n.Runs)
	}
	return BasisDefault, few + ": judged by the default noise floor (docs/diff.md); --history or " +
		"--noise gives this machine's"
}
