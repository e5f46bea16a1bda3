package tracer

import (
	"context"
	"math"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"highwater/tracer/trace"
)

// SpanSpec describes a span at its start.
type SpanSpec struct {
	Kind, Stage, Name, Track string
	Owner                    Owner // Owner.Span is ignored: the parent comes from the context
	Device                   int32 // -1 for none
	Stream                   int64 // trace.Null for none
	Threads                  int64 // trace.Null for unknown
}

// Span is a running span. End it once. A nil Span, which a nil Recorder gives, records nothing.
type Span struct {
	rec   *Recorder
	otel  oteltrace.Span
	id    uint32
	spec  SpanSpec
	attrs []attribute.KeyValue // of the start
	cpuNS atomic.Int64
	bytes atomic.Int64
	ctx   startContext
}

// startContext is the context handed to the SDK when a span of ours starts: it takes the span to
// our SpanProcessor, and its owner to spans of foreign libraries under it.
type startContext struct {
	context.Context
	span *Span
}

type spanKey struct{}

// Value finds the nearest span of ours.
func (c *startContext) Value(key any) any {
	if key == (spanKey{}) {
		return c.span
	}
	return c.Context.Value(key)
}

// Start starts a span through the OpenTelemetry SDK; its begin is in the journal when Start
// returns. The context carries it to its children.
func (r *Recorder) Start(ctx context.Context, spec SpanSpec, attrs ...attribute.KeyValue) (context.Context, *Span) {
	if r == nil {
		return ctx, nil
	}
	s := &Span{rec: r, spec: spec, attrs: attrs}
	s.cpuNS.Store(trace.Null)
	s.bytes.Store(trace.Null)
	s.ctx = startContext{ctx, s}
	ctx, s.otel = r.tracer.Start(&s.ctx, spec.Name) // calls processor.OnStart
	if r.export != nil {
		s.otel.SetAttributes(specAttributes(spec)...)
		s.otel.SetAttributes(attrs...)
	}
	return ctx, s
}

// ID is the span's id, unique over the trace; 0 for nil.
func (s *Span) ID() int64 {
	if s == nil {
		return 0
	}
	return s.rec.idBase | int64(s.id)
}

// SetAttributes adds attributes; they are recorded when the span ends.
func (s *Span) SetAttributes(attrs ...attribute.KeyValue) {
	if s != nil {
		s.otel.SetAttributes(attrs...)
	}
}

// SetCPUNanos says how much CPU time the span took, where it owned its threads.
func (s *Span) SetCPUNanos(ns int64) {
	if s != nil {
		s.cpuNS.Store(ns)
	}
}

// SetBytes says how many bytes the span moved or worked on.
func (s *Span) SetBytes(n int64) {
	if s != nil {
		s.bytes.Store(n)
	}
}

// End ends the span; a non-nil err sets its status to error with the message as an attribute.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.otel.SetStatus(codes.Error, err.Error())
	}
	if s.rec.export != nil {
		s.tellCost()
	}
	s.otel.End() // calls processor.OnEnd
}

// Names of our attributes as a collector sees them; in the trace these are columns.
const (
	attrKind      = attribute.Key("prover.span.kind")
	attrStage     = attribute.Key("prover.stage")
	attrTrack     = attribute.Key("prover.track")
	attrJob       = attribute.Key("prover.job.id")
	attrPartition = attribute.Key("prover.partition.id")
	attrWorker    = attribute.Key("prover.worker")
	attrDevice    = attribute.Key("prover.device")
	attrStream    = attribute.Key("prover.stream")
	attrThreads   = attribute.Key("prover.threads")
	attrCPU       = attribute.Key("prover.cpu_ns")
	attrBytes     = attribute.Key("prover.bytes")
	attrError     = attribute.Key("error.message")
)

// specAttributes is what of a spec a collector should see.
func specAttributes(spec SpanSpec) []attribute.KeyValue {
	kv := make([]attribute.KeyValue, 0, 9)
	text := func(k attribute.Key, v string) {
		if v != "" {
			kv = append(kv, k.String(v))
		}
	}
	number := func(k attribute.Key, v int64, none int64) {
		if v != none {
			kv = append(kv, k.Int64(v))
		}
	}
	text(attrKind, spec.Kind)
	text(attrStage, spec.Stage)
	text(attrTrack, spec.Track)
	number(attrJob, int64(spec.Owner.Job), trace.None)
	number(attrPartition, int64(spec.Owner.Partition), trace.None)
	number(attrWorker, int64(spec.Owner.Worker), trace.None)
	number(attrDevice, int64(spec.Device), trace.None)
	number(attrStream, spec.Stream, trace.Null)
	number(attrThreads, spec.Threads, trace.Null)
	return kv
}

// columnAttributes are those that the recorder itself sets for a collector: the trace has them as
// columns.
var columnAttributes = map[attribute.Key]bool{
	attrKind: true, attrStage: true, attrTrack: true, attrJob: true, attrPartition: true, attrWorker: true,
	attrDevice: true, attrStream: true, attrThreads: true, attrCPU: true, attrBytes: true,
}

func (s *Span) tellCost() {
	if v := s.cpuNS.Load(); v != math.MinInt64 {
		s.otel.SetAttributes(attrCPU.Int64(v))
	}
	if v := s.bytes.Load(); v != math.MinInt64 {
		s.otel.SetAttributes(attrBytes.Int64(v))
	}
}

// TracerProvider is the OpenTelemetry provider whose spans this recorder keeps: for libraries that
// are already instrumented. They appear with kind other.
func (r *Recorder) TracerProvider() oteltrace.TracerProvider {
	if r == nil {
		return noop.NewTracerProvider()
	}
	return r.provider
}
