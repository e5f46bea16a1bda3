package sim_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// drawFlow gives a random model what the prover has not: bandwidth, pressure, arrivals, batches,
// dispatchers, orders of admission, a pacer, locks, cached objects and pools.
func drawFlow(t *rapid.T) *pipeline.Model {
	m := drawModel(t)
	p := &m.Policy
	p.Devices = rapid.Int64Range(1, 2).Draw(t, "devices")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "job seed"), 2))
	for j := range p.Jobs {
		job := pipeline.Job{Job: j, SubmitNS: 1e6 * (float64(j) + rng.Float64())}
		job.Before = []pipeline.Piece{
			{
				Segment: pipeline.SegmentDispatch, Stage: trace.StageVerify,
				SoloNS: 1e6 * (1 + rng.Float64()),
				Buffers: []pipeline.Change{{
					Event: trace.EventAlloc, Class: "c1", Space: trace.SpaceHost, Capacity: 1 << 19,
					Resident: 1 << 19,
				}},
			},
		}
		m.Jobs = append(m.Jobs, job)
	}
	drawLaw(t, m)
	drawArrivals(t, m)
	drawAdmission(t, m)
	drawShared(t, m)
	if rapid.Bool().Draw(t, "pacer") {
		m.Pacer = pipeline.Pacer{
			Target:      float64(rapid.IntRange(1, 3).Draw(t, "target")),
			BootstrapNS: 31.7e6, RebootstrapNS: 20.3e6, IntervalMinNS: 1.01e6, IntervalMaxNS: 1e9,
		}
	}
	if rapid.Bool().Draw(t, "background") {
		m.Cached = append(m.Cached, drawBackground(t))
	}
	return m
}

func drawLaw(t *rapid.T, m *pipeline.Model) {
	m.Machine.MemoryBandwidth = rapid.SampledFrom([]float64{0, 0, 3, 9}).Draw(t, "bandwidth")
	for i := range m.Stages {
		s := &m.Stages[i]
		if rapid.Bool().Draw(t, "presses") {
			s.Pressure = rapid.SampledFrom([]float64{0.5, 1, 2}).Draw(t, "pressure")
			s.Sensitivity = rapid.SampledFrom([]float64{0, 0.05, 0.2}).Draw(t, "sensitivity")
		}
		if rapid.Bool().Draw(t, "moves") {
			s.Bandwidth = rapid.SampledFrom([]float64{0.7, 1.3, 4}).Draw(t, "moved")
		}
	}
	if rapid.Bool().Draw(t, "one worker") {
		m.Stages[3].Workers = 1 // finalise
	}
}

func drawArrivals(t *rapid.T, m *pipeline.Model) {
	switch rapid.IntRange(0, 3).Draw(t, "arrivals") {
	case 1:
		m.Arrivals = pipeline.Arrivals{Kind: pipeline.ArriveEvery, IntervalNS: 73.1e6}
	case 2:
		m.Arrivals = pipeline.Arrivals{Kind: pipeline.ArrivePoisson, IntervalNS: 61.3e6}
	case 3:
		m.Arrivals = pipeline.Arrivals{Kind: pipeline.ArriveTimes, AtNS: []float64{3.3e6, 81e6, 207e6}}
	}
	if rapid.Bool().Draw(t, "batch") && m.Policy.ByteBudget == pipeline.Unbounded {
		m.Batch = pipeline.Batch{
			Size: rapid.Int64Range(2, 3).Draw(t, "size"), WaitNS: 97.7e6,
			Merge: rapid.Bool().Draw(t, "merge"),
		}
		m.Stages[1].BatchShare, m.Stages[2].BatchShare = 0.9, 0.3
	}
	if rapid.Bool().Draw(t, "dispatcher") {
		m.Dispatch.Workers = rapid.Int64Range(1, 2).Draw(t, "dispatchers")
		m.Dispatch.Hold = rapid.SampledFrom([]string{
			pipeline.HoldParse, pipeline.HoldSend, pipeline.HoldFreed,
		}).Draw(t, "hold")
	}
}

func drawAdmission(t *rapid.T, m *pipeline.Model) {
	a := &m.Admission
	switch rapid.IntRange(0, 3).Draw(t, "admission") {
	case 1:
		a.NoPermit = true
	case 2:
		a.PermitFirst = true
	case 3:
		a.Serial, a.Handoff = true, rapid.Int64Range(1, 3).Draw(t, "handoff")
		a.NoPermit = rapid.Bool().Draw(t, "no permit")
	}
	a.BudgetOrder = rapid.SampledFrom([]string{
		pipeline.BudgetFIFO, pipeline.BudgetPriority, pipeline.BudgetRace,
	}).Draw(t, "budget order")
	a.QueueDepth = rapid.SampledFrom([]int64{0, 0, 2, 5}).Draw(t, "queue depth")
	if a.PermitFirst && m.Policy.PermitRelease == pipeline.ReleaseFreed {
		m.Policy.PermitRelease = pipeline.ReleaseSendAccepted
	}
	mm := &m.Machine
	mm.OneLock = rapid.Bool().Draw(t, "one lock")
	mm.FreeOffWorker = rapid.Bool().Draw(t, "free off worker")
	mm.LockScope = rapid.SampledFrom([]string{pipeline.LockGPU, pipeline.LockKernels}).Draw(t, "scope")
	if !m.Policy.SplitProving && rapid.Bool().Draw(t, "whole worker") {
		mm.LockScope = pipeline.LockWorker
	}
}

func drawShared(t *rapid.T, m *pipeline.Model) {
	if rapid.Bool().Draw(t, "lock") {
		m.Locks = []pipeline.Lock{{
			Name: "b_g2 to finalise", Capacity: rapid.Int64Range(1, 2).Draw(t, "capacity"),
			From: trace.StageBG2, To: trace.StageFinalise,
		}}
	}
	if rapid.Bool().Draw(t, "cached") {
		budgeted := rapid.Bool().Draw(t, "budgeted")
		m.Cached = []pipeline.Cached{
			{
				Class: trace.ClassSRS, Space: trace.SpacePinned, Bytes: 3 << 20, LoadNS: 11.1e6,
				LoadBytes: 1 << 20, Budgeted: budgeted, Evictable: budgeted, IdleNS: 5e6,
				Every: rapid.Int64Range(0, 3).Draw(t, "every"),
			},
			{Class: trace.ClassPCE, Space: trace.SpaceHost, Bytes: 1 << 20, Preloaded: true},
		}
		if budgeted && m.Policy.ByteBudget == 4<<20 {
			m.Policy.ByteBudget = 8 << 20 // the object and a partition
		}
	}
	if rapid.Bool().Draw(t, "pool") {
		m.Pools = []pipeline.Pool{{
			Class: trace.ClassPinnedPool, Space: trace.SpacePinned,
			Classes: []string{trace.ClassA, trace.ClassB}, Evictable: rapid.Bool().Draw(t, "drained"),
		}}
		for i := range m.Partitions { // an a that turned into h would leave its pool
			for k := range m.Partitions[i].Pieces {
				p := &m.Partitions[i].Pieces[k]
				p.Buffers = without(p.Buffers, trace.EventReclass)
			}
		}
	}
}

// drawBackground is an object that no job waits for.
func drawBackground(t *rapid.T) pipeline.Cached {
	c := pipeline.Cached{
		Class: trace.ClassPCE, Space: trace.SpaceHost, Bytes: 2 << 20, LoadNS: 37.3e6, Background: true,
		LoadBytes: rapid.SampledFrom([]int64{0, 1 << 19}).Draw(t, "transient"),
		SaveNS:    rapid.SampledFrom([]float64{0, 17.9e6}).Draw(t, "save"),
	}
	if rapid.Bool().Draw(t, "background budgeted") {
		c.Budgeted, c.LoadReserveBytes, c.PollNS = true, 1<<20, 7.7e6
		c.Evictable, c.IdleNS = rapid.Bool().Draw(t, "background evictable"), 3.1e6
	}
	return c
}

func without(changes []pipeline.Change, event string) (out []pipeline.Change) {
	for _, c := range changes {
		if c.Event != event {
			out = append(out, c)
		}
	}
	return out
}

var random = flag.Bool("random", false, "draw models afresh instead of the same ones each time")

// everyPolicy calls check with models under random policies.
func everyPolicy(t *testing.T, n int, check func(t rapid.TB, m *pipeline.Model)) {
	t.Helper()
	everyModel(t, n, drawFlow, check)
}

// everyModel calls check with random models: the same ones each time, so that no run of the tests
// differs from another; with -random, new ones, shrunk where they fail.
func everyModel(
	t *testing.T, n int, draw func(*rapid.T) *pipeline.Model, check func(rapid.TB, *pipeline.Model),
) {
	t.Helper()
	if *random {
		rapid.Check(t, func(t *rapid.T) { check(t, draw(t)) })
		return
	}
	models := rapid.Custom(draw)
	for i := range n {
		t.Run(fmt.Sprint(i), func(t *testing.T) { check(t, models.Example(i)) })
	}
}

func TestEngineAgreesWithTheSlowSimulatorOnEveryPolicy(t *testing.T) {
	everyPolicy(t, 150, func(t rapid.TB, m *pipeline.Model) {
		s, err := sim.New(m)
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Run(sim.Draw{})
		slow, slowErr := runSlow(m)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("engine: %v, slowly: %v", err, slowErr)
		}
		if err != nil {
			return // both stop
		}
		if d := math.Abs(st.MakespanNS - slow.makespan); d > 1e-6*slow.makespan+1 {
			t.Errorf("makespan %v, slowly %v", st.MakespanNS, slow.makespan)
		}
		if st.PeakLiveBytes != slow.peak {
			t.Errorf("peak live %d, slowly %d", st.PeakLiveBytes, slow.peak)
		}
		if st.QueueMax.Backlog != int64(slow.maxBacklog) {
			t.Errorf("backlog %d, slowly %d", st.QueueMax.Backlog, slow.maxBacklog)
		}
	})
}

// record simulates; ok is false where the policies stop the pipeline, which is then explained.
func record(t rapid.TB, m *pipeline.Model) (data *trace.Data, st sim.Stats, ok bool) {
	t.Helper()
	data, st, err := sim.Record(m, sim.Draw{})
	var dead *sim.DeadlockError
	if errors.As(err, &dead) {
		if len(dead.Waits) == 0 || dead.Unfinished == 0 {
			t.Errorf("a deadlock without waits: %v", err)
		}
		return nil, st, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return data, st, true
}

func TestConservationUnderEveryPolicy(t *testing.T) {
	everyPolicy(t, 200, func(t rapid.TB, m *pipeline.Model) {
		data, st, ok := record(t, m)
		if !ok {
			return
		}
		if n := m.Policy.Jobs; st.JobsDone != n || st.Partitions != n*m.Policy.Partitions {
			t.Errorf("%d jobs, %d partitions done", st.JobsDone, st.Partitions)
		}
		levels := map[string]int64{}
		for _, q := range data.Queues {
			if levels[q.Resource] += delta(q); levels[q.Resource] != q.LevelAfter {
				t.Fatalf("%s %s: level %d, sum %d", q.Resource, q.Event, q.LevelAfter, levels[q.Resource])
			}
			if c := capacityOf(data, q.Resource); q.LevelAfter < 0 || c > 0 && q.LevelAfter > c {
				t.Fatalf("%s %s: level %d outside 0..%d", q.Resource, q.Event, q.LevelAfter, c)
			}
		}
		cached := cachedLeft(data)
		for name, n := range levels {
			if n != 0 && (name != "budget" || n > cached) {
				t.Errorf("%s: %d left at the end", name, n)
			}
		}
		if got := peakLive(data); got != st.PeakLiveBytes {
			t.Errorf("peak of the trace %d, of the statistics %d", got, st.PeakLiveBytes)
		}
		if got := liveLeft(data); got != st.FinalLiveBytes {
			t.Errorf("%d bytes live at the end of the trace, %d of the statistics", got,
				st.FinalLiveBytes)
		}
	})
}

// liveLeft is what the trace's buffers hold at its end; children lie in their parents, and the pool
// of
// scratch, which only grows, counts apart.
func liveLeft(d *trace.Data) (sum int64) {
	for _, b := range d.Buffers {
		if b.ParentID == 0 && b.Class != trace.ClassCPUScratch {
			sum += b.DeltaBytes
		}
	}
	return sum
}

// cachedLeft is what the cached objects hold at the end.
func cachedLeft(d *trace.Data) (sum int64) {
	for _, b := range d.Buffers {
		if b.Class == trace.ClassSRS || b.Class == trace.ClassPCE {
			sum += b.DeltaBytes
		}
	}
	return sum
}

// more are models with more of a resource, that nobody takes away again.
var more = []struct {
	name string
	add  func(*pipeline.Model)
}{
	{"permits", func(m *pipeline.Model) { m.Policy.PartitionWorkers++ }},
	{"GPU workers", func(m *pipeline.Model) { m.Policy.GPUWorkers++ }},
	{"devices", func(m *pipeline.Model) { m.Policy.Devices++ }},
	{"cores", func(m *pipeline.Model) { m.Machine.CPUs++ }},
	{"channel", func(m *pipeline.Model) { m.Policy.ChannelCapacity = pipeline.Unbounded }},
	{"byte budget", func(m *pipeline.Model) { m.Policy.ByteBudget = pipeline.Unbounded }},
}

// TestMoreOfAResourceKeepsTheTraceValid: more permits, workers, devices, cores, room or bytes need not
// be faster, but what comes out is a valid trace, and no run that finishes is stopped by it. The random
// policies stop a run only where the byte budget is held for good; it still stops for that reason
// with more of anything else, and finishes with more bytes.
func TestMoreOfAResourceKeepsTheTraceValid(t *testing.T) {
	stops := 0
	everyPolicy(t, 240, func(t rapid.TB, m *pipeline.Model) {
		before := outcome(t, "as drawn", m)
		if before != nil {
			stops++
		}
		for _, r := range more {
			changed := *m
			r.add(&changed)
			after := outcome(t, r.name, &changed)
			switch {
			case before == nil && after != nil:
				t.Errorf("more of %s stops a run that finishes: %v", r.name, after)
			case before != nil && r.name == "byte budget" && after != nil:
				t.Errorf("%v; without a bound on it, %v", before, after)
			case before != nil && after != nil && !waitsForBytes(after):
				t.Errorf("%v; with more of %s, %v", before, r.name, after)
			}
		}
		if before != nil && !waitsForBytes(before) {
			t.Errorf("a run stops for something else than bytes: %v", before)
		}
	})
	if !*random && stops < 3 {
		t.Errorf("%d of the models stop: too few to say anything of those", stops)
	}
}

// outcome is nil where m finishes, with a valid trace, else what stops it.
func outcome(t rapid.TB, what string, m *pipeline.Model) *sim.DeadlockError {
	t.Helper()
	data, _, err := sim.Record(m, sim.Draw{})
	var dead *sim.DeadlockError
	if errors.As(err, &dead) {
		return dead
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	broken, err := trace.Validate(trace.FromData(data), 3)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, v := range broken {
		t.Errorf("%s: %v", what, v)
	}
	return nil
}

// waitsForBytes says whether somebody waits for the byte budget, which somebody else holds.
func waitsForBytes(e *sim.DeadlockError) bool {
	return slices.ContainsFunc(e.Waits, func(w sim.Wait) bool {
		return strings.HasPrefix(w.For, "the byte budget") && w.HeldBy != ""
	})
}

func stats(t rapid.TB, m *pipeline.Model) (sim.Stats, bool) {
	t.Helper()
	s, err := sim.New(m)
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Run(sim.Draw{Seed: 3})
	return st, err == nil
}

func TestScalingEveryDurationScalesTheMakespan(t *testing.T) {
	everyPolicy(t, 100, func(t rapid.TB, m *pipeline.Model) {
		one, ok := stats(t, m)
		if !ok {
			return
		}
		four, _ := stats(t, quadruple(m))
		if four.MakespanNS != 4*one.MakespanNS || four.PeakLiveBytes != one.PeakLiveBytes {
			t.Errorf("durations times 4: makespan %v and peak %d, before %v and %d", four.MakespanNS,
				four.PeakLiveBytes, one.MakespanNS, one.PeakLiveBytes)
		}
	})
}

// quadruple is m with all times four times as long. Four is a power of two: nothing rounds
// otherwise.
func quadruple(m *pipeline.Model) *pipeline.Model {
	out := *m
	out.Partitions = slices.Clone(m.Partitions)
	for i := range out.Partitions {
		p := &out.Partitions[i]
		p.TurnaroundNS *= 4
		p.Pieces = slices.Clone(p.Pieces)
		for k := range p.Pieces {
			p.Pieces[k].SoloNS *= 4
		}
	}
	out.Jobs = slices.Clone(m.Jobs)
	for i := range out.Jobs {
		j := &out.Jobs[i]
		j.SubmitNS *= 4
		j.Before = slices.Clone(j.Before)
		for k := range j.Before {
			j.Before[k].SoloNS *= 4
		}
	}
	out.Cached = slices.Clone(m.Cached)
	for i := range out.Cached {
		out.Cached[i].LoadNS *= 4
		out.Cached[i].IdleNS *= 4
		out.Cached[i].PollNS *= 4
		out.Cached[i].SaveNS *= 4
	}
	out.Arrivals.AtNS = slices.Clone(m.Arrivals.AtNS)
	for i := range out.Arrivals.AtNS {
		out.Arrivals.AtNS[i] *= 4
	}
	out.Arrivals.IntervalNS *= 4
	out.Batch.WaitNS *= 4
	out.Machine.TurnaroundNS *= 4
	out.Pacer = m.Pacer.WithDefaults()
	for _, x := range []*float64{
		&out.Pacer.IntervalMinNS, &out.Pacer.IntervalMaxNS, &out.Pacer.BootstrapNS,
		&out.Pacer.RebootstrapNS,
	} {
		*x *= 4
	}
	return &out
}

func TestRoomForAllIsUnboundedUnderEveryPolicy(t *testing.T) {
	everyPolicy(t, 100, func(t rapid.TB, m *pipeline.Model) {
		m.Policy.ChannelCapacity = pipeline.Unbounded
		unbounded, ok := stats(t, m)
		m.Policy.ChannelCapacity = pipeline.Bound(m.Policy.Jobs * m.Policy.Partitions)
		if roomy, also := stats(t, m); roomy != unbounded || ok != also {
			t.Errorf("room for all: %+v, unbounded: %+v", roomy, unbounded)
		}
	})
}
