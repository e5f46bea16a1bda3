package fit

import (
	"math"
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
// say of themselves (as many cores as they have threads) and changes, as long as that pays, what
// lowers the misfit most: one stage's parallelism and weight, or how services slow each other down
// in memory. Of a stage that does not say its threads it is tried both that it uses all cores and
// that it uses one: moves of one stage do not lead from one to the other where many such services
// run at once.
func (h *history) choose() *law {
	s := &search{history: h, seen: h.seen}
	best := s.from(h.prior(h.cpus, h.cpus))
	if slices.Contains(h.threads, 0) {
		modest := s.from(h.prior(h.cpus, min(1, h.cpus)))
		if modest.misfit < best.misfit*(1-enough(len(s.seen))) {
			best = modest
		}
	}
	return best
}

// prior is the law before any fitting: a stage uses its threads' cores, and unsaid where it does not
// say.
func (h *history) prior(cpus, unsaid float64) *law {
	l := &law{cpus: cpus, stages: make([]pipeline.Stage, len(h.names))}
	for i, name := range h.names {
		p := min(h.threads[i], cpus)
		if p == 0 {
			p = unsaid
		}
		l.stages[i] = pipeline.Stage{Name: name, Parallelism: p, Weight: p}
	}
	return l
}

// from improves a law until nothing pays.
func (s *search) from(l *law) *law {
	l.misfit = s.misfit(l)
	if l.cpus == 0 {
		return l
	}
	for range maxMoves {
		to := s.move(l)
		if to == l {
			break
		}
		l = to
	}
	return l
}

// maxMoves is how many times the search moves at most.
const maxMoves = 24

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

func (s *search) services(stage int) int {
	n := 0
	for i := range s.seen {
		if s.seen[i].stage == stage {
			n++
		}
	}
	return n
}
