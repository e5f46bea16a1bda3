package fit

import (
	"math"
	"math/rand/v2"
	"slices"

	"highwater/replay/pipeline"
)

const (
	maxResampled = 512 // services that a law is walked over
	walkSteps    = 120
)

// borne is a law that the services bear as well: found by a random walk from the chosen one over
// laws whose misfit to a resample of the services is not worse than chance allows. Where the
// recordings cannot tell two laws apart, both are found.
func (h *history) borne(from *law, seed uint64) *law {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	s := &search{history: h}
	for range min(len(h.seen), maxResampled) {
		s.seen = append(s.seen, h.seen[rng.IntN(len(h.seen))])
	}
	l := &law{cpus: from.cpus, stages: slices.Clone(from.stages)}
	share := s.shares()
	most := s.misfit(l) * (1 + 1/math.Sqrt(2*float64(len(s.seen))))
	for range walkSteps {
		if at := s.step(l, share, rng); at != nil && s.misfit(at) <= most {
			l = at
		}
	}
	return l
}

// step is a law beside l, nil for none: with another parallelism and weight of a stage, or another
// weight alone (which nothing speaks against where cores were never short), or another slow-down in
// memory.
func (s *search) step(l *law, share []float64, rng *rand.Rand) *law {
	i := rng.IntN(len(l.stages) + 1)
	switch {
	case i == len(l.stages):
		return s.slowed(l, sensitivities[rng.IntN(len(sensitivities))])
	case share[i] < minShare:
		return nil
	case rng.IntN(2) == 0:
		stage := l.stages[i]
		stage.Weight = stage.Parallelism * weights[rng.IntN(len(weights))]
		return l.with(i, stage)
	}
	all := s.candidates(i, l.cpus)
	return l.with(i, l.like(all[rng.IntN(len(all))], i))
}

// slowed is the law under which services slow each other down in memory by x, but for stages whose
// own services speak against that by more than chance: these stay as they are.
func (s *search) slowed(l *law, x float64) *law {
	at, was := l.slowing(x), s.fitness(l)
	before := was.spread()
	now := s.fitness(at)
	for i, spread := range now.spread() {
		if spread > before[i]*(1+1/math.Sqrt(2*max(now.free[i].n, 1))) {
			at.stages[i].Sensitivity = l.stages[i].Sensitivity
		}
	}
	if slices.ContainsFunc(at.stages, func(s pipeline.Stage) bool { return s.Sensitivity > 0 }) {
		for i := range at.stages {
			at.stages[i].Pressure = at.stages[i].Parallelism
		}
	}
	return at
}
