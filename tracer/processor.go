package tracer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"highwater/tracer/journal"
	"highwater/tracer/otlp"
	"highwater/tracer/trace"
)

// scope is the instrumentation scope of our own spans.
const scope = "highwater/tracer"

// startSpans makes the SDK's provider with our processor first: the journal has a span before a
// collector does. Sampling stays off: a trace with holes would give wrong answers.
func (r *Recorder) startSpans(opts Options) error {
	r.ids = newIDGenerator()
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(r.ids),
		sdktrace.WithSpanProcessor(&processor{r}),
	}
	if !opts.NoOTLP {
		export, err := otlp.FromEnv()
		if err != nil {
			return fmt.Errorf("export spans: %w", err)
		}
		if r.export = export; export != nil {
			options = append(options, sdktrace.WithSpanProcessor(export),
				sdktrace.WithResource(otlp.Resource()))
		}
	}
	r.provider = sdktrace.NewTracerProvider(options...)
	r.tracer = r.provider.Tracer(scope)
	return nil
}

// stopSpans lets the exporter finish, for a bounded time.
func (r *Recorder) stopSpans() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	// What a collector did not get is counted in the export's stats, and no error of the recording.
	_ = r.provider.Shutdown(ctx)
}

// processor journals spans when they begin and when they end.
type processor struct{ r *Recorder }

// OnStart implements sdktrace.SpanProcessor.
func (p *processor) OnStart(parent context.Context, s sdktrace.ReadWriteSpan) {
	r := p.r
	sc := s.SpanContext()
	id := r.ids.number(sc.SpanID())
	own, ok := parent.(*startContext)
	if !ok {
		p.startForeign(parent, s, id)
		return
	}
	own.span.id = id
	r.spans.put(id, own.span)
	up := s.Parent().SpanID()
	ext := journal.SpanExt{TraceID: sc.TraceID(), SpanID: sc.SpanID(), ParentSpanID: up}
	rec := r.beginRecord(&own.span.spec, id, r.ids.number(up))
	r.appendSpan(&rec, &ext, attributeSets{own.span.attrs})
}

// startForeign journals a span that an instrumented library started: kind other, owned like the
// nearest span of ours.
func (p *processor) startForeign(parent context.Context, s sdktrace.ReadWriteSpan, id uint32) {
	r := p.r
	spec := SpanSpec{
		Kind: trace.KindOther, Name: s.Name(), Track: s.InstrumentationScope().Name,
		Owner: NoOwner, Device: int32(trace.None), Stream: trace.Null, Threads: trace.Null,
	}
	if near, ok := parent.Value(spanKey{}).(*Span); ok && near.rec == r {
		spec.Owner, spec.Stage, spec.Device = near.spec.Owner, near.spec.Stage, near.spec.Device
	}
	up := s.Parent().SpanID()
	sc := s.SpanContext()
	ext := journal.SpanExt{TraceID: sc.TraceID(), SpanID: sc.SpanID(), ParentSpanID: up}
	rec := r.beginRecord(&spec, id, r.ids.number(up))
	r.appendSpan(&rec, &ext, attributeSets{s.Attributes()})
}

func (r *Recorder) beginRecord(spec *SpanSpec, id, parent uint32) journal.Record {
	kind, ok := journal.Index(journal.SpanKinds, spec.Kind)
	if !ok || kind == 0 {
		kind = journal.SpanOther
	}
	o := &spec.Owner
	return journal.Record{
		Kind: journal.KindSpanBegin, Event: kind, X: spec.Stream, Y: spec.Threads, ID: id, Parent: parent,
		Job: o.Job, Partition: o.Partition, Worker: clamp16(o.Worker), Device: clamp16(spec.Device),
		Word0: r.j.Word(spec.Stage), Word1: r.j.Word(spec.Name), Word2: r.j.Word(spec.Track),
	}
}

// OnEnd implements sdktrace.SpanProcessor.
func (p *processor) OnEnd(s sdktrace.ReadOnlySpan) {
	r := p.r
	id := r.ids.number(s.SpanContext().SpanID())
	rec := journal.Record{
		Kind: journal.KindSpanEnd, Event: journal.StatusUnset, X: trace.Null, Y: trace.Null, ID: id,
		Job: -1, Partition: -1, Worker: -1, Device: -1,
	}
	sets := attributeSets{s.Attributes(), eventAttributes(s.Events())}
	switch st := s.Status(); st.Code {
	case codes.Ok:
		rec.Event = journal.StatusOK
	case codes.Error:
		rec.Event = journal.StatusError
		sets[2] = append(sets[2], attrError.String(st.Description))
	}
	if own := r.spans.take(id); own != nil {
		rec.X, rec.Y = own.cpuNS.Load(), own.bytes.Load()
		rec.Job, rec.Partition = own.spec.Owner.Job, own.spec.Owner.Partition
		rec.Worker = clamp16(own.spec.Owner.Worker)
		if rec.Event == journal.StatusUnset {
			rec.Event = journal.StatusOK
		}
		if r.export != nil {
			sets[0] = lateAttributes(sets[0], own.attrs)
		}
	}
	r.appendSpan(&rec, &journal.SpanExt{}, sets)
}

// Shutdown implements sdktrace.SpanProcessor.
func (p *processor) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (p *processor) ForceFlush(context.Context) error { return nil }

// spanBuffers keeps the space in which an extension is put together.
var spanBuffers = sync.Pool{New: func() any { return new([2 * journal.MaxExt]byte) }}

// appendSpan journals a span's begin or end with its attributes.
func (r *Recorder) appendSpan(rec *journal.Record, ext *journal.SpanExt, sets attributeSets) {
	buf := spanBuffers.Get().(*[2 * journal.MaxExt]byte)
	ext.Attributes, ext.Cut = appendAttributes(buf[journal.MaxExt:journal.MaxExt], sets)
	var b []byte
	if rec.Kind == journal.KindSpanBegin {
		b = journal.AppendSpanBegin(buf[:0:journal.MaxExt], ext)
	} else if len(ext.Attributes) > 0 || ext.Cut > 0 {
		b = journal.AppendSpanEnd(buf[:0:journal.MaxExt], ext)
	}
	if ext.Cut > 0 {
		r.j.CountCut(ext.Cut)
	}
	rec.TimeNS = r.j.Now()
	if r.j.AppendExt(rec, b) && r.witness != nil {
		r.witness.count(rec.Kind)
	}
	spanBuffers.Put(buf)
}

// liveSpans finds our span for an id when the SDK ends it.
type liveSpans [16]struct {
	mu sync.Mutex
	m  map[uint32]*Span
	_  [48]byte
}

func (l *liveSpans) put(id uint32, s *Span) {
	part := &l[id%uint32(len(l))]
	part.mu.Lock()
	if part.m == nil {
		part.m = map[uint32]*Span{}
	}
	part.m[id] = s
	part.mu.Unlock()
}

func (l *liveSpans) take(id uint32) *Span {
	part := &l[id%uint32(len(l))]
	part.mu.Lock()
	s := part.m[id]
	delete(part.m, id)
	part.mu.Unlock()
	return s
}
