package device

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// shortestWait is below what a wait for a lane is not worth a span.
const shortestWait = 1000 // ns

// eventJournal turns a ring's events into the trace's: buffers of the device and of page-locked
// memory, operations, kernels, copies, waits. Its events come from one goroutine; bind and release
// from any.
//
// Device times are mapped to the host's clock with an error of some microseconds. Where it would
// make a child begin before its parent, the child begins with the parent.
type eventJournal struct {
	drain  *tracer.Drain
	device int32
	name   func(uint16) string

	mu       sync.Mutex
	bindings map[work][]binding

	buffers map[uint64]*tracer.Buffer
	ops     map[uint64]*operation
	done    doneOps
	running map[uint64]running // kernels and copies
	waits   map[uint64]Event
	next    uint64 // seq of the next event
	strays  int64  // ends without a begin: it was lost
	pinned  int64  // page-locked bytes taken so far, what is cut from them left out
}

// work is whom a call of the library works for.
type work struct{ job, partition int32 }

// binding says what stage a call for some work belongs to, from a time on.
type binding struct {
	from  int64 // CLOCK_MONOTONIC
	owner tracer.Owner
	until uint64 // seq by which all of its events are written; 0 while it goes on
}

// operation is an operation that has begun.
type operation struct {
	span  tracer.DrainSpan
	id    int64 // of the span
	begin int64
	keys  string // prefix of its attributes
	attrs []attribute.KeyValue
}

// running is a kernel or copy that has begun.
type running struct {
	span  tracer.DrainSpan
	bytes int64
}

func newEventJournal(d *tracer.Drain, device int32, name func(uint16) string) *eventJournal {
	return &eventJournal{drain: d, device: device, name: name, bindings: map[work][]binding{},
		buffers: map[uint64]*tracer.Buffer{}, ops: map[uint64]*operation{},
		running: map[uint64]running{}, waits: map[uint64]Event{}}
}

// bind has the events of the owner's work from a time on belong to the owner's stage.
func (j *eventJournal) bind(from int64, owner tracer.Owner) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := work{owner.Job, owner.Partition}
	j.bindings[w] = append(j.bindings[w], binding{from: from, owner: owner})
}

// release ends the owner's bindings once the events before seq until have been taken.
func (j *eventJournal) release(owner tracer.Owner, until int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.bindings[work{owner.Job, owner.Partition}]
	for i := range list {
		if list[i].until == 0 && list[i].owner.Span == owner.Span {
			list[i].until = max(uint64(until), 1)
		}
	}
}

// forget drops bindings that no event can need any more.
func (j *eventJournal) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for w, list := range j.bindings {
		for len(list) > 0 && list[0].until != 0 && list[0].until <= j.next {
			list = list[1:]
		}
		if len(list) == 0 {
			delete(j.bindings, w)
		} else {
			j.bindings[w] = list
		}
	}
}

// owner is whom an event belongs to, and when its stage began.
func (j *eventJournal) owner(e *Event) (owner tracer.Owner, from int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	owner = tracer.NoOwner
	owner.Job, owner.Partition = e.Job, e.Partition
	for _, b := range j.bindings[work{e.Job, e.Partition}] {
		if b.from <= e.TimeNS || from == 0 {
			owner, from = b.owner, b.from
		}
	}
	return owner, from
}

// take journals events in the ring's order.
func (j *eventJournal) take(events []Event) {
	for i := range events {
		j.one(&events[i])
		j.next = events[i].Seq + 1
	}
	if len(events) > 0 {
		j.forget()
	}
}

func (j *eventJournal) one(e *Event) {
	switch e.Kind {
	case eventAlloc:
		j.alloc(e)
	case eventFree:
		if b := j.buffers[e.ID]; b != nil {
			j.drain.Free(e.TimeNS, b)
			delete(j.buffers, e.ID)
		} else {
			j.strays++
		}
	case eventOpBegin:
		j.beginOp(e)
	case eventAttribute:
		if op := j.ops[e.ID]; op != nil {
			op.attrs = append(op.attrs, attribute.Int64(op.keys+j.name(e.Name), int64(e.Arg)))
		}
	case eventOpEnd:
		j.endOp(e)
	case eventKernelBegin, eventCopyBegin:
		j.begin(e)
	case eventKernelEnd, eventCopyEnd:
		j.end(e)
	case eventLockWait, eventLockAcquire:
		j.wait(e)
	}
	// Registered memory is the host's: the program records its pin and unpin itself. What holds a
	// lane shows as the operations that run on it.
}

func (j *eventJournal) alloc(e *Event) {
	owner, _ := j.owner(e)
	spec := tracer.BufferSpec{Class: j.name(e.Name), Space: trace.SpaceDevice, Device: int32(e.Device),
		CapacityBytes: int64(e.Bytes), ResidentBytes: int64(e.Bytes), Owner: owner}
	if parent := j.buffers[e.Arg]; parent != nil {
		spec.Parent = parent.ID()
	}
	if e.Device < 0 {
		spec.Space = trace.SpacePinned
		if spec.Parent == 0 && e.Arg == 0 {
			j.pinned += spec.CapacityBytes
		}
	}
	b := j.drain.Alloc(e.TimeNS, spec)
	j.buffers[e.ID] = &b
}

// spec describes a span of an event's.
func (j *eventJournal) spec(kind string, e *Event, owner tracer.Owner) tracer.SpanSpec {
	s := tracer.SpanSpec{Kind: kind, Stage: owner.Stage, Name: j.name(e.Name), Track: j.track(e.Stream),
		Owner: owner, Device: j.device, Stream: trace.Null, Threads: trace.Null}
	if e.Stream != noStream {
		s.Stream = int64(e.Stream)
	}
	return s
}

// track is the row on which a timeline shows a stream: two a lane.
func (j *eventJournal) track(stream uint16) string {
	device := "device/" + decimal(int64(j.device))
	switch {
	case stream == noStream:
		return device
	case stream%2 == 0:
		return device + "/compute/" + decimal(int64(stream/2))
	}
	return device + "/copies/" + decimal(int64(stream/2))
}

func (j *eventJournal) beginOp(e *Event) {
	owner, from := j.owner(e)
	begin, parent := max(e.TimeNS, from), owner.Span
	if outer := j.ops[e.Arg]; outer != nil {
		begin, parent = max(begin, outer.begin), outer.id
	}
	op := &operation{begin: begin, keys: attributePrefix(j.name(e.Name))}
	op.span = j.drain.Begin(begin, parent, j.spec(trace.KindOp, e, owner))
	op.id = j.drain.ID(op.span)
	j.ops[e.ID] = op
}

// attributePrefix is as the CPU backend names its attributes.
func attributePrefix(op string) string {
	switch {
	case strings.HasPrefix(op, "msm"):
		return "prover.msm."
	case strings.Contains(op, "ntt"), strings.HasPrefix(op, "quotient"):
		return "prover.ntt."
	case strings.HasPrefix(op, "gather"):
		return "prover.gather."
	}
	return "prover.op."
}

func (j *eventJournal) endOp(e *Event) {
	op := j.ops[e.ID]
	if op == nil {
		j.strays++
		return
	}
	delete(j.ops, e.ID)
	j.drain.End(e.TimeNS, op.span, trace.Null, op.attrs...)
	j.done.put(e.ID, op)
}

// begin begins a kernel or copy under its operation.
func (j *eventJournal) begin(e *Event) {
	owner, from := j.owner(e)
	begin, parent := max(e.TimeNS, from), owner.Span
	op := j.ops[e.Arg]
	if op == nil {
		op = j.done.get(e.Arg)
	}
	if op != nil {
		begin, parent = max(e.TimeNS, op.begin), op.id
	}
	kind, bytes := trace.KindKernel, trace.Null
	if e.Kind == eventCopyBegin {
		kind, bytes = trace.KindCopy, int64(e.Bytes)
	}
	j.running[e.ID] = running{j.drain.Begin(begin, parent, j.spec(kind, e, owner)), bytes}
}

func (j *eventJournal) end(e *Event) {
	r, ok := j.running[e.ID]
	if !ok {
		j.strays++
		return
	}
	delete(j.running, e.ID)
	j.drain.End(e.TimeNS, r.span, r.bytes)
}

// wait records a wait for a lane that took time.
func (j *eventJournal) wait(e *Event) {
	if e.Kind == eventLockWait {
		j.waits[e.ID] = *e
		return
	}
	w, ok := j.waits[e.ID]
	delete(j.waits, e.ID)
	if !ok || e.TimeNS-w.TimeNS < shortestWait {
		return
	}
	owner, from := j.owner(&w)
	span := j.drain.Begin(max(w.TimeNS, from), owner.Span, j.spec(trace.KindWait, &w, owner))
	j.drain.End(e.TimeNS, span, trace.Null)
}

// close ends what the ring left open: the library has given everything back at the time at.
func (j *eventJournal) close(at int64) {
	for id, r := range j.running {
		j.drain.End(at, r.span, r.bytes)
		delete(j.running, id)
	}
	for id, op := range j.ops {
		j.drain.End(at, op.span, trace.Null, op.attrs...)
		delete(j.ops, id)
	}
	j.freeAll(at)
}

// freeAll frees what is still live, children before their parents: ids rise from parent to child.
func (j *eventJournal) freeAll(at int64) {
	for _, id := range descending(j.buffers) {
		j.drain.Free(at, j.buffers[id])
		delete(j.buffers, id)
	}
}

// doneOps remembers the last operations: what they ran may be told after their end.
type doneOps struct {
	byID map[uint64]*operation
	ring [256]uint64
	at   int
}

func (d *doneOps) put(id uint64, op *operation) {
	if d.byID == nil {
		d.byID = map[uint64]*operation{}
	}
	delete(d.byID, d.ring[d.at])
	d.ring[d.at], d.byID[id] = id, op
	d.at = (d.at + 1) % len(d.ring)
}

func (d *doneOps) get(id uint64) *operation { return d.byID[id] }
