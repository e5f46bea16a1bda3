package sim_test

import (
	"math"
	"runtime"
	"sync"
	"syscall"
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
	seed, began := uint64(0), cpuSeconds()
	for b.Loop() {
		st, err := s.Run(sim.Draw{Seed: seed, Bootstrap: true})
		if err != nil {
			b.Fatal(err)
		}
		events += st.Events
		seed++
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(events)/(cpuSeconds()-began), "events/cpu-s")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "replays/s")
}

// cpuSeconds is the CPU time of the process: on a machine that others use too, it says what the engine
// takes, where elapsed time says what it was given.
func cpuSeconds() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return math.NaN()
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// BenchmarkSim is the engine in statistics mode, on one core: an event is a timed step that ends,
// with all it causes.
func BenchmarkSim(b *testing.B) {
	b.Run("frozen", func(b *testing.B) { benchmarkSim(b, benchmarkModel(false)) })
	b.Run("shared", func(b *testing.B) { benchmarkSim(b, benchmarkModel(true)) })
}

// BenchmarkTenThousand is 10,000 replays of 500 partitions on all cores, once an iteration.
func BenchmarkTenThousand(b *testing.B) {
	m, began := benchmarkModel(true), cpuSeconds()
	defer func() { b.ReportMetric((cpuSeconds()-began)/float64(b.N), "cpu-s/op") }()
	for b.Loop() {
		onAllCores(b, func(s *sim.Simulator, i int) {
			if _, err := s.Run(sim.Draw{Seed: uint64(i), Bootstrap: true}); err != nil {
				b.Error(err)
			}
		}, func(int) *pipeline.Model { return m }, 1, 10_000)
	}
}

// BenchmarkSweep is 1,000 settings of the model, 200 draws each, on all cores, once an iteration.
func BenchmarkSweep(b *testing.B) {
	began := cpuSeconds()
	defer func() { b.ReportMetric((cpuSeconds()-began)/float64(b.N), "cpu-s/op") }()
	for b.Loop() {
		onAllCores(b, func(s *sim.Simulator, i int) {
			if _, err := s.Run(sim.Draw{Seed: uint64(i), Bootstrap: true}); err != nil {
				b.Error(err)
			}
		}, sweepModel, 1000, 200)
	}
}

// sweepModel is setting i of a sweep over workers, channel and release point, 200 partitions each.
func sweepModel(i int) *pipeline.Model {
	m := benchmarkModel(true)
	p := &m.Policy
	p.Jobs = 20
	p.PartitionWorkers = 1 + int64(i%25)
	p.ChannelCapacity = pipeline.Bound(i / 25 % 10)
	p.PermitRelease = []string{
		pipeline.ReleaseSynthEnd, pipeline.ReleaseSendAccepted, pipeline.ReleaseGPUPickup,
		pipeline.ReleaseFreed,
	}[i/250]
	return m
}

// onAllCores runs so many draws of each of so many models.
func onAllCores(
	b *testing.B, run func(*sim.Simulator, int), model func(int) *pipeline.Model, models, draws int,
) {
	const chunk = 50
	jobs := make(chan [2]int)
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			var s *sim.Simulator
			last := -1
			for j := range jobs {
				if j[0] != last {
					var err error
					if s, err = sim.New(model(j[0])); err != nil {
						b.Error(err)
						return
					}
					last = j[0]
				}
				for i := range chunk {
					run(s, j[1]+i)
				}
			}
		})
	}
	for i := range models {
		for d := 0; d < draws; d += chunk {
			jobs <- [2]int{i, d}
		}
	}
	close(jobs)
	group.Wait()
}
