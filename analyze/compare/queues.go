package compare

import (
	"strings"

	"highwater/tracer/trace"
)

// queueObserver measures how long items wait for each resource and how deep its queue is. For a
// channel that is from the send to the receive: blocked or queued, nobody works on the item.
type queueObserver struct {
	kinds map[string]string
	byRes map[string]*queueTimes
	since map[itemKey]int64
}

type itemKey struct {
	queue *queueTimes
	owner ownerKey
}

type queueTimes struct {
	kind    string
	waiting int64
	lastNS  int64
	depth   float64 // waiting times ns
	deepest int64
	wait    meanOf
	beganNS int64
}

func newQueueObserver(m *trace.Manifest) *queueObserver {
	o := &queueObserver{
		kinds: map[string]string{}, byRes: map[string]*queueTimes{}, since: map[itemKey]int64{},
	}
	for _, r := range m.Resources {
		o.kinds[r.Name] = r.Kind
	}
	return o
}

// startJobs begins the phase that counts.
func (o *queueObserver) startJobs(nowNS int64) {
	for _, q := range o.byRes {
		*q = queueTimes{kind: q.kind, waiting: q.waiting, lastNS: nowNS, beganNS: nowNS}
	}
}

func (o *queueObserver) queue(e *trace.QueueEvent) *queueTimes {
	q := o.byRes[e.Resource]
	if q == nil {
		name := strings.Clone(e.Resource)
		kind, ok := o.kinds[name]
		if !ok {
			kind = name
		}
		q = &queueTimes{kind: kind, lastNS: e.TimeNS, beganNS: e.TimeNS}
		o.byRes[name] = q
	}
	return q
}

func (o *queueObserver) event(e *trace.QueueEvent) {
	q := o.queue(e)
	if q.kind == trace.ResourceJob {
		return // all jobs are submitted at once in most runs: its depth says nothing
	}
	k := itemKey{q, ownerKey{e.Job, e.Partition}}
	switch e.Event {
	case trace.EventRequest, trace.EventSend:
		o.since[k] = e.TimeNS
		q.step(e.TimeNS, 1)
	case trace.EventAcquire, trace.EventRecv, trace.EventCancel:
		began, ok := o.since[k]
		if !ok {
			return
		}
		delete(o.since, k)
		q.step(e.TimeNS, -1)
		if e.Event != trace.EventCancel {
			q.wait.add(float64(e.TimeNS - began))
		}
	}
}

func (q *queueTimes) step(nowNS, change int64) {
	q.depth += float64(q.waiting) * float64(nowNS-q.lastNS)
	q.lastNS = nowNS
	q.waiting += change
	q.deepest = max(q.deepest, q.waiting)
}

func (o *queueObserver) finish(v Values, endNS int64) {
	for name, q := range o.byRes {
		q.step(endNS, 0)
		if q.kind == trace.ResourceJob || q.wait.count == 0 {
			continue
		}
		v.set(QueueWait, name, q.wait.sum/float64(q.wait.count))
		v.set(QueueMax, name, float64(q.deepest))
		if took := endNS - q.beganNS; took > 0 {
			v.set(QueueDepth, name, q.depth/float64(took))
		}
	}
}
