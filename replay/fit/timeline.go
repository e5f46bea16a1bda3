package fit

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"highwater/tracer/trace"
)

// unset is a time that was not recorded.
const unset = trace.Null

// timeline is what a trace says about its jobs.
type timeline struct {
	data     *trace.Data
	start    int64 // first job's request
	startSeq int64
	source   string
	kinds    map[string]string // resource name to kind
	parts    map[key]*part
	jobs     map[int64]*job
	stages   []*trace.Span // closed stage spans of jobs, by begin
	locks    bool
	pool     int64 // the buffer from which cpu_scratch is cut, 0 where there is none
}

type key struct{ job, partition int64 }

// part is one partition as recorded.
type part struct {
	key
	request                  int64 // of budget or permit, whichever came first
	acquired, released       int64 // permit
	send, sent, recv         int64
	lockAsked, locked, freed int64 // lock requested, acquired; last buffer freed
	unlocked                 int64
	worker                   int64 // GPU worker
	reserved, early          int64 // budget bytes; of these, given back before the end
	spans                    []*trace.Span
	buffers                  []*trace.BufferEvent
	abc                      map[int64]bool // buffers that began as a, b or c
	broken                   bool           // a stage failed or was cancelled
}

// job is one job as recorded.
type job struct {
	id                            int64
	submitted, admitted, released int64
	asked                         int64 // first request of one of its partitions
	over                          int64 // last end of one of its partitions
	spans                         []*trace.Span
	buffers                       []*trace.BufferEvent
}

var errNoJob = errors.New("the trace has no job: nothing to replay")

// read sorts a trace's rows by what they belong to.
func read(d *trace.Data) (*timeline, error) {
	t := &timeline{
		data: d, start: unset, kinds: map[string]string{}, parts: map[key]*part{},
		jobs: map[int64]*job{},
	}
	for _, r := range d.Manifest.Resources {
		t.kinds[r.Name] = r.Kind
	}
	for i := range d.Queues {
		q := &d.Queues[i]
		if t.kinds[q.Resource] == trace.ResourceJob && q.Event == trace.EventRequest {
			t.start, t.startSeq, t.source = q.TimeNS, q.Seq, q.Source
			break
		}
	}
	if t.start == unset {
		return nil, fmt.Errorf("fit: %w", errNoJob)
	}
	for i := range d.Queues {
		t.queue(&d.Queues[i])
	}
	for i := range d.Spans {
		t.span(&d.Spans[i])
	}
	t.findPool()
	t.allBuffers()
	t.ends()
	return t, nil
}

func (t *timeline) part(jobID, partition int64) *part {
	k := key{jobID, partition}
	p := t.parts[k]
	if p == nil {
		p = &part{
			key: k, request: unset, acquired: unset, released: unset, send: unset,
			sent: unset, recv: unset,
			lockAsked: unset, locked: unset, unlocked: unset, freed: unset, worker: trace.None,
		}
		t.parts[k] = p
	}
	return p
}

func (t *timeline) job(id int64) *job {
	j := t.jobs[id]
	if j == nil {
		j = &job{
			id: id, submitted: unset, admitted: unset, released: unset, asked: unset,
			over: unset,
		}
		t.jobs[id] = j
	}
	return j
}

func first(at *int64, now int64) {
	if *at == unset {
		*at = now
	}
}

func (t *timeline) queue(q *trace.QueueEvent) {
	if q.Job < 0 {
		return
	}
	kind := t.kinds[q.Resource]
	if kind == trace.ResourceJob {
		j := t.job(q.Job)
		switch q.Event {
		case trace.EventRequest:
			first(&j.submitted, q.TimeNS)
		case trace.EventAcquire:
			first(&j.admitted, q.TimeNS)
		case trace.EventRelease:
			j.released = q.TimeNS
		}
		return
	}
	if q.Partition < 0 {
		return
	}
	p := t.part(q.Job, q.Partition)
	if q.Event == trace.EventCancel {
		p.broken = true
	}
	switch kind {
	case trace.ResourcePermit:
		p.permit(q)
	case trace.ResourceBudget:
		p.budget(q)
	case trace.ResourceChannel:
		p.channel(q)
	case trace.ResourceLock:
		t.locks = true
		p.lock(q)
	}
}

func (p *part) permit(q *trace.QueueEvent) {
	switch q.Event {
	case trace.EventRequest:
		first(&p.request, q.TimeNS)
	case trace.EventAcquire:
		first(&p.acquired, q.TimeNS)
	case trace.EventRelease:
		p.released = q.TimeNS
	}
}

func (p *part) budget(q *trace.QueueEvent) {
	switch q.Event {
	case trace.EventRequest:
		first(&p.request, q.TimeNS)
		p.reserved = q.Amount
	case trace.EventRelease:
		if q.Amount < p.reserved && p.early == 0 {
			p.early = q.Amount
		}
	}
}

func (p *part) channel(q *trace.QueueEvent) {
	switch q.Event {
	case trace.EventSend:
		first(&p.send, q.TimeNS)
	case trace.EventSent:
		first(&p.sent, q.TimeNS)
	case trace.EventRecv:
		first(&p.recv, q.TimeNS)
		p.worker = q.Worker
	}
}

func (p *part) lock(q *trace.QueueEvent) {
	switch q.Event {
	case trace.EventRequest:
		first(&p.lockAsked, q.TimeNS)
	case trace.EventAcquire:
		first(&p.locked, q.TimeNS)
	case trace.EventRelease:
		p.unlocked = q.TimeNS
	}
}

func (t *timeline) span(s *trace.Span) {
	if s.Kind != trace.KindStage || s.Job < 0 {
		return
	}
	if s.EndNS == trace.Null || s.Status == "error" {
		if s.Partition >= 0 {
			t.part(s.Job, s.Partition).broken = true
		}
		return
	}
	t.stages = append(t.stages, s)
	if s.Partition < 0 {
		j := t.job(s.Job)
		j.spans = append(j.spans, s)
		return
	}
	p := t.part(s.Job, s.Partition)
	p.spans = append(p.spans, s)
}

// findPool finds the ownerless cpu_scratch that others are cut from.
func (t *timeline) findPool() {
	tops := map[int64]bool{}
	for i := range t.data.Buffers {
		b := &t.data.Buffers[i]
		if b.Class != trace.ClassCPUScratch || b.Event != trace.EventAlloc {
			continue
		}
		if b.ParentID == 0 && b.Job < 0 {
			tops[b.BufferID] = true
		}
		if tops[b.ParentID] && b.Job >= 0 {
			t.pool = b.ParentID
			return
		}
	}
}

// allBuffers gives buffer events to the partition or job that the buffer was allocated for.
func (t *timeline) allBuffers() {
	owner := map[int64]key{}
	for i := range t.data.Buffers {
		b := &t.data.Buffers[i]
		if b.Event == trace.EventAlloc {
			owner[b.BufferID] = key{b.Job, b.Partition}
		}
		k, ok := owner[b.BufferID]
		if !ok || k.job < 0 || b.ParentID != 0 && b.ParentID != t.pool {
			continue
		}
		if k.partition < 0 {
			j := t.job(k.job)
			j.buffers = append(j.buffers, b)
			continue
		}
		p := t.part(k.job, k.partition)
		p.buffers = append(p.buffers, b)
		if b.Event == trace.EventAlloc && slices.Contains(abc, b.Class) {
			if p.abc == nil {
				p.abc = map[int64]bool{}
			}
			p.abc[b.BufferID] = true
		}
		if b.Event == trace.EventFree {
			p.freed = b.TimeNS
		}
	}
}

// ends notes, by job, when the first of its partitions asked for anything and the last was over.
func (t *timeline) ends() {
	for k, p := range t.parts {
		j := t.job(k.job)
		if p.request != unset && (j.asked == unset || p.request < j.asked) {
			j.asked = p.request
		}
		j.over = max(j.over, p.freed)
		for _, s := range p.spans {
			j.over = max(j.over, s.EndNS)
		}
	}
}

// complete lists the partitions that went all the way, by (job, partition).
func (t *timeline) complete() []*part {
	var out []*part
	for _, p := range t.parts {
		if !p.broken && p.acquired != unset && p.send != unset && p.recv != unset &&
			p.freed != unset && len(p.spans) > 0 &&
			(!t.locks || p.unlocked != unset) && t.job(p.job).admitted != unset {
			out = append(out, p)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].job != out[j].job {
			return out[i].job < out[j].job
		}
		return out[i].partition < out[j].partition
	})
	return out
}
