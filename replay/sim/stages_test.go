package sim_test

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// stagesOf is the closed stage spans as Stages gives them, in an order that does not depend on that
// of equal instants.
func stagesOf(spans []trace.Span) (out []trace.Span) {
	for _, s := range spans {
		if s.Kind == trace.KindStage {
			out = append(out, trace.Span{
				Kind: s.Kind, Stage: s.Stage, Job: s.Job, BeginNS: s.BeginNS, EndNS: s.EndNS,
			})
		}
	}
	slices.SortFunc(out, func(a, b trace.Span) int {
		return cmp.Or(
			cmp.Compare(a.Job, b.Job), cmp.Compare(a.Stage, b.Stage),
			cmp.Compare(a.BeginNS, b.BeginNS), cmp.Compare(a.EndNS, b.EndNS),
		)
	})
	return out
}

func TestStagesAreThoseOfTheTrace(t *testing.T) {
	compared := 0
	everyPolicy(t, 150, func(t rapid.TB, m *pipeline.Model) {
		d := sim.Draw{Seed: 7, Bootstrap: true}
		got, err := new(sim.Programs).Stages(m, d)
		data, _, wantErr := sim.Record(m, d)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("stages: %v, trace: %v", err, wantErr)
		}
		var dead *sim.DeadlockError
		if err != nil {
			if !errors.As(err, &dead) {
				t.Fatal(err)
			}
			return
		}
		got, want := stagesOf(got), stagesOf(data.Spans)
		if len(got) != len(want) || len(got) == 0 {
			t.Fatalf("%d stages, %d in the trace", len(got), len(want))
		}
		for i := range got {
			// Work that a buffer event splits is summed in another order.
			g, w := got[i], want[i]
			far := math.Abs(float64(g.BeginNS-w.BeginNS)) + math.Abs(float64(g.EndNS-w.EndNS))
			g.BeginNS, g.EndNS = w.BeginNS, w.EndNS
			if far > 2 || g != w {
				t.Fatalf("stage %d: %+v, in the trace %+v", i, got[i], want[i])
			}
		}
		compared++
	})
	if compared < 100 {
		t.Errorf("only %d of 150 models were compared", compared)
	}
}
