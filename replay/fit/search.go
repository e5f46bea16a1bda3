package fit

import (
	"math"

	"highwater/replay/pipeline"
)

// Names of service laws.
const (
	// LawIndependent: every service takes as long as it takes, whatever runs beside it.
	LawIndependent = "independent"
	// LawSharing: work-conserving processor sharing of the cores, by weight and up to each stage's parallelism.
	LawSharing = "processor_sharing"
)

// minGain is by how much a freer law must lower the misfit to be chosen over a simpler one.
const minGain = 0.05

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

// misfit is the spread of the solo times over the stages, each weighted with its share of the recorded time: how much of
// the durations the law leaves unexplained.
func (h *history) misfit(cpus float64, stages []pipeline.Stage) float64 {
	spread := h.clocksOf(cpus, stages).spread()
	total, sum := 0.0, 0.0
	for _, s := range h.spans {
		i := h.index[s.Stage]
		if d := float64(s.EndNS - s.BeginNS); !math.IsNaN(spread[i]) {
			total += d
			sum += d * spread[i] * spread[i]
		}
	}
	if total == 0 {
		return 0
	}
	return math.Sqrt(sum / total)
}

// choose finds the simplest law that explains the recorded durations. It begins with what the spans say of themselves (as
// many cores as they have threads) and moves one stage's parallelism or weight at a time while that pays.
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

// prior is the law before any fitting: a stage uses its threads' cores, and all of them where it does not say.
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
	if bestMisfit >= l.misfit*(1-minGain) {
		return false
	}
	l.stages[i], l.misfit = bestStage, bestMisfit
	return true
}

// candidates are the laws that stage i is tried with: 1 core up to all of its threads' in steps, each with several weights; and
// none at all where a GPU could do the work instead.
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
