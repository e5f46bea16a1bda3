package fit

import (
	"math"
	"slices"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// paceMetric is the CPU time, in ns, of a computation that is always the same: the machine's own
// speed, whatever the program does. tracer/probe samples it.
const paceMetric = "system.cpu.pace"

// minPaces is how many samples a mean of them takes.
const minPaces = 10

// Pace is how long the computation that is always the same took while jobs ran, mean in ns; nil
// where it was not sampled, or the trace has no job. Of two recordings of the same work, the one
// with the higher pace had the slower CPU. A median would not do: on a core whose other thread is a
// neighbour's the computation takes 9 or 14 µs, and how often which is what slows the program.
func Pace(d *trace.Data) *float64 {
	t, err := read(d)
	if err != nil {
		return nil
	}
	return (&recording{timeline: t}).pace()
}

func (r *recording) pace() *float64 {
	first, last := r.window()
	sum, n := 0.0, 0.0
	for i := range r.data.Samples {
		s := &r.data.Samples[i]
		if s.Metric == paceMetric && s.Source == r.source && s.TimeNS >= first && s.TimeNS <= last &&
			s.Value > 0 && !math.IsInf(s.Value, 0) {
			sum, n = sum+s.Value, n+1
		}
	}
	if n < minPaces {
		return nil
	}
	mean := sum / n
	return &mean
}

// paces reports the recordings' mean pace and gives each recording its factor over it. Where one of
// them is not known they all count as equal.
func (f *fitter) paces() {
	var each []float64
	sum := 0.0
	for _, r := range f.runs {
		p := r.pace()
		if p == nil {
			return
		}
		each, sum = append(each, *p), sum+*p
	}
	mean := sum / float64(len(f.runs))
	f.report.Pace = &mean
	for i, r := range f.runs {
		r.slowness = each[i] / mean
	}
}

// Slow makes the time of all stages that use cores factor times as long, in the partitions and jobs
// of a model with such stages. Pieces are replaced, never written into.
func Slow(stages []pipeline.Stage, ps []pipeline.Partition, js []pipeline.Job, factor float64) {
	cores := map[string]bool{}
	for i := range stages {
		cores[stages[i].Name] = stages[i].Parallelism > 0
	}
	slow := func(pieces []pipeline.Piece) []pipeline.Piece {
		out := slices.Clone(pieces)
		for i := range out {
			if cores[out[i].Stage] {
				out[i].SoloNS *= factor
			}
		}
		return out
	}
	for i := range ps {
		ps[i].Pieces = slow(ps[i].Pieces)
	}
	for i := range js {
		js[i].Before, js[i].After = slow(js[i].Before), slow(js[i].After)
	}
}
