package analyze_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"highwater/analyze"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// BenchmarkRunFile analyzes a trace on disk of a pipeline's shape with every analyzer: rows/s, and
// the highest resident set. Its size is HIGHWATER_BENCH_ROWS, 200,000 without; make
// validate-analyze takes 10 million.
func BenchmarkRunFile(b *testing.B) {
	rows := 200_000
	if n, err := strconv.Atoi(os.Getenv("HIGHWATER_BENCH_ROWS")); err == nil {
		rows = n
	}
	dir := filepath.Join(b.TempDir(), "big.hw")
	written := writeBig(b, dir, rows)
	if err := probe.ResetHWM(0); err != nil {
		b.Logf("the highest resident set includes what came before: %v", err)
	}
	b.ResetTimer()
	for b.Loop() {
		t, err := trace.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		begin, cpu := time.Now(), cpuSeconds(b)
		if _, err := analyze.Run(t, analyze.Options{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(begin).Seconds(), "s/run")
		b.ReportMetric(cpuSeconds(b)-cpu, "cpu-s/run")
		t.Close()
	}
	b.ReportMetric(float64(written)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	if hwm, err := probe.ReadHWM(0); err == nil {
		b.ReportMetric(float64(hwm)/(1<<20), "MiB-peak")
	}
}

// cpuSeconds is the CPU time of this process so far: on a machine that others use it says more than
// the clock.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// bigTrace writes a trace row by row.
type bigTrace struct {
	w       *trace.Writer
	b       *testing.B
	now     int64
	seq     int64
	id      int64
	written int
}

func (x *bigTrace) next() (timeNS, seq int64) {
	x.now += 1000
	x.seq++
	x.written++
	return x.now, x.seq
}

func (x *bigTrace) check(err error) {
	if err != nil {
		x.b.Fatal(err)
	}
}

func (x *bigTrace) queue(resource, event string, job, part, level int64) {
	now, seq := x.next()
	x.check(x.w.Queue(&trace.QueueEvent{
		TimeNS: now, Seq: seq, Source: "main", Resource: resource, Event: event, Job: job,
		Partition: part, Worker: 0, Amount: 1, LevelAfter: level,
	}))
}

func (x *bigTrace) buffer(event, class string, id, bytes, job, part int64) {
	now, seq := x.next()
	e := trace.BufferEvent{
		TimeNS: now, Seq: seq, Source: "main", Event: event, BufferID: id, Class: class,
		Space: trace.SpaceHost, Device: trace.None, CapacityBytes: bytes, ResidentBytes: bytes,
		Job: job, Partition: part, Stage: trace.StageSynthesis,
	}
	switch event {
	case trace.EventAlloc:
		e.DeltaBytes, e.DeltaResidentBytes = bytes, bytes
	case trace.EventFree:
		e.CapacityBytes, e.ResidentBytes, e.DeltaBytes, e.DeltaResidentBytes = 0, 0, -bytes, -bytes
	}
	x.check(x.w.Buffer(&e))
}

func (x *bigTrace) span(kind, stage, name string, job, part int64) {
	begin, from := x.next()
	end, to := x.next()
	x.written-- // one row, two events
	x.id++
	x.check(x.w.Span(&trace.Span{
		BeginSeq: from, EndSeq: to, Source: "main", SpanID: x.id, Kind: kind, Stage: stage,
		Name: name, Track: "gpu/0", Job: job, Partition: part, Worker: 0, Device: trace.None,
		Stream: trace.Null, Threads: 1, BeginNS: begin, EndNS: end, CPUNS: end - begin,
		Bytes: 8 << 20, Status: "ok",
	}))
}

func (x *bigTrace) sample(metric string, v float64) {
	x.written++
	x.check(x.w.Sample(&trace.Sample{TimeNS: x.now, Source: "main", Metric: metric, Value: v}))
}

// partition writes one partition's events: 60 rows.
func (x *bigTrace) partition(job, part, ids int64) {
	for _, e := range []string{trace.EventRequest, trace.EventAcquire} {
		x.queue("permit", e, job, part, 1)
	}
	classes := []string{"a", "b", "c", "aux", "split", "cpu_scratch"}
	for i, c := range classes {
		x.buffer(trace.EventAlloc, c, ids+int64(i), 4<<20, job, part)
		x.buffer(trace.EventFill, c, ids+int64(i), 4<<20, job, part)
	}
	x.span(trace.KindStage, trace.StageSynthesis, "synthesis", job, part)
	x.queue("channel", trace.EventSend, job, part, 0)
	x.queue("channel", trace.EventSent, job, part, 1)
	x.queue("permit", trace.EventRelease, job, part, 0)
	x.queue("channel", trace.EventRecv, job, part, 0)
	x.queue("gpu_lock/0", trace.EventRequest, job, part, 0)
	x.queue("gpu_lock/0", trace.EventAcquire, job, part, 1)
	for range 4 {
		x.span(trace.KindCopy, "", "copy_h2d", job, part)
		x.span(trace.KindKernel, "", "ntt", job, part)
	}
	x.span(trace.KindStage, trace.StageProveStart, "prove_start", job, part)
	x.queue("gpu_lock/0", trace.EventRelease, job, part, 0)
	for i, c := range classes {
		x.buffer(trace.EventLastUse, c, ids+int64(i), 4<<20, job, part)
		x.buffer(trace.EventFree, c, ids+int64(i), 4<<20, job, part)
	}
	x.span(trace.KindStage, trace.StageBG2, "b_g2", job, part)
	f := float64(x.now)
	for i, metric := range []string{
		probe.RSS, probe.FaultsMinor, probe.FaultsMajor, probe.CPUUser, probe.CPUSystem,
		probe.CgroupUsage, probe.GoUsed, probe.GoHeapLive, "go.memory.heap.free",
		"container.memory.events.max", "system.cpu.time.user", "system.cpu.time.idle",
		"container.cpu.throttled.time", probe.MemAvailable, probe.HWM,
	} {
		x.sample(metric, f/float64(i+1))
	}
}

func writeBig(b *testing.B, dir string, rows int) int {
	b.Helper()
	w, err := trace.Create(dir)
	if err != nil {
		b.Fatal(err)
	}
	x := &bigTrace{w: w, b: b}
	ids := int64(1)
	for job := int64(0); x.written < rows; job++ {
		x.queue("job", trace.EventRequest, job, -1, 0)
		x.queue("job", trace.EventAcquire, job, -1, 1)
		for part := range int64(10) {
			x.partition(job, part, ids)
			ids += 6
		}
		x.queue("job", trace.EventRelease, job, -1, 0)
	}
	m := bigManifest()
	if err := w.Close(&m); err != nil {
		b.Fatal(err)
	}
	return x.written
}

func bigManifest() trace.Manifest {
	two, one := int64(2), int64(1)
	m := trace.Manifest{
		SchemaVersion: trace.SchemaVersion, Origin: trace.OriginRecorded, Program: "bench",
		Anchor:   trace.Anchor{Kind: trace.AnchorMonotonic},
		SealedBy: trace.SealedByClose, ProcessEnd: trace.EndFinished,
		Host: trace.Host{CPUs: 2, RAMBytes: 32 << 30},
		Sources: []trace.Source{{
			Name: "main", Kind: "process", Device: trace.None,
			Anchor: trace.Anchor{Kind: trace.AnchorMonotonic},
		}},
		Settings: map[string]trace.Setting{"partition_workers": {Value: "2"}},
	}
	for i, kind := range []string{trace.ResourceJob, trace.ResourcePermit, trace.ResourceChannel} {
		m.Resources = append(m.Resources, trace.Resource{
			Name: kind, Kind: kind, Unit: kind, Capacity: []*int64{nil, &two, &one}[i],
			Device: trace.None,
		})
	}
	m.Resources = append(m.Resources, trace.Resource{
		Name: "gpu_lock/0", Kind: trace.ResourceLock, Unit: "lock", Capacity: &one,
	})
	for _, x := range probe.Metrics() {
		m.Metrics = append(m.Metrics, trace.Metric{Name: x.Name, Unit: x.Unit, Kind: x.Kind})
	}
	return m
}
