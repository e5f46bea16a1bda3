package tracer

import (
	"context"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/sys/unix"

	"highwater/tracer/trace"
)

// bench is a recorder that closes without sealing, which costs more than the benchmark.
func bench(b *testing.B) *Recorder {
	b.Helper()
	r, err := Create(filepath.Join(b.TempDir(), "t.hw"), Options{Source: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	r.creator = false
	b.Cleanup(func() {
		if err := r.Close(trace.EndFinished, ""); err != nil {
			b.Error(err)
		}
		if st := r.Stats(); st.Lost > 0 {
			b.Errorf("%d events lost: %v", st.Lost, st.LastError)
		}
	})
	return r
}

func BenchmarkBufferEvent(b *testing.B) {
	r := bench(b)
	buf := r.Alloc(BufferSpec{Class: trace.ClassA, Space: trace.SpaceHost, Device: -1, CapacityBytes: 1 << 40, Owner: NoOwner})
	b.ReportAllocs()
	defer reportCPU(b)()
	for i := int64(0); b.Loop(); i++ {
		buf.Fill(i)
	}
}

func BenchmarkQueueEvent(b *testing.B) {
	r := bench(b)
	q := r.Queue(trace.Resource{Name: "channel", Kind: trace.ResourceChannel, Unit: "item", Device: trace.None})
	op := QueueOp{Event: trace.EventSend, Owner: Owner{Job: 1, Partition: 2, Worker: 3, Stage: trace.StageSynthesis}, Amount: 1}
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		op.Owner.Partition++
		q.Event(op)
	}
}

// BenchmarkSpan is a span from Start to End, with two attributes at its start and two at its end.
func BenchmarkSpan(b *testing.B) {
	r := bench(b)
	ctx, root := r.Start(context.Background(), spec(trace.KindJob, "job", NoOwner))
	defer root.End(nil)
	op := spec(trace.KindOp, "ntt", Owner{Job: 1, Partition: 2, Worker: 3})
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		_, s := r.Start(ctx, op, attribute.Int("log_size", 18), attribute.Bool("inverse", true))
		s.SetAttributes(attribute.Int("digits", 16), attribute.Int("window_bits", 13))
		s.SetCPUNanos(5)
		s.End(nil)
	}
}

func BenchmarkSpanWithoutLateAttributes(b *testing.B) {
	r := bench(b)
	ctx, root := r.Start(context.Background(), spec(trace.KindJob, "job", NoOwner))
	defer root.End(nil)
	op := spec(trace.KindOp, "ntt", Owner{Job: 1, Partition: 2, Worker: 3})
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		_, s := r.Start(ctx, op, attribute.Int("log_size", 18), attribute.Bool("inverse", true))
		s.End(nil)
	}
}

// reportCPU adds the CPU time of the process, collector and journal background included: the figure
// that a busy machine does not spoil.
func reportCPU(b *testing.B) (done func()) {
	before := cpuNanos(b)
	return func() { b.ReportMetric(float64(cpuNanos(b)-before)/float64(b.N), "cpu-ns/op") }
}

func cpuNanos(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
