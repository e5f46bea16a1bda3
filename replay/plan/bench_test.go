package plan

import (
	"context"
	"testing"

	"highwater/replay"
	"highwater/tracer/trace"
)

// BenchmarkPlan is what `highwater plan` does for 100 settings of two recorded runs, 200 draws each,
// on all cores, once an iteration: the fit, the sweep and the growth of what is chosen.
func BenchmarkPlan(b *testing.B) {
	var traces []*trace.Trace
	for _, dir := range []string{"../testdata/pile-15", "../testdata/held-15"} {
		t, err := trace.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		defer t.Close()
		traces = append(traces, t)
	}
	opts := Options{Limit: 400 << 20, Seed: 1}
	for _, text := range []string{
		"partition_workers=1..5", "channel_capacity=0,1,2,4,unbounded", "permit_release=all",
	} {
		axis, err := ParseVary(text)
		if err != nil {
			b.Fatal(err)
		}
		opts.Axes = append(opts.Axes, axis)
	}
	settings := 0
	for b.Loop() {
		p, err := replay.NewPredictor(traces, replay.PredictorOptions{})
		if err != nil {
			b.Fatal(err)
		}
		r, err := Run(context.Background(), p, opts)
		if err != nil {
			b.Fatal(err)
		}
		settings += len(r.Rows)
	}
	b.ReportMetric(float64(settings)/b.Elapsed().Seconds(), "settings/s")
}
