package fit

import (
	"math"

	"highwater/replay/pipeline"
)

// Names of service laws.
const (
	// LawIndependent: every service takes as long as it takes, whatever runs beside it.
	LawIndependent = "independent"
	// LawSharing: work-conserving processor sharing of the cores, by weight and up to each stage's
	// parallelism.
	LawSharing = "processor_sharing"
)

// minGain is by how much a change of a stage's law must lower the misfit to be worth it: a tenth,
// and more than the chance deviation of a spread estimated from so few services.
func minGain(services int) float64 {
	return max(0.1, 1.5/math.Sqrt(2*float64(max(services, 1))))
}

// law is a contention law with its misfit.
type law struct {
	cpus   float64
	stages []pipeline.Stage
	misfit float64
}

func (l *law) name() string {
	for _, s := range l.stages {
		if s.Parallelism > 0 && l.cpus > 0 {
			return LawSharing
		}
	}
	return LawIndependent
}

// spread is, by stage, how far a law is from explaining its services; NaN where there is nothing to
// go by. Where the CPU time of services was measured it is the root mean square of log(law's CPU
// time / measured), else the standard deviation of the logarithm of the solo times.
func (h *history) spread(cpus float64, stages []pipeline.Stage) []float64 {
	rates := make([][]float64, len(h.mix))
	for i, counts := range h.mix {
		rates[i] = make([]float64, len(stages))
		pipeline.Rates(cpus, stages, counts, rates[i])
	}
	free, bound := make([]moments, len(stages)), make([]moments, len(stages))
	for i := range h.seen {
		s := &h.seen[i]
		work := 0.0
		for k, c := range s.company {
			work += s.time[k] * rates[c][s.stage]
		}
		if work <= 0 {
			continue
		}
		free[s.stage].add(math.Log(work))
		if p := stages[s.stage].Parallelism; s.cpu > 0 && p > 0 {
			bound[s.stage].add(math.Log(work * p / s.cpu))
		}
	}
	out := make([]float64, len(stages))
	for i := range out {
		out[i] = free[i].deviation()
		if 2*bound[i].n > free[i].n {
			out[i] = math.Sqrt(bound[i].squares / bound[i].n)
		}
	}
	return out
}

// moments sums what a deviation needs.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) {
	m.n++
	m.sum += x
	m.squares += x * x
}

// deviation is the standard deviation, NaN below two values.
func (m *moments) deviation() float64 {
	if m.n < 2 {
		return math.NaN()
	}
	return math.Sqrt(max(0, m.squares-m.sum*m.sum/m.n) / (m.n - 1))
}

// misfit is the spread of the solo times over the stages, each weighted with its share of the
// recorded time: how much of the durations the law leaves unexplained.
func (h *history) misfit(cpus float64, stages []pipeline.Stage) float64 {
	spread := h.spread(cpus, stages)
	total, sum := 0.0, 0.0
	for i := range h.seen {
		if x := spread[h.seen[i].stage]; !math.IsNaN(x) {
			total += h.seen[i].total
			sum += h.seen[i].total * x * x
		}
	}
	if total == 0 {
		return 0
	}
	return math.Sqrt(sum / total)
}

// choose finds the simplest law that explains the recorded durations. It begins with what the spans
// say of themselves (as many cores as they have threads) and moves one stage's parallelism or
// weight at a time while that pays.
func (h *history) choose(cpus float64) *law {
	best := &law{cpus: cpus, stages: h.prior(cpus)}
	best.misfit = h.misfit(cpus, best.stages)
	for range 4 {
		moved := false
		for i := range best.stages {
			moved = h.improve(best, i) || moved
		}
		if !moved {
			break
		}
	}
	return best
}

// prior is the law before any fitting: a stage uses its threads' cores, and all of them where it
// does not say.
func (h *history) prior(cpus float64) []pipeline.Stage {
	stages := make([]pipeline.Stage, len(h.names))
	for i, name := range h.names {
		p := h.threads[i]
		if p == 0 || p > cpus {
			p = cpus
		}
		stages[i] = pipeline.Stage{Name: name, Parallelism: p, Weight: p}
	}
	return stages
}

// improve moves stage i of the law to the best of its candidates, if that pays.
func (h *history) improve(l *law, i int) bool {
	was := l.stages[i]
	bestStage, bestMisfit := was, l.misfit
	for _, c := range h.candidates(i, l.cpus) {
		l.stages[i] = c
		if m := h.misfit(l.cpus, l.stages); m < bestMisfit*(1-1e-9) {
			bestStage, bestMisfit = c, m
		}
	}
	l.stages[i] = was
	if bestMisfit >= l.misfit*(1-minGain(h.services(i))) {
		return false
	}
	l.stages[i], l.misfit = bestStage, bestMisfit
	return true
}

// candidates are the laws that stage i is tried with: 1 core up to all of its threads' in steps,
// each with several weights; and none at all where a GPU could do the work instead.
func (h *history) candidates(i int, cpus float64) []pipeline.Stage {
	name, top := h.names[i], cpus
	if h.threads[i] > 0 {
		top = min(top, h.threads[i])
	}
	var out []pipeline.Stage
	if h.gpu {
		out = append(out, pipeline.Stage{Name: name})
	}
	step := max(0.25, (top-1)/8)
	for p := 1.0; p <= top+1e-9; p += step {
		for _, w := range []float64{0.25, 0.5, 1, 2, 4} {
			out = append(out, pipeline.Stage{Name: name, Parallelism: p, Weight: p * w})
		}
	}
	return out
}
