package tracer

import (
	"math"

	"go.opentelemetry.io/otel/attribute"

	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// Drain journals what happened elsewhere, on a device say, at times that were taken there: its
// caller reads the events from a ring, some milliseconds after they happened. An event survives a
// kill from the moment that the call has returned. Sealing puts it in its place by time.
//
// Times are CLOCK_MONOTONIC nanoseconds. Those of one drain's buffer events rise strictly in the
// order of the calls, whatever the ring says, so that a pool and what is cut from it stay in order.
// One goroutine at a time uses a drain. A nil Drain, which a nil Recorder gives, records nothing.
type Drain struct {
	rec    *Recorder
	anchor int64
	last   int64 // time of the last buffer event
}

// Drain makes a drain for one ring.
func (r *Recorder) Drain() *Drain {
	if r == nil {
		return nil
	}
	return &Drain{rec: r, anchor: r.j.Header().AnchorMonotonic, last: math.MinInt64}
}

// Alloc records an allocation that succeeded at a time.
func (d *Drain) Alloc(at int64, spec BufferSpec) Buffer {
	if d == nil {
		return Buffer{}
	}
	b := d.rec.newBuffer(spec)
	d.record(&b, journal.BufferAlloc, at)
	return b
}

// Resize records that the capacity of b changed, and what is resident after it.
func (d *Drain) Resize(at int64, b *Buffer, capacityBytes, residentBytes int64) {
	if b.rec == nil {
		return
	}
	b.at.X, b.at.Y = capacityBytes, residentBytes
	d.record(b, journal.BufferResize, at)
}

// Reclass records that the bytes of b serve as class from then on.
func (d *Drain) Reclass(at int64, b *Buffer, class string) {
	if b.rec == nil {
		return
	}
	b.at.Word0 = b.rec.j.Word(class)
	d.record(b, journal.BufferReclass, at)
}

// Pin records that the memory of b was page-locked.
func (d *Drain) Pin(at int64, b *Buffer) { d.move(at, b, journal.BufferPin, trace.SpacePinned) }

// Unpin records that the page lock was given back.
func (d *Drain) Unpin(at int64, b *Buffer) { d.move(at, b, journal.BufferUnpin, trace.SpaceHost) }

func (d *Drain) move(at int64, b *Buffer, event uint8, space string) {
	if b.rec == nil {
		return
	}
	b.at.Space, _ = journal.Index(journal.Spaces, space)
	d.record(b, event, at)
}

// Free records the end of b.
func (d *Drain) Free(at int64, b *Buffer) {
	if b.rec != nil {
		d.record(b, journal.BufferFree, at)
	}
}

func (d *Drain) record(b *Buffer, event uint8, at int64) {
	d.last = max(at-d.anchor, d.last+1)
	b.recordAt(event, d.last)
}

// DrainSpan is a span that a drain began. The zero value is none.
type DrainSpan struct {
	id    uint32
	begin int64
	owner Owner
}

// Begin records that a span began at a time under the span with id parent, 0 for none. It does not
// go through the OpenTelemetry SDK: devices have thousands a second.
func (d *Drain) Begin(at, parent int64, spec SpanSpec, attrs ...attribute.KeyValue) DrainSpan {
	if d == nil {
		return DrainSpan{}
	}
	s := DrainSpan{id: d.rec.ids.number(d.rec.ids.span()), begin: at - d.anchor, owner: spec.Owner}
	rec := d.rec.beginRecord(&spec, s.id, local(parent))
	d.append(&rec, s.begin, attrs)
	return s
}

// End records the end of s, after its begin; bytes is trace.Null where it has no meaning.
func (d *Drain) End(at int64, s DrainSpan, bytes int64, attrs ...attribute.KeyValue) {
	if d == nil || s.id == 0 {
		return
	}
	rec := journal.Record{
		Kind: journal.KindSpanEnd, Event: journal.StatusOK, X: trace.Null, Y: bytes, ID: s.id,
		Job: s.owner.Job, Partition: s.owner.Partition, Worker: clamp16(s.owner.Worker), Device: -1,
	}
	d.append(&rec, max(at-d.anchor, s.begin+1), attrs)
}

// ID is the span's id, unique over the trace; 0 for none.
func (d *Drain) ID(s DrainSpan) int64 {
	if d == nil || s.id == 0 {
		return 0
	}
	return d.rec.idBase | int64(s.id)
}

func (d *Drain) append(rec *journal.Record, at int64, attrs []attribute.KeyValue) {
	buf := spanBuffers.Get().(*[2 * journal.MaxExt]byte)
	defer spanBuffers.Put(buf)
	var ext []byte
	if len(attrs) > 0 {
		var x journal.SpanExt
		x.Attributes, x.Cut = appendAttributes(buf[journal.MaxExt:journal.MaxExt], attributeSets{attrs})
		if rec.Kind == journal.KindSpanBegin {
			ext = journal.AppendSpanBegin(buf[:0:journal.MaxExt], &x)
		} else {
			ext = journal.AppendSpanEnd(buf[:0:journal.MaxExt], &x)
		}
		if x.Cut > 0 {
			d.rec.j.CountCut(x.Cut)
		}
	}
	rec.TimeNS = at
	if d.rec.j.AppendExt(rec, ext) && d.rec.witness != nil {
		d.rec.witness.count(rec.Kind)
	}
}
