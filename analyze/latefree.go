package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// lateFree finds partitions' buffers that stay allocated after nothing reads them any more.
//
//  1. A buffer is dead from its last_use to its free. A program that frees at the end of a stage
//     cannot do better than that, so it is overdue only from the end of the stage in which it was
//     last used (from last_use itself, outside of any).
//  2. Byte-seconds are capacity times time, counted for buffers that belong to a job. A buffer
//     without a last_use event counts as used to its free.
//  3. A finding needs min_share of all byte-seconds, or min_peak_share of the live peak, to be
//     overdue.
//  4. It is an error from error_peak_share of the peak on, a warning from warning_share of either
//     on, else an info.
type lateFree struct{}

const late = "late-free"

// Doc implements Analyzer.
func (lateFree) Doc() Doc {
	return Doc{
		Name:    late,
		Summary: "Buffers stay allocated past the end of the stage that used them last.",
		RefutedBy: "A use of these buffers between their last_use event and their free (the " +
			"event is then recorded too early); " +
			"or a replay with early frees that peaks as high: then they were dead, but not at " +
			"the peak.",
		Remedy: "Free a buffer when the stage that used it last ends (early_free=true for a, b " +
			"and c), not when the partition ends.",
		Thresholds: []Threshold{
			{
				Name:    late + ".min_share",
				Default: 0.02,
				Meaning: "share of the byte-seconds of partitions' buffers that is overdue",
				Source: "18 runs of our prover at 2^15: at most 1.8 % with early_free, at " +
					"least 4.8 % without",
			},
			{
				Name:    late + ".min_peak_share",
				Default: 0.02,
				Meaning: "share of the live peak that is overdue",
				Source:  "the same runs: at most 1.3 % and at least 4.3 %",
			},
			{
				Name:    late + ".warning_share",
				Default: 0.05,
				Meaning: "either share from which it is a warning, not an info",
				Source: "a replay errs by up to 3 %: what is below it and a margin cannot be " +
					"told by the peak",
			},
			{
				Name:    late + ".error_peak_share",
				Default: 0.25,
				Meaning: "share of the live peak that is overdue, from which it is an error",
				Source:  "a quarter of the peak is more than any worker count gives back",
			},
		},
	}
}

// Start implements Analyzer.
func (lateFree) Start(in *Input) Pass {
	return &latePass{
		in: in, open: map[*memory.Owner]int{}, waiting: map[*memory.Owner][]*deadBuffer{},
		dead: map[int64]*deadBuffer{}, classes: map[string]*lateClass{},
	}
}

type latePass struct {
	in      *Input
	open    map[*memory.Owner]int           // stages that run now
	waiting map[*memory.Owner][]*deadBuffer // for the end of those
	dead    map[int64]*deadBuffer
	classes map[string]*lateClass

	marks       int64   // last_use events
	frees       int64   // frees of jobs' buffers
	unmarked    int64   // of these, without a last_use
	byteSeconds float64 // of all jobs' buffers
	owned       int64   // their live bytes after the last step
	lastNS      int64
	started     bool

	overdue       int64 // bytes overdue now
	overdueAtPeak int64
	peak          int64 // the live peak's seq, as last seen
}

// deadBuffer is a buffer after its last use.
type deadBuffer struct {
	gone      bool // freed, or in use again
	class     string
	bytes     int64
	lastUseNS int64
	overdueNS int64 // trace.Null while the stage of its last use runs
}

// lateClass sums one class.
type lateClass struct {
	class       string
	buffers     int64
	deadNS      int64
	deadArea    float64 // byte-seconds from last use
	overdueArea float64 // byte-seconds from the end of the stage
	overdueNS   int64
	examples    []int64
}

// Observe implements memory.Observer.
func (p *latePass) Observe(s *memory.Step) {
	if s.Kind == memory.StepSample {
		return
	}
	p.integrate(s.TimeNS)
	l := p.in.Memory.Ledger
	switch s.Kind {
	case memory.StepBuffer:
		p.buffer(s.Buffer)
	case memory.StepSpanBegin, memory.StepSpanEnd:
		p.span(s)
	}
	if seq := l.Host.Peak.Seq; seq != p.peak {
		p.peak, p.overdueAtPeak = seq, p.overdue
	}
}

// integrate adds the byte-seconds since the last step.
func (p *latePass) integrate(timeNS int64) {
	if p.started {
		p.byteSeconds += float64(p.owned) * float64(timeNS-p.lastNS) / 1e9
	}
	p.lastNS, p.started = timeNS, true
	p.owned = p.in.Memory.Ledger.OwnedBytes()
}

func (p *latePass) span(s *memory.Step) {
	if s.Span.Kind != trace.KindStage || s.Span.Job < 0 {
		return
	}
	o := p.in.Memory.Ledger.OwnerOf(s.Span.Job, s.Span.Partition)
	if s.Kind == memory.StepSpanBegin {
		p.open[o]++
		return
	}
	p.open[o]--
	if p.open[o] > 0 {
		return
	}
	for _, d := range p.waiting[o] {
		if !d.gone {
			d.overdueNS = s.TimeNS
			p.overdue += d.bytes
		}
	}
	delete(p.open, o)
	delete(p.waiting, o)
}

func (p *latePass) buffer(e *trace.BufferEvent) {
	l := p.in.Memory.Ledger
	if b := l.Freed; b != nil {
		p.free(b, e.TimeNS)
		return
	}
	b := l.Live(e.BufferID)
	if b == nil || b.OnDevice() || b.Owner.Job < 0 {
		return
	}
	switch {
	case e.Event == trace.EventLastUse:
		p.marks++
		p.forget(b.ID)
		p.die(b, e.TimeNS)
	case b.LastUseNS == trace.Null:
		p.forget(b.ID) // reclassed: in use again
	}
}

func (p *latePass) die(b *memory.Buffer, timeNS int64) {
	class := p.in.Memory.Ledger.Class(b)
	d := &deadBuffer{class: class, bytes: b.CapacityBytes, lastUseNS: timeNS, overdueNS: trace.Null}
	p.dead[b.ID] = d
	if p.open[b.Owner] > 0 {
		p.waiting[b.Owner] = append(p.waiting[b.Owner], d)
		return
	}
	d.overdueNS = timeNS
	p.overdue += d.bytes
}

func (p *latePass) forget(id int64) *deadBuffer {
	d := p.dead[id]
	if d != nil {
		d.gone = true
		delete(p.dead, id)
		if d.overdueNS != trace.Null {
			p.overdue -= d.bytes
		}
	}
	return d
}

func (p *latePass) free(b *memory.Buffer, timeNS int64) {
	if b.OnDevice() || b.Owner.Job < 0 {
		return
	}
	p.frees++
	if d := p.forget(b.ID); d != nil {
		p.account(b.ID, d, timeNS)
	} else {
		p.unmarked++
	}
}

// account adds the time that d was dead, up to timeNS.
func (p *latePass) account(id int64, d *deadBuffer, timeNS int64) {
	c := p.classes[d.class]
	if c == nil {
		c = &lateClass{class: d.class}
		p.classes[d.class] = c
	}
	c.buffers++
	c.deadNS += timeNS - d.lastUseNS
	c.deadArea += float64(d.bytes) * float64(timeNS-d.lastUseNS) / 1e9
	if d.overdueNS == trace.Null {
		return
	}
	c.overdueNS += timeNS - d.overdueNS
	c.overdueArea += float64(d.bytes) * float64(timeNS-d.overdueNS) / 1e9
	if len(c.examples) < MaxExamples {
		c.examples = append(c.examples, id)
	}
}

// Finish implements Pass.
func (p *latePass) Finish(s *Summary, m *memory.Report) Outcome {
	if p.marks == 0 {
		return Outcome{
			NotApplicable: "the trace has no last_use events of jobs' buffers: when a buffer " +
				"died is not known",
		}
	}
	// Never freed: dead to the end of the trace. In one order, as are the sums of total: one trace
	// gives one report.
	for _, id := range slices.Sorted(maps.Keys(p.dead)) {
		p.account(id, p.dead[id], p.lastNS)
	}
	t := p.total()
	peakShare := 0.0
	if m.Peak != nil {
		peakShare = float64(p.overdueAtPeak) / float64(m.Peak.LiveBytes)
	}
	share := ratio(t.overdueArea, p.byteSeconds)
	if share < p.limit("min_share") && peakShare < p.limit("min_peak_share") {
		return Outcome{}
	}
	f := Finding{Severity: Info, Sentence: p.sentence(m, t), Evidence: p.evidence(m, t)}
	switch {
	case peakShare >= p.limit("error_peak_share"):
		f.Severity = Error
	case max(share, peakShare) >= p.limit("warning_share"):
		f.Severity = Warning
	}
	if s.Settings["early_free"].Value != "true" {
		f.WhatIf = map[string]string{"early_free": "true"}
	} else {
		f.Remedy = "early_free is on already and covers a, b and c only: free " +
			"" + strings.Join(p.overdueClasses(), ", ") +
			" where their last stage ends, too."
	}
	return Outcome{Findings: []Finding{f}}
}

func (p *latePass) limit(name string) float64 { return p.in.Threshold(late, name) }

func ratio(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

func (p *latePass) total() lateClass {
	var t lateClass
	for _, c := range p.sorted() {
		t.buffers += c.buffers
		t.deadArea += c.deadArea
		t.overdueArea += c.overdueArea
		t.overdueNS += c.overdueNS
	}
	return t
}

// sorted lists the classes, the most overdue first.
func (p *latePass) sorted() []*lateClass {
	all := make([]*lateClass, 0, len(p.classes))
	for _, c := range p.classes {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *lateClass) int {
		return cmp.Or(cmp.Compare(b.overdueArea, a.overdueArea), cmp.Compare(a.class, b.class))
	})
	return all
}

// overdueClasses names the classes that make up nine tenths of what is overdue.
func (p *latePass) overdueClasses() []string {
	var names []string
	rest := p.total().overdueArea
	for left := rest; left > 0.1*rest && len(names) < len(p.classes); {
		c := p.sorted()[len(names)]
		names = append(names, c.class)
		left -= c.overdueArea
	}
	return names
}

func (p *latePass) sentence(m *memory.Report, t lateClass) string {
	text := fmt.Sprintf(
		"%s stayed allocated past the stage that used them last: %.3g GiB·s overdue, %.0f %% of "+
			"all that partitions' buffers held",
		strings.Join(p.overdueClasses(), ", "),
		t.overdueArea/float64(units.GiB),
		100*ratio(t.overdueArea, p.byteSeconds),
	)
	if m.Peak != nil && p.overdueAtPeak > 0 {
		text += fmt.Sprintf("; %s (%.0f %%) of the peak was such memory",
			units.Bytes(p.overdueAtPeak), 100*float64(p.overdueAtPeak)/float64(m.Peak.LiveBytes))
	}
	return text + "."
}

func (p *latePass) evidence(m *memory.Report, t lateClass) Evidence {
	gib := float64(units.GiB)
	e := Evidence{Numbers: Numbers{
		{"overdue_gib_s", t.overdueArea / gib},
		{"dead_gib_s", t.deadArea / gib},
		{"partitions_gib_s", p.byteSeconds / gib},
		{"overdue_ratio", ratio(t.overdueArea, p.byteSeconds)},
		{"overdue_at_peak_bytes", float64(p.overdueAtPeak)},
	}}
	if m.Peak != nil {
		e.Numbers = append(e.Numbers,
			Number{"overdue_at_peak_ratio", float64(p.overdueAtPeak) / float64(m.Peak.LiveBytes)},
		)
	}
	e.Numbers = append(e.Numbers,
		Number{"buffers", float64(p.frees)},
		Number{"without_last_use_buffers", float64(p.unmarked)},
	)
	table := Table{
		Name:    "by class",
		Columns: []string{"class", "buffers", "mean_overdue_ns", "overdue_gib_s", "dead_gib_s"},
	}
	for _, c := range p.sorted() {
		table.Rows = append(table.Rows,
			[]any{
				c.class,
				c.buffers,
				c.overdueNS / c.buffers,
				c.overdueArea / gib,
				c.deadArea / gib,
			},
		)
		e.Buffers = append(e.Buffers, c.examples...)
	}
	e.Buffers = e.Buffers[:min(len(e.Buffers), MaxExamples)]
	e.Tables = []Table{table}
	return e
}
