package tracer

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"highwater/tracer/trace"
)

func BenchmarkBufferEvent(b *testing.B) {
	r := record(b, Options{})
	buf := r.Alloc(BufferSpec{Class: trace.ClassA, Space: trace.SpaceHost, Owner: NoOwner})
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		buf.Fill(i)
	}
}

func BenchmarkQueueEvent(b *testing.B) {
	r := record(b, Options{})
	q := r.Queue(trace.Resource{Name: "permit", Kind: trace.ResourcePermit, Unit: "permit", Device: trace.None})
	op := QueueOp{Event: trace.EventAcquire, Owner: Owner{Job: 1, Partition: 2, Worker: 3, Stage: trace.StageSynthesis}, Amount: 1}
	b.ReportAllocs()
	for b.Loop() {
		q.Event(op)
	}
}

// BenchmarkSpan is a span from Start to End, with two attributes at its start and two at its end.
func BenchmarkSpan(b *testing.B) {
	r := record(b, Options{})
	ctx, root := r.Start(context.Background(), spec(trace.KindJob, "job", NoOwner))
	defer root.End(nil)
	op := spec(trace.KindOp, "ntt", Owner{Job: 1, Partition: 2, Worker: 3})
	b.ReportAllocs()
	for b.Loop() {
		_, s := r.Start(ctx, op, attribute.Int("log_size", 18), attribute.Bool("inverse", true))
		s.SetAttributes(attribute.Int("digits", 16), attribute.Int("window_bits", 13))
		s.SetCPUNanos(5)
		s.End(nil)
	}
}

func BenchmarkSpanWithoutLateAttributes(b *testing.B) {
	r := record(b, Options{})
	ctx, root := r.Start(context.Background(), spec(trace.KindJob, "job", NoOwner))
	defer root.End(nil)
	op := spec(trace.KindOp, "ntt", Owner{Job: 1, Partition: 2, Worker: 3})
	b.ReportAllocs()
	for b.Loop() {
		_, s := r.Start(ctx, op, attribute.Int("log_size", 18), attribute.Bool("inverse", true))
		s.End(nil)
	}
}
