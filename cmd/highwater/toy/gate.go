package toy

import (
	"sync"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// gate is a counted resource, first come first served, that records its events inside its critical
// section.
type gate struct {
	mu       sync.Mutex
	queue    *tracer.Queue
	capacity int64
	level    int64
	waiting  []waiter
}

type waiter struct {
	owner tracer.Owner
	turn  chan struct{}
}

func newGate(q *tracer.Queue, capacity int64) *gate { return &gate{queue: q, capacity: capacity} }

func (g *gate) record(event string, o tracer.Owner) {
	g.queue.Event(tracer.QueueOp{
		Event: event, Owner: o, Amount: 1, LevelAfter: g.level,
		WaitingAfter: int64(len(g.waiting)),
	})
}

func (g *gate) acquire(o tracer.Owner) {
	w := waiter{o, make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	g.record(trace.EventRequest, o)
	g.wake()
	g.mu.Unlock()
	<-w.turn
}

// wake lets in whoever fits.
func (g *gate) wake() {
	for len(g.waiting) > 0 && g.level < g.capacity {
		w := g.waiting[0]
		g.waiting = g.waiting[1:]
		g.level++
		g.record(trace.EventAcquire, w.owner)
		close(w.turn)
	}
}

func (g *gate) release(o tracer.Owner) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.level--
	g.record(trace.EventRelease, o)
	g.wake()
}
