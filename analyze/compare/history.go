package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// History is a series of runs by commit and where it changed. Its JSON is `highwater history
// --json`.
type History struct {
	Runs    int             `json:"runs"`
	Commits []HistoryCommit `json:"commits"` // by the time of their first run
	Metrics []MetricHistory `json:"metrics"` // in the order of a report
	Changes []Change        `json:"changes"` // regressions first, the largest first
	// LeftOut are runs that cannot be compared with the others, and why.
	LeftOut  []LeftOut `json:"left_out"`
	Alpha    float64   `json:"alpha_ratio"`  // over all metrics together
	Rounds   int       `json:"permutations"` // of each candidate
	Seed     uint64    `json:"seed"`
	Warnings []string  `json:"warnings"`
}

// HistoryCommit is the runs of one commit.
type HistoryCommit struct {
	Commit string   `json:"commit"` // the whole hash, "" where it was not recorded
	Label  string   `json:"label"`
	Dirty  bool     `json:"dirty"`
	UnixNS *int64   `json:"unix_ns"` // start of its first run
	Traces []string `json:"traces"`

	runs []*Run
}

// MetricHistory is one metric along the commits.
type MetricHistory struct {
	Metric
	Points []HistoryPoint `json:"points"` // one a commit
}

// HistoryPoint is one commit's value; null where no run knows it.
type HistoryPoint struct {
	Median *float64 `json:"median"`
	Low    *float64 `json:"low"` // lowest and highest run
	High   *float64 `json:"high"`
}

// Change is a change point: between two commits that follow each other in the series.
type Change struct {
	Metric
	Verdict    string   `json:"verdict"`     // regression | improvement | moved
	LastBefore string   `json:"last_before"` // the commit range: after this one
	FirstAfter string   `json:"first_after"` // up to this one
	Index      int      `json:"index"`       // of FirstAfter in commits
	Before     float64  `json:"before_median"`
	After      float64  `json:"after_median"`
	Delta      float64  `json:"delta"`
	DeltaRatio *float64 `json:"delta_ratio"`
	P          float64  `json:"p"`
	PCorrected float64  `json:"p_corrected"` // times the number of metrics
}

// LeftOut is a run that is not in the series.
type LeftOut struct {
	Trace string `json:"trace"`
	Why   string `json:"why"`
}

// HistoryOptions choose what a history looks at.
type HistoryOptions struct {
	Metrics    []string // names or metrics; empty means the outcomes
	Across     []string // kinds of differences to look across
	Thresholds map[string]float64
	Seed       uint64 // of the permutations; 0 means 1
}

const (
	historyAlpha = 0.05
	maxRounds    = 9999
	minRounds    = 999
)

// BuildHistory orders runs by commit and finds the change points of each metric. The runs that
// share their traits with most others are the series; the others are left out by name.
func BuildHistory(runs []*Run, opts HistoryOptions) (*History, error) {
	if len(runs) == 0 {
		return nil, ErrNoRuns
	}
	h := &History{
		Alpha: historyAlpha, Seed: cmp.Or(opts.Seed, 1), LeftOut: []LeftOut{},
		Changes: []Change{}, Metrics: []MetricHistory{}, Warnings: []string{},
	}
	series := h.choose(runs, opts.Across)
	h.Runs = len(series)
	h.Commits = byCommit(series)
	metrics := historyMetrics(series, opts.Metrics)
	h.Rounds = min(max(minRounds, int(math.Ceil(4*float64(len(metrics))/historyAlpha))), maxRounds)
	for _, m := range metrics {
		h.follow(m, len(metrics), opts.Thresholds)
	}
	slices.SortStableFunc(h.Changes, compareChanges)
	h.doubts()
	return h, nil
}

// choose keeps the largest set of runs that are equal but for their commit.
func (h *History) choose(runs []*Run, across []string) []*Run {
	groups := map[string][]*Run{}
	for _, r := range runs {
		if len(r.Traits.flaws) > 0 {
			h.LeftOut = append(h.LeftOut, LeftOut{r.Name, r.Traits.flaws[0]})
			continue
		}
		k := r.Traits.likeness(across)
		groups[k] = append(groups[k], r)
	}
	keys := slices.Sorted(maps.Keys(groups))
	if len(keys) == 0 {
		return nil
	}
	best := keys[0]
	for _, k := range keys {
		if len(groups[k]) > len(groups[best]) {
			best = k
		}
	}
	for _, k := range keys {
		if k == best {
			continue
		}
		for _, r := range groups[k] {
			why := "differs in more than the code"
			for _, d := range differences(groups[best][:1], []*Run{r}, across) {
				if !d.Accepted {
					why = d.Kind + ": " + d.String()
					break
				}
			}
			h.LeftOut = append(h.LeftOut, LeftOut{r.Name, why})
		}
	}
	at := map[string]int{} // in the order in which they were given
	for i, r := range runs {
		at[r.Name] = i
	}
	slices.SortStableFunc(h.LeftOut,
		func(a, b LeftOut) int { return cmp.Compare(at[a.Trace], at[b.Trace]) })
	return groups[best]
}

// likeness is everything that runs of one series share.
func (x *Traits) likeness(across []string) string {
	keys := slices.SortedFunc(maps.Keys(x.values), compareTraits)
	text := ""
	for _, k := range keys {
		if !slices.Contains(across, k.kind) {
			text += fmt.Sprintf("%s %s %s\n", k.kind, k.name, x.values[k])
		}
	}
	return text
}

// byCommit groups runs and orders commits by their first run. Runs without a commit are each a
// point of their own: nothing says that they are repeats.
func byCommit(runs []*Run) []HistoryCommit {
	order := slices.Clone(runs)
	slices.SortStableFunc(order, func(a, b *Run) int {
		return cmp.Or(cmp.Compare(a.Traits.UnixNS, b.Traits.UnixNS), cmp.Compare(a.Name, b.Name))
	})
	index := map[string]int{}
	list := []HistoryCommit{}
	for _, r := range order {
		key := fmt.Sprint(r.Traits.Commit, r.Traits.Dirty)
		if r.Traits.Commit == "" {
			key = "run " + cmp.Or(r.Traits.Group, r.Name)
		}
		i, ok := index[key]
		if !ok {
			i = len(list)
			index[key] = i
			list = append(list, newHistoryCommit(r))
		}
		list[i].runs = append(list[i].runs, r)
		list[i].Traces = append(list[i].Traces, r.Name)
	}
	return list
}

func newHistoryCommit(r *Run) HistoryCommit {
	c := HistoryCommit{
		Commit: r.Traits.Commit, Dirty: r.Traits.Dirty, Label: r.Traits.CommitLabel(),
	}
	if c.Commit == "" {
		c.Label = cmp.Or(r.Traits.Group, r.Name)
	}
	if r.Traits.UnixNS != 0 {
		c.UnixNS = &r.Traits.UnixNS
	}
	return c
}

func historyMetrics(runs []*Run, asked []string) []Metric {
	set := map[Metric]bool{}
	for _, r := range runs {
		for m := range r.Values {
			if len(asked) == 0 && m.Outcome() || slices.Contains(asked, m.Name) ||
				slices.Contains(asked, m.String()) {
				set[m] = true
			}
		}
	}
	list := slices.Collect(maps.Keys(set))
	sortMetrics(list)
	return list
}

// follow adds one metric's points and change points.
func (h *History) follow(m Metric, tested int, thresholds map[string]float64) {
	mh := MetricHistory{Metric: m, Points: []HistoryPoint{}}
	var values []float64
	var allowed []bool // a cut before this value parts two commits
	var commit []int
	for i, c := range h.Commits {
		var own []float64
		for _, r := range c.runs {
			if v, ok := r.Values[m]; ok {
				own = append(own, v)
			}
		}
		mh.Points = append(mh.Points, pointOf(own))
		for k, v := range own {
			values, allowed, commit = append(values, v), append(allowed, k == 0), append(commit, i)
		}
	}
	h.Metrics = append(h.Metrics, mh)
	metrics := float64(tested)
	splits := eDivisive(values, allowed, historyAlpha/metrics, h.Rounds, h.Seed)
	for k, s := range splits {
		from, to := 0, len(values)
		if k > 0 {
			from = splits[k-1].at
		}
		if k+1 < len(splits) {
			to = splits[k+1].at
		}
		c := Change{
			Metric: m, Index: commit[s.at], P: s.p, PCorrected: min(1, s.p*metrics),
			LastBefore: h.Commits[commit[s.at-1]].Label, FirstAfter: h.Commits[commit[s.at]].Label,
			Before: median(values[from:s.at]), After: median(values[s.at:to]),
		}
		c.judge(thresholds)
		if c.Verdict != Neutral {
			h.Changes = append(h.Changes, c)
		}
	}
}

func pointOf(values []float64) HistoryPoint {
	if len(values) == 0 {
		return HistoryPoint{}
	}
	mid, low, high := median(values), slices.Min(values), slices.Max(values)
	return HistoryPoint{&mid, &low, &high}
}

// judge gives the change its verdict: neutral where it is smaller than what matters.
func (c *Change) judge(thresholds map[string]float64) {
	c.Delta, c.DeltaRatio = c.After-c.Before, ratioOf(c.After, c.Before)
	j := judge{opts: Options{Thresholds: thresholds}}
	r := Row{
		Metric: c.Metric, Delta: &c.Delta, DeltaRatio: c.DeltaRatio,
		ThresholdRatio: j.threshold(c.Metric),
	}
	c.Verdict = Neutral
	if r.matters() {
		c.Verdict = r.direction()
	}
}

// compareChanges puts regressions first, then headline figures, then the largest.
func compareChanges(a, b Change) int {
	rank := func(c Change) (n int) {
		if c.Verdict != Regression {
			n += 2
		}
		if !c.Headline() {
			n++
		}
		return n
	}
	size := func(c Change) float64 {
		if c.DeltaRatio == nil {
			return math.Inf(1)
		}
		return math.Abs(*c.DeltaRatio)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(size(b), size(a)))
}

// doubts says what makes the series hard to read.
func (h *History) doubts() {
	unknown, untimed := 0, 0
	for _, c := range h.Commits {
		if c.Commit == "" {
			unknown++
		}
		if c.UnixNS == nil {
			untimed++
		}
	}
	if unknown > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("%d points have no commit in their manifest: "+
			"they stand by run group or trace", unknown))
	}
	if untimed > 0 {
		h.Warnings = append(h.Warnings, fmt.Sprintf("%d points have no start time: they stand by "+
			"name, before all others", untimed))
	}
	// the best that a permutation test of n values can do is 2 over (n choose n/2)
	ways := 0.5
	for k := range h.Runs / 2 {
		ways *= float64(h.Runs-k) / float64(k+1)
	}
	if ways*h.Alpha < float64(len(h.Metrics)) {
		few := "runs are"
		if h.Runs == 1 {
			few = "run is"
		}
		h.Warnings = append(h.Warnings, fmt.Sprintf("%d %s too few to find a change among %d "+
			"metrics: record more, or name one with --metric", h.Runs, few, len(h.Metrics)))
	}
}
