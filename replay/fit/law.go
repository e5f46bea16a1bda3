package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"highwater/replay/pipeline"
)

// history is which stages ran beside each other when, over all recordings: the time from the first
// span's begin, cut wherever one begins or ends and wherever the load of other programs changes.
type history struct {
	names   []string
	index   map[string]int
	cpus    float64   // of the machine; 0 where unknown
	cuts    []int64   // ascending
	company []int32   // by interval: index into mix
	mix     []mixture // distinct companies
	spans   []stint
	threads []float64 // by stage: as recorded, 0 where unknown
	gpu     bool      // the machine has a GPU, so a stage may use no core
	seen    []service // a sample of the spans, for the search
	windows []service // stretches of time with the CPU time that the program used in them
	loads   []load    // of other programs, ascending
}

// stint is a stage's span on the history's clock.
type stint struct {
	run, stage int
	begin, end int64
	cpu        float64 // core nanoseconds that it used; 0 where not measured
}

// mixture is what runs at once: services by stage, and cores that other programs use.
type mixture struct {
	counts []int32
	others float64
}

// service is a span as the search sees it: how long it ran in which company.
type service struct {
	stage   int
	cpu     float64
	total   float64
	company []int32
	time    []float64
}

// maxSearched bounds the spans that the search for a law looks at, evenly chosen.
const maxSearched = 4096

func newHistory(runs []*recording) (*history, error) {
	h := &history{index: map[string]int{}}
	for i, r := range runs {
		h.cpus = max(h.cpus, float64(r.data.Manifest.Host.CPUs))
		h.gpu = h.gpu || len(r.data.Manifest.Host.GPUs) > 0
		h.add(i, r)
	}
	if len(h.names) > pipeline.MaxStages {
		return nil, fmt.Errorf("fit: the trace has %d stages, a model holds %d", len(h.names),
			pipeline.MaxStages)
	}
	slices.Sort(h.cuts)
	h.cuts = slices.Compact(h.cuts)
	h.companies()
	stride := (len(h.spans) + maxSearched - 1) / maxSearched
	for i := 0; i < len(h.spans); i += max(1, stride) {
		h.seen = append(h.seen, h.service(&h.spans[i]))
	}
	for _, r := range runs {
		h.watch(r)
	}
	return h, nil
}

// windowNS is how long a stretch is over which the program's CPU time is compared with the law's:
// counters tick every 10 ms.
const windowNS = 500e6

// watch cuts a recording into stretches whose CPU time was sampled.
func (h *history) watch(r *recording) {
	if h.cpus == 0 {
		return
	}
	first, last := r.window()
	var from *reading
	for _, at := range r.counters(programBusy) {
		switch {
		case at.at < first || at.at > last || len(h.windows) >= maxSearched:
			continue
		case from == nil:
		case at.at-from.at < windowNS:
			continue
		default:
			w := h.service(&stint{
				stage: wholeProgram, begin: from.at + r.offset, end: at.at + r.offset,
				cpu: (at.seconds - from.seconds) * 1e9,
			})
			if w.cpu > 0 {
				h.windows = append(h.windows, w)
			}
		}
		from = &at
	}
}

// wholeProgram stands for all stages together.
const wholeProgram = -1

// add takes a recording's spans and load onto the clock.
func (h *history) add(run int, r *recording) {
	for _, s := range r.stages {
		i, ok := h.index[s.Stage]
		if !ok {
			i = len(h.names)
			h.index[s.Stage] = i
			h.names, h.threads = append(h.names, s.Stage), append(h.threads, 0)
		}
		h.threads[i] = max(h.threads[i], float64(s.Threads))
		at := stint{run: run, stage: i, begin: s.BeginNS + r.offset, end: s.EndNS + r.offset}
		at.cpu = max(0, float64(s.CPUNS))
		h.spans = append(h.spans, at)
		h.cuts = append(h.cuts, at.begin, at.end)
	}
	first, last := r.window()
	mean, _ := r.meanLoad()
	if mean < minLoad {
		h.loads = append(h.loads, load{from: first + r.offset})
		return
	}
	for _, l := range r.others {
		if l.from < last {
			at := max(l.from, first) + r.offset
			h.loads = append(h.loads, load{at, math.Round(l.cores*10) / 10})
			h.cuts = append(h.cuts, at)
		}
	}
}

// minLoad is how many cores other programs must use before the fit takes them into account.
const minLoad = 0.05

// companies finds the distinct sets of services that ran at once, from the changes at each cut.
func (h *history) companies() {
	begins, ends := slices.Clone(h.spans), slices.Clone(h.spans)
	slices.SortFunc(begins, func(a, b stint) int { return cmp.Compare(a.begin, b.begin) })
	slices.SortFunc(ends, func(a, b stint) int { return cmp.Compare(a.end, b.end) })
	known, loads, others := map[string]int32{}, h.loads, 0.0
	now := make([]int32, len(h.names))
	for _, cut := range h.cuts {
		for ; len(ends) > 0 && ends[0].end <= cut; ends = ends[1:] {
			now[ends[0].stage]--
		}
		for ; len(begins) > 0 && begins[0].begin <= cut; begins = begins[1:] {
			now[begins[0].stage]++
		}
		for ; len(loads) > 0 && loads[0].from <= cut; loads = loads[1:] {
			others = loads[0].cores
		}
		name := fmt.Sprint(now, others)
		i, ok := known[name]
		if !ok {
			i = int32(len(h.mix))
			known[name] = i
			h.mix = append(h.mix, mixture{slices.Clone(now), others})
		}
		h.company = append(h.company, i)
	}
}

// service sums a span's time by company.
func (h *history) service(s *stint) service {
	out := service{stage: s.stage, total: float64(s.end - s.begin), cpu: s.cpu}
	place := map[int32]int{}
	for k := max(0, h.at(s.begin+1)-1); k < len(h.cuts)-1 && h.cuts[k] < s.end; k++ {
		c := h.company[k]
		i, ok := place[c]
		if !ok {
			i = len(out.company)
			place[c] = i
			out.company, out.time = append(out.company, c), append(out.time, 0)
		}
		out.time[i] += float64(min(s.end, h.cuts[k+1]) - max(s.begin, h.cuts[k]))
	}
	return out
}

func (h *history) at(t int64) int {
	return sort.Search(len(h.cuts), func(i int) bool { return h.cuts[i] >= t })
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

// rates are, in a mixture, by stage, the rate of a service, and its cores over its parallelism:
// the same but for what services slow each other down without using cores.
func (l *law) rates(m *mixture) (rate, cores []float64) {
	rate, cores = make([]float64, len(l.stages)), make([]float64, len(l.stages))
	cpus := l.cpus
	if cpus > 0 {
		cpus = max(cpus-m.others, leastCores)
	}
	plain := slices.Clone(l.stages)
	for i := range plain {
		plain[i].Pressure, plain[i].Sensitivity = 0, 0
	}
	pipeline.Rates(cpus, plain, m.counts, cores)
	pressure := 0.0
	for i, s := range l.stages {
		pressure += float64(m.counts[i]) * s.Pressure
	}
	for i, s := range l.stages {
		rate[i] = cores[i] / (1 + s.Sensitivity*max(0, pressure-s.Pressure))
	}
	return rate, cores
}

// leastCores is what is left to a program, whatever others take.
const leastCores = 0.1

// clocks are, by stage, the solo time that a service of the stage would have done since the first
// cut, at each cut, and the cores that it would have used, over its parallelism.
type clocks struct {
	h          *history
	sum, cores [][]float64 // by stage, by cut
}

// clocksOf integrates the rates that the law gives.
func (h *history) clocksOf(l *law) *clocks {
	c := &clocks{h: h, sum: make([][]float64, len(h.names)), cores: make([][]float64, len(h.names))}
	for i := range c.sum {
		c.sum[i], c.cores[i] = make([]float64, len(h.cuts)), make([]float64, len(h.cuts))
	}
	rates, cores := make([][]float64, len(h.mix)), make([][]float64, len(h.mix))
	for i := range h.mix {
		rates[i], cores[i] = l.rates(&h.mix[i])
	}
	for k := 1; k < len(h.cuts); k++ {
		dt, m := float64(h.cuts[k]-h.cuts[k-1]), h.company[k-1]
		for i := range c.sum {
			c.sum[i][k] = c.sum[i][k-1] + dt*rates[m][i]
			c.cores[i][k] = c.cores[i][k-1] + dt*cores[m][i]
		}
	}
	return c
}

// between is what a clock counts from begin to end.
func (c *clocks) between(sum []float64, begin, end int64) float64 {
	return c.reading(sum, end) - c.reading(sum, begin)
}

func (c *clocks) reading(sum []float64, t int64) float64 {
	cuts := c.h.cuts
	k := c.h.at(t)
	switch {
	case k >= len(cuts):
		return sum[len(sum)-1]
	case k == 0 || cuts[k] == t:
		return sum[k]
	}
	share := float64(t-cuts[k-1]) / float64(cuts[k]-cuts[k-1])
	return sum[k-1] + share*(sum[k]-sum[k-1])
}
