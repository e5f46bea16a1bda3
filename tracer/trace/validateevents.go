package trace

import "iter"

// events walks buffer events, queue events and the ends of spans together, by seq, so that one
// order and one clock can be checked over all.
func (v *validator) events() error {
	nextBuffer, stopBuffers := iter.Pull2(v.t.Buffers())
	defer stopBuffers()
	nextQueue, stopQueues := iter.Pull2(v.t.Queues())
	defer stopQueues()
	w := &walk{
		v: v, spans: v.spanSeqs, lastSeq: Null, lastTime: Null, buffer: lastOf{Null},
		queue: lastOf{Null},
	}
	b, berr, bok := nextBuffer()
	q, qerr, qok := nextQueue()
	for (bok || qok) && !v.full() {
		switch {
		case berr != nil:
			return berr
		case qerr != nil:
			return qerr
		case bok && (!qok || b.Seq <= q.Seq):
			w.reach(b.Seq)
			w.event("buffers", order{b.Seq, b.TimeNS}, &w.buffer)
			v.bufferEvent(b)
			b, berr, bok = nextBuffer()
		default:
			w.reach(q.Seq)
			w.event("queues", order{q.Seq, q.TimeNS}, &w.queue)
			v.queueEvent(q)
			q, qerr, qok = nextQueue()
		}
	}
	if !v.full() {
		w.rest()
	}
	return nil
}

// walk is the place in the merged order.
type walk struct {
	v                 *validator
	spans             []order // begins and ends to come
	lastSeq, lastTime int64
	buffer, queue     lastOf
}

// lastOf is the last seq of a table.
type lastOf struct{ seq int64 }

// reach passes the begins and ends of spans before seq.
func (w *walk) reach(seq int64) {
	for len(w.spans) > 0 && w.spans[0].seq <= seq {
		w.next("spans", w.spans[0])
		w.spans = w.spans[1:]
	}
}

func (w *walk) rest() {
	for _, s := range w.spans {
		w.next("spans", s)
	}
}

// event checks the order within a table, then that of the trace.
func (w *walk) event(table string, at order, last *lastOf) {
	if at.seq <= last.seq {
		w.v.report("seq-order", table, at.seq, "seq comes after %d", last.seq)
	}
	last.seq = at.seq
	w.next(table, at)
}

func (w *walk) next(table string, at order) {
	if at.seq == w.lastSeq {
		w.v.report("seq-unique", table, at.seq, "two events have this seq")
	}
	if at.seq > w.lastSeq {
		if at.time < w.lastTime {
			w.v.report("time-order", table, at.seq, "time %d comes after %d of seq %d", at.time,
				w.lastTime, w.lastSeq)
		}
		w.lastTime = at.time
		w.lastSeq = at.seq
	}
}

// rising checks the time of a buffer's or a resource's next event against its last.
func (v *validator) rising(rule, table string, at order, last int64) {
	if last != Null && (at.time < last || v.strict && at.time == last) {
		v.report(rule, table, at.seq, "time %d comes after %d", at.time, last)
	}
}

// spanRef checks that the span which an event names is there.
func (v *validator) spanRef(table string, seq, span int64) {
	if _, ok := v.spanBegin[span]; span != 0 && !ok {
		v.report("span-known", table, seq, "span %d is not there", span)
	}
}
