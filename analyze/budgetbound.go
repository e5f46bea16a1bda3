package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// budgetNotABound finds a byte budget that what it should bound has outgrown.
//
//  1. The budget's level is the bytes reserved, from its own events; its capacity is the bound.
//  2. Against it stand the live host bytes that jobs own, children apart from their pools.
//  3. A finding needs them max_over above the capacity at their highest.
//  4. What was then alive beyond the level was given back too early, or never reserved.
type budgetNotABound struct{}

const budgetName = "budget-not-a-bound"

// Doc implements Analyzer.
func (budgetNotABound) Doc() Doc {
	return Doc{
		Name: budgetName,
		Summary: "Jobs hold more memory than the byte budget allows: it reserves too little, or " +
			"gives back before the memory is free.",
		RefutedBy: "The buffers beyond the budget being ones that it was never meant to cover " +
			"(set a higher capacity, and say so); or the same bytes counted twice in the ledger.",
		Remedy: "Reserve what a partition really takes at its worst moment (the table names the " +
			"classes), give back only what was freed, or lower the budget by the difference.",
		Thresholds: []Threshold{
			{
				Name: budgetName + ".max_over", Default: 0.1,
				Meaning: "share of the capacity by which jobs' live bytes may exceed it",
				Source: "reasoned: rounding to pages and small buffers; the incident's budget was " +
					"11 to 39 % short a partition",
			},
			{
				Name: budgetName + ".error_over", Default: 0.3,
				Meaning: "the same, from which it is an error",
				Source:  "reasoned: a limit set from it is then passed by most of a partition",
			},
		},
	}
}

// Start implements Analyzer.
func (budgetNotABound) Start(in *Input) Pass {
	p := &budgetPass{in: in, held: map[string]int64{}, notes: map[int64]heldBuffer{}}
	for _, r := range in.Trace.Manifest.Resources {
		if r.Kind == trace.ResourceBudget && r.Capacity != nil && *r.Capacity > 0 {
			p.capacity = *r.Capacity
		}
	}
	return p
}

type budgetPass struct {
	in       *Input
	capacity int64 // 0: no budget
	level    int64
	events   int64

	held       map[string]int64 // live bytes of jobs' buffers by class, kept only with a budget
	notes      map[int64]heldBuffer
	worst      int64 // jobs' live bytes at their highest
	worstLevel int64
	worstNS    int64
	worstHeld  map[string]int64
	parts      memory.Waiting
	maxLevel   int64
}

type heldBuffer struct {
	class string
	bytes int64
}

func (*budgetPass) wants() memory.Kinds {
	return memory.KindsOf(memory.StepBuffer, memory.StepQueue)
}

// Observe implements memory.Observer.
func (p *budgetPass) Observe(s *memory.Step) {
	if p.capacity == 0 {
		return
	}
	l := p.in.Memory.Ledger
	if s.Kind == memory.StepQueue {
		if l.KindOf(s.Queue.Resource) == trace.ResourceBudget && s.Queue.LevelAfter != trace.Null {
			p.events++
			p.level = s.Queue.LevelAfter
			p.maxLevel = max(p.maxLevel, p.level)
		}
		return
	}
	p.follow(s.Buffer)
	if owned := l.OwnedBytes(); owned > p.worst && p.events > 0 {
		p.worst, p.worstLevel, p.worstNS = owned, p.level, s.TimeNS
		// Copying at every new maximum is bounded by the number of classes.
		p.worstHeld = make(map[string]int64, len(p.held))
		for class, bytes := range p.held {
			p.worstHeld[class] = bytes
		}
	}
}

// follow keeps what jobs hold by class.
func (p *budgetPass) follow(e *trace.BufferEvent) {
	l := p.in.Memory.Ledger
	if n, ok := p.notes[e.BufferID]; ok {
		p.held[n.class] -= n.bytes
		delete(p.notes, e.BufferID)
	}
	b := l.Live(e.BufferID)
	if b == nil || b.OnDevice() || b.Owner.Job < 0 {
		return
	}
	n := heldBuffer{l.Class(b), b.CapacityBytes}
	p.notes[e.BufferID] = n
	p.held[n.class] += n.bytes
}

// Finish implements Pass.
func (p *budgetPass) Finish(*Summary, *memory.Report) Outcome {
	switch {
	case p.capacity == 0:
		return Outcome{NotApplicable: "the trace has no byte budget with a capacity"}
	case p.events == 0:
		return Outcome{NotApplicable: "the trace has no events of its byte budget"}
	}
	over := ratio(float64(p.worst-p.capacity), float64(p.capacity))
	if over <= p.in.Threshold(budgetName, "max_over") {
		return Outcome{}
	}
	f := Finding{
		Severity: Warning,
		Sentence: fmt.Sprintf(
			"Jobs held %s at the worst moment against a budget of %s (%+.0f %%), of which %s was "+
				"reserved then: %s was never reserved, or given back before it was free.",
			units.Bytes(p.worst), units.Bytes(p.capacity), 100*over, units.Bytes(p.worstLevel),
			units.Bytes(p.worst-p.worstLevel)),
		Evidence: Evidence{
			Numbers: Numbers{
				{"budget_bytes", float64(p.capacity)},
				{"held_bytes", float64(p.worst)},
				{"over_ratio", over},
				{"reserved_then_bytes", float64(p.worstLevel)},
				{"most_reserved_bytes", float64(p.maxLevel)},
				{"unreserved_bytes", float64(p.worst - p.worstLevel)},
			},
			Window: &Window{BeginNS: p.worstNS, EndNS: p.worstNS},
			Tables: []Table{p.byClass()},
		},
	}
	if over >= p.in.Threshold(budgetName, "error_over") {
		f.Severity = Error
	}
	return Outcome{Findings: []Finding{f}}
}

func (p *budgetPass) byClass() Table {
	t := Table{Name: "jobs' bytes then, by class", Columns: []string{"class", "bytes"}}
	for class, bytes := range p.worstHeld {
		if bytes != 0 {
			t.Rows = append(t.Rows, []any{class, bytes})
		}
	}
	slices.SortFunc(t.Rows, func(a, b []any) int {
		return cmp.Or(cmp.Compare(b[1].(int64), a[1].(int64)),
			cmp.Compare(a[0].(string), b[0].(string)))
	})
	return t
}
