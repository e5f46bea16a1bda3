package replay

import (
	"fmt"
	"math"

	"highwater/internal/units"
	"highwater/replay/pipeline"
)

// How far growth looks beyond the run asked about.
const (
	growthDraws      = 40
	growthDoublings  = 4
	growthPartitions = 1 << 13 // in the longest run
)

// length is the peak of a run of some number of jobs, and when it is reached.
type length struct {
	jobs    int64
	figures *figures
	at      float64 // ns from the first submit, median
	end     float64 // of the run, median
	peak    spread
}

// growth compares runs of more and of fewer jobs with the one asked about.
func (a *answer) growth() (*Growth, error) {
	jobs := a.models[0].Policy.Jobs
	runs, err := a.lengths(jobs, 2*jobs)
	if err != nil {
		return nil, err
	}
	g := &Growth{Jobs: jobs}
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
		at, _ := f.of(func(i int) float64 { return f.stats[i].PeakLiveNS })
		peak, _ := f.of(f.peak)
		end, _ := f.of(f.makespan)
		out = append(out, length{jobs: n, figures: f, at: at.median, end: end.median, peak: peak})
	}
	return out, nil
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

// rises says whether the last doubling still raised the peak by more than a hundredth.
func rises(runs []length) bool {
	n := len(runs)
	return n < 2 || runs[n-1].peak.median > 1.01*runs[n-2].peak.median
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
			return &n, rounded(below.at + share*(run.at-below.at))
		}
		below, peak = *run, next
	}
	return nil, nil
}

// say puts growth into a sentence.
func (g *Growth) say(limit int64) string {
	text := "the peak does not depend on the run's length"
	if g.BytesPerS > 0 && g.BytesPerSLow > 0 {
		text = fmt.Sprintf("the peak depends on the run's length: it grows by %s a minute of run "+
			"(%s to %s)", units.Bytes(int64(60*g.BytesPerS)), units.Bytes(int64(60*g.BytesPerSLow)),
			units.Bytes(int64(60*g.BytesPerSHigh)))
	} else if g.BytesPerSHigh > 0 {
		word := "hardly depends"
		if g.TimeToLimitNS != nil {
			word = "may depend"
		}
		text = fmt.Sprintf("the peak %s on the run's length: it grows by 0 to %s a minute of run", word,
			units.Bytes(int64(60*g.BytesPerSHigh)))
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
		return fmt.Sprintf("no run that was tried, of up to %s, passes the limit of %s in the median",
			jobsText(g.MostJobs), limit)
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
