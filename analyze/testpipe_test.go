package analyze_test

import (
	"sort"
	"strconv"
	"testing"

	"highwater/tracer/trace"
)

// pipe is a small pipeline in virtual time that records an ordinary trace: the shape of the
// prover's, with fixed stage times, so that a test can say what a finding must show.
type pipe struct {
	jobs, partitions int
	permits          int
	capacity         int64 // of the channel; trace.Null is unbounded
	release          string
	earlyFree        bool
	synthNS, gpuNS   int64
	bg2NS            int64
	keepBuffers      bool // leak c
	rss              func(live int64) float64
	mutate           func(d *trace.Data)

	data    trace.Data
	now     int64
	seq     int64
	levels  map[string][2]int64 // by resource: level, waiting
	agenda  []appointment
	order   int
	nextBuf int64
	nextSpn int64
	held    int
	wantPmt []*part
	senders []*part
	channel []*part
	gpuBusy bool
	live    map[int64]*trace.BufferEvent
	bytes   int64
}

type appointment struct {
	at    int64
	order int
	do    func()
}

type part struct {
	job, index int64
	abc        [3]int64
	aux        int64
}

const vectorBytes = 8 << 20

func incident() pipe {
	return pipe{
		jobs: 4, partitions: 4, permits: 2, capacity: 1, release: "synth_end", earlyFree: true,
		synthNS: 1e9, gpuNS: 2e9, bg2NS: 5e8,
	}
}

func held() pipe {
	p := incident()
	p.release = "send_accepted"
	return p
}

// run records the pipeline and validates the trace.
func (p pipe) run(t testing.TB) *trace.Trace {
	t.Helper()
	p.start()
	for len(p.agenda) > 0 {
		sort.SliceStable(p.agenda, func(i, j int) bool {
			a, b := p.agenda[i], p.agenda[j]
			return a.at < b.at || a.at == b.at && a.order < b.order
		})
		next := p.agenda[0]
		p.agenda = p.agenda[1:]
		p.now = max(p.now, next.at)
		next.do()
	}
	p.free(1)
	if p.mutate != nil {
		p.mutate(&p.data)
	} else {
		validate(t, &p.data)
	}
	return trace.FromData(&p.data)
}

func validate(t testing.TB, d *trace.Data) {
	t.Helper()
	violations, err := trace.Validate(trace.FromData(d), 5)
	if err != nil || len(violations) > 0 {
		t.Fatalf("validate the test's own trace: %v, %v", violations, err)
	}
}

func (p *pipe) start() {
	capacity := &p.capacity
	if p.capacity == trace.Null {
		capacity = nil
	}
	permits, one := int64(p.permits), int64(1)
	p.live, p.levels = map[int64]*trace.BufferEvent{}, map[string][2]int64{}
	p.data.Manifest = trace.Manifest{
		SchemaVersion: trace.SchemaVersion, Origin: trace.OriginRecorded, Program: "pipe", Seed: 1,
		Anchor:   trace.Anchor{Kind: trace.AnchorMonotonic},
		SealedBy: trace.SealedByClose, ProcessEnd: trace.EndFinished,
		Memory: trace.MemoryLimit{EffectiveBytes: 4 << 30, Kind: "cgroup"},
		Settings: map[string]trace.Setting{
			"partition_workers": {
				Value:  strconv.Itoa(p.permits),
				Source: "flag",
			}, "gpu_workers": {Value: "1", Source: "default"},
			"permit_release": {
				Value:  p.release,
				Source: "flag",
			}, "split_proving": {Value: "true", Source: "default"},
			"early_free": {Value: strconv.FormatBool(p.earlyFree), Source: "flag"},
		},
		Resources: []trace.Resource{
			{Name: "job", Kind: trace.ResourceJob, Unit: "job", Device: trace.None},
			{
				Name:     "permit",
				Kind:     trace.ResourcePermit,
				Unit:     "permit",
				Capacity: &permits,
				Order:    "fifo",
				Device:   trace.None,
			},
			{
				Name:     "channel",
				Kind:     trace.ResourceChannel,
				Unit:     "item",
				Capacity: capacity,
				Order:    "fifo",
				Device:   trace.None,
			},
			{
				Name:     "gpu_lock/0",
				Kind:     trace.ResourceLock,
				Unit:     "permit",
				Capacity: &one,
				Order:    "fifo",
			},
		},
		Sources: []trace.Source{
			{
				Name:   "main",
				Kind:   "process",
				Device: trace.None,
				Anchor: trace.Anchor{Kind: trace.AnchorMonotonic},
			},
		},
		Metrics: []trace.Metric{
			{
				Name: "process.memory.usage",
				Unit: "By",
				Kind: "gauge",
			}, {Name: "process.paging.faults.minor", Unit: "{fault}", Kind: "counter"},
		},
	}
	p.alloc("key", 64<<20, -1, -1, "key_load")
	p.now = 1e9
	for j := range int64(p.jobs) {
		p.queue("job", trace.EventRequest, j, -1)
	}
	for j := range int64(p.jobs) {
		p.queue("job", trace.EventAcquire, j, -1)
		for i := range int64(p.partitions) {
			x := &part{job: j, index: i}
			p.queue("permit", trace.EventRequest, j, i)
			p.wantPmt = append(p.wantPmt, x)
		}
	}
	p.grant()
}

// tick gives the next event its time and seq: both rise strictly.
func (p *pipe) tick() (timeNS, seq int64) {
	p.now++
	p.seq++
	return p.now, p.seq
}

func (p *pipe) in(ns int64, do func()) {
	p.order++
	p.agenda = append(p.agenda, appointment{p.now + ns, p.order, do})
}

func (p *pipe) grant() {
	for p.held < p.permits && len(p.wantPmt) > 0 {
		x := p.wantPmt[0]
		p.wantPmt = p.wantPmt[1:]
		p.held++
		p.queue("permit", trace.EventAcquire, x.job, x.index)
		end := p.span("synthesis", x)
		for i, class := range []string{"a", "b", "c"} {
			x.abc[i] = p.alloc(class, vectorBytes, x.job, x.index, "synthesis")
		}
		x.aux = p.alloc("aux", vectorBytes, x.job, x.index, "synthesis")
		p.in(p.synthNS, func() {
			end()
			p.synthesised(x)
		})
	}
}

func (p *pipe) giveBack(x *part) {
	p.queue("permit", trace.EventRelease, x.job, x.index)
	p.held--
	p.grant()
}

func (p *pipe) synthesised(x *part) {
	p.queue("channel", trace.EventSend, x.job, x.index)
	p.senders = append(p.senders, x)
	if p.release == "synth_end" {
		p.giveBack(x)
	}
	p.move()
}

func (p *pipe) move() {
	for {
		switch {
		case len(p.channel) > 0 && !p.gpuBusy:
			x := p.channel[0]
			p.channel = p.channel[1:]
			p.prove(x)
		case len(p.senders) > 0 && (p.capacity == trace.Null || int64(len(p.channel)) < p.capacity):
			x := p.senders[0]
			p.senders = p.senders[1:]
			p.channel = append(p.channel, x)
			p.queue("channel", trace.EventSent, x.job, x.index)
			if p.release == "send_accepted" {
				p.giveBack(x)
			}
		default:
			return
		}
	}
}

func (p *pipe) prove(x *part) {
	p.gpuBusy = true
	p.queue("channel", trace.EventRecv, x.job, x.index)
	p.queue("gpu_lock/0", trace.EventRequest, x.job, x.index)
	p.queue("gpu_lock/0", trace.EventAcquire, x.job, x.index)
	end := p.span("prove_start", x)
	p.in(p.gpuNS/4, func() {
		p.buffer(trace.EventLastUse, x.abc[1])
		p.buffer(trace.EventLastUse, x.abc[2])
		p.reclass(x.abc[0], "h")
	})
	p.in(p.gpuNS, func() {
		p.buffer(trace.EventLastUse, x.abc[0])
		end()
		if p.earlyFree {
			p.freeABC(x)
		}
		p.queue("gpu_lock/0", trace.EventRelease, x.job, x.index)
		p.gpuBusy = false
		done := p.span("b_g2", x)
		p.in(p.bg2NS, func() { p.finish(x, done) })
		p.move()
	})
}

func (p *pipe) freeABC(x *part) {
	for i, id := range x.abc {
		if p.keepBuffers && i == 2 {
			continue
		}
		p.free(id)
	}
}

func (p *pipe) finish(x *part, done func()) {
	p.buffer(trace.EventLastUse, x.aux)
	done()
	p.free(x.aux)
	if !p.earlyFree {
		p.freeABC(x)
	}
	if x.index == int64(p.partitions-1) {
		p.queue("job", trace.EventRelease, x.job, -1)
	}
}

func (p *pipe) sample() {
	if p.rss != nil {
		p.data.Samples = append(p.data.Samples, trace.Sample{
			TimeNS: p.now, Source: "main", Metric: "process.memory.usage", Value: p.rss(p.bytes),
		})
	}
}

func (p *pipe) alloc(class string, bytes, job, index int64, stage string) int64 {
	p.nextBuf++
	now, seq := p.tick()
	e := trace.BufferEvent{
		TimeNS: now, Seq: seq, Source: "main", Event: trace.EventAlloc, BufferID: p.nextBuf,
		Class: class, Space: trace.SpaceHost,
		Device: trace.None, CapacityBytes: bytes, ResidentBytes: bytes, DeltaBytes: bytes,
		DeltaResidentBytes: bytes,
		Job:                job, Partition: index, Worker: trace.None, Stage: stage,
	}
	p.live[p.nextBuf] = &e
	p.bytes += bytes
	p.data.Buffers = append(p.data.Buffers, e)
	p.sample()
	return p.nextBuf
}

func (p *pipe) buffer(event string, id int64) *trace.BufferEvent {
	e := *p.live[id]
	e.TimeNS, e.Seq = p.tick()
	e.Event, e.DeltaBytes, e.DeltaResidentBytes = event, 0, 0
	p.data.Buffers = append(p.data.Buffers, e)
	return &p.data.Buffers[len(p.data.Buffers)-1]
}

func (p *pipe) reclass(id int64, class string) {
	p.live[id].Class = class
	p.buffer(trace.EventReclass, id)
}

func (p *pipe) free(id int64) {
	e := p.buffer(trace.EventFree, id)
	e.DeltaBytes, e.DeltaResidentBytes = -e.CapacityBytes, -e.ResidentBytes
	p.bytes += e.DeltaBytes
	e.CapacityBytes, e.ResidentBytes = 0, 0
	delete(p.live, id)
	p.sample()
}

func (p *pipe) queue(resource, event string, job, index int64) {
	at := p.levels[resource]
	switch event {
	case trace.EventRequest, trace.EventSend:
		at[1]++
	case trace.EventAcquire, trace.EventSent:
		at[0]++
		at[1]--
	default:
		at[0]--
	}
	p.levels[resource] = at
	now, seq := p.tick()
	p.data.Queues = append(p.data.Queues, trace.QueueEvent{
		TimeNS: now, Seq: seq, Source: "main", Resource: resource, Event: event, Job: job,
		Partition: index, Worker: trace.None,
		Amount: 1, LevelAfter: at[0], WaitingAfter: at[1],
	})
}

func (p *pipe) span(stage string, x *part) (end func()) {
	p.nextSpn++
	i := len(p.data.Spans)
	now, seq := p.tick()
	p.data.Spans = append(p.data.Spans, trace.Span{
		BeginSeq: seq, EndSeq: trace.Null, Source: "main", SpanID: p.nextSpn, Kind: trace.KindStage,
		Stage: stage, Name: stage,
		Track: stage + "/0", Job: x.job, Partition: x.index, Worker: 0, Device: trace.None,
		Stream:  trace.Null,
		Threads: trace.Null, BeginNS: now, EndNS: trace.Null, CPUNS: trace.Null, Bytes: trace.Null,
	})
	return func() {
		p.data.Spans[i].EndNS, p.data.Spans[i].EndSeq = p.tick()
		p.data.Spans[i].Status = "ok"
	}
}
