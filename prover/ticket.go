package prover

import (
	"container/heap"

	"highwater/tracer"
)

// queueLog takes the operations of one resource; *tracer.Queue is one.
type queueLog interface{ Event(tracer.QueueOp) }

// order says who is served first.
type order string

const (
	orderFIFO     order = "fifo"
	orderPriority order = "priority" // by (job, partition), lowest first
)

// ticket is one wait for a resource: made by a request, ended by a grant or a cancel. All fields
// but granted are guarded by the resource's lock until granted is closed.
type ticket struct {
	owner   tracer.Owner
	amount  int64
	seq     uint64        // arrival
	at      int           // place in the heap, -1 when not waiting
	granted chan struct{} // closed at the grant
	slot    int32         // the lowest free number at the grant: a worker id where the resource has one
	item    *partition    // what a sender brings
}

// isGranted says whether t was granted.
func (t *ticket) isGranted() bool {
	select {
	case <-t.granted:
		return true
	default:
		return false
	}
}

// waitList holds tickets in the order in which they are served.
type waitList struct {
	order   order
	tickets []*ticket
	nextSeq uint64
}

func (w *waitList) add(t *ticket) {
	t.seq = w.nextSeq
	w.nextSeq++
	heap.Push((*ticketHeap)(w), t)
}

// first is the ticket that is served next, nil for none.
func (w *waitList) first() *ticket {
	if len(w.tickets) == 0 {
		return nil
	}
	return w.tickets[0]
}

func (w *waitList) remove(t *ticket) { heap.Remove((*ticketHeap)(w), t.at) }
func (w *waitList) len() int64       { return int64(len(w.tickets)) }

// ticketHeap is a waitList seen by container/heap.
type ticketHeap waitList

func (h *ticketHeap) Len() int { return len(h.tickets) }

func (h *ticketHeap) Less(i, j int) bool {
	a, b := h.tickets[i], h.tickets[j]
	if h.order == orderPriority {
		if a.owner.Job != b.owner.Job {
			return a.owner.Job < b.owner.Job
		}
		if a.owner.Partition != b.owner.Partition {
			return a.owner.Partition < b.owner.Partition
		}
	}
	return a.seq < b.seq
}

func (h *ticketHeap) Swap(i, j int) {
	h.tickets[i], h.tickets[j] = h.tickets[j], h.tickets[i]
	h.tickets[i].at, h.tickets[j].at = i, j
}

func (h *ticketHeap) Push(x any) {
	t := x.(*ticket)
	t.at = len(h.tickets)
	h.tickets = append(h.tickets, t)
}

func (h *ticketHeap) Pop() any {
	last := len(h.tickets) - 1
	t := h.tickets[last]
	h.tickets[last] = nil
	h.tickets = h.tickets[:last]
	t.at = -1
	return t
}
