package memory_test

import (
	"testing"

	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

// BenchmarkBuild goes through 1 M events of a pipeline's shape: events/s, and memory that does not
// grow with them.
func BenchmarkBuild(b *testing.B) {
	const events = 1 << 20
	d := &trace.Data{}
	d.Queues = append(d.Queues, trace.QueueEvent{
		Seq:       1,
		Source:    "main",
		Resource:  "job",
		Event:     trace.EventRequest,
		Partition: -1,
	})
	seq, id := int64(1), int64(0)
	for seq < events {
		id++
		e := trace.BufferEvent{
			Source: "main", BufferID: id, Class: "a", Space: trace.SpaceHost, Device: -1,
			Job: id / 1000, Partition: id / 100 % 10, Stage: "synthesis",
		}
		for _, step := range []struct {
			event                     string
			capacity, resident, delta int64
		}{
			{trace.EventAlloc, 100, 0, 100},
			{trace.EventFill, 100, 100, 0},
			{trace.EventHandoff, 100, 100, 0},
			{trace.EventLastUse, 100, 100, 0},
			{trace.EventFree, 0, 0, -100},
		} {
			seq++
			e.Seq, e.TimeNS, e.Event = seq, seq*1000, step.event
			e.CapacityBytes, e.ResidentBytes, e.DeltaBytes = step.capacity, step.resident,
				step.delta
			d.Buffers = append(d.Buffers, e)
		}
	}
	t := trace.FromData(d)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := memory.Build(t); err != nil || r.Peak.LiveBytes != 100 {
			b.Fatal(err, r)
		}
	}
	b.ReportMetric(float64(len(d.Buffers))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
