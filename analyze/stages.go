package analyze

import (
	"cmp"
	"slices"
	"strings"

	"highwater/tracer/trace"
)

// stageFigures gathers the durations of stages.
type stageFigures struct {
	byName map[string]*stageTimes
	order  []*stageTimes
}

type stageTimes struct {
	Stage
	durations []int64
	cpu       int64
	cpuKnown  bool
}

func (f *stageFigures) of(name string) *stageTimes {
	s := f.byName[name]
	if s == nil {
		s = &stageTimes{Stage: Stage{Name: strings.Clone(name)}}
		f.byName[s.Name] = s
		f.order = append(f.order, s)
	}
	return s
}

func (f *stageFigures) begin(s *trace.Span) {
	if s.Kind == trace.KindStage {
		f.of(s.Stage).Open++
	}
}

func (f *stageFigures) end(s *trace.Span) {
	if s.Kind != trace.KindStage {
		return
	}
	x := f.of(s.Stage)
	x.Open--
	x.Count++
	if s.Status == "error" {
		x.Failed++
	}
	x.durations = append(x.durations, s.EndNS-s.BeginNS)
	x.TotalNS += s.EndNS - s.BeginNS
	if s.CPUNS != trace.Null {
		x.cpu += s.CPUNS
		x.cpuKnown = true
	}
}

func (f *stageFigures) table() []Stage {
	table := make([]Stage, 0, len(f.order))
	for _, s := range f.order {
		if s.Count > 0 {
			slices.SortFunc(s.durations, cmp.Compare[int64])
			s.MeanNS = ptr(s.TotalNS / int64(s.Count))
			s.P50NS, s.P95NS = ptr(quantile(s.durations, 0.50)), ptr(quantile(s.durations, 0.95))
			s.MaxNS = ptr(s.durations[s.Count-1])
		}
		if s.cpuKnown {
			s.CPUNS = ptr(s.cpu)
		}
		table = append(table, s.Stage)
	}
	return table
}

// quantile is the nearest-rank quantile of a sorted, non-empty sample.
func quantile(sorted []int64, q float64) int64 {
	i := int(q*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
