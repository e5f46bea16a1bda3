package fit

import (
	"math"
	"slices"

	"highwater/replay/pipeline"
)

// move is the law after the change that lowers the misfit most, the law itself where none pays. Only
// then stages are eased.
func (s *search) move(l *law) *law {
	share, to := s.shares(), s.pressed(l)
	for i := range l.stages {
		if share[i] >= minShare {
			to = better(s.improved(l, i), to)
		}
	}
	for i := 0; i < len(l.stages) && to == nil; i++ {
		if share[i] >= minShare {
			to = s.eased(l, i)
		}
	}
	if to == nil {
		return l
	}
	return to
}

// better is the law with the lower misfit, the first where they are alike. Nil is none.
func better(a, b *law) *law {
	if a == nil || b != nil && b.misfit < a.misfit*(1-1e-9) {
		return b
	}
	return a
}

// improved is the law with stage i moved to the best of its candidates; nil where that does not pay.
func (s *search) improved(l *law, i int) *law {
	var best *law
	least := l.misfit * (1 - enough(s.services(i)))
	for _, c := range s.candidates(i, l.cpus) {
		at := l.with(i, l.like(c, i))
		if at.misfit = s.misfit(at); at.misfit < least*(1-1e-9) {
			best, least = at, at.misfit
		}
	}
	return best
}

// with is the law with another stage i.
func (l *law) with(i int, stage pipeline.Stage) *law {
	at := &law{cpus: l.cpus, stages: slices.Clone(l.stages)}
	at.stages[i] = stage
	return at
}

// like is a candidate for stage i that is slowed in memory as the stage is, and slows others by its
// own cores.
func (l *law) like(c pipeline.Stage, i int) pipeline.Stage {
	c.Sensitivity = l.stages[i].Sensitivity
	if l.presses() {
		c.Pressure = c.Parallelism
	}
	return c
}

// candidates are the laws that stage i is tried with: 1 core up to all of its threads', by an eighth
// root of these and at least a quarter core a step, each with several weights; and none at all where
// a GPU could do the work instead.
func (h *history) candidates(i int, cpus float64) []pipeline.Stage {
	name, top := h.names[i], cpus
	if h.threads[i] > 0 {
		top = min(top, h.threads[i])
	}
	var out []pipeline.Stage
	if h.gpu {
		out = append(out, pipeline.Stage{Name: name})
	}
	step := math.Pow(top, 1./8)
	for p := 1.0; p <= top+1e-9; p = max(p+0.25, p*step) {
		for _, w := range weights {
			out = append(out, pipeline.Stage{Name: name, Parallelism: p, Weight: p * w})
		}
	}
	return out
}

// weights that a stage is tried with, over its parallelism. The plain one comes first: where cores
// were never short nothing tells one from another.
var weights = []float64{1, 0.75, 1.5, 0.5, 2, 0.25, 4}

// sensitivities are by how much one core's worth of other services slows a service in memory
// (shared bandwidth and caches), besides its share of the cores.
var sensitivities = []float64{0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5}

// pressed is the law under which services slow each other down in memory by as much as explains them
// best; nil where that does not pay.
func (s *search) pressed(l *law) *law {
	var best *law
	least := l.misfit * (1 - enough(len(s.seen)))
	for _, x := range sensitivities {
		at := l.slowing(x)
		if at.misfit = s.misfit(at); at.misfit < least*(1-1e-9) {
			best, least = at, at.misfit
		}
	}
	return best
}

// slowing is the law under which all stages are alike: each presses with the cores that it uses, and
// is slowed by x for each core's worth of others.
func (l *law) slowing(x float64) *law {
	at := &law{cpus: l.cpus, stages: slices.Clone(l.stages)}
	for i := range at.stages {
		s := &at.stages[i]
		s.Pressure, s.Sensitivity = 0, 0
		if s.Parallelism > 0 && x > 0 {
			s.Pressure, s.Sensitivity = s.Parallelism, x
		}
	}
	return at
}

// presses says whether services slow each other down in memory.
func (l *law) presses() bool {
	return slices.ContainsFunc(l.stages, func(s pipeline.Stage) bool { return s.Pressure > 0 })
}

// eased is the law with another sensitivity of stage i, where services slow each other down at all:
// one that waits for a device, with a core or without, is not slowed as one that computes. It concerns
// no other stage and so must pay by what it leaves unexplained of its own; nil where it does not.
func (s *search) eased(l *law, i int) *law {
	if !l.presses() {
		return nil
	}
	var best *law
	least := s.unexplained(l, i) * (1 - enough(s.services(i)))
	for _, x := range sensitivities {
		stage := l.stages[i]
		stage.Sensitivity = x
		at := l.with(i, stage)
		if spread := s.unexplained(at, i); spread < least*(1-1e-9) {
			at.misfit = s.misfit(at)
			best, least = at, spread
		}
	}
	return best
}

// unexplained is what a law leaves unexplained of stage i.
func (s *search) unexplained(l *law, i int) float64 {
	f := s.fitness(l)
	return f.spread()[i]
}
