package prover

import (
	"context"
	"sync"

	"highwater/tracer"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// semaphore is a counted resource that is requested, held and released: the job slots, the
// synthesis permits, the byte budget and the GPU lock. It serves strictly in its order: a request
// that does not fit holds back those after it, so that none starves. Every operation is recorded
// inside the critical section.
type semaphore struct {
	mu       sync.Mutex
	log      queueLog
	capacity int64 // setting.Unbounded for none
	held     int64
	waiters  waitList
	slots    []bool // slots[i] says whether number i is in use
	numbered bool   // the slot becomes the owner's worker
}

// semaphoreSpec describes a semaphore.
type semaphoreSpec struct {
	log      queueLog
	capacity int64
	order    order
	numbered bool // a grant gives its owner a worker number, the lowest that is free
}

func newSemaphore(s semaphoreSpec) *semaphore {
	return &semaphore{log: s.log, capacity: s.capacity, waiters: waitList{order: s.order},
		numbered: s.numbered}
}

// fits says whether amount could ever be granted.
func (s *semaphore) fits(amount int64) bool {
	return s.capacity == setting.Unbounded || amount <= s.capacity
}

// request queues for amount and returns at once; wait waits for the grant. It panics on an amount
// that can never be granted: see fits.
func (s *semaphore) request(owner tracer.Owner, amount int64) *ticket {
	if !s.fits(amount) {
		panic("prover: request can never be granted")
	}
	t := &ticket{owner: owner, amount: amount, granted: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters.add(t)
	s.record(trace.EventRequest, t, amount)
	s.grant()
	return t
}

// wait returns nil once t is granted, or the context's cause with t cancelled. A grant that came
// first wins.
func (s *semaphore) wait(ctx context.Context, t *ticket) error {
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at < 0 {
		return nil
	}
	s.waiters.remove(t)
	s.record(trace.EventCancel, t, t.amount)
	s.grant() // t may have held back smaller ones
	return context.Cause(ctx)
}

// acquire is request and wait.
func (s *semaphore) acquire(ctx context.Context, owner tracer.Owner, amount int64,
) (*ticket, error) {
	t := s.request(owner, amount)
	return t, s.wait(ctx, t)
}

// release gives back what is left of t. A second release does nothing.
func (s *semaphore) release(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.amount == 0 {
		return
	}
	s.giveBack(t, t.amount)
	if s.numbered {
		s.slots[t.slot] = false
	}
	s.grant()
}

// releasePart gives back amount of t and keeps the rest.
func (s *semaphore) releasePart(t *ticket, amount int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if amount <= 0 || amount >= t.amount {
		panic("prover: part of a reservation out of range")
	}
	s.giveBack(t, amount)
	s.grant()
}

func (s *semaphore) giveBack(t *ticket, amount int64) {
	t.amount -= amount
	s.held -= amount
	s.record(trace.EventRelease, t, amount)
}

// grant serves waiters in order while they fit.
func (s *semaphore) grant() {
	for t := s.waiters.first(); t != nil; t = s.waiters.first() {
		if s.capacity != setting.Unbounded && s.held+t.amount > s.capacity {
			return
		}
		s.waiters.remove(t)
		s.held += t.amount
		if s.numbered {
			t.slot = s.takeSlot()
			t.owner.Worker = t.slot
		}
		s.record(trace.EventAcquire, t, t.amount)
		close(t.granted)
	}
}

func (s *semaphore) takeSlot() int32 {
	for i, used := range s.slots {
		if !used {
			s.slots[i] = true
			return int32(i)
		}
	}
	s.slots = append(s.slots, true)
	return int32(len(s.slots) - 1)
}

func (s *semaphore) record(event string, t *ticket, amount int64) {
	s.log.Event(tracer.QueueOp{
		Event: event, Owner: t.owner, Priority: priorityOf(s.waiters.order, t.owner),
		Amount: amount, LevelAfter: s.held, WaitingAfter: s.waiters.len(),
	})
}

// priorityOf is the recorded priority: the job's number, lowest first, where the order is by
// priority.
func priorityOf(o order, owner tracer.Owner) int32 {
	if o == orderPriority {
		return owner.Job
	}
	return 0
}
