package tracer

import (
	"math"

	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// Queue records operations on one resource. Its caller must call Event inside the resource's own
// critical section, so that order and levels are true. A nil Queue records nothing.
type Queue struct {
	rec       *Recorder
	resource  uint16
	last      int64 // time of the last event
	stage     string
	stageWord uint16 // of stage: a queue sees few stages, mostly the same in a row
}

// Queue registers a resource in the manifest and returns its recorder. nil for a nil Recorder. A
// manifest that cannot be written is an error of Close; the queue records all the same.
func (r *Recorder) Queue(res trace.Resource) *Queue {
	if r == nil {
		return nil
	}
	r.note(r.UpdateManifest(func(m *trace.Manifest) {
		for i := range m.Resources {
			if m.Resources[i].Name == res.Name {
				m.Resources[i] = res
				return
			}
		}
		m.Resources = append(m.Resources, res)
	}))
	return &Queue{rec: r, resource: r.j.Word(res.Name), last: math.MinInt64}
}

// QueueOp is one operation on a resource.
type QueueOp struct {
	Event        string // trace.EventRequest …
	Owner        Owner
	Priority     int32
	Amount       int64 // 1, or bytes
	LevelAfter   int64
	WaitingAfter int64 // trace.Null where unknown
}

// Event records op. Times of one queue rise strictly.
func (q *Queue) Event(op QueueOp) {
	if q == nil {
		return
	}
	if op.Owner.Stage != q.stage {
		q.stage, q.stageWord = op.Owner.Stage, q.rec.j.Word(op.Owner.Stage)
	}
	now := q.rec.j.Now()
	if now <= q.last {
		now = q.last + 1
	}
	q.last = now
	rec := journal.Record{
		Kind: journal.KindQueue, Event: queueEvent(op.Event), TimeNS: now,
		X: op.Amount, Y: op.LevelAfter, Parent: waiting(op.WaitingAfter), Span: local(op.Owner.Span),
		Job: op.Owner.Job, Partition: op.Owner.Partition, Worker: clamp16(op.Owner.Worker),
		Device: -1, Word0: q.resource, Word1: q.stageWord, Extra: clamp16(op.Priority),
	}
	q.rec.append(&rec)
}

// queueEvent is the word's number; 0, which the validator reports, for a word that the schema
// lacks.
func queueEvent(word string) uint8 {
	switch word { // a search by length and letters, faster than going through the table
	case trace.EventRequest:
		return journal.QueueRequest
	case trace.EventAcquire:
		return journal.QueueAcquire
	case trace.EventRelease:
		return journal.QueueRelease
	case trace.EventSend:
		return journal.QueueSend
	case trace.EventSent:
		return journal.QueueSent
	case trace.EventRecv:
		return journal.QueueRecv
	case trace.EventCancel:
		return journal.QueueCancel
	}
	return 0
}

func waiting(n int64) uint32 {
	if n < 0 || n >= journal.UnknownWaiting {
		return journal.UnknownWaiting
	}
	return uint32(n)
}

func sampleRecord(metric uint16, value float64) journal.Record {
	return journal.Record{
		Kind: journal.KindSample, X: int64(math.Float64bits(value)), Word0: metric,
		Job: -1, Partition: -1, Worker: -1, Device: -1,
	}
}
