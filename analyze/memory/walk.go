package memory

import (
	"fmt"
	"math"

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

	// NumStepKinds is how many kinds there are.
	NumStepKinds
)

// Kinds is a set of kinds of steps.
type Kinds uint8

// KindsOf is the set of those kinds.
func KindsOf(kinds ...StepKind) Kinds {
	var set Kinds
	for _, k := range kinds {
		set |= 1 << k
	}
	return set
}

// Has says whether k is in the set.
func (s Kinds) Has(k StepKind) bool { return s&(1<<k) != 0 }

// Step is one event of a trace in its order. Exactly the pointer that belongs to Kind is set; it is
// valid during Observe only.
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

// Walk takes t's tables as one sequence, by seq, samples by time between them, and shows each step
// to every observer in turn. The tables are decoded beside the walk, each by a goroutine that reads
// some batches ahead and has ended when Walk returns. At equal times an event comes before a sample, so that a sample is
// compared with what had happened by then. The error is about reading; everything before the damage
// has been shown.
func Walk(t *trace.Trace, observers ...Observer) error {
	w := openWalker(t)
	defer w.close()
	var s Step
	for w.next(&s) {
		for _, o := range observers {
			o.Observe(&s)
		}
	}
	if w.err != nil {
		return fmt.Errorf("read trace: %w", w.err)
	}
	return nil
}

const noSeq = math.MaxInt64

// walker merges the tables. A row stays valid until its cursor advances, so a cursor advances at
// the start of the next step.
type walker struct {
	buffers *cursor[trace.BufferEvent]
	queues  *cursor[trace.QueueEvent]
	spans   *cursor[trace.Span]
	samples *cursor[trace.Sample]
	open    spanEnds
	spare   []*trace.Span // ends that have been shown, for the next ones
	last    StepKind      // what the last step was taken from
	started bool
	err     error
}

func openWalker(t *trace.Trace) *walker {
	w := &walker{}
	w.buffers = openCursor(t.Buffers(), &w.err)
	w.queues = openCursor(t.Queues(), &w.err)
	w.spans = openCursor(t.Spans(), &w.err)
	w.samples = openCursor(t.Samples(), &w.err)
	return w
}

func (w *walker) close() {
	w.buffers.stop()
	w.queues.stop()
	w.spans.stop()
	w.samples.stop()
}

// next fills s with the next step; false at the end or at damage.
func (w *walker) next(s *Step) bool {
	w.advance()
	if w.err != nil {
		return false
	}
	*s = w.nextEvent()
	if smp := w.samples.row; smp != nil && (s.Seq == noSeq || smp.TimeNS < s.TimeNS) {
		*s = Step{Kind: StepSample, Seq: trace.Null, TimeNS: smp.TimeNS, Sample: smp}
	}
	w.last, w.started = s.Kind, s.Seq != noSeq
	return w.started
}

// nextEvent is the event with the lowest seq among the heads; its Seq is noSeq where there is none.
func (w *walker) nextEvent() Step {
	s := Step{Seq: noSeq}
	if e := w.buffers.row; e != nil {
		s = Step{Kind: StepBuffer, Seq: e.Seq, TimeNS: e.TimeNS, Buffer: e}
	}
	if e := w.queues.row; e != nil && e.Seq < s.Seq {
		s = Step{Kind: StepQueue, Seq: e.Seq, TimeNS: e.TimeNS, Queue: e}
	}
	if e := w.spans.row; e != nil && e.BeginSeq < s.Seq {
		s = Step{Kind: StepSpanBegin, Seq: e.BeginSeq, TimeNS: e.BeginNS, Span: e}
	}
	if len(w.open) > 0 && w.open[0].EndSeq < s.Seq {
		e := w.open[0]
		s = Step{Kind: StepSpanEnd, Seq: e.EndSeq, TimeNS: e.EndNS, Span: e}
	}
	return s
}

// advance moves past what the last step was taken from.
func (w *walker) advance() {
	if !w.started {
		return
	}
	switch w.last {
	case StepBuffer:
		w.buffers.advance(&w.err)
	case StepQueue:
		w.queues.advance(&w.err)
	case StepSpanBegin:
		w.afterSpanBegin()
	case StepSpanEnd:
		w.spare = append(w.spare, w.open[0])
		w.open.pop()
	case StepSample:
		w.samples.advance(&w.err)
	}
}

func (w *walker) afterSpanBegin() {
	if s := w.spans.row; s.EndSeq != trace.Null {
		end := w.newSpan()
		*end = *s
		w.open.push(end)
	}
	w.spans.advance(&w.err)
}

func (w *walker) newSpan() *trace.Span {
	if n := len(w.spare); n > 0 {
		s := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return s
	}
	return &trace.Span{}
}

// spanEnds is a heap of spans by EndSeq: those that have begun and will end.
type spanEnds []*trace.Span

func (h *spanEnds) push(s *trace.Span) {
	*h = append(*h, s)
	q := *h
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if q[up].EndSeq <= q[i].EndSeq {
			return
		}
		q[up], q[i] = q[i], q[up]
		i = up
	}
}

func (h *spanEnds) pop() {
	q := *h
	last := len(q) - 1
	q[0], q[last] = q[last], nil
	q = q[:last]
	*h = q
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(q); c++ {
			if q[c].EndSeq < q[least].EndSeq {
				least = c
			}
		}
		if least == i {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
