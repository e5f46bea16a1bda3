package fit

import (
	"math"
	"strings"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// background is what lies in memory without belonging to a job: from before the first job to the end, or changing later.
func (t *timeline) background() (resident []pipeline.Change, later []pipeline.Later) {
	held := map[int64]*trace.BufferEvent{}
	var order []int64
	mine := t.ownerless()
	end := t.end()
	for i := range t.data.Buffers {
		b := &t.data.Buffers[i]
		if b.ParentID == 0 && mine[b.BufferID] && b.Seq < t.startSeq {
			if _, ok := held[b.BufferID]; !ok {
				order = append(order, b.BufferID)
			}
			held[b.BufferID] = b
			if b.Event == trace.EventFree {
				delete(held, b.BufferID)
			}
		}
	}
	numbers := map[int64]int{}
	for _, id := range order {
		if b := held[id]; b != nil {
			c := changeOf(b, numbers)
			c.Event = trace.EventAlloc
			resident = append(resident, c)
		}
	}
	for i := range t.data.Buffers {
		b := &t.data.Buffers[i]
		known := b.Event == trace.EventAlloc
		if _, ok := numbers[b.BufferID]; ok {
			known = true
		}
		if b.ParentID == 0 && mine[b.BufferID] && known && b.Seq > t.startSeq && b.TimeNS < end {
			later = append(later, pipeline.Later{AtNS: float64(b.TimeNS - t.start), Change: changeOf(b, numbers)})
		}
	}
	return resident, later
}

// ownerless are the buffers that were allocated for no job.
func (t *timeline) ownerless() map[int64]bool {
	out := map[int64]bool{}
	for i := range t.data.Buffers {
		if b := &t.data.Buffers[i]; b.Event == trace.EventAlloc && b.Job < 0 {
			out[b.BufferID] = true
		}
	}
	return out
}

// end is when the last partition was freed.
func (t *timeline) end() int64 {
	end := t.start
	for _, p := range t.parts {
		if p.freed != unset {
			end = max(end, p.freed)
		}
	}
	return end
}

// peaks are the recorded ledger's, from the first job's request on.
type peaks struct {
	live       int64
	resident   int64 // with scratch
	scratchLaw int64 // most of (resident without scratch + largest scratch so far)
}

// recordedPeaks walks the recorded ledger. The bytes of a buffer of which nothing is known are those of its events.
func (t *timeline) recordedPeaks() peaks {
	var p peaks
	var live, resident, scratch, high int64
	started := false
	held := map[int64]pipeline.Change{}
	none := map[int64]int{}
	note := func() {
		high = max(high, scratch)
		p.live = max(p.live, live)
		p.resident = max(p.resident, resident+scratch)
		p.scratchLaw = max(p.scratchLaw, resident+high)
	}
	for i := range t.data.Buffers {
		b := &t.data.Buffers[i]
		if b.ParentID != 0 || b.Space == trace.SpaceDevice {
			continue
		}
		if !started && b.Seq > t.startSeq {
			started = true
			note()
		}
		old := held[b.BufferID]
		c := pipeline.Change{}
		if b.Event != trace.EventFree {
			c = changeOf(b, none)
		}
		held[b.BufferID] = c
		live += c.Capacity - old.Capacity
		resident += plain(c) - plain(old)
		scratch += (c.Resident - plain(c)) - (old.Resident - plain(old))
		if started {
			note()
		}
	}
	return p
}

// plain is the resident bytes of what is not scratch.
func plain(c pipeline.Change) int64 {
	if c.Class == trace.ClassCPUScratch {
		return 0
	}
	return c.Resident
}

// peakRSS is the recorded peak of the resident set after the first job's request and where it comes from; Null without.
func (t *timeline) peakRSS() (int64, string) {
	if p := t.data.Manifest.PeakRSS; p != nil && p.Bytes > 0 {
		return p.Bytes, p.Source
	}
	peak := int64(trace.Null)
	for i := range t.data.Samples {
		s := &t.data.Samples[i]
		if s.Metric == metricRSS && s.Source == t.source && s.TimeNS >= t.start && !math.IsNaN(s.Value) {
			peak = max(peak, int64(s.Value))
		}
	}
	return peak, "sampled"
}

const metricRSS = "process.memory.usage"

// Remainder is the law of RSS minus ledger and how well it explains the recording.
type Remainder struct {
	Law       string
	BaseBytes int64
	// Measured says that the base was measured at the time, so that the law was checked and not fitted.
	Measured bool
	// ErrorRatio is the law's peak RSS on the recorded ledger over the recorded peak, minus 1; nil where it was fitted to it or
	// no peak was recorded.
	ErrorRatio *float64
}

// remainder chooses the law of RSS. With the collector's percentage off and a collection after each MSM scratch stays
// resident at its high water and nothing is fitted; otherwise the remainder grows with the ledger.
func (t *timeline) remainder(m *pipeline.Memory) Remainder {
	ledger := t.recordedPeaks()
	peak, _ := t.peakRSS()
	base := t.data.Manifest.BaseBytes
	gogc := t.data.Manifest.Settings["gogc"].Value
	m.Law = pipeline.LawScratchHighWater
	switch {
	case base == nil && peak == trace.Null:
		m.Law = pipeline.LawNone
	case base == nil:
		m.BaseBytes = peak - ledger.scratchLaw
	case gogc != "" && !strings.EqualFold(gogc, "off") && peak != trace.Null && ledger.resident > 0:
		m.Law, m.BaseBytes = pipeline.LawProportional, *base
		m.Slope = max(-1, float64(peak-*base)/float64(ledger.resident)-1)
	default:
		m.BaseBytes = *base
	}
	r := Remainder{Law: m.Law, BaseBytes: m.BaseBytes, Measured: base != nil}
	if m.Law == pipeline.LawScratchHighWater && base != nil && peak != trace.Null {
		e := float64(m.BaseBytes+ledger.scratchLaw)/float64(peak) - 1
		r.ErrorRatio = &e
	}
	return r
}
