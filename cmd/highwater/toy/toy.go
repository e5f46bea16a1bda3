// Package toy is a small recorded program of the prover's shape, with faults on demand: real
// threads, real memory, real clocks, and no mathematics. `highwater corpus --real` runs it in
// processes of its own and lets analyze look at the traces.
//
// Its work is sleep: what a thread does while a device works. A partition synthesises (permit),
// waits for the device's lock, proves, finalises; its buffers are mapped and touched.
package toy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"highwater/tracer"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// Kinds lists the faults that Run can have, then "clean".
func Kinds() []string {
	return []string{
		"leak", "ledger-audit", "allocator-retention", "measurement-artefact", "gpu-starvation",
		"thundering-herd", "clean",
	}
}

// shape is how a run goes.
type shape struct {
	jobs, partitions, permits int
	together                  bool // job after job, all partitions at once
	synthesis, gpu, bg2       time.Duration
	vector                    int           // bytes of each of four
	hz                        float64       // of the samples
	keep                      bool          // c is never freed
	twice                     bool          // the last free is recorded again
	heap                      int           // bytes on the heap that each partition makes and drops
	idle                      time.Duration // after the work
	noHWM                     bool          // the kernel's high-water mark is not sampled
}

func shapeOf(kind string) (shape, error) {
	s := shape{
		jobs: 10, partitions: 3, permits: 2, synthesis: 60 * time.Millisecond,
		gpu: 25 * time.Millisecond, bg2: 5 * time.Millisecond, vector: 1 << 20, hz: 50,
	}
	switch kind {
	case "leak":
		s.keep, s.jobs = true, 14
	case "ledger-audit":
		s.twice = true
	case "allocator-retention":
		s.heap, s.idle, s.jobs = 192<<20, 11*time.Second, 3
	case "measurement-artefact":
		s.hz, s.noHWM = 1, true
	case "gpu-starvation":
		s.gpu, s.permits = 8*time.Millisecond, 1
	case "thundering-herd":
		s.together, s.partitions, s.permits = true, 6, 6
		s.synthesis, s.gpu = 200*time.Millisecond, 15*time.Millisecond
	case "clean":
	default:
		return s, fmt.Errorf("run toy program: no kind %q", kind)
	}
	return s, nil
}

// program is one run.
type program struct {
	shape
	rec          *tracer.Recorder
	permit, lock *gate
	job          *tracer.Queue
	channel      *tracer.Queue
	mu           sync.Mutex // of job, channel and what follows
	queued       int64
	inFlight     int64
	kept         [][]byte
	err          error
}

// Run records one run of that kind into dir.
func Run(dir, kind string) (err error) {
	s, err := shapeOf(kind)
	if err != nil {
		return err
	}
	rec, err := tracer.Create(dir, tracer.Options{Manifest: s.manifest(kind), NoOTLP: true})
	if err != nil {
		return err //nolint:wrapcheck // says what it is about
	}
	p := &program{shape: s, rec: rec}
	if err := p.base(); err != nil {
		return err
	}
	sampler, err := probe.Start(&sink{rec, s.noHWM}, probe.Options{Hz: s.hz})
	if err != nil {
		return fmt.Errorf("sample toy program: %w", err)
	}
	p.queues()
	p.run()
	time.Sleep(s.idle)
	sampler.Stop()
	if err := rec.Close(trace.EndFinished, ""); err != nil {
		return err //nolint:wrapcheck // says what it is about
	}
	return p.err
}

func (s *shape) manifest(kind string) trace.Manifest {
	m := trace.Manifest{
		Origin: trace.OriginRecorded, Program: "highwater corpus " + kind,
		Settings: map[string]trace.Setting{
			"partition_workers": {Value: fmt.Sprint(s.permits), Source: "default"},
			"gpu_workers":       {Value: "1", Source: "default"},
			"jobs":              {Value: fmt.Sprint(s.jobs), Source: "default"},
			"partitions":        {Value: fmt.Sprint(s.partitions), Source: "default"},
			"permit_release":    {Value: "send_accepted", Source: "default"},
			"early_free":        {Value: "true", Source: "default"},
			"split_proving":     {Value: "true", Source: "default"},
		},
	}
	if s.together {
		m.Settings["jobs_in_flight"] = trace.Setting{Value: "1", Source: "default"}
	}
	for _, x := range probe.Metrics() {
		m.Metrics = append(m.Metrics, trace.Metric{Name: x.Name, Unit: x.Unit, Kind: x.Kind})
	}
	return m
}

// base measures what the process takes besides its buffers.
func (p *program) base() error {
	rss, err := probe.ReadRSS(0)
	if err != nil {
		return fmt.Errorf("measure base: %w", err)
	}
	err = p.rec.UpdateManifest(func(m *trace.Manifest) { m.BaseBytes = &rss })
	if err != nil {
		return fmt.Errorf("write base: %w", err)
	}
	return nil
}

// sink passes samples on; without the kernel's high-water mark where a run is to have none.
type sink struct {
	rec   *tracer.Recorder
	noHWM bool
}

// Sample implements probe.Sink.
func (s *sink) Sample(metric string, value float64) {
	if s.noHWM && metric == probe.HWM {
		return
	}
	s.rec.Sample(metric, value)
}

func (p *program) queues() {
	one, permits := int64(1), int64(p.permits)
	p.job = p.rec.Queue(trace.Resource{
		Name: "job", Kind: trace.ResourceJob, Unit: "job", Device: trace.None,
	})
	p.channel = p.rec.Queue(trace.Resource{
		Name: "channel", Kind: trace.ResourceChannel, Unit: "item", Device: trace.None,
	})
	p.permit = newGate(p.rec.Queue(trace.Resource{
		Name: "permit", Kind: trace.ResourcePermit, Unit: "permit", Capacity: &permits,
		Order: "fifo", Device: trace.None,
	}), permits)
	p.lock = newGate(p.rec.Queue(trace.Resource{
		Name: "gpu_lock/0", Kind: trace.ResourceLock, Unit: "permit", Capacity: &one,
		Order: "fifo",
	}), 1)
}

// run does all jobs: together one after another, else two at a time.
func (p *program) run() {
	width := 2
	if p.together {
		width = 1
	}
	slots := make(chan struct{}, width)
	var jobs sync.WaitGroup
	for j := range p.jobs {
		slots <- struct{}{}
		jobs.Go(func() {
			p.oneJob(int32(j))
			<-slots
		})
	}
	jobs.Wait()
}

func (p *program) oneJob(j int32) {
	owner := tracer.NoOwner
	owner.Job = j
	p.count(trace.EventRequest, owner, 0)
	p.count(trace.EventAcquire, owner, 1)
	ctx, span := p.rec.Start(context.Background(), tracer.SpanSpec{
		Kind: trace.KindJob, Name: fmt.Sprintf("job-%d", j), Track: "jobs", Owner: owner, Device: -1,
		Stream: trace.Null, Threads: trace.Null,
	})
	var parts sync.WaitGroup
	for i := range p.partitions {
		o := owner
		o.Partition = int32(i)
		parts.Go(func() { p.partition(ctx, o) })
	}
	parts.Wait()
	span.End(nil)
	p.count(trace.EventRelease, owner, -1)
}

// count records an event of the job resource.
func (p *program) count(event string, o tracer.Owner, change int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight += change
	p.job.Event(tracer.QueueOp{
		Event: event, Owner: o, Amount: 1, LevelAfter: p.inFlight, WaitingAfter: trace.Null,
	})
}

// hand records an event of the channel, which has room for all.
func (p *program) hand(event string, o tracer.Owner, change int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued += change
	p.channel.Event(tracer.QueueOp{
		Event: event, Owner: o, Amount: 1, LevelAfter: p.queued, WaitingAfter: 0,
	})
}

// partition is one partition's way.
func (p *program) partition(ctx context.Context, o tracer.Owner) {
	p.permit.acquire(o)
	var v [4]vector
	p.stage(ctx, o, trace.StageSynthesis, p.synthesis, func(o tracer.Owner) {
		for i, class := range []string{trace.ClassA, trace.ClassB, trace.ClassC, trace.ClassAux} {
			v[i] = p.make(class, o)
		}
		p.churn()
	})
	p.hand(trace.EventSend, o, 0)
	p.hand(trace.EventSent, o, 1)
	// The permit is held until the device takes the partition: the channel has no bound.
	p.lock.acquire(o)
	p.hand(trace.EventRecv, o, -1)
	p.permit.release(o)
	p.stage(ctx, o, trace.StageProveStart, p.gpu, func(tracer.Owner) {})
	for i := range 3 {
		if i == 2 && p.keep && o.Partition == 0 {
			continue
		}
		p.free(&v[i])
	}
	p.lock.release(o)
	p.stage(ctx, o, trace.StageBG2, p.bg2, func(tracer.Owner) {})
	p.free(&v[3])
	if p.twice && o.Job == int32(p.jobs-1) {
		v[3].buffer.Free()
	}
}

func (p *program) stage(ctx context.Context, o tracer.Owner, name string, d time.Duration,
	work func(tracer.Owner),
) {
	o.Stage = name
	_, span := p.rec.Start(ctx, tracer.SpanSpec{
		Kind: trace.KindStage, Stage: name, Name: name, Track: name, Owner: o, Device: -1,
		Stream: trace.Null, Threads: 1,
	})
	o.Span = span.ID()
	work(o)
	time.Sleep(d)
	span.End(nil)
}

// vector is mapped memory with its record.
type vector struct {
	memory []byte
	buffer tracer.Buffer
}

// make maps a vector and touches it.
func (p *program) make(class string, o tracer.Owner) vector {
	m, err := unix.Mmap(-1, 0, p.vector, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		p.fail(fmt.Errorf("map %d bytes: %w", p.vector, err))
		return vector{}
	}
	for i := 0; i < len(m); i += 4096 {
		m[i] = 1
	}
	return vector{m, p.rec.Alloc(tracer.BufferSpec{
		Class: class, Space: trace.SpaceHost, Device: -1, CapacityBytes: int64(p.vector),
		ResidentBytes: int64(p.vector), Owner: o,
	})}
}

func (p *program) free(v *vector) {
	if v.memory == nil {
		return
	}
	v.buffer.LastUse()
	v.buffer.Free()
	if err := unix.Munmap(v.memory); err != nil {
		p.fail(fmt.Errorf("unmap: %w", err))
	}
}

func (p *program) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

// churn makes garbage on the heap, which the runtime keeps when it is dead.
func (p *program) churn() {
	if p.heap == 0 {
		return
	}
	b := make([]byte, p.heap)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	p.mu.Lock()
	p.kept = append(p.kept[:0], b[:1])
	p.mu.Unlock()
}
