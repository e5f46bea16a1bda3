package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

// figures gathers a Summary from a walk, after the memory builder that it reads.
type figures struct {
	trace  *trace.Trace
	memory *memory.Builder
	jobs   jobFigures
	stages stageFigures
	rho    rhoFigures
	counts EventCounts
	time   struct {
		first, last int64
		any         bool
	}
	openSpans int
}

func newFigures(t *trace.Trace, b *memory.Builder) *figures {
	return &figures{
		trace: t, memory: b, jobs: newJobFigures(&t.Manifest),
		stages: stageFigures{byName: map[string]*stageTimes{}},
		rho:    newRhoFigures(&t.Manifest),
	}
}

// Observe takes one step.
func (f *figures) Observe(s *memory.Step) {
	f.clock(s.TimeNS)
	switch s.Kind {
	case memory.StepBuffer:
		f.counts.Buffers++
		if b := f.memory.Ledger.Freed; b != nil && b.Owner.Job >= 0 {
			f.jobs.lastFree(s.TimeNS)
		}
	case memory.StepQueue:
		f.counts.Queues++
		f.jobs.queue(s.Queue)
		f.rho.queue(s.Queue)
	case memory.StepSpanBegin:
		f.counts.Spans++
		f.openSpans++
		f.stages.begin(s.Span)
		f.rho.begin(s.Span)
	case memory.StepSpanEnd:
		f.openSpans--
		f.stages.end(s.Span)
		f.jobs.spanEnd(s.Span)
		f.rho.end(s.Span)
	case memory.StepSample:
		f.counts.Samples++
	}
}

func (f *figures) clock(timeNS int64) {
	if !f.time.any {
		f.time.first, f.time.last, f.time.any = timeNS, timeNS, true
	}
	f.time.first, f.time.last = min(f.time.first, timeNS), max(f.time.last, timeNS)
}

func (f *figures) summary() *Summary {
	m, l := &f.trace.Manifest, f.memory.Ledger
	s := &Summary{
		Jobs: f.jobs.count(), Partitions: l.PartitionCount(), Events: &f.counts,
		Stages:    f.stages.table(),
		OpenSpans: f.openSpans, BaseBytes: m.BaseBytes,
		Origin: m.Origin, Live: f.trace.Live, SealedBy: Text(m.SealedBy),
		ProcessEnd: Text(m.ProcessEnd), EndReason: Text(m.EndReason),
		Program: Text(m.Program), Commit: Text(m.Commit),
		Host: &m.Host, Memory: &m.Memory, Circuit: m.Circuit,
		Settings: m.Settings,
		Seed:     m.Seed, Loss: m.Loss, Recorder: &m.Recorder, DevicePeaks: []DevicePeak{},
	}
	if s.Settings == nil {
		s.Settings = map[string]trace.Setting{}
	}
	if s.Loss == nil {
		s.Loss = []trace.Loss{}
	}
	for _, x := range m.Loss {
		s.LostEvents += x.Count
	}
	if f.time.any {
		s.ObservedNS = ptr(f.time.last - f.time.first)
	}
	f.peaks(s)
	s.MakespanNS = f.jobs.makespan()
	if s.MakespanNS != nil && s.Jobs.Finished > 0 {
		s.ProofIntervalNS = ptr(*s.MakespanNS / int64(s.Jobs.Finished))
	}
	s.Rho, s.RhoInputs = f.rho.result()
	s.Warnings = f.warnings(s)
	return s
}

// peaks fills in what is counted from the first job's request on, and set-up's own line.
func (f *figures) peaks(s *Summary) {
	l := f.memory.Ledger
	s.Setup.PeakRSSBytes = f.memory.SetupPeakRSS()
	if l.FirstRequestSeq == trace.Null {
		if f.counts.Buffers > 0 {
			s.Setup.PeakLiveBytes = ptr(l.Host.Peak.LiveBytes)
		}
		s.Setup.DurationNS = s.ObservedNS
		return
	}
	s.Setup.PeakLiveBytes = ptr(l.Setup.LiveBytes)
	s.Setup.DurationNS = ptr(l.FirstRequestNS - f.time.first)
	if s.Origin == trace.OriginSimulated { // begins where set-up ended
		s.Setup = SetupPeaks{}
	}
	s.PeakLiveBytes = ptr(l.Host.Peak.LiveBytes)
	if p := f.memory.PeakRSS(); p != nil {
		s.PeakRSSBytes, s.PeakRSSSource = &p.Bytes, Text(p.Source)
	}
	for device, t := range l.Devices {
		s.DevicePeaks = append(s.DevicePeaks, DevicePeak{device, t.Peak.LiveBytes})
	}
	slices.SortFunc(s.DevicePeaks,
		func(a, b DevicePeak) int { return cmp.Compare(a.Device, b.Device) })
}

// warnings are doubts about the figures, each saying what it does to them.
func (f *figures) warnings(s *Summary) []string {
	w := []string{}
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if s.Live {
		add(
			"the trace is still being written, or its writer was killed: the figures are those " +
				"so far",
		)
	}
	if s.Jobs.Submitted == 0 {
		add("the trace has no job: peaks, makespan, proof interval and rho are not known")
	}
	if s.Jobs.Open > 0 {
		add("%d of %d jobs had not ended when the trace ends: the makespan is not known",
			s.Jobs.Open, s.Jobs.Submitted)
	}
	if s.LostEvents > 0 {
		add("%s not recorded: sums over events may be wrong", count(int(s.LostEvents), "event"))
	}
	if s.OpenSpans > 0 {
		add("%s open when the trace ends: in no stage's times", count(s.OpenSpans, "span"))
	}
	if s.PeakRSSSource == "sampled" {
		add("peak RSS is the highest sample: a shorter peak between two samples is missed")
	}
	return w
}

func ptr[T any](v T) *T { return &v }
