package replay

import (
	"fmt"
	"math"
	"slices"

	"highwater/internal/units"
	"highwater/replay/pipeline"
)

// How far growth looks beyond the run asked about.
const (
	growthDraws      = 40
	growthDoublings  = 4
	growthPartitions = 1 << 13 // in the longest run
)

// growthMatters is by how much a run twice as long may have a higher peak, by the upper bound, before
// it is said.
const growthMatters = 0.05

// length is the peak of a run of some number of jobs, and when it is reached.
type length struct {
	jobs    int64
	figures *figures
	peak    spread
	at      spread  // ns to the peak: of the draws with the lowest, usual, highest peaks
	end     float64 // of the run, median
}

// growth compares runs of more and of fewer jobs with the one asked about.
func (a *answer) growth() (*Growth, error) {
	jobs := a.models[0].Policy.Jobs
	runs, err := a.lengths(jobs)
	if err != nil {
		return nil, err
	}
	g := &Growth{Jobs: jobs, MostJobs: jobs}
	longer, err := a.lengths(2 * jobs)
	if a.ctx.Err() != nil {
		return nil, err
	}
	if err != nil { // the run asked about has its answer
		g.Text = fmt.Sprintf("whether the peak depends on the run's length is not known: simulate a run of %s: %v",
			jobsText(2*jobs), err)
		return g, nil
	}
	runs = append(runs, longer...)
	g.rate(&runs[0], &runs[1])
	limit := float64(a.question.MemoryLimit)
	if limit > 0 {
		if runs, err = a.around(limit, jobs, runs); err != nil {
			return nil, err
		}
		g.reach(runs, limit)
	}
	g.MostJobs = runs[len(runs)-1].jobs
	g.Text = g.say(a.question.MemoryLimit)
	return g, nil
}

// lengths simulates runs of so many jobs.
func (a *answer) lengths(jobs ...int64) ([]length, error) {
	var out []length
	for _, n := range jobs {
		var models []*pipeline.Model
		for _, m := range a.models {
			models = append(models, m.WithJobs(n))
		}
		f, err := a.draw(models, min(growthDraws, a.draws()), nil)
		if err != nil {
			return nil, err
		}
		peak, _ := f.of(f.peak)
		end, _ := f.of(f.makespan)
		out = append(out, length{jobs: n, figures: f, at: f.peakTimes(&peak), end: end.median, peak: peak})
	}
	return out, nil
}

// peakTimes is when draws reach their peaks: those whose peaks are in the lowest tenth, all, and those
// in the highest tenth.
func (f *figures) peakTimes(peak *spread) spread {
	of := func(low, high float64) float64 {
		var at []float64
		for i := range f.stats {
			if p := f.peak(i); p >= low && p <= high {
				at = append(at, f.stats[i].PeakLiveNS)
			}
		}
		if len(at) == 0 {
			return math.NaN()
		}
		slices.Sort(at)
		return at[(len(at)-1)/2]
	}
	return spread{low: of(math.Inf(-1), peak.low80), median: of(math.Inf(-1), math.Inf(1)),
		high: of(peak.high80, math.Inf(1))}
}

// rate is by how much the peak rises from a run to one twice as long.
func (g *Growth) rate(short, long *length) {
	seconds := (long.end - short.end) / 1e9
	if seconds <= 0 {
		return
	}
	s, _ := spreadOf(len(long.figures.stats), func(i int) float64 {
		return (long.figures.peak(i) - short.figures.peak(i)) / seconds
	})
	g.BytesPerS = max(0, (long.peak.median-short.peak.median)/seconds)
	g.BytesPerSLow, g.BytesPerSHigh = max(0, s.low), max(0, s.high)
	g.material = g.BytesPerSHigh*seconds > growthMatters*short.peak.median
}

// Matters says whether a longer run may have a peak that is higher by more than growthMatters, or may
// pass the limit.
func (g *Growth) Matters() bool {
	return g.material || g.BytesPerSLow > 0 || g.TimeToLimitNS != nil || g.JobsToLimitLow != nil
}

// around adds shorter runs until the limit is not passed, or longer ones until it is.
func (a *answer) around(limit float64, jobs int64, runs []length) ([]length, error) {
	for n := jobs / 2; n >= 1 && runs[0].peak.high > limit; n /= 2 {
		shorter, err := a.lengths(n)
		if err != nil {
			return nil, err
		}
		runs = append(shorter, runs...)
	}
	n, each := 4*jobs, a.models[0].Policy.Partitions
	for range growthDoublings - 1 {
		last := &runs[len(runs)-1]
		if last.peak.low > limit || n > growthPartitions/each || !rises(runs) {
			break
		}
		longer, err := a.lengths(n)
		if err != nil {
			return nil, err
		}
		runs = append(runs, longer...)
		n *= 2
	}
	return runs, nil
}

// rises says whether the last doubling still raised the peak or its upper bound by more than a
// hundredth.
func rises(runs []length) bool {
	n := len(runs)
	if n < 2 {
		return true
	}
	before, after := &runs[n-2].peak, &runs[n-1].peak
	return after.median > 1.01*before.median || after.high > 1.01*before.high
}

// reach finds where the runs' peaks pass the limit. The upper bound passes it first.
func (g *Growth) reach(runs []length, limit float64) {
	median := func(s *spread) float64 { return s.median }
	high := func(s *spread) float64 { return s.high }
	low := func(s *spread) float64 { return s.low }
	g.JobsToLimit, g.TimeToLimitNS = passes(runs, limit, median)
	g.JobsToLimitLow, g.TimeToLimitNSLow = passes(runs, limit, high)
	g.JobsToLimitHigh, g.TimeToLimitNSHigh = passes(runs, limit, low)
}

// passes is how many jobs a run must have for its peak to reach limit, and when it does: between the
// runs below and above it; nil where none does.
func passes(runs []length, limit float64, of func(*spread) float64) (jobs, at *int64) {
	below, peak := length{}, 0.0
	for i := range runs {
		run, next := &runs[i], of(&runs[i].peak)
		if next > limit {
			share := (limit - peak) / (next - peak)
			n := int64(math.Ceil(share*float64(run.jobs-below.jobs))) + below.jobs
			return &n, rounded(of(&below.at) + share*(of(&run.at)-of(&below.at)))
		}
		below, peak = *run, next
	}
	return nil, nil
}

// say puts growth into a sentence.
func (g *Growth) say(limit int64) string {
	minute := func(bytesPerS float64) string { return units.Bytes(int64(60 * bytesPerS)) }
	text := "the peak does not depend on the run's length"
	switch {
	case g.BytesPerS > 0 && g.BytesPerSLow > 0:
		text = fmt.Sprintf("the peak depends on the run's length: it grows by %s a minute of run (%s to %s)",
			minute(g.BytesPerS), minute(g.BytesPerSLow), minute(g.BytesPerSHigh))
	case g.BytesPerSHigh > 0 && g.Matters():
		text = fmt.Sprintf("the peak may depend on the run's length: it grows by %s a minute of run (0 to %s)",
			minute(g.BytesPerS), minute(g.BytesPerSHigh))
	case g.BytesPerSHigh > 0:
		text = fmt.Sprintf("the peak hardly depends on the run's length: it grows by 0 to %s a minute of run",
			minute(g.BytesPerSHigh))
	}
	if limit > 0 {
		text += "; " + g.sayLimit(units.Bytes(limit))
	}
	return text
}

// sayLimit says which run lengths pass the limit in the median: the one asked about, a longer one,
// or none.
func (g *Growth) sayLimit(limit string) string {
	if g.JobsToLimit == nil {
		text := fmt.Sprintf("no run that was tried, of up to %s, passes the limit of %s in the median",
			jobsText(g.MostJobs), limit)
		if g.JobsToLimitLow != nil {
			text += fmt.Sprintf(", one of about %s may", jobsText(*g.JobsToLimitLow))
		}
		return text
	}
	at, n := units.Nanos(*g.TimeToLimitNS), *g.JobsToLimit
	if n > g.Jobs {
		return fmt.Sprintf("this run of %s stays below the limit of %s in the median, one of about "+
			"%s or more would pass it %s after its start", jobsText(g.Jobs), limit, jobsText(n), at)
	}
	others := "any longer one"
	if n < g.Jobs {
		others = "any of about " + jobsText(n) + " or more"
	}
	return fmt.Sprintf("the limit of %s is passed after %s in this run of %s, as in %s", limit, at,
		jobsText(g.Jobs), others)
}

func jobsText(n int64) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}
