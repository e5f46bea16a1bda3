package trace

import "strconv"

var queueWords = []string{
	EventRequest, EventAcquire, EventRelease, EventSend, EventSent, EventRecv,
	EventCancel,
}

// resourceState is what is known of a resource of the manifest.
type resourceState struct {
	kind, unit string
	capacity   int64 // Null: unbounded
	last       int64 // time of the last event, Null before the first
	level      int64
	owners     map[owner]*claim
}

// owner is whom an operation is for.
type owner struct{ job, partition int64 }

// claim is what an owner asked for and has of a resource.
type claim struct {
	pending int64 // requests or sends that are not answered
	held    int64 // acquired, or sent and not received
}

func (v *validator) queueEvent(e *QueueEvent) {
	v.common(row{"queues", e.Seq, e.TimeNS, e.Source, e.Job, e.Partition, e.Worker, None})
	v.word("queues", e.Seq, "event", e.Event, queueWords)
	v.spanRef("queues", e.Seq, e.SpanID)
	if e.WaitingAfter < 0 && e.WaitingAfter != Null {
		v.report("queue-waiting", "queues", e.Seq, "%d wait for %s", e.WaitingAfter, e.Resource)
	}
	r := v.resources[e.Resource]
	if r == nil {
		v.report("resource-listed", "queues", e.Seq, "resource %q is not in the manifest",
			e.Resource)
		return
	}
	v.rising("queue-time", "queues", order{e.Seq, e.TimeNS}, r.last)
	r.last = e.TimeNS
	if e.Amount < 1 || e.Amount != 1 && r.unit != "byte" && r.kind != ResourceBudget {
		v.report("queue-amount", "queues", e.Seq, "amount %d of %s", e.Amount, e.Resource)
	}
	v.queueLevel(e, r)
	v.queuePairing(e, r)
}

func (v *validator) queueLevel(e *QueueEvent, r *resourceState) {
	step, _ := levelStep(e.Event)
	want := r.level + step*e.Amount
	if r.level == Null {
		want = Null
	}
	r.level = e.LevelAfter
	if e.LevelAfter == Null {
		return
	}
	if want != Null && e.LevelAfter != want {
		v.report("queue-level", "queues", e.Seq,
			"level of %s after %s is %d, its events make it %d", e.Resource, e.Event, e.LevelAfter,
			want)
	}
	// At a rendezvous (capacity 0) an item is there between its sent and its recv.
	rendezvous := r.kind == ResourceChannel && r.capacity == 0
	above := r.capacity != Null && e.LevelAfter > r.capacity && !rendezvous
	if e.LevelAfter < 0 || above {
		v.report("queue-capacity", "queues", e.Seq, "level of %s is %d, its capacity %s",
			e.Resource, e.LevelAfter, nullText(r.capacity))
	}
}

// queuePairing follows what each owner asked for and has.
func (v *validator) queuePairing(e *QueueEvent, r *resourceState) {
	o := owner{e.Job, e.Partition}
	c := r.owners[o]
	if c == nil {
		c = new(claim)
		r.owners[o] = c
	}
	switch e.Event {
	case EventRequest, EventSend:
		c.pending++
	case EventAcquire, EventSent:
		v.unanswered(e, c, "nothing was asked for")
		c.held += e.Amount
	case EventCancel:
		v.unanswered(e, c, "nothing is waiting")
	case EventRelease, EventRecv:
		if c.held -= e.Amount; c.held < 0 {
			v.report("queue-pairing", "queues", e.Seq,
				"%s of %d of %s by job %d, partition %d, which has %d",
				e.Event, e.Amount, e.Resource, e.Job, e.Partition, c.held+e.Amount)
			c.held = 0
		}
	}
	if *c == (claim{}) {
		delete(r.owners, o)
	}
}

func (v *validator) unanswered(e *QueueEvent, c *claim, what string) {
	if c.pending == 0 {
		v.report("queue-pairing", "queues", e.Seq, "%s of %s by job %d, partition %d, for whom %s",
			e.Event, e.Resource, e.Job, e.Partition, what)
		return
	}
	c.pending--
}

// nullText writes a number that may be null.
func nullText(n int64) string {
	if n == Null {
		return "null"
	}
	return strconv.FormatInt(n, 10)
}
