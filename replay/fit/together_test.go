package fit_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// neighbours is a recording of 64 partitions. The times of each b_g2 and of the prove_start that
// begins beside it vary by the same factor if alike, else each by one of its own.
func neighbours(t *testing.T, alike bool, seed uint64) *trace.Data {
	t.Helper()
	m := even()
	m.Policy.Jobs, m.Policy.Partitions, m.Policy.JobsInFlight = 16, 4, pipeline.Unbounded
	m.Policy.PartitionWorkers, m.Policy.PermitRelease = 2, pipeline.ReleaseSendAccepted
	m.Policy.SplitProving, m.Policy.GPUWorkers = true, 1
	rng := rand.New(rand.NewPCG(seed, 1))
	draw := func() float64 { return math.Exp(0.15 * rng.NormFloat64()) }
	one, before := m.Partitions[0], 1.0
	m.Partitions = nil
	for i := range int64(64) {
		p := one
		p.Job, p.Partition = i/4, i%4
		p.Pieces = append([]pipeline.Piece(nil), one.Pieces...)
		own := draw()
		for k := range p.Pieces {
			switch p.Pieces[k].Stage {
			case trace.StageProveStart:
				if alike {
					p.Pieces[k].SoloNS *= before
				} else {
					p.Pieces[k].SoloNS *= draw()
				}
			case trace.StageBG2:
				p.Pieces[k].SoloNS *= own
			case trace.StageSynthesis:
				p.Pieces[k].SoloNS *= draw() * draw() // tells little
			}
		}
		before = own
		m.Partitions = append(m.Partitions, p)
	}
	return recording(t, m)
}

// spread is the standard deviation of the logarithms of a stage's solo times.
func spread(m *pipeline.Model, stage string) float64 {
	sum, squares, n := 0.0, 0.0, 0.0
	for _, x := range solo(m, stage) {
		x = math.Log(x)
		sum, squares, n = sum+x, squares+x*x, n+1
	}
	return math.Sqrt(squares/n - sum*sum/(n*n))
}

// What services beside each other have in common is no luck of each; what they have not is.
func TestTogether(t *testing.T) {
	for seed := range uint64(5) {
		alike := fitOf(t, neighbours(t, true, seed)).Fitted
		apart := fitOf(t, neighbours(t, false, seed)).Fitted
		for _, stage := range []string{trace.StageProveStart, trace.StageBG2} {
			a, b := spread(alike, stage), spread(apart, stage)
			if a > 0.11 || b < 0.12 {
				t.Errorf("seed %d: %s spreads by %.3f where services beside each other go together, "+
					"by %.3f where they do not; both were recorded with 0.15", seed, stage, a, b)
			}
		}
		for i := range alike.Stages {
			s := &alike.Stages[i]
			if s.Name == trace.StageProveStart && s.Uncertainty <= apart.Stages[i].Uncertainty {
				t.Errorf("seed %d: what was taken out of the services is not in the doubt of their "+
					"mean: %v, %v", seed, s.Uncertainty, apart.Stages[i].Uncertainty)
			}
		}
	}
}

// The first and the last partition that were proved ran in company that no other has.
func TestEndsAreNotInThePool(t *testing.T) {
	r := fitOf(t, neighbours(t, false, 1))
	if n := len(r.Fitted.Partitions); n != 62 || r.Report.Partitions != 64 {
		t.Errorf("a pool of %d of the recording's %d partitions", n, r.Report.Partitions)
	}
	if n := len(r.Frozen.Partitions); n != 64 {
		t.Errorf("%d partitions keep their recorded durations, want all", n)
	}
	short := even()
	short.Policy.Jobs, short.Policy.Partitions = 5, 3
	if n := len(fitOf(t, recording(t, short)).Fitted.Partitions); n != 15 {
		t.Errorf("a pool of %d of 15 partitions", n)
	}
}
