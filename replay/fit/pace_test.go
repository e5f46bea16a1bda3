package fit_test

import (
	"math"
	"testing"

	"highwater/replay/fit"
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// slower is the example on a CPU that is so many times slower, with samples of its pace.
func slower(t *testing.T, factor float64, samples int64) *trace.Data {
	t.Helper()
	m := even()
	fit.Slow(m.Stages, m.Partitions, m.Jobs, factor)
	d := recording(t, m)
	for i := range samples {
		d.Samples = append(d.Samples, trace.Sample{
			TimeNS: d.Spans[0].BeginNS + i*1e6, Source: "simulator", Metric: "system.cpu.pace",
			Value: 8000 * factor,
		})
	}
	return d
}

// doubt is the spread of a stage's mean between runs that a model of two recordings has.
func doubt(t *testing.T, a, b *trace.Data) (*fit.Result, float64) {
	t.Helper()
	r, err := fit.Fit(a, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Fitted.Stages {
		if s.Name == trace.StageSynthesis {
			return r, s.Uncertainty
		}
	}
	t.Fatal("no synthesis")
	return nil, 0
}

// Two recordings of the same work, one on a slower CPU, are the same work where the pace is known.
func TestPaceTakesTheMachineOut(t *testing.T) {
	slow := slower(t, 1.3, 20)
	if p := fit.Pace(slow); p == nil || math.Abs(*p-8000*1.3) > 1e-6 {
		t.Fatalf("pace %v, want 10400", p)
	}
	r, u := doubt(t, slower(t, 1, 20), slow)
	if p := r.Report.Pace; p == nil || math.Abs(*p-8000*1.15) > 1e-6 {
		t.Fatalf("mean pace %v, want 9200", p)
	}
	if u > 0.03 {
		t.Errorf("synthesis may take %.3f more or less in another run: the two recordings differ "+
			"in the CPU's pace alone", u)
	}
}

// Where one recording has too few samples of its pace, how far they lie apart is the stages' doubt.
func TestPaceUnknown(t *testing.T) {
	slow := slower(t, 1.3, 9)
	if p := fit.Pace(slow); p != nil {
		t.Errorf("pace %v of 9 samples", *p)
	}
	r, u := doubt(t, slower(t, 1, 20), slow)
	if r.Report.Pace != nil {
		t.Errorf("a mean pace of %v", *r.Report.Pace)
	}
	if u < 0.1 {
		t.Errorf("synthesis may take %.3f more or less in another run: it took 1.3 times as long", u)
	}
}

// Slow leaves alone what uses no core, and what it was given.
func TestSlow(t *testing.T) {
	m := even()
	for i := range m.Stages {
		if m.Stages[i].Name == trace.StageProveStart {
			m.Stages[i].Parallelism, m.Stages[i].Weight = 0, 0
		}
	}
	before := append([]pipeline.Piece(nil), m.Partitions[0].Pieces...)
	ps := append([]pipeline.Partition(nil), m.Partitions...)
	fit.Slow(m.Stages, ps, nil, 2)
	for i, piece := range before {
		want := 2 * piece.SoloNS
		if piece.Stage == trace.StageProveStart || piece.Stage == "" {
			want = piece.SoloNS
		}
		if got := ps[0].Pieces[i].SoloNS; got != want {
			t.Errorf("%s: %v, want %v", piece.Stage, got, want)
		}
		if got := m.Partitions[0].Pieces[i].SoloNS; got != piece.SoloNS {
			t.Errorf("%s of the model itself: %v, was %v", piece.Stage, got, piece.SoloNS)
		}
	}
}
