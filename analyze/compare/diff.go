package compare

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"highwater/tracer/trace"
)

// Verdicts of a metric and of a whole comparison.
const (
	Regression   = "regression"
	Improvement  = "improvement"
	Neutral      = "neutral"
	Inconclusive = "inconclusive"
	// Moved is the verdict of an explanation that changed: it is neither good nor bad.
	Moved = "moved"
)

// What a comparison's verdict rests on.
const (
	BasisTest    = "test"            // the U test, MinTestRuns or more a side
	BasisHistory = "history"         // a noise floor learnt from equal runs
	BasisDefault = "default_floor"   // the documented default noise floor
	BasisNone    = "not_comparable"  // the sides differ in more than the code
	BasisSame    = "the_same_traces" // both sides are the same traces
)

// Options choose how to compare.
type Options struct {
	Across []string // kinds of differences that are asked for: AcrossKinds
	// Thresholds are the least relative changes that matter, by metric name (stage_time_ns) or
	// metric (stage_time_ns/synthesis); what is not in it has its default.
	Thresholds map[string]float64
	Metrics    []string    // names or metrics to look at; empty means all
	Noise      *NoiseFloor // nil: the default floor; used below MinTestRuns only
}

// Side is one side of a comparison.
type Side struct {
	Runs    int      `json:"runs"`
	Traces  []string `json:"traces"`
	Commits []string `json:"commits"` // several where its runs differ; "unknown" where not recorded
	// proofs an hour, from the median proof interval
	ThroughputPerHour *float64 `json:"throughput_per_hour"`
	// CPU time of a computation that is always the same, median of the runs' means: the machine's own
	// speed. Null where not every run sampled it.
	CPUPaceNS *float64 `json:"cpu_pace_ns"`
}

// Row is one metric on both sides. Nil is not known.
type Row struct {
	Metric
	BaseMedian *float64 `json:"base_median"`
	BaseLow    *float64 `json:"base_low"` // 95 % interval of the median; null with too few runs
	BaseHigh   *float64 `json:"base_high"`
	NewMedian  *float64 `json:"new_median"`
	NewLow     *float64 `json:"new_low"`
	NewHigh    *float64 `json:"new_high"`
	Delta      *float64 `json:"delta"`       // new minus base, in the metric's unit
	DeltaRatio *float64 `json:"delta_ratio"` // of base; null where base is 0
	P          *float64 `json:"p"`           // of the U test; null where a floor decides
	PCorrected *float64 `json:"p_corrected"` // after Holm
	// what the effect was held against
	ThresholdRatio float64  `json:"threshold_ratio"`
	FloorRatio     *float64 `json:"floor_ratio"` // null where the test decides
	// the larger of the sides' standard deviations over their means
	NoiseRatio *float64 `json:"noise_ratio"`
	// the effect that the test would find in 95 % of such comparisons
	DetectableRatio *float64 `json:"detectable_ratio"`
	Verdict         string   `json:"verdict"`
	Why             string   `json:"why,omitempty"` // of inconclusive
}

// Diff is what a comparison found. Its JSON is `highwater diff --json`.
type Diff struct {
	Verdict     string       `json:"verdict"`  // regression | improvement | neutral | inconclusive
	Sentence    string       `json:"sentence"` // the verdict with its figures
	Basis       string       `json:"basis"`    // what the verdict rests on
	BasisText   string       `json:"basis_text"`
	Differences []Difference `json:"differences"` // besides the code
	Base        Side         `json:"base"`
	New         Side         `json:"new"`
	Alpha       float64      `json:"alpha_ratio"`
	Tested      int          `json:"tested"` // outcomes counted by Holm; 0 where a floor decides
	Outcomes    []Row        `json:"outcomes"`
	// explanations moved beside the outcomes; which of them is a cause, no counter says
	Explanations []Row       `json:"explanations"`
	PeakSplits   []PeakSplit `json:"peak_splits"` // host, then devices
	Unmatched    []Unmatched `json:"unmatched"`
	Unknown      []string    `json:"unknown"` // what was not recorded, and what that hides
	Warnings     []string    `json:"warnings"`
}

// ErrNoRuns is returned for a side without a run.
var ErrNoRuns = errors.New("compare: a side has no run")

// Compare compares two sides. The runs' stage times become means over what all runs have.
func Compare(base, next []*Run, opts Options) (*Diff, error) {
	if len(base) == 0 || len(next) == 0 {
		return nil, ErrNoRuns
	}
	d := &Diff{
		Differences: differences(base, next, opts.Across), Alpha: Alpha,
		Base: sideOf(base), New: sideOf(next),
		Unmatched: []Unmatched{}, Unknown: unknowns(base, next), Warnings: []string{},
	}
	unmatched, warnings := align(base, next)
	d.Unmatched = append(d.Unmatched, unmatched...)
	d.Warnings = append(d.Warnings, warnings...)
	j := newJudge(base, next, opts)
	d.Outcomes, d.Tested = j.rows(true)
	d.Explanations, _ = j.rows(false)
	d.Basis, d.BasisText = j.basis(d)
	d.PeakSplits = peakSplits(base, next)
	d.Warnings = append(d.Warnings, repeatWarnings(base, next)...)
	d.Warnings = append(d.Warnings, sourceWarnings(base, next)...)
	d.Warnings = append(d.Warnings, busyWarnings(base, next)...)
	d.Warnings = append(d.Warnings, paceWarnings(d.Base, d.New)...)
	d.conclude(sameTraces(base, next), len(opts.Metrics) > 0)
	return d, nil
}

func sideOf(runs []*Run) Side {
	s := Side{Runs: len(runs), Traces: []string{}, Commits: []string{}, CPUPaceNS: paceOf(runs)}
	var intervals []float64
	for _, r := range runs {
		s.Traces = append(s.Traces, r.Name)
		if c := r.Traits.CommitLabel(); !slices.Contains(s.Commits, c) {
			s.Commits = append(s.Commits, c)
		}
		if v, ok := r.Values[Metric{ProofInterval, ""}]; ok {
			intervals = append(intervals, v)
		}
	}
	if len(intervals) == len(runs) {
		if m := median(intervals); m > 0 {
			perHour := 3600e9 / m
			s.ThroughputPerHour = &perHour
		}
	}
	return s
}

// CommitLabel is the commit in twelve digits, "+dirty" behind it where the tree was changed,
// "unknown" where none was recorded.
func (x *Traits) CommitLabel() string {
	label := x.Commit
	if label == "" {
		return "unknown"
	}
	if len(label) > 12 {
		label = label[:12]
	}
	if x.Dirty {
		label += "+dirty"
	}
	return label
}

// sameTraces says that both sides are the same traces, so that equality proves nothing.
func sameTraces(base, next []*Run) bool {
	if len(base) != len(next) {
		return false
	}
	names := func(runs []*Run) []string {
		var list []string
		for _, r := range runs {
			if r.Name == "" {
				return nil
			}
			list = append(list, r.Name)
		}
		slices.Sort(list)
		return list
	}
	a, b := names(base), names(next)
	return a != nil && slices.Equal(a, b)
}

// repeatWarnings names traces that are given more than once: they are no runs of their own.
func repeatWarnings(base, next []*Run) (list []string) {
	if sameTraces(base, next) {
		return nil
	}
	seen := map[string]int{}
	for _, r := range slices.Concat(base, next) {
		if seen[r.Name]++; seen[r.Name] == 2 && r.Name != "" {
			list = append(list, r.Name+" is given more than once: it counts as several runs, which "+
				"it is not")
		}
	}
	return list
}

// sourceWarnings says where peaks of RSS were measured in different ways.
func sourceWarnings(base, next []*Run) []string {
	sources := map[string]bool{}
	for _, r := range slices.Concat(base, next) {
		if s := string(r.Summary.PeakRSSSource); s != "" {
			sources[s] = true
		}
	}
	if len(sources) < 2 {
		return nil
	}
	return []string{"peak RSS is " + strings.Join(slices.Sorted(maps.Keys(sources)),
		" in some runs, ") + " in others: a sampled peak misses what is shorter than a sample"}
}

// unknowns says what no run or only some recorded, and what that hides.
func unknowns(base, next []*Run) []string {
	runs := slices.Concat(base, next)
	list := []string{}
	for _, x := range []struct{ counter, hides string }{
		{"process.paging.faults.minor", "page faults were not sampled in every run: whether they " +
			"changed is not known"},
		{"process.cpu.time.user", "CPU time was not sampled in every run: whether it changed is " +
			"not known"},
	} {
		if slices.ContainsFunc(runs, func(r *Run) bool { return !r.counters[x.counter] }) {
			list = append(list, x.hides)
		}
	}
	for _, m := range []Metric{{ProofInterval, ""}, {PeakLive, ""}, {PeakRSS, ""}} {
		missing := 0
		for _, r := range runs {
			if _, ok := r.Values[m]; !ok {
				missing++
			}
		}
		if missing > 0 {
			list = append(list, fmt.Sprintf("%s is not known of %d of %d runs", m.Label(), missing,
				len(runs)))
		}
	}
	return list
}

// peakSplits splits the peaks of the runs in the middle of each side: of the host, of each device.
func peakSplits(base, next []*Run) []PeakSplit {
	splits := []PeakSplit{}
	b, n := middleRun(base), middleRun(next)
	add := func(device int64, x, y peakMakeup) {
		if x.live == 0 && y.live == 0 {
			return
		}
		s := splitPeaks(x, y)
		s.Space, s.BaseRun, s.NewRun = deviceName(device), b.Name, n.Name
		splits = append(splits, s)
	}
	add(trace.None, b.at, n.at)
	seen := map[int64]bool{}
	var devices []int64
	for _, m := range []map[int64]peakMakeup{b.devices, n.devices} {
		for device := range m {
			if !seen[device] {
				seen[device] = true
				devices = append(devices, device)
			}
		}
	}
	slices.Sort(devices)
	for _, device := range devices {
		add(device, b.devices[device], n.devices[device])
	}
	return splits
}

// middleRun is the run with the median peak of live bytes, the lower of the two in the middle.
func middleRun(runs []*Run) *Run {
	order := slices.Clone(runs)
	slices.SortStableFunc(order, func(a, b *Run) int {
		switch {
		case a.at.live != b.at.live:
			return int(min(max(a.at.live-b.at.live, -1), 1))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return order[(len(order)-1)/2]
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
