package sim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

var update = flag.Bool("update", false, "rewrite golden files")

// draws is how many models a property is held against.
const draws = 100

// drawModel draws a model with random settings and services of irregular length, so that no two
// things happen at once.
func drawModel(t *rapid.T) *pipeline.Model {
	m := pipeline.Example()
	p := &m.Policy
	p.Jobs = rapid.Int64Range(1, 4).Draw(t, "jobs")
	p.Partitions = rapid.Int64Range(1, 4).Draw(t, "partitions")
	p.JobsInFlight = rapid.SampledFrom([]pipeline.Bound{pipeline.Unbounded, 1, 2}).Draw(t,
		"jobs_in_flight")
	p.PartitionWorkers = rapid.Int64Range(1, 5).Draw(t, "partition_workers")
	p.GPUWorkers = rapid.Int64Range(1, 3).Draw(t, "gpu_workers")
	p.ChannelCapacity = rapid.SampledFrom([]pipeline.Bound{pipeline.Unbounded, 0, 1, 2, 5}).Draw(t,
		"channel_capacity")
	p.PermitRelease = rapid.SampledFrom([]string{
		"synth_end", "send_accepted", "gpu_pickup",
		"freed",
	}).Draw(t, "permit_release")
	p.EarlyFree = rapid.Bool().Draw(t, "early_free")
	p.SplitProving = rapid.Bool().Draw(t, "split_proving")
	p.ByteBudget = rapid.SampledFrom([]pipeline.Bound{
		pipeline.Unbounded, 4 << 20, 9 << 20,
		17 << 20,
	}).Draw(t, "byte_budget")
	p.QueueOrder = rapid.SampledFrom([]string{"fifo", "priority"}).Draw(t, "queue_order")
	m.Memory.ScratchPool = rapid.Bool().Draw(t, "scratch_pool")
	m.Machine.CPUs = rapid.SampledFrom([]float64{0, 1, 2, 8}).Draw(t, "cpus")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for i := range m.Partitions {
		for k := range m.Partitions[i].Pieces {
			m.Partitions[i].Pieces[k].SoloNS *= 0.5 + rng.Float64()
		}
		if rng.IntN(3) == 0 {
			m.Partitions[i].TurnaroundNS = 10e6 * rng.Float64()
		}
	}
	return m
}

func run(t testing.TB, m *pipeline.Model, d sim.Draw) sim.Stats {
	t.Helper()
	s, err := sim.New(m)
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Run(d)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestEngineAgreesWithTheSlowSimulator(t *testing.T) {
	everyModel(t, draws, drawModel, func(t rapid.TB, m *pipeline.Model) {
		slow, err := runSlow(m)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sim.New(m)
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Run(sim.Draw{})
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(st.MakespanNS - slow.makespan); d > 1e-6*slow.makespan+1 {
			t.Errorf("makespan %v, slowly %v", st.MakespanNS, slow.makespan)
		}
		if st.PeakLiveBytes != slow.peak {
			t.Errorf("peak live %d, slowly %d", st.PeakLiveBytes, slow.peak)
		}
		if got := st.PeakRSSBytes(&m.Memory); got != slow.peakRSS {
			t.Errorf("peak RSS %d, slowly %d", got, slow.peakRSS)
		}
		if st.QueueMax.Backlog != int64(slow.maxBacklog) {
			t.Errorf("backlog %d, slowly %d", st.QueueMax.Backlog, slow.maxBacklog)
		}
	})
}

func TestConservation(t *testing.T) {
	for _, bootstrap := range []bool{false, true} {
		everyModel(t, draws, drawModel, func(t rapid.TB, m *pipeline.Model) {
			conserved(t, m, sim.Draw{Bootstrap: bootstrap})
		})
	}
}

// conserved says that all that is taken in a run is given back, and that its trace and its
// statistics agree.
func conserved(t rapid.TB, m *pipeline.Model, draw sim.Draw) {
	t.Helper()
	data, st, err := sim.Record(m, draw)
	if err != nil {
		t.Fatal(err)
	}
	if st.JobsDone != m.Policy.Jobs || st.Partitions != m.Policy.Jobs*m.Policy.Partitions {
		t.Errorf("%d jobs and %d partitions done of %d × %d", st.JobsDone, st.Partitions,
			m.Policy.Jobs, m.Policy.Partitions)
	}
	resident := int64(28 << 20)
	if st.FinalLiveBytes != resident {
		t.Errorf("%d bytes live at the end, resident buffers are %d", st.FinalLiveBytes,
			resident)
	}
	levels := map[string]int64{}
	for _, q := range data.Queues {
		if want := levels[q.Resource] + delta(q); q.LevelAfter != want {
			t.Fatalf("%s %s: level %d after the event, sum %d", q.Resource, q.Event,
				q.LevelAfter, want)
		}
		levels[q.Resource] = q.LevelAfter
		capacity := capacityOf(data, q.Resource)
		if q.LevelAfter < 0 || capacity > 0 && q.LevelAfter > capacity {
			t.Fatalf("%s %s: level %d outside 0..%d", q.Resource, q.Event, q.LevelAfter,
				capacity)
		}
	}
	for name, n := range levels {
		if n != 0 {
			t.Errorf("%s: %d left at the end", name, n)
		}
	}
	if got := peakLive(data); got != st.PeakLiveBytes {
		t.Errorf("peak of the trace %d, of the statistics %d", got, st.PeakLiveBytes)
	}
	if got := data.Samples[len(data.Samples)-1].Value; int64(got) != st.PeakRSSBytes(&m.Memory) {
		t.Errorf("last RSS sample %v, statistics %d", got, st.PeakRSSBytes(&m.Memory))
	}
}

// delta is how an event changes its resource's level.
func delta(q trace.QueueEvent) int64 {
	switch q.Event {
	case trace.EventAcquire, trace.EventSent:
		return q.Amount
	case trace.EventRelease, trace.EventRecv:
		return -q.Amount
	}
	return 0
}

// capacityOf is a resource's capacity; 0 where there is none, or at a rendezvous.
func capacityOf(d *trace.Data, name string) int64 {
	for _, r := range d.Manifest.Resources {
		if r.Name == name && r.Capacity != nil {
			return *r.Capacity
		}
	}
	return 0
}

func peakLive(d *trace.Data) int64 {
	var live, peak int64
	for _, b := range d.Buffers {
		if b.ParentID == 0 {
			live += b.DeltaBytes
		}
		peak = max(peak, live)
	}
	return peak
}

func TestSimulatedTraceIsValid(t *testing.T) {
	everyModel(t, draws, drawModel, func(t rapid.TB, m *pipeline.Model) {
		data, _, err := sim.Record(m, sim.Draw{})
		if err != nil {
			t.Fatal(err)
		}
		broken, err := trace.Validate(trace.FromData(data), 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range broken {
			t.Error(v)
		}
	})
}

func TestScalingDurationsScalesTheMakespan(t *testing.T) {
	everyModel(t, draws, drawModel, func(t rapid.TB, m *pipeline.Model) {
		one := must(sim.New(m)).stats(t, sim.Draw{Seed: 3, Bootstrap: true})
		for i := range m.Partitions {
			for k := range m.Partitions[i].Pieces {
				m.Partitions[i].Pieces[k].SoloNS *= 4
			}
			m.Partitions[i].TurnaroundNS *= 4
		}
		m.Machine.TurnaroundNS *= 4
		four := must(sim.New(m)).stats(t, sim.Draw{Seed: 3, Bootstrap: true})
		if four.MakespanNS != 4*one.MakespanNS || four.PeakLiveBytes != one.PeakLiveBytes {
			t.Errorf("durations times 4: makespan %v and peak %d, before %v and %d",
				four.MakespanNS, four.PeakLiveBytes, one.MakespanNS, one.PeakLiveBytes)
		}
	})
}

// simulator is a *sim.Simulator whose errors end the test.
type simulator struct {
	s   *sim.Simulator
	err error
}

func must(s *sim.Simulator, err error) simulator { return simulator{s, err} }

func (s simulator) stats(t rapid.TB, d sim.Draw) sim.Stats {
	if s.err != nil {
		t.Fatal(s.err)
	}
	st, err := s.s.Run(d)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestRenamingChangesNothing(t *testing.T) {
	everyModel(t, draws, drawModel, func(t rapid.TB, m *pipeline.Model) {
		before := must(sim.New(m)).stats(t, sim.Draw{Seed: 5, Bootstrap: true})
		for i := range m.Stages {
			m.Stages[i].Name = fmt.Sprintf("z%d", 9-i) // other names in another alphabetical order
		}
		names := map[string]string{}
		for i, s := range pipeline.Example().Stages {
			names[s.Name] = m.Stages[i].Name
		}
		for i := range m.Partitions {
			for k := range m.Partitions[i].Pieces {
				p := &m.Partitions[i].Pieces[k]
				if p.Stage != "" {
					p.Stage = names[p.Stage]
				}
			}
		}
		if after := must(sim.New(m)).stats(t, sim.Draw{Seed: 5, Bootstrap: true}); after != before {
			t.Errorf("renamed stages: %+v, before %+v", after, before)
		}
	})
}

func TestChannelWithRoomForAllIsUnbounded(t *testing.T) {
	everyModel(t, draws, drawModel, func(t rapid.TB, m *pipeline.Model) {
		m.Policy.ChannelCapacity = pipeline.Unbounded
		unbounded := must(sim.New(m)).stats(t, sim.Draw{Seed: 7})
		m.Policy.ChannelCapacity = pipeline.Bound(m.Policy.Jobs * m.Policy.Partitions)
		if roomy := must(sim.New(m)).stats(t, sim.Draw{Seed: 7}); roomy != unbounded {
			t.Errorf("room for all: %+v, unbounded: %+v", roomy, unbounded)
		}
	})
}

func TestHeldPermitBoundsTheBacklog(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs = 8
	m.Policy.PermitRelease = pipeline.ReleaseSynthEnd
	early := run(t, m, sim.Draw{})
	m.Policy.PermitRelease = pipeline.ReleaseSendAccepted
	held := run(t, m, sim.Draw{})
	// pw partitions blocked in their send, one in the channel.
	if bound := m.Policy.PartitionWorkers + 1; held.QueueMax.Backlog > bound {
		t.Errorf("backlog %d with the permit held, the bound is %d", held.QueueMax.Backlog, bound)
	}
	if early.QueueMax.Backlog < 20 {
		t.Errorf("backlog %d of 32 partitions with the permit released early: synthesis is eight times faster than proving", early.QueueMax.Backlog)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	m := pipeline.Example()
	m.Stages[0].CV = 0.08
	bytesOf := func(seed uint64) []byte {
		data, _, err := sim.Record(m, sim.Draw{Seed: seed, Bootstrap: true})
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !bytes.Equal(bytesOf(1), bytesOf(1)) {
		t.Error("two runs with one seed differ")
	}
	if bytes.Equal(bytesOf(1), bytesOf(2)) {
		t.Error("two seeds give the same run")
	}
}

func TestGolden(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions = 1, 2
	data, _, err := sim.Record(m, sim.Draw{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	got := trace.FormatText(data)
	path := filepath.Join("testdata", "example.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the trace differs from %s; run go test ./replay/sim -update and look at the difference", path)
	}
}

func TestStatisticsModeAllocatesNothing(t *testing.T) {
	for _, cpus := range []float64{0, 2} {
		m := benchmarkModel(cpus > 0)
		s, err := sim.New(m)
		if err != nil {
			t.Fatal(err)
		}
		seed := uint64(0)
		allocs := testing.AllocsPerRun(5, func() {
			seed++
			if _, err := s.Run(sim.Draw{Seed: seed % 2, Bootstrap: true}); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations a run with %v CPUs", allocs, cpus)
		}
	}
}

func TestDeadlockIsExplained(t *testing.T) {
	// A partition of a model whose finaliser never comes: the worker waits for the channel, the
	// partition for a finaliser that the first one holds for ever, because its way ends before its
	// last free.
	m := pipeline.Example()
	m.Policy.ByteBudget = 4 << 20
	m.Policy.PermitRelease = pipeline.ReleaseFreed
	s, err := sim.New(m)
	if err != nil {
		t.Fatal(err)
	}
	sim.BreakFreed(s)
	_, err = s.Run(sim.Draw{})
	var dead *sim.DeadlockError
	if !errors.As(err, &dead) {
		t.Fatalf("got %v, want a deadlock", err)
	}
	for _, part := range []string{
		"deadlock at", "15 wait for the byte budget",
		"held by job 0 partition 0",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}
