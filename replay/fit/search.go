package fit

import (
	"math"
	"math/rand/v2"
	"slices"

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

// fittedGain is the share by which a change of the law must lower the misfit, besides the chance
// deviation of a spread estimated from so few services.
const fittedGain = 0.1

// search looks for the simplest law that explains services.
type search struct {
	*history
	seen []service
}

// enough is the least lowering of the misfit by a change that so many services speak for.
func enough(services int) float64 {
	return max(fittedGain, 1.5/math.Sqrt(2*float64(max(services, 1))))
}

// fitness is, by stage, how far a law is from explaining the services.
type fitness struct {
	free    []moments // log of solo times
	bound   []moments // log of the law's CPU time over the measured
	program moments   // the same of the whole program
}

func (s *search) fitness(l *law) fitness {
	rates, cores := make([][]float64, len(s.mix)), make([][]float64, len(s.mix))
	for i := range s.mix {
		rates[i], cores[i] = l.rates(&s.mix[i])
	}
	f := fitness{free: make([]moments, len(l.stages)), bound: make([]moments, len(l.stages))}
	for i := range s.seen {
		v := &s.seen[i]
		work, used := 0.0, 0.0
		for k, c := range v.company {
			work += v.time[k] * rates[c][v.stage]
			used += v.time[k] * cores[c][v.stage]
		}
		if work <= 0 || used <= 0 {
			continue
		}
		if p := l.stages[v.stage].Parallelism; v.cpu > 0 && p > 0 {
			used *= p
			f.bound[v.stage].add(math.Log(used / v.cpu))
			work *= v.cpu / used
		}
		f.free[v.stage].add(math.Log(work))
	}
	s.program(l, cores, &f)
	return f
}

// program compares what the law has all stages use with what the program used.
func (s *search) program(l *law, cores [][]float64, f *fitness) {
	for i := range s.windows {
		w := &s.windows[i]
		used := leastUsed * w.total
		for k, c := range w.company {
			for stage, n := range s.mix[c].counts {
				used += w.time[k] * float64(n) * l.stages[stage].Parallelism * cores[c][stage]
			}
		}
		f.program.add(math.Log(used / (w.cpu + leastUsed*w.total)))
	}
}

// leastUsed is the cores that a program is taken to use beside its stages, so that times in which
// it does nothing compare.
const leastUsed = 0.05

// measured says whether most services of a stage have a CPU time to go by.
func (f *fitness) measured(i int) bool { return 2*f.bound[i].n > f.free[i].n }

// spread is, by stage, what the law leaves unexplained; NaN where there is nothing to go by: the
// standard deviation of the logarithm of solo times and, where the CPU time of services was
// measured, the root mean square of log(law's CPU time / measured) besides.
func (f *fitness) spread() []float64 {
	out := make([]float64, len(f.free))
	for i := range out {
		out[i] = f.free[i].deviation()
		if f.measured(i) {
			out[i] = math.Hypot(f.bound[i].size(), max(0, out[i]))
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

// size is the root mean square.
func (m *moments) size() float64 { return math.Sqrt(m.squares / m.n) }

// misfit is the spread of the solo times over the stages, each weighted with its share of the
// recorded time: how much of the durations the law leaves unexplained.
func (s *search) misfit(l *law) float64 {
	f := s.fitness(l)
	spread := f.spread()
	total, sum := 0.0, 0.0
	for i := range s.seen {
		if x := spread[s.seen[i].stage]; !math.IsNaN(x) {
			total += s.seen[i].total
			sum += s.seen[i].total * x * x
		}
	}
	if total == 0 {
		return 0
	}
	if f.program.n >= minWindows { // weighs as much as all stages together
		size := f.program.size()
		return math.Sqrt((sum/total + size*size) / 2)
	}
	return math.Sqrt(sum / total)
}

// minWindows is how many stretches of sampled CPU time count as evidence.
const minWindows = 4

// choose finds the simplest law that explains the recorded durations. It begins with what the spans
// say of themselves (as many cores as they have threads) and moves one stage's parallelism or
// weight, or how services slow each other down in memory, at a time while that pays.
func (h *history) choose() *law {
	s := &search{history: h, seen: h.seen}
	return s.from(h.prior(h.cpus))
}

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
		i := rng.IntN(len(l.stages))
		if share[i] < minShare {
			continue
		}
		was := l.stages[i]
		all := h.candidates(i, l.cpus)
		l.stages[i] = all[rng.IntN(len(all))]
		l.stages[i].Pressure, l.stages[i].Sensitivity = was.Pressure, was.Sensitivity
		if was.Sensitivity > 0 {
			l.stages[i].Pressure = l.stages[i].Parallelism
		}
		if s.misfit(l) > most {
			l.stages[i] = was
		}
	}
	return l
}

const (
	maxResampled = 512 // services that a law is walked over
	walkSteps    = 120
)

// from improves a law until nothing pays.
func (s *search) from(best *law) *law {
	best.misfit = s.misfit(best)
	if best.cpus == 0 {
		return best
	}
	share := s.shares()
	for range 4 {
		moved := false
		for i := range best.stages {
			if share[i] >= minShare {
				moved = s.improve(best, i) || moved
			}
		}
		if moved = s.press(best) || moved; !moved {
			break
		}
	}
	return best
}

// minShare is the share of the recorded time below which a stage's law does not matter.
const minShare = 0.002

// shares is each stage's share of the services' time.
func (s *search) shares() []float64 {
	out, total := make([]float64, len(s.names)), 0.0
	for i := range s.seen {
		out[s.seen[i].stage] += s.seen[i].total
		total += s.seen[i].total
	}
	for i := range out {
		out[i] /= max(total, 1)
	}
	return out
}

// prior is the law before any fitting: a stage uses its threads' cores, and all of them where it
// does not say.
func (h *history) prior(cpus float64) *law {
	l := &law{cpus: cpus, stages: make([]pipeline.Stage, len(h.names))}
	for i, name := range h.names {
		p := h.threads[i]
		if p == 0 || p > cpus {
			p = cpus
		}
		l.stages[i] = pipeline.Stage{Name: name, Parallelism: p, Weight: p}
	}
	return l
}

func (s *search) services(stage int) int {
	n := 0
	for i := range s.seen {
		if s.seen[i].stage == stage {
			n++
		}
	}
	return n
}

// improve moves stage i of the law to the best of its candidates, if that pays.
func (s *search) improve(l *law, i int) bool {
	was := l.stages[i]
	bestStage, bestMisfit := was, l.misfit
	for _, c := range s.candidates(i, l.cpus) {
		c.Pressure, c.Sensitivity = was.Pressure, was.Sensitivity
		l.stages[i] = c
		if m := s.misfit(l); m < bestMisfit*(1-1e-9) {
			bestStage, bestMisfit = c, m
		}
	}
	l.stages[i] = was
	if bestMisfit >= l.misfit*(1-enough(s.services(i))) {
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
		for _, w := range []float64{0.25, 0.5, 0.75, 1, 1.5, 2, 4} {
			out = append(out, pipeline.Stage{Name: name, Parallelism: p, Weight: p * w})
		}
	}
	return out
}

// sensitivities are by how much one core's worth of other services slows a service in memory
// (shared bandwidth and caches), besides its share of the cores.
var sensitivities = []float64{0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5}

// press tries how much services slow each other down in memory: all stages alike, each pressing
// with the cores that it uses.
func (s *search) press(l *law) bool {
	was := slices.Clone(l.stages)
	best, bestMisfit := was, l.misfit
	for _, x := range sensitivities {
		l.stages = slices.Clone(was)
		for i := range l.stages {
			l.stages[i].Pressure, l.stages[i].Sensitivity = 0, 0
			if p := l.stages[i].Parallelism; p > 0 && x > 0 {
				l.stages[i].Pressure, l.stages[i].Sensitivity = p, x
			}
		}
		if m := s.misfit(l); m < bestMisfit*(1-1e-9) {
			best, bestMisfit = l.stages, m
		}
	}
	l.stages = was
	if bestMisfit >= l.misfit*(1-enough(len(s.seen))) {
		return false
	}
	l.stages, l.misfit = best, bestMisfit
	return true
}
