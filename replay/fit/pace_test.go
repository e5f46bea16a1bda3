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

// Two recordings of the same work, one on a slower CPU, are the same work where the pace is known.
func TestPaceTakesTheMachineOut(t *testing.T) {
	fast, slow := slower(t, 1, 20), slower(t, 1.3, 20)
	if p := fit.Pace(slow); p == nil || *p != 8000*1.3 {
		t.Fatalf("pace %v, want 10400", p)
	}
	r, err := fit.Fit(fast, slow)
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Report.Pace; p == nil || math.Abs(*p-8000*1.15) > 1e-6 {
		t.Fatalf("mean pace %v, want 9200", p)
	}
	x := solo(r.Fitted, trace.StageSynthesis)
	first, last := x[0], x[len(x)-1]
	if math.Abs(last/first-1) > 0.02 {
		t.Errorf("synthesis takes %v in one recording, %v in the other", first, last)
	}
}

// Where one recording has too few samples of its pace, they count as equally fast.
func TestPaceUnknown(t *testing.T) {
	fast, slow := slower(t, 1, 20), slower(t, 1.3, 9)
	if p := fit.Pace(slow); p != nil {
		t.Errorf("pace %v of 9 samples", *p)
	}
	r, err := fit.Fit(fast, slow)
	if err != nil {
		t.Fatal(err)
	}
	if r.Report.Pace != nil {
		t.Errorf("a mean pace of %v", *r.Report.Pace)
	}
	x := solo(r.Fitted, trace.StageSynthesis)
	if first, last := x[0], x[len(x)-1]; last/first < 1.2 {
		t.Errorf("synthesis takes %v in one recording, %v in the other", first, last)
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
