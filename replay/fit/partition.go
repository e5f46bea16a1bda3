package fit

import (
	"slices"
	"sort"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// abc are the classes of what is dead when prove_start returns.
var abc = []string{trace.ClassA, trace.ClassB, trace.ClassC}

// partition makes a pool member of a recorded partition.
func (t *timeline) partition(p *part, split bool, by measure) pipeline.Partition {
	numbers := map[int64]int{}
	out := pipeline.Partition{Job: p.job, Partition: p.partition}
	out.Pieces = model(p.pieces(t.dispatched(p.job), split), numbers, by)
	out.SettledBytes, out.EarlyBytes = p.settled()
	started := p.spanTime(trace.StageProveStart, true)
	for _, e := range p.buffers {
		if e.Event == trace.EventFree && started != unset && e.TimeNS >= started &&
			p.isABC(e.BufferID) {
			out.EarlyFree = append(out.EarlyFree, numbers[e.BufferID])
		}
	}
	return out
}

// isABC says whether a buffer began as a, b or c.
func (p *part) isABC(id int64) bool { return p.abc[id] }

// settled is what the partition reserves of a byte budget, and what of it goes back after the
// start: as recorded; without a recorded reservation, what it held when it was sent.
func (p *part) settled() (settled, early int64) {
	held := map[int64]*trace.BufferEvent{}
	for _, e := range p.buffers {
		if e.TimeNS > p.send {
			break
		}
		held[e.BufferID] = e
		if e.Event == trace.EventFree {
			delete(held, e.BufferID)
		}
	}
	for _, e := range held {
		if e.Class == trace.ClassCPUScratch || e.Space == trace.SpaceDevice {
			continue
		}
		settled += e.CapacityBytes
		if p.isABC(e.BufferID) {
			early += e.CapacityBytes
		}
	}
	if p.reserved > 0 {
		settled = p.reserved
	}
	if p.early > 0 {
		early = p.early
	}
	return settled, min(early, settled)
}

// dispatched is when a job let its partitions go: at its admission, or after what the job itself
// did first.
func (t *timeline) dispatched(id int64) int64 {
	j := t.jobs[id]
	at := j.admitted
	for _, s := range j.spans {
		if s.EndNS <= j.asked {
			at = max(at, s.EndNS)
		}
	}
	return at
}

// jobsOf makes the pool of jobs.
func (t *timeline) jobsOf(by measure) []pipeline.Job {
	ids := make([]int64, 0, len(t.jobs))
	for id := range t.jobs {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	var out []pipeline.Job
	for _, id := range ids {
		j := t.jobs[id]
		if j.submitted == unset || j.admitted == unset {
			continue
		}
		out = append(out, t.jobOf(j, by))
	}
	return out
}

func (t *timeline) jobOf(j *job, by measure) pipeline.Job {
	var before, after []*trace.Span
	dispatched, last := t.dispatched(j.id), j.over
	for _, s := range j.spans {
		if s.EndNS <= dispatched {
			before = append(before, s)
		} else if s.BeginNS >= last {
			after = append(after, s)
		}
	}
	end := last
	for _, s := range after {
		end = max(end, s.EndNS)
	}
	head := cut(segmentBound{"", j.admitted, dispatched}, before)
	tail := cut(segmentBound{"", last, end}, after)
	all := append(slices.Clone(head), tail...)
	if len(all) == 0 && len(j.buffers) > 0 {
		head = []piece{{begin: j.admitted, end: j.admitted}}
		all = head
	}
	place(all, j.buffers)
	out := pipeline.Job{Job: j.id, SubmitNS: float64(j.submitted - t.start)}
	numbers := map[int64]int{}
	out.Before = model(all[:len(head)], numbers, by)
	out.After = model(all[len(head):], numbers, by)
	return out
}
