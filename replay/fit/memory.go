package fit

import (
	"math"
	"strings"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// background is what lies in memory without belonging to a job: from before the first job to the
// end, or changing later.
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
			later = append(later, pipeline.Later{
				AtNS:   float64(b.TimeNS - t.start),
				Change: changeOf(b, numbers),
			})
		}
	}
	return resident, later
}

// ownerless are the buffers that were allocated for no job.
func (t *timeline) ownerless() map[int64]bool {
	out := map[int64]bool{}
	for i := range t.data.Buffers {
		b := &t.data.Buffers[i]
		if b.Event == trace.EventAlloc && b.Job < 0 && (t.pool == 0 || b.BufferID != t.pool) {
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

// poolBefore is the scratch pool's size before the first job.
func (t *timeline) poolBefore() int64 {
	size := int64(0)
	for i := range t.data.Buffers {
		if b := &t.data.Buffers[i]; t.pool != 0 && b.BufferID == t.pool && b.Seq < t.startSeq {
			size = max(0, b.CapacityBytes)
		}
	}
	return size
}

// peaks are the recorded ledger's, from the first job's request on.
type peaks struct {
	live       int64
	resident   int64 // with scratch
	scratchLaw int64 // most of (resident without scratch + largest scratch so far)
}

// recordedPeaks walks the recorded ledger.
func (t *timeline) recordedPeaks() peaks {
	var p peaks
	w := t.walk()
	note := func() {
		p.live = max(p.live, w.live)
		p.resident = max(p.resident, w.resident+w.scratch)
		p.scratchLaw = max(p.scratchLaw, w.resident+w.high)
	}
	for i := range t.data.Buffers {
		b := &t.data.Buffers[i]
		if !w.started && b.Seq > t.startSeq {
			note() // what was there when the first job asked
		}
		if w.apply(b); w.started {
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

// peakRSS is the recorded peak of the resident set after the first job's request and where it comes
// from; Null without.
func (t *timeline) peakRSS() (int64, string) {
	if p := t.data.Manifest.PeakRSS; p != nil && p.Bytes > 0 {
		return p.Bytes, p.Source
	}
	peak := trace.Null
	for i := range t.data.Samples {
		s := &t.data.Samples[i]
		if s.Metric == metricRSS && s.Source == t.source && s.TimeNS >= t.start &&
			!math.IsNaN(s.Value) {
			peak = max(peak, int64(s.Value))
		}
	}
	return peak, "sampled"
}

const metricRSS = "process.memory.usage"

// Remainder is the law of RSS minus ledger and how well it explains the recording.
type Remainder struct {
	Law string
	// BaseBytes is the constant part as used: what was measured, moved so that the recorded peak
	// comes out.
	BaseBytes int64
	// ErrorRatio is, before that move, the law's peak RSS on the recorded ledger over the recorded
	// peak, minus 1; nil where the base was not measured or no peak was recorded.
	ErrorRatio *float64
	// BetweenBytes is the standard deviation over the traces of the base that meets their peaks;
	// nil for one trace.
	BetweenBytes *int64
	// ErrorBytes is by how much RSS may lie above or below the law (standard deviation); nil where
	// nothing was measured. Samples is how many samples of RSS it rests on.
	ErrorBytes *int64
	Samples    int
	Freedom    int // degrees of freedom of ErrorBytes: recordings, and what is known besides
	// PeakBytes is the highest recorded peak, to which ErrorBytes belongs; 0 where none is known
	PeakBytes int64
}

// memory fits the law of RSS to all recordings and takes it into the models: that of the first,
// with a base that meets the recorded peaks of all in the mean, by their relative errors. What is
// left of each says by how much the law goes off from one setting to another.
func (f *fitter) memory() {
	m := &f.base.Memory
	r := f.remainder(m)
	off, weights, sum := moments{}, 0.0, 0.0
	for _, run := range f.runs {
		at := pipeline.Memory{ScratchPool: m.ScratchPool, ScratchHigh: m.ScratchHigh}
		of := run.remainder(&at)
		peak, _ := run.peakRSS()
		if of.Law != r.Law || peak == trace.Null {
			continue
		}
		meets, weight := float64(run.moved(&at, m.Slope)), 1/(float64(peak)*float64(peak))
		off.add(meets)
		sum, weights = sum+weight*meets, weights+weight
		r.Samples = max(r.Samples, of.Samples)
		r.ErrorRatio = larger(r.ErrorRatio, of.ErrorRatio)
		if of.ErrorBytes != nil && (r.ErrorBytes == nil || *of.ErrorBytes > *r.ErrorBytes) {
			r.ErrorBytes = of.ErrorBytes
		}
	}
	if off.n > 1 {
		r.BaseBytes = int64(math.Round(sum / weights))
		m.BaseBytes = r.BaseBytes
		between := int64(off.deviation())
		r.BetweenBytes = &between
	}
	r.drift(&off, f.runs)
	f.report.Remainder = r
	if e := r.ErrorRatio; e != nil && math.Abs(*e) > 0.15 {
		f.warn("the law of RSS is %+.0f %% off the recorded peak before it is moved to fit: "+
			"RSS under other settings is doubtful", 100**e)
	}
}

// drift makes the error no less than what peaks of recordings differ by, as far as it is known. It
// stays nil where no peak was recorded.
func (r *Remainder) drift(off *moments, runs []*recording) {
	r.Freedom = priorRuns + max(0, int(off.n)-1)
	if off.n == 0 {
		return
	}
	for _, run := range runs {
		peak, _ := run.peakRSS()
		r.PeakBytes = max(r.PeakBytes, peak)
	}
	prior := priorRSS * float64(r.PeakBytes)
	squares := max(0, off.squares-off.sum*off.sum/off.n)
	size := math.Sqrt((priorRuns*prior*prior + squares) / float64(r.Freedom))
	// a base that is a mean of recordings errs too
	bytes := int64(size * math.Sqrt(1+1/off.n))
	if (r.ErrorBytes == nil || *r.ErrorBytes < bytes) && bytes < maxBytes {
		r.ErrorBytes = &bytes
	}
}

// moved is the base with which the law meets the recorded peak, at a slope where it has one.
func (t *timeline) moved(m *pipeline.Memory, slope float64) int64 {
	peak, _ := t.peakRSS()
	ledger := t.recordedPeaks()
	if m.Law == pipeline.LawProportional {
		return peak - int64(math.Round((1+slope)*float64(ledger.resident)))
	}
	return peak - ledger.scratchLaw
}

// larger is the ratio that is further from 0.
func larger(a, b *float64) *float64 {
	if a == nil || b != nil && math.Abs(*b) > math.Abs(*a) {
		return b
	}
	return a
}

// remainder chooses the law of RSS. With the collector's percentage off and a collection after each
// MSM scratch stays resident at its high water; otherwise the remainder grows with the ledger.
// Scratch is known by formula only, and is the same under every setting that can be replayed: what
// the formula is off by at the recorded peak goes into the base.
func (t *timeline) remainder(m *pipeline.Memory) Remainder {
	ledger := t.recordedPeaks()
	peak, _ := t.peakRSS()
	base := t.data.Manifest.BaseBytes
	r := Remainder{Law: pipeline.LawScratchHighWater}
	switch {
	case base == nil && peak == trace.Null:
		r.Law = pipeline.LawNone
	case base != nil && peak != trace.Null && t.collectorOn() && ledger.resident > 0:
		r.Law, r.BaseBytes = pipeline.LawProportional, *base
		m.Slope = max(-1, float64(peak-*base)/float64(ledger.resident)-1)
	case peak == trace.Null:
		r.BaseBytes = *base
	default:
		r.BaseBytes = peak - ledger.scratchLaw
		if base != nil {
			e := float64(*base+ledger.scratchLaw)/float64(peak) - 1
			r.ErrorRatio = &e
		}
	}
	m.Law, m.BaseBytes = r.Law, r.BaseBytes
	t.spread(m, &r)
	return r
}

// collectorOn says whether Go's collector ran by percentage.
func (t *timeline) collectorOn() bool {
	gogc := t.data.Manifest.Settings["gogc"].Value
	return gogc != "" && !strings.EqualFold(gogc, "off")
}
