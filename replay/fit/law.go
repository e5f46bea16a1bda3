package fit

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// history is which stages ran beside each other when: the time from the first span's begin, cut
// wherever one begins or ends.
type history struct {
	names   []string
	index   map[string]int
	cuts    []int64   // ascending
	company []int32   // by interval: index into companies
	mix     [][]int32 // distinct companies: services by stage
	spans   []*trace.Span
	threads []float64 // by stage: as recorded, 0 where unknown
	gpu     bool      // the machine has a GPU, so a stage may use no core
	seen    []service // a sample of the spans, for the search
}

// service is a span as the search sees it: how long it ran in which company.
type service struct {
	stage   int
	cpu     float64 // core nanoseconds that it used; 0 where not measured
	total   float64
	company []int32
	time    []float64
}

// maxSearched bounds the spans that the search for a law looks at, evenly chosen.
const maxSearched = 4096

func newHistory(spans []*trace.Span) (*history, error) {
	h := &history{index: map[string]int{}, spans: spans}
	for _, s := range spans {
		if _, ok := h.index[s.Stage]; !ok {
			h.index[s.Stage] = len(h.names)
			h.names = append(h.names, s.Stage)
			h.threads = append(h.threads, 0)
		}
		if s.Threads > 0 {
			i := h.index[s.Stage]
			h.threads[i] = max(h.threads[i], float64(s.Threads))
		}
		h.cuts = append(h.cuts, s.BeginNS, s.EndNS)
	}
	if len(h.names) > pipeline.MaxStages {
		return nil, fmt.Errorf("fit: the trace has %d stages, a model holds %d", len(h.names),
			pipeline.MaxStages)
	}
	sort.Slice(h.cuts, func(i, j int) bool { return h.cuts[i] < h.cuts[j] })
	h.cuts = unique(h.cuts)
	h.companies()
	stride := (len(spans) + maxSearched - 1) / maxSearched
	for i := 0; i < len(spans); i += max(1, stride) {
		h.seen = append(h.seen, h.service(spans[i]))
	}
	return h, nil
}

func unique(sorted []int64) []int64 {
	out := sorted[:0]
	for i, x := range sorted {
		if i == 0 || x != sorted[i-1] {
			out = append(out, x)
		}
	}
	return out
}

// companies finds the distinct sets of services that ran at once, from the changes at each cut.
func (h *history) companies() {
	begins, ends := slices.Clone(h.spans), slices.Clone(h.spans)
	slices.SortFunc(begins, func(a, b *trace.Span) int { return cmp.Compare(a.BeginNS, b.BeginNS) })
	slices.SortFunc(ends, func(a, b *trace.Span) int { return cmp.Compare(a.EndNS, b.EndNS) })
	known := map[string]int32{}
	now := make([]int32, len(h.names))
	for _, cut := range h.cuts {
		for ; len(ends) > 0 && ends[0].EndNS <= cut; ends = ends[1:] {
			now[h.index[ends[0].Stage]]--
		}
		for ; len(begins) > 0 && begins[0].BeginNS <= cut; begins = begins[1:] {
			now[h.index[begins[0].Stage]]++
		}
		name := fmt.Sprint(now)
		i, ok := known[name]
		if !ok {
			i = int32(len(h.mix))
			known[name] = i
			h.mix = append(h.mix, slices.Clone(now))
		}
		h.company = append(h.company, i)
	}
}

// service sums a span's time by company.
func (h *history) service(s *trace.Span) service {
	out := service{stage: h.index[s.Stage], total: float64(s.EndNS - s.BeginNS)}
	if s.CPUNS > 0 {
		out.cpu = float64(s.CPUNS)
	}
	place := map[int32]int{}
	for k := h.at(s.BeginNS); k < h.at(s.EndNS); k++ {
		c := h.company[k]
		i, ok := place[c]
		if !ok {
			i = len(out.company)
			place[c] = i
			out.company, out.time = append(out.company, c), append(out.time, 0)
		}
		out.time[i] += float64(h.cuts[k+1] - h.cuts[k])
	}
	return out
}

func (h *history) at(t int64) int {
	return sort.Search(len(h.cuts), func(i int) bool { return h.cuts[i] >= t })
}

// maxConcurrency is the most services of each stage at once.
func (h *history) maxConcurrency() map[string]int64 {
	out := map[string]int64{}
	for _, c := range h.mix {
		for i, n := range c {
			out[h.names[i]] = max(out[h.names[i]], int64(n))
		}
	}
	return out
}

// clocks are, by stage, the solo time that a service of the stage would have done since the first
// cut, at each cut.
type clocks struct {
	h   *history
	sum [][]float64 // by stage, by cut
}

// clocksOf integrates the rates that the law gives.
func (h *history) clocksOf(cpus float64, laws []pipeline.Stage) *clocks {
	c := &clocks{h: h, sum: make([][]float64, len(h.names))}
	for i := range c.sum {
		c.sum[i] = make([]float64, len(h.cuts))
	}
	rates := make([]float64, len(h.names))
	for k := 1; k < len(h.cuts); k++ {
		pipeline.Rates(cpus, laws, h.mix[h.company[k-1]], rates)
		dt := float64(h.cuts[k] - h.cuts[k-1])
		for i := range c.sum {
			c.sum[i][k] = c.sum[i][k-1] + dt*rates[i]
		}
	}
	return c
}

// work is the solo time of a stage's service from begin to end.
func (c *clocks) work(stage int, begin, end int64) float64 {
	return c.reading(stage, end) - c.reading(stage, begin)
}

func (c *clocks) reading(stage int, t int64) float64 {
	sum, cuts := c.sum[stage], c.h.cuts
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
