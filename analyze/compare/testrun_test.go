package compare

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"highwater/tracer/trace"
)

// shop is a small pipeline that records an ordinary trace: synthesis and prove_start of each
// partition, one after the other on two workers, with buffers a (from synthesis to the end of
// prove_start) and aux (likewise), a key that is resident, and two counters.
type shop struct {
	jobs, partitions   int64
	firstJob           int64 // id of the first job submitted
	synthNS, proveNS   float64
	aBytes, auxBytes   int64
	faults             float64
	noise              float64 // standard deviation of stage times, relative
	seed               uint64
	settings           map[string]string
	commit             string
	startNS            int64 // Unix
	end                string
	skip               map[[2]int64]bool // partitions not run, by job's rank and partition
	longer             map[[2]int64]float64
	noCounters, noJobs bool
	edit               func(*shopEvents) // before events are numbered
}

func usualShop(seed uint64) shop {
	return shop{
		jobs: 3, partitions: 3, synthNS: 1e8, proveNS: 3e8, aBytes: 4 << 20, auxBytes: 1 << 20,
		faults: 1000, noise: 0.01, seed: seed, settings: map[string]string{"presize": "true"},
		commit: "c0", startNS: 1e18, end: trace.EndFinished,
	}
}

// shopEvents gathers rows with a time each; their order is given last.
type shopEvents struct {
	d      *trace.Data
	nextID int64
	nextSp int64
}

// run makes the trace, checks it, and reduces it.
func (s shop) run(t testing.TB, name string) *Run {
	t.Helper()
	d := s.data()
	broken, err := trace.Validate(trace.FromData(d), 3)
	if err != nil || len(broken) > 0 {
		t.Fatalf("the test's trace is not valid: %v %v", err, broken)
	}
	tr := trace.FromData(d)
	tr.Dir = name
	r, err := ReadRun(tr)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s shop) data() *trace.Data {
	rng := rand.New(rand.NewPCG(s.seed, 7))
	e := &shopEvents{d: &trace.Data{Manifest: s.manifest()}}
	e.buffer("key", -1, -1, 8<<20, 1, trace.Null)
	now := int64(1e9)
	if !s.noJobs {
		for j := range s.jobs {
			e.queue("job", trace.EventRequest, now+j, s.firstJob+j, -1, 0, j+1)
		}
	}
	var synthFree, proveFree int64 = now + 100, now + 100
	for j := range s.jobs {
		job := s.firstJob + j
		if s.noJobs {
			job = -1
		}
		for p := range s.partitions {
			if s.skip[[2]int64{j, p}] {
				continue
			}
			began := synthFree + 10
			synthEnd := began + s.time(rng, s.synthNS)
			proveBegan := max(synthEnd, proveFree) + 10
			proveEnd := proveBegan + s.time(rng, s.proveNS)
			e.span("synthesis", job, p, began, synthEnd)
			e.span("prove_start", job, p, proveBegan, proveEnd)
			free := proveEnd + int64(s.longer[[2]int64{j, p}]*1e9)
			e.buffer("a", job, p, s.aBytes, began+1, free+1)
			e.buffer("aux", job, p, s.auxBytes, began+2, free+2)
			synthFree, proveFree = synthEnd, proveEnd+5
		}
	}
	if !s.noJobs {
		for j := range s.jobs {
			e.queue("job", trace.EventAcquire, now+50+j, s.firstJob+j, -1, j+1, s.jobs-j-1)
			e.queue("job", trace.EventRelease, proveFree+1e10+j, s.firstJob+j, -1, s.jobs-j-1, 0)
		}
	}
	if !s.noCounters {
		e.counters(now, proveFree, s.faults*(1+s.noise*rng.NormFloat64()))
	}
	if s.edit != nil {
		s.edit(e)
	}
	e.number()
	return e.d
}

// copied adds a copy to or from the device.
func (e *shopEvents) copied(name string, job, beginNS, ns, bytes int64) {
	e.span("", job, 0, beginNS, beginNS+ns)
	s := &e.d.Spans[len(e.d.Spans)-1]
	s.Kind, s.Name, s.Bytes, s.Device = trace.KindCopy, name, bytes, 0
}

func (s shop) time(rng *rand.Rand, ns float64) int64 {
	return max(1000, int64(ns*(1+s.noise*rng.NormFloat64())))
}

func (s shop) manifest() trace.Manifest {
	m := trace.Manifest{
		SchemaVersion: trace.SchemaVersion, Origin: trace.OriginRecorded, Program: "shop",
		Anchor:   trace.Anchor{Kind: trace.AnchorMonotonic, UnixNS: s.startNS},
		Host:     trace.Host{CPUModel: "shop", CPUs: 2, RAMBytes: 1 << 34},
		Circuit:  &trace.Circuit{Name: "mimc", Constraints: 100, DomainSize: 128},
		Settings: map[string]trace.Setting{}, Commit: s.commit,
		Versions:   map[string]string{"go": "go1.26"},
		Resources:  []trace.Resource{{Name: "job", Kind: "job", Unit: "job", Device: -1}},
		Sources:    []trace.Source{{Name: "main", Kind: "process", PID: 1, Device: -1}},
		SealedBy:   trace.SealedByClose,
		ProcessEnd: s.end,
		Metrics: []trace.Metric{
			{Name: "process.memory.usage", Unit: "By", Kind: "gauge"},
			{Name: "process.paging.faults.minor", Unit: "{fault}", Kind: "counter"},
			{Name: "process.cpu.time.user", Unit: "s", Kind: "counter"},
		},
	}
	for name, v := range s.settings {
		m.Settings[name] = trace.Setting{Value: v, Source: "flag"}
	}
	return m
}

func (e *shopEvents) buffer(class string, job, partition, bytes, allocNS, freeNS int64) {
	e.nextID++
	b := trace.BufferEvent{
		TimeNS: allocNS, Source: "main", Event: trace.EventAlloc, BufferID: e.nextID, Class: class,
		Space: trace.SpaceHost, Device: -1, CapacityBytes: bytes, ResidentBytes: bytes,
		DeltaBytes: bytes, DeltaResidentBytes: bytes, Job: job, Partition: partition, Worker: -1,
	}
	e.d.Buffers = append(e.d.Buffers, b)
	if freeNS == trace.Null {
		return
	}
	b.Event, b.TimeNS, b.DeltaBytes, b.DeltaResidentBytes = trace.EventFree, freeNS, -bytes, -bytes
	b.CapacityBytes, b.ResidentBytes = 0, 0
	e.d.Buffers = append(e.d.Buffers, b)
}

func (e *shopEvents) span(stage string, job, partition, beginNS, endNS int64) {
	e.nextSp++
	e.d.Spans = append(e.d.Spans, trace.Span{
		Source: "main", SpanID: e.nextSp, Kind: trace.KindStage, Stage: stage, Name: stage,
		Track: "t", Job: job, Partition: partition, Worker: -1, Device: -1, Stream: trace.Null,
		Threads: trace.Null, BeginNS: beginNS, EndNS: endNS, CPUNS: trace.Null,
		Bytes: trace.Null, Status: "ok",
	})
}

func (e *shopEvents) queue(resource, event string, ns, job, partition, level, waiting int64) {
	e.d.Queues = append(e.d.Queues, trace.QueueEvent{
		TimeNS: ns, Source: "main", Resource: resource, Event: event, Job: job,
		Partition: partition, Worker: -1, Amount: 1, LevelAfter: level, WaitingAfter: waiting,
	})
}

func (e *shopEvents) counters(from, to int64, faults float64) {
	for i := range int64(5) {
		share := float64(i) / 4
		at := from + i*(to-from)/4
		for _, x := range []struct {
			metric string
			value  float64
		}{
			{"process.memory.usage", 100e6}, {"process.paging.faults.minor", 50 + share*faults},
			{"process.cpu.time.user", share},
		} {
			e.d.Samples = append(e.d.Samples,
				trace.Sample{TimeNS: at, Source: "main", Metric: x.metric, Value: x.value})
		}
	}
}

// number orders all events by time and gives them their seq.
func (e *shopEvents) number() {
	type event struct {
		ns  int64
		seq *int64
	}
	var all []event
	for i := range e.d.Spans {
		s := &e.d.Spans[i]
		all = append(all, event{s.BeginNS, &s.BeginSeq}, event{s.EndNS, &s.EndSeq})
	}
	for i := range e.d.Buffers {
		all = append(all, event{e.d.Buffers[i].TimeNS, &e.d.Buffers[i].Seq})
	}
	for i := range e.d.Queues {
		all = append(all, event{e.d.Queues[i].TimeNS, &e.d.Queues[i].Seq})
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.ns, b.ns) })
	for i := range all {
		*all[i].seq = int64(i + 1)
	}
	d := e.d
	slices.SortFunc(d.Spans, func(a, b trace.Span) int { return cmp.Compare(a.BeginSeq, b.BeginSeq) })
	slices.SortFunc(d.Buffers, func(a, b trace.BufferEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortFunc(d.Queues, func(a, b trace.QueueEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortFunc(d.Samples, func(a, b trace.Sample) int {
		return cmp.Or(cmp.Compare(a.TimeNS, b.TimeNS), cmp.Compare(a.Metric, b.Metric))
	})
}

// side makes n runs that differ by their noise; change edits each run's shop.
func side(t testing.TB, name string, from uint64, n int, change func(*shop)) []*Run {
	t.Helper()
	var runs []*Run
	for i := range n {
		s := usualShop(from + uint64(i))
		if change != nil {
			change(&s)
		}
		runs = append(runs, s.run(t, fmt.Sprintf("%s-%02d", name, i)))
	}
	return runs
}

func mustCompare(t *testing.T, base, next []*Run, opts Options) *Diff {
	t.Helper()
	d, err := Compare(base, next, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// row is the row of a metric, nil where there is none.
func (d *Diff) row(name, subject string) *Row {
	for _, rows := range [][]Row{d.Outcomes, d.Explanations} {
		for i := range rows {
			if rows[i].Metric == (Metric{name, subject}) {
				return &rows[i]
			}
		}
	}
	return nil
}

func verdictOf(d *Diff, name, subject string) string {
	if r := d.row(name, subject); r != nil {
		return r.Verdict
	}
	return "no row"
}
