package sim_test

import (
	"testing"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
)

// benchmarkModel is the example over 500 partitions.
func benchmarkModel(contend bool) *pipeline.Model {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions = 50, 10
	m.Policy.PartitionWorkers, m.Policy.GPUWorkers = 4, 2
	if !contend {
		m.Machine.CPUs = 0
	}
	return m
}

func benchmarkSim(b *testing.B, m *pipeline.Model) {
	s, err := sim.New(m)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Run(sim.Draw{Bootstrap: true}); err != nil { // grows the queues to their size
		b.Fatal(err)
	}
	b.ReportAllocs()
	var events int64
	seed := uint64(0)
	for b.Loop() {
		st, err := s.Run(sim.Draw{Seed: seed, Bootstrap: true})
		if err != nil {
			b.Fatal(err)
		}
		events += st.Events
		seed++
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "replays/s")
}

// BenchmarkSim is the engine in statistics mode, on one core: an event is a timed step that ends,
// with all it causes.
func BenchmarkSim(b *testing.B) {
	b.Run("frozen", func(b *testing.B) { benchmarkSim(b, benchmarkModel(false)) })
	b.Run("shared", func(b *testing.B) { benchmarkSim(b, benchmarkModel(true)) })
}
