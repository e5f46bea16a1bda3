package prover

import (
	"context"
	"sync"

	"highwater/tracer"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// channel carries synthesised partitions to the GPU workers. Capacity 0 is a rendezvous: a send is
// accepted when a receiver takes its item. Its level is the items accepted and not yet received;
// those who wait for it are the senders that are not accepted yet. Items, and senders that wait,
// are served in the channel's order.
type channel struct {
	mu        sync.Mutex
	log       queueLog
	capacity  int64 // setting.Unbounded for none
	items     waitList
	senders   waitList
	receivers []*receiver // longest waiting first
	closed    bool
	peak      int64 // the most items and senders at once that were not received
}

// receiver is a GPU worker that waits for an item.
type receiver struct {
	owner tracer.Owner
	got   chan *partition // capacity 1; closed without an item when the channel is
}

func newChannel(log queueLog, capacity int64, o order) *channel {
	return &channel{log: log, capacity: capacity,
		items: waitList{order: o}, senders: waitList{order: o}}
}

// send offers p and returns nil once it is accepted, or the context's cause with the offer
// withdrawn.
func (c *channel) send(ctx context.Context, owner tracer.Owner, p *partition) error {
	t := &ticket{owner: owner, amount: 1, granted: make(chan struct{}), item: p}
	c.offer(t)
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-t.granted: // accepted before the cancel
		return nil
	default:
	}
	c.senders.remove(t)
	c.record(trace.EventCancel, owner)
	return context.Cause(ctx)
}

func (c *channel) offer(t *ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		panic("prover: send on a closed channel")
	}
	c.senders.add(t)
	c.record(trace.EventSend, t.owner)
	c.move()
	c.peak = max(c.peak, c.items.len()+c.senders.len())
}

// recv takes the next item for owner, a GPU worker. It returns false when the channel is closed and
// empty.
func (c *channel) recv(owner tracer.Owner) (*partition, bool) {
	r := &receiver{owner: owner, got: make(chan *partition, 1)}
	c.mu.Lock()
	if c.closed && c.items.len() == 0 {
		c.mu.Unlock()
		return nil, false
	}
	c.receivers = append(c.receivers, r)
	c.move()
	c.mu.Unlock()
	p, ok := <-r.got
	return p, ok
}

// close ends the channel: receivers get what is left, then false. No sender may be waiting.
func (c *channel) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.senders.len() > 0 {
		panic("prover: close of a channel with senders waiting")
	}
	c.closed = true
	for _, r := range c.receivers {
		close(r.got)
	}
	c.receivers = nil
}

// move accepts senders while there is room and serves receivers while there are items, until
// neither is possible.
func (c *channel) move() {
	for c.accept() || c.deliver() {
	}
}

// accept takes the first sender's item. There is room below the capacity, and at a rendezvous for
// each receiver.
func (c *channel) accept() bool {
	t := c.senders.first()
	if t == nil || !c.room() {
		return false
	}
	c.senders.remove(t)
	item := &ticket{owner: t.owner, item: t.item}
	c.items.add(item)
	c.record(trace.EventSent, t.owner)
	close(t.granted)
	return true
}

func (c *channel) room() bool {
	switch c.capacity {
	case setting.Unbounded:
		return true
	case 0:
		return c.items.len() < int64(len(c.receivers))
	}
	return c.items.len() < c.capacity
}

// deliver hands the first item to the receiver that has waited longest.
func (c *channel) deliver() bool {
	item := c.items.first()
	if item == nil || len(c.receivers) == 0 {
		return false
	}
	r := c.receivers[0]
	c.receivers = c.receivers[1:]
	c.items.remove(item)
	owner := item.owner
	owner.Worker, owner.Stage = r.owner.Worker, r.owner.Stage
	c.record(trace.EventRecv, owner)
	r.got <- item.item
	return true
}

// waitingPeak is the most items that were, at once, sent or accepted and not received.
func (c *channel) waitingPeak() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peak
}

func (c *channel) record(event string, owner tracer.Owner) {
	c.log.Event(tracer.QueueOp{
		Event: event, Owner: owner, Priority: priorityOf(c.items.order, owner),
		Amount: 1, LevelAfter: c.items.len(), WaitingAfter: c.senders.len(),
	})
}
