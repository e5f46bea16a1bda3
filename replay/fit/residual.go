package fit

import (
	"math"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// spread fills in by how much RSS may lie off the law: by how much it went above the law in the
// recording (over the samples taken while jobs held buffers; what lies below is mostly scratch that
// the runtime has given back, and no peak), and no less than the law was off at the recorded peak
// before it was moved to fit. It stays nil where neither is known.
func (t *timeline) spread(m *pipeline.Memory, r *Remainder) {
	var above moments
	for _, x := range t.residuals(m) {
		above.add(max(0, x))
	}
	r.Samples = int(above.n)
	bytes, known := 0.0, r.ErrorRatio != nil
	if r.Samples >= 2 { // half of an error that is as often below does not show
		bytes, known = math.Sqrt2*above.size(), true
	}
	if peak, _ := t.peakRSS(); r.ErrorRatio != nil {
		bytes = max(bytes, math.Abs(*r.ErrorRatio)*float64(peak))
	}
	if known && bytes < maxBytes { // a foreign trace may say anything
		n := int64(math.Round(bytes))
		r.ErrorBytes = &n
	}
}

// maxBytes is more than any machine has.
const maxBytes = 1 << 50

// residuals are, for each sample of RSS taken while jobs held buffers, how far it lies above
// (below: negative) what the law said at that time.
func (t *timeline) residuals(m *pipeline.Memory) []float64 {
	if m.Law == pipeline.LawNone {
		return nil
	}
	var out []float64
	w := t.walk()
	events := t.data.Buffers
	for i := range t.data.Samples {
		s := &t.data.Samples[i]
		if s.Metric != metricRSS || s.Source != t.source || math.IsNaN(s.Value) {
			continue
		}
		for ; len(events) > 0 && events[0].TimeNS < s.TimeNS; events = events[1:] {
			w.apply(&events[0])
		}
		low, held := w.rss(m), w.ofJobs > 0
		high := low
		for ; len(events) > 0 && events[0].TimeNS == s.TimeNS; events = events[1:] {
			w.apply(&events[0])
			low, high, held = min(low, w.rss(m)), max(high, w.rss(m)), held || w.ofJobs > 0
		}
		if held && s.TimeNS >= t.start {
			out = append(out, s.Value-min(max(s.Value, low), high))
		}
	}
	return out
}

// ledgerWalk is the running sums of the recorded ledger: host, top level. The bytes of a buffer of
// which nothing is known are those of its events.
type ledgerWalk struct {
	startSeq                int64 // of the first job's request
	started                 bool
	held                    map[int64]pipeline.Change
	live, resident, scratch int64 // resident without scratch
	high                    int64 // largest scratch since the start
	ofJobs                  int   // buffers that jobs hold
}

func (t *timeline) walk() *ledgerWalk {
	return &ledgerWalk{startSeq: t.startSeq, held: map[int64]pipeline.Change{}}
}

func (w *ledgerWalk) apply(b *trace.BufferEvent) {
	if b.ParentID != 0 || b.Space == trace.SpaceDevice {
		return
	}
	w.started = w.started || b.Seq > w.startSeq
	old, was := w.held[b.BufferID]
	c, is := pipeline.Change{}, b.Event != trace.EventFree
	if is {
		c = changeOf(b, map[int64]int{})
		w.held[b.BufferID] = c
	} else {
		delete(w.held, b.BufferID)
	}
	switch {
	case b.Job < 0 || is == was:
	case is:
		w.ofJobs++
	default:
		w.ofJobs--
	}
	w.live += c.Capacity - old.Capacity
	w.resident += plain(c) - plain(old)
	w.scratch += (c.Resident - plain(c)) - (old.Resident - plain(old))
	if !w.started {
		w.high = 0
	}
	w.high = max(w.high, w.scratch)
}

// rss is what the law says now.
func (w *ledgerWalk) rss(m *pipeline.Memory) float64 {
	if m.Law == pipeline.LawProportional {
		return float64(m.BaseBytes) + (1+m.Slope)*float64(w.resident+w.scratch)
	}
	return float64(m.BaseBytes + w.resident + w.high)
}
