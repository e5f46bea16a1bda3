package fit

import (
	"math"
	"sort"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// history is which stages ran beside each other when: the time from the first span's begin, cut wherever one begins or ends.
type history struct {
	names   []string
	index   map[string]int
	cuts    []int64   // ascending
	counts  [][]int32 // by interval, by stage
	spans   []*trace.Span
	threads []float64 // by stage: as recorded, 0 where unknown
	gpu     bool      // the machine has a GPU, so a stage may use no core
}

func newHistory(spans []*trace.Span) *history {
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
	sort.Slice(h.cuts, func(i, j int) bool { return h.cuts[i] < h.cuts[j] })
	h.cuts = unique(h.cuts)
	h.count()
	return h
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

// count fills counts from the changes at each cut.
func (h *history) count() {
	change := make([][]int32, len(h.cuts))
	for i := range change {
		change[i] = make([]int32, len(h.names))
	}
	for _, s := range h.spans {
		i := h.index[s.Stage]
		change[h.at(s.BeginNS)][i]++
		change[h.at(s.EndNS)][i]--
	}
	for k := 1; k < len(change); k++ {
		for i := range change[k] {
			change[k][i] += change[k-1][i]
		}
	}
	h.counts = change
}

func (h *history) at(t int64) int {
	return sort.Search(len(h.cuts), func(i int) bool { return h.cuts[i] >= t })
}

// maxConcurrency is the most services of each stage at once.
func (h *history) maxConcurrency() map[string]int64 {
	out := map[string]int64{}
	for _, c := range h.counts {
		for i, n := range c {
			out[h.names[i]] = max(out[h.names[i]], int64(n))
		}
	}
	return out
}

// clocks are, by stage, the solo time that a service of the stage would have done since the first cut, at each cut.
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
		pipeline.Rates(cpus, laws, h.counts[k-1], rates)
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

// spread is, by stage, the standard deviation of the logarithm of its services' solo times; NaN below two services.
func (c *clocks) spread() []float64 {
	n, sum, squares := make([]float64, len(c.sum)), make([]float64, len(c.sum)), make([]float64, len(c.sum))
	for _, s := range c.h.spans {
		i := c.h.index[s.Stage]
		w := c.work(i, s.BeginNS, s.EndNS)
		if w <= 0 {
			continue
		}
		x := math.Log(w)
		n[i]++
		sum[i] += x
		squares[i] += x * x
	}
	out := make([]float64, len(c.sum))
	for i := range out {
		out[i] = math.NaN()
		if n[i] >= 2 {
			out[i] = math.Sqrt(max(0, squares[i]-sum[i]*sum[i]/n[i]) / (n[i] - 1))
		}
	}
	return out
}
