// Package tracer is what a program links to record itself: a Recorder with buffer lifecycles, queue events,
// spans through the OpenTelemetry SDK, and samples.
//
// Every record call appends to a crash-safe journal (tracer/journal): once it has returned, the event survives
// SIGKILL and the OOM killer. An event costs at most 100 ns and allocates nothing; a span about 2 µs, through the SDK.
// A nil *Recorder records nothing, at the cost of a nil check, so that a program is the same with recording off.
package tracer

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	"highwater/tracer/trace"
)

// Owner says whom a buffer, a queue operation or a span belongs to. Use NoOwner as the start: the zero value
// means job 0, partition 0, worker 0.
type Owner struct {
	Job, Partition, Worker int32
	Stage                  string
	Span                   int64 // span_id, 0 is none
}

// NoOwner belongs to no job, partition, worker or stage.
var NoOwner = Owner{Job: -1, Partition: -1, Worker: -1}

// Options configure a recording. The zero value works.
type Options struct {
	Manifest trace.Manifest // what is known at start: program, settings, seed …; anchor, host, memory limit are filled in
	// SegmentBytes is the size of a journal segment; 0 means the journal's default.
	SegmentBytes int64
}

// Recorder records one source (usually one process) into a trace directory.
type Recorder struct{}

// Create makes the trace directory dir (which must not exist, or be empty), writes its first manifest and starts recording.
func Create(dir string, opts Options) (*Recorder, error) { panic("to be written") }

// Join adds this process as a further source to a trace that another process (its parent) is recording.
// Ids of each source come from a range of their own. Times count from the trace's anchor.
func Join(dir, source string) (*Recorder, error) { panic("to be written") }

// Dir is the trace directory, "" for a nil Recorder.
func (r *Recorder) Dir() string { panic("to be written") }

// Now is the trace's clock: nanoseconds since its anchor.
func (r *Recorder) Now() int64 { panic("to be written") }

// UpdateManifest changes the manifest and writes it anew by rename.
func (r *Recorder) UpdateManifest(change func(*trace.Manifest)) error { panic("to be written") }

// Close ends recording: open blocks are finished and the trace is sealed to Parquet (a joined source only closes
// its journal; the trace's creator seals). end is one of the process_end words.
func (r *Recorder) Close(end, reason string) error { panic("to be written") }

// BufferSpec describes an allocation that has just succeeded.
type BufferSpec struct {
	Class         string
	Space         string // trace.SpaceHost …
	Device        int32  // -1 for none
	Parent        int64  // buffer id of the pool it is cut from, 0 for none
	CapacityBytes int64
	ResidentBytes int64
	Estimated     bool
	Owner         Owner
}

// Buffer is a live allocation's handle. Its methods must not run at the same time as each other; they record
// times that never fall. The zero Buffer, and one from a nil Recorder, record nothing.
type Buffer struct {
	rec *Recorder
	id  int64
}

// Alloc records an allocation, after it succeeded.
func (r *Recorder) Alloc(spec BufferSpec) Buffer { panic("to be written") }

func (b *Buffer) ID() int64                                 { return b.id }
func (b *Buffer) Fill(residentBytes int64)                  { panic("to be written") } // resident bytes after
func (b *Buffer) Resize(capacityBytes, residentBytes int64) { panic("to be written") }
func (b *Buffer) Reclass(class string)                      { panic("to be written") }
func (b *Buffer) Handoff(to Owner)                          { panic("to be written") }
func (b *Buffer) Pin()                                      { panic("to be written") }
func (b *Buffer) Unpin()                                    { panic("to be written") }
func (b *Buffer) LastUse()                                  { panic("to be written") }
func (b *Buffer) Free()                                     { panic("to be written") } // before the memory is given back

// Queue records operations on one resource. Its caller must call Event inside the resource's own critical
// section, so that order and levels are true.
type Queue struct{}

// Queue registers a resource in the manifest and returns its recorder.
func (r *Recorder) Queue(res trace.Resource) *Queue { panic("to be written") }

// QueueOp is one operation on a resource.
type QueueOp struct {
	Event        string // trace.EventRequest …
	Owner        Owner
	Priority     int32
	Amount       int64 // 1, or bytes
	LevelAfter   int64
	WaitingAfter int64
}

// Event records op. Times of one queue rise strictly.
func (q *Queue) Event(op QueueOp) { panic("to be written") }

// SpanSpec describes a span at its start.
type SpanSpec struct {
	Kind, Stage, Name, Track string
	Owner                    Owner // Owner.Span is ignored: the parent comes from the context
	Device                   int32 // -1 for none
	Stream                   int64 // trace.Null for none
	Threads                  int64 // trace.Null for unknown
}

// Span is a running span. End it once.
type Span struct{}

// Start starts a span through the OpenTelemetry SDK; its begin is in the journal when Start returns. The context carries it
// to its children.
func (r *Recorder) Start(ctx context.Context, spec SpanSpec, attrs ...attribute.KeyValue) (context.Context, *Span) {
	panic("to be written")
}

func (s *Span) ID() int64                                 { panic("to be written") } // span_id; 0 for nil
func (s *Span) SetAttributes(attrs ...attribute.KeyValue) { panic("to be written") }
func (s *Span) SetCPUNanos(ns int64)                      { panic("to be written") }
func (s *Span) SetBytes(n int64)                          { panic("to be written") }

// End ends the span; a non-nil err sets its status to error with the message as an attribute.
func (s *Span) End(err error) { panic("to be written") }

// TracerProvider is the OpenTelemetry provider whose spans this recorder keeps: for libraries that are already
// instrumented. They appear with kind other.
func (r *Recorder) TracerProvider() oteltrace.TracerProvider { panic("to be written") }

// Sample records one reading of a metric now. It implements probe.Sink.
func (r *Recorder) Sample(metric string, value float64) { panic("to be written") }
