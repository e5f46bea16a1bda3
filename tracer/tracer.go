// Package tracer is what a program links to record itself: a Recorder with buffer lifecycles, queue
// events, spans through the OpenTelemetry SDK, and samples.
//
// Every record call appends to a crash-safe journal (tracer/journal): once it has returned, the
// event survives SIGKILL and the OOM killer. An event costs at most 100 ns and allocates nothing; a
// span about 2 µs, through the SDK. A nil *Recorder records nothing, at the cost of a nil check, so
// that a program is the same with recording off.
//
// With OTEL_EXPORTER_OTLP_ENDPOINT set, spans also go to a collector (tracer/otlp).
package tracer

import (
	"math"

	"highwater/tracer/trace"
)

// Owner says whom a buffer, a queue operation or a span belongs to. Use NoOwner as the start: the
// zero value means job 0, partition 0, worker 0.
type Owner struct {
	Job, Partition, Worker int32
	Stage                  string
	Span                   int64 // span_id, 0 is none
}

// NoOwner belongs to no job, partition, worker or stage.
var NoOwner = Owner{Job: -1, Partition: -1, Worker: -1}

// Options configure a recording. The zero value works.
type Options struct {
	// Manifest is what is known at start: program, settings, seed …; anchor, host, memory limit
	// and versions are filled in.
	Manifest trace.Manifest
	// SegmentBytes is the size of a journal segment; 0 means the journal's default.
	SegmentBytes int64
	// Source names this process in the trace; "" means the program's name.
	Source string
	// Witness is a file of shared counters, one a record kind, raised only after the journal has
	// acknowledged: for tests that kill the process. "" means the environment's HIGHWATER_WITNESS,
	// and none where that is empty too.
	Witness string
	// NoOTLP keeps spans from going to a collector, whatever the environment says.
	NoOTLP bool
}

// local is the id within this source of an id that is unique over the trace.
func local(id int64) uint32 { return uint32(id) }

func clamp16(v int32) int16 { return int16(max(math.MinInt16, min(v, math.MaxInt16))) }
