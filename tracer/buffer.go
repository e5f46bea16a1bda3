package tracer

import (
	"sync"

	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// BufferSpec describes an allocation that has just succeeded.
type BufferSpec struct {
	Class         string
	Space         string // trace.SpaceHost …
	Device        int32  // -1 for none
	Parent        int64  // buffer id of the pool it is cut from, 0 for none
	CapacityBytes int64
	ResidentBytes int64 // trace.Null where it is not measured
	Estimated     bool
	Owner         Owner
}

// Buffer is a live allocation's handle. Its methods must not run at the same time as each other;
// they record times that rise. Do not use a copy beside the original. The zero Buffer, and one from
// a nil Recorder, record nothing.
type Buffer struct {
	rec  *Recorder
	id   int64
	last int64          // time of the last event
	at   journal.Record // the buffer as the last event left it
}

// Alloc records an allocation, after it succeeded.
func (r *Recorder) Alloc(spec BufferSpec) Buffer {
	if r == nil {
		return Buffer{}
	}
	b := r.newBuffer(spec)
	b.record(journal.BufferAlloc)
	return b
}

// newBuffer is a buffer of which nothing is recorded yet.
func (r *Recorder) newBuffer(spec BufferSpec) Buffer {
	n := r.buffers.Add(1)
	space, _ := journal.Index(journal.Spaces, spec.Space)
	b := Buffer{rec: r, id: r.idBase | int64(n), last: -1 << 63}
	b.at = journal.Record{
		Kind: journal.KindBuffer, Space: space, X: spec.CapacityBytes, Y: spec.ResidentBytes, ID: n,
		Parent: local(spec.Parent), Device: clamp16(spec.Device), Word0: r.j.Word(spec.Class),
	}
	if spec.Estimated {
		b.at.Extra = 1
	}
	b.own(spec.Owner)
	return b
}

func (b *Buffer) own(o Owner) {
	b.at.Job, b.at.Partition, b.at.Worker = o.Job, o.Partition, clamp16(o.Worker)
	b.at.Word1, b.at.Span = b.rec.j.Word(o.Stage), local(o.Span)
}

// record appends an event with the buffer's present state.
func (b *Buffer) record(event uint8) { b.recordAt(event, b.rec.j.Now()) }

func (b *Buffer) recordAt(event uint8, now int64) {
	if now <= b.last {
		now = b.last + 1
	}
	b.last = now
	b.at.Event, b.at.TimeNS = event, now
	b.rec.append(&b.at)
}

// ID is the buffer's id, unique over the trace; 0 for a buffer that is not recorded.
func (b *Buffer) ID() int64 { return b.id }

// Fill records that residentBytes of the buffer are now resident: pages were touched, or given
// back.
func (b *Buffer) Fill(residentBytes int64) {
	if b.rec == nil {
		return
	}
	b.at.Y = residentBytes
	b.record(journal.BufferFill)
}

// Resize records that the capacity changed, and what is resident after it.
func (b *Buffer) Resize(capacityBytes, residentBytes int64) {
	if b.rec == nil {
		return
	}
	b.at.X, b.at.Y = capacityBytes, residentBytes
	b.record(journal.BufferResize)
}

// Reclass records that the same bytes now serve as class.
func (b *Buffer) Reclass(class string) {
	if b.rec == nil {
		return
	}
	b.at.Word0 = b.rec.j.Word(class)
	b.record(journal.BufferReclass)
}

// Handoff records the new owner.
func (b *Buffer) Handoff(to Owner) {
	if b.rec == nil {
		return
	}
	b.own(to)
	b.record(journal.BufferHandoff)
}

// Pin records that the memory was page-locked: its space becomes pinned.
func (b *Buffer) Pin() { b.move(journal.BufferPin, trace.SpacePinned) }

// Unpin records that the page lock was given back: its space becomes host.
func (b *Buffer) Unpin() { b.move(journal.BufferUnpin, trace.SpaceHost) }

func (b *Buffer) move(event uint8, space string) {
	if b.rec == nil {
		return
	}
	b.at.Space, _ = journal.Index(journal.Spaces, space)
	b.record(event)
}

// LastUse records that nothing reads the buffer any more.
func (b *Buffer) LastUse() {
	if b.rec != nil {
		b.record(journal.BufferLastUse)
	}
}

// Free records the end of the buffer; call it before the memory is given back.
func (b *Buffer) Free() {
	if b.rec != nil {
		b.record(journal.BufferFree)
	}
}

// selfBuffer is the recorder's own memory: the mapped segments of its journal.
type selfBuffer struct {
	mu     sync.Mutex
	rec    *Recorder // nil before start and after stop
	bytes  int64
	buffer Buffer
}

// mapped is the journal's report of its mapped bytes; it may come before start.
func (s *selfBuffer) mapped(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes = bytes
	if s.rec != nil {
		s.tell()
	}
}

func (s *selfBuffer) start(r *Recorder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec = r
	if s.bytes > 0 {
		s.tell()
	}
}

// tell records the mapped bytes of now. mu is held, so that no older figure comes after a newer one.
func (s *selfBuffer) tell() {
	if s.buffer.id == 0 {
		s.buffer = s.rec.Alloc(BufferSpec{
			Class: trace.ClassRecorder, Space: trace.SpaceFile, Device: int32(trace.None),
			CapacityBytes: s.bytes, ResidentBytes: s.bytes, Owner: NoOwner,
		})
		return
	}
	s.buffer.Resize(s.bytes, s.bytes)
}

func (s *selfBuffer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer.Free()
	s.rec = nil
}
