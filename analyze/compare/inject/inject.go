// Package inject edits recorded traces so that they show an effect of known size: what a comparison
// of traces must find. Every edit leaves a valid trace: events are put back into the order of their
// times and numbered anew, deltas follow from capacities.
//
// An edit changes the one thing it is named for and lets nothing else follow from it: a stage that
// takes longer does not delay its neighbours. So the effect is as hard to find as it can be.
package inject

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"highwater/tracer/trace"
)

// clone copies the tables of d, so that an edit leaves d as it is.
func clone(d *trace.Data) *trace.Data {
	c := &trace.Data{
		Manifest: d.Manifest, Spans: slices.Clone(d.Spans), Buffers: slices.Clone(d.Buffers),
		Queues: slices.Clone(d.Queues), Samples: slices.Clone(d.Samples),
	}
	c.Manifest.Settings = maps.Clone(d.Manifest.Settings)
	return c
}

// event is one event's place in the order: where its seq stands, when it was.
type event struct {
	time, old int64
	seq       *int64
}

// resequence puts all events into the order of their times, those at one time in their old order,
// and numbers them anew.
func resequence(d *trace.Data) {
	all := make([]event, 0, 2*len(d.Spans)+len(d.Buffers)+len(d.Queues))
	for i := range d.Spans {
		s := &d.Spans[i]
		all = append(all, event{s.BeginNS, s.BeginSeq, &s.BeginSeq})
		if s.EndSeq != trace.Null {
			all = append(all, event{s.EndNS, s.EndSeq, &s.EndSeq})
		}
	}
	for i := range d.Buffers {
		b := &d.Buffers[i]
		all = append(all, event{b.TimeNS, b.Seq, &b.Seq})
	}
	for i := range d.Queues {
		q := &d.Queues[i]
		all = append(all, event{q.TimeNS, q.Seq, &q.Seq})
	}
	slices.SortStableFunc(all, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.old, b.old))
	})
	for i := range all {
		*all[i].seq = int64(i + 1)
	}
	slices.SortFunc(d.Spans, func(a, b trace.Span) int { return cmp.Compare(a.BeginSeq, b.BeginSeq) })
	slices.SortFunc(d.Buffers, func(a, b trace.BufferEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortFunc(d.Queues, func(a, b trace.QueueEvent) int { return cmp.Compare(a.Seq, b.Seq) })
}

// StageTime makes every span of the stage take ratio longer: 0.05 is 5 %. Spans around it end no
// earlier than it.
func StageTime(d *trace.Data, stage string, ratio float64) (*trace.Data, error) {
	c := clone(d)
	byID := map[int64]*trace.Span{}
	for i := range c.Spans {
		byID[c.Spans[i].SpanID] = &c.Spans[i]
	}
	found := false
	for i := range c.Spans {
		s := &c.Spans[i]
		if s.Kind != trace.KindStage || s.Stage != stage || s.EndSeq == trace.Null {
			continue
		}
		found = true
		s.EndNS += int64(ratio * float64(s.EndNS-s.BeginNS))
		for p := byID[s.ParentID]; p != nil && p.EndSeq != trace.Null; p = byID[p.ParentID] {
			p.EndNS = max(p.EndNS, s.EndNS)
		}
	}
	if !found {
		return nil, fmt.Errorf("inject: no span of stage %s has ended", stage)
	}
	resequence(c)
	return c, nil
}

// BufferSize makes every top-level buffer of the class larger by ratio.
func BufferSize(d *trace.Data, class string, ratio float64) (*trace.Data, error) {
	c := clone(d)
	of := classBuffers(c, class)
	grown := func(n int64) int64 {
		if n == trace.Null {
			return n
		}
		return n + int64(ratio*float64(n))
	}
	type state struct{ capacity, resident int64 }
	last := map[int64]state{}
	for i := range c.Buffers {
		e := &c.Buffers[i]
		if !of[e.BufferID] {
			continue
		}
		before := last[e.BufferID]
		e.CapacityBytes, e.ResidentBytes = grown(e.CapacityBytes), grown(e.ResidentBytes)
		switch e.Event {
		case trace.EventAlloc, trace.EventResize:
			e.DeltaBytes = max(e.CapacityBytes, 0) - max(before.capacity, 0) // null is no bytes
		case trace.EventFree:
			e.DeltaBytes = -max(before.capacity, 0)
		}
		if e.DeltaResidentBytes != trace.Null {
			e.DeltaResidentBytes = residentDelta(e, before.resident)
		}
		last[e.BufferID] = state{e.CapacityBytes, e.ResidentBytes}
	}
	if len(of) == 0 {
		return nil, noBuffer(class)
	}
	return c, nil
}

func residentDelta(e *trace.BufferEvent, before int64) int64 {
	switch {
	case e.Event == trace.EventFree:
		return -max(before, 0)
	case e.ResidentBytes == trace.Null:
		return e.DeltaResidentBytes
	}
	return e.ResidentBytes - max(before, 0)
}

func noBuffer(class string) error {
	return fmt.Errorf("inject: jobs have no top-level buffer of class %s that is freed", class)
}

// endingBuffers are the top-level buffers of jobs that are of the class when they are freed: an
// in-place NTT makes an h of what was allocated as a.
func endingBuffers(d *trace.Data, class string) map[int64]bool {
	now, of := map[int64]string{}, map[int64]bool{}
	for i := range d.Buffers {
		e := &d.Buffers[i]
		switch {
		case e.Event == trace.EventAlloc && e.ParentID == 0 && e.Job >= 0,
			e.Event == trace.EventReclass && now[e.BufferID] != "":
			now[e.BufferID] = e.Class
		case e.Event == trace.EventFree && now[e.BufferID] == class:
			of[e.BufferID] = true
		}
	}
	return of
}

// classBuffers are the top-level buffers that are allocated as class for a job and are freed.
func classBuffers(d *trace.Data, class string) map[int64]bool {
	of, freed := map[int64]bool{}, map[int64]bool{}
	for i := range d.Buffers {
		e := &d.Buffers[i]
		switch {
		case e.Event == trace.EventAlloc && e.Class == class && e.ParentID == 0 && e.Job >= 0:
			of[e.BufferID] = true
		case e.Event == trace.EventFree:
			freed[e.BufferID] = true
		}
	}
	maps.DeleteFunc(of, func(id int64, _ bool) bool { return !freed[id] })
	return of
}

// Lifetime makes every top-level buffer that is of the class in the end live longer by ratio, but
// not beyond the end of the trace.
func Lifetime(d *trace.Data, class string, ratio float64) (*trace.Data, error) {
	c := clone(d)
	of := endingBuffers(c, class)
	if len(of) == 0 {
		return nil, noBuffer(class)
	}
	end := endOf(c)
	begun := map[int64]int64{}
	for i := range c.Buffers {
		e := &c.Buffers[i]
		switch {
		case !of[e.BufferID]:
		case e.Event == trace.EventAlloc:
			begun[e.BufferID] = e.TimeNS
		case e.Event == trace.EventFree:
			life := float64(e.TimeNS - begun[e.BufferID])
			e.TimeNS = max(e.TimeNS, min(end, e.TimeNS+int64(ratio*life)))
		}
	}
	resequence(c)
	return c, nil
}

// OneMore adds one buffer of the class, as large as its usual ones, that belongs to the owner of
// the first and lives from that one's alloc to the last free of the class.
func OneMore(d *trace.Data, class string) (*trace.Data, error) {
	c := clone(d)
	of := classBuffers(c, class)
	var first *trace.BufferEvent
	var sizes []int64
	var lastFree, highest int64
	for i := range c.Buffers {
		e := &c.Buffers[i]
		highest = max(highest, e.BufferID)
		if !of[e.BufferID] {
			continue
		}
		switch e.Event {
		case trace.EventAlloc:
			sizes = append(sizes, e.CapacityBytes)
			if first == nil {
				first = e
			}
		case trace.EventFree:
			lastFree = max(lastFree, e.TimeNS)
			sizes = append(sizes, -e.DeltaBytes)
		}
	}
	if first == nil {
		return nil, noBuffer(class)
	}
	slices.Sort(sizes)
	alloc := *first
	alloc.BufferID, alloc.CapacityBytes = highest+1, sizes[len(sizes)/2]
	alloc.ResidentBytes, alloc.DeltaBytes = alloc.CapacityBytes, alloc.CapacityBytes
	alloc.DeltaResidentBytes = alloc.ResidentBytes
	free := alloc
	free.Event, free.TimeNS = trace.EventFree, lastFree+1
	free.Seq = alloc.Seq + 1
	free.CapacityBytes, free.ResidentBytes = 0, 0
	free.DeltaBytes, free.DeltaResidentBytes = -alloc.DeltaBytes, -alloc.DeltaResidentBytes
	c.Buffers = append(c.Buffers, alloc, free)
	resequence(c)
	return c, nil
}

// endOf is the time of the last event of d.
func endOf(d *trace.Data) int64 {
	var end int64
	for i := range d.Spans {
		end = max(end, d.Spans[i].BeginNS)
		if d.Spans[i].EndSeq != trace.Null {
			end = max(end, d.Spans[i].EndNS)
		}
	}
	for i := range d.Buffers {
		end = max(end, d.Buffers[i].TimeNS)
	}
	for i := range d.Queues {
		end = max(end, d.Queues[i].TimeNS)
	}
	return end
}
