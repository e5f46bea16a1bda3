package tracer_test

import (
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"highwater/tracer"
	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// TestDrain records events late and out of order; the sealed trace has them in order, and is valid.
func TestDrain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run.hw")
	rec, err := tracer.Create(dir, tracer.Options{NoOTLP: true})
	if err != nil {
		t.Fatal(err)
	}
	_, stage := rec.Start(t.Context(), tracer.SpanSpec{
		Kind: trace.KindStage, Name: "prove_start", Owner: tracer.NoOwner, Device: 0,
		Stream: trace.Null, Threads: trace.Null,
	})
	now := journal.Monotonic() + 1_000_000 // clearly after the stage's begin, by whichever clock
	d := rec.Drain()
	device := tracer.BufferSpec{Class: trace.ClassContext, Space: trace.SpaceDevice, Device: 0,
		CapacityBytes: 100, ResidentBytes: 100, Owner: tracer.NoOwner}
	pool := d.Alloc(now+10, device)
	device.Parent, device.Class, device.CapacityBytes, device.ResidentBytes = pool.ID(), "d_a", 60, 60
	cut := d.Alloc(now+5, device) // before its pool, by the device's clock
	d.Reclass(now+20, &cut, "d_h")
	spec := tracer.SpanSpec{Kind: trace.KindKernel, Stage: "prove_start", Name: "ntt",
		Owner: tracer.NoOwner, Device: 0, Stream: 1, Threads: trace.Null}
	s := d.Begin(now+30, stage.ID(), spec, attribute.Int("prover.ntt.size", 8))
	d.End(now+30, s, 7, attribute.Bool("late", true)) // of no length: it ends after its begin all the same
	d.Free(now+40, &cut)
	d.Free(now+40, &pool)
	host := tracer.BufferSpec{Class: trace.ClassA, Space: trace.SpaceHost, Device: -1,
		CapacityBytes: 10, ResidentBytes: 10, Owner: tracer.NoOwner}
	pinned := d.Alloc(now+50, host)
	d.Pin(now+51, &pinned)
	d.Unpin(now+52, &pinned)
	d.Resize(now+53, &pinned, 20, 20)
	d.Free(now+54, &pinned)
	stage.End(nil)
	if err := rec.Close(trace.EndFinished, ""); err != nil {
		t.Fatal(err)
	}
	checkDrained(t, dir, d.ID(s), stage.ID())
}

func checkDrained(t *testing.T, dir string, kernel, stage int64) {
	t.Helper()
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	violations, err := trace.Validate(tr, 10)
	if err != nil || len(violations) > 0 {
		t.Fatalf("validate: %v, %v", violations, err)
	}
	events := map[string]int{}
	for b, err := range tr.Buffers() {
		if err != nil {
			t.Fatal(err)
		}
		events[b.Event]++
	}
	for event, n := range map[string]int{
		trace.EventPin: 1, trace.EventUnpin: 1, trace.EventResize: 1, trace.EventReclass: 1,
	} {
		if events[event] != n {
			t.Errorf("%d events %s, want %d", events[event], event, n)
		}
	}
	found := false
	for s, err := range tr.Spans() {
		if err != nil {
			t.Fatal(err)
		}
		if s.SpanID != kernel {
			continue
		}
		found = true
		want := `{"late":true,"prover.ntt.size":8}`
		if s.ParentID != stage || s.Bytes != 7 || s.Attributes != want || s.EndNS != s.BeginNS+1 {
			t.Errorf("kernel span is %+v", *s)
		}
	}
	if !found {
		t.Error("the kernel's span is not in the trace")
	}
}

// TestDrainOff: without a recorder a drain does nothing.
func TestDrainOff(t *testing.T) {
	var rec *tracer.Recorder
	d := rec.Drain()
	b := d.Alloc(1, tracer.BufferSpec{})
	d.Resize(2, &b, 1, 1)
	d.Pin(3, &b)
	d.Reclass(4, &b, "x")
	d.Free(5, &b)
	s := d.Begin(6, 0, tracer.SpanSpec{})
	d.End(7, s, 0)
	if b.ID() != 0 || d.ID(s) != 0 {
		t.Error("a drain without recorder gave ids")
	}
}
