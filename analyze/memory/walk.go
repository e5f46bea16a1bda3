package memory

import (
	"errors"

	"highwater/tracer/trace"
)

// StepKind says which table a step of the walk comes from.
type StepKind uint8

// Kinds of steps.
const (
	StepBuffer StepKind = iota
	StepQueue
	StepSpanBegin
	StepSpanEnd
	StepSample
)

// Step is one event of a trace in its order. Exactly the pointer that belongs to Kind is set; it is valid during
// Observe only.
type Step struct {
	Kind   StepKind
	Seq    int64 // trace.Null for a sample
	TimeNS int64
	Buffer *trace.BufferEvent
	Queue  *trace.QueueEvent
	Span   *trace.Span // of both ends
	Sample *trace.Sample
}

// Observer sees every step of a walk.
type Observer interface {
	Observe(s *Step)
}

// Walk takes t's tables as one sequence, by seq, samples by time between them, and shows each step to every observer in turn.
func Walk(t *trace.Trace, observers ...Observer) error {
	return errors.New("memory.Walk: to be written")
}
