package fit

import (
	"cmp"
	"slices"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// piece is a stretch of a partition's or job's time: a stage's span, or a gap.
type piece struct {
	segment    string
	stage      string
	begin, end int64
	span       *trace.Span // nil for a gap
	buffers    []*trace.BufferEvent
}

// segmentBound is a segment's stretch of recorded time; waiting lies between segments.
type segmentBound struct {
	name       string
	begin, end int64
}

// bounds cuts a complete partition's time into segments. dispatched is when its job let it go.
func (p *part) bounds(dispatched int64, split bool) []segmentBound {
	gpuBegin, pickupEnd := p.recv, p.recv
	if p.locked != unset {
		gpuBegin, pickupEnd = p.locked, p.lockAsked
	}
	gpuEnd, splitEnd := p.unlocked, p.unlocked
	if at := p.spanTime(trace.StageBG2, false); at != unset && (!split || gpuEnd == unset) {
		gpuEnd = at
	}
	if at := p.spanTime(trace.StageBG2, true); at != unset && (split || splitEnd == unset) {
		splitEnd = at
	}
	if gpuEnd == unset {
		gpuEnd = p.spanTime(trace.StageProveStart, true)
	}
	gpuEnd = max(gpuEnd, gpuBegin)
	splitEnd = max(splitEnd, gpuEnd)
	freed := max(p.freed, splitEnd)
	end := max(p.spans[len(p.spans)-1].EndNS, freed)
	request := p.request
	if request == unset {
		request = p.acquired
	}
	return []segmentBound{
		{pipeline.SegmentDispatch, min(dispatched, request), request},
		{pipeline.SegmentSynthesis, p.acquired, p.send},
		{pipeline.SegmentPickup, p.recv, pickupEnd},
		{pipeline.SegmentGPU, gpuBegin, gpuEnd},
		{pipeline.SegmentSplit, gpuEnd, splitEnd},
		{pipeline.SegmentFinalise, splitEnd, freed},
		{pipeline.SegmentAfter, freed, end},
	}
}

// spanTime is the begin or end of a stage's span, unset where there is none.
func (p *part) spanTime(stage string, end bool) int64 {
	for _, s := range p.spans {
		if s.Stage != stage {
			continue
		}
		if end {
			return s.EndNS
		}
		return s.BeginNS
	}
	return unset
}

// cut lays spans into a segment: stages in order, gaps between. Spans that overlap the one before
// are left to it.
func cut(b segmentBound, spans []*trace.Span) []piece {
	var out []piece
	at := b.begin
	for _, s := range spans {
		if s.BeginNS < at || s.BeginNS >= b.end || s.EndNS > b.end {
			continue
		}
		if s.BeginNS > at {
			out = append(out, piece{segment: b.name, begin: at, end: s.BeginNS})
		}
		out = append(out, piece{
			segment: b.name, stage: s.Stage, begin: s.BeginNS, end: s.EndNS,
			span: s,
		})
		at = s.EndNS
	}
	if b.end > at {
		out = append(out, piece{segment: b.name, begin: at, end: b.end})
	}
	return out
}

// pieces is a complete partition's time, with its buffer events.
func (p *part) pieces(dispatched int64, split bool) []piece {
	slices.SortStableFunc(p.spans, func(a, b *trace.Span) int {
		return cmp.Compare(a.BeginSeq, b.BeginSeq)
	})
	out := make([]piece, 0, 2*len(p.spans)+len(pipeline.Segments))
	for _, b := range p.bounds(dispatched, split) {
		out = append(out, cut(b, p.spans)...)
	}
	place(out, p.buffers)
	return out
}

// place puts each event into the piece in which it happened; one that happened in a wait goes to
// the start of the next piece, one after all to the end of the last.
func place(pieces []piece, events []*trace.BufferEvent) {
	i := 0
	for _, e := range events {
		for i < len(pieces)-1 && past(pieces[i], pieces[i+1], e) {
			i++
		}
		if i < len(pieces) {
			pieces[i].buffers = append(pieces[i].buffers, e)
		}
	}
}

// past says whether e came after the piece; where times are equal the order of the trace decides.
func past(p, next piece, e *trace.BufferEvent) bool {
	if e.TimeNS != p.end {
		return e.TimeNS > p.end
	}
	return p.span != nil && e.Seq > p.span.EndSeq || next.span != nil && e.Seq > next.span.BeginSeq
}

// measure says how long things are in the model's terms.
type measure interface {
	// between is a stretch of a stage's service, or of a gap (stage "")
	between(stage string, begin, end int64) float64
	// whole is a piece from begin to end
	whole(p *piece) float64
}

// frozen takes recorded time as it is.
type frozen struct{}

func (frozen) between(_ string, begin, end int64) float64 { return float64(end - begin) }

func (frozen) whole(p *piece) float64 { return float64(p.end - p.begin) }

// solo measures solo time by the law; of gaps, recorded time.
type solo struct {
	*clocks
	law      *law
	measured []bool // by stage: its CPU time explains its services
	offset   int64  // of the recording
}

func (s *solo) between(stage string, begin, end int64) float64 {
	i, ok := s.h.index[stage]
	if !ok {
		return frozen{}.between(stage, begin, end)
	}
	return s.clocks.between(s.sum[i], begin+s.offset, end+s.offset)
}

// whole corrects the law's solo time by the measured CPU time, where there is one.
func (s *solo) whole(p *piece) float64 {
	total := s.between(p.stage, p.begin, p.end)
	i, ok := s.h.index[p.stage]
	if !ok || p.span == nil || p.span.CPUNS <= 0 || !s.measured[i] {
		return total
	}
	used := s.clocks.between(s.cores[i], p.begin+s.offset, p.end+s.offset)
	if used *= s.law.stages[i].Parallelism; used <= 0 {
		return total
	}
	return total * float64(p.span.CPUNS) / used
}

// model turns pieces into the model's, numbering buffers from 0 in order of appearance.
func model(pieces []piece, numbers map[int64]int, by measure) []pipeline.Piece {
	out := make([]pipeline.Piece, 0, len(pieces))
	for i := range pieces {
		p := &pieces[i]
		m := pipeline.Piece{Segment: p.segment, Stage: p.stage, SoloNS: by.whole(p)}
		total := by.between(p.stage, p.begin, p.end)
		for _, e := range p.buffers {
			c := changeOf(e, numbers)
			at := min(max(e.TimeNS, p.begin), p.end)
			if total > 0 {
				c.At = min(1, max(0, by.between(p.stage, p.begin, at)/total))
			}
			if n := len(m.Buffers); n > 0 {
				c.At = max(c.At, m.Buffers[n-1].At)
			}
			m.Buffers = append(m.Buffers, c)
		}
		if m.SoloNS > 0 || len(m.Buffers) > 0 {
			out = append(out, m)
		}
	}
	return out
}

func changeOf(e *trace.BufferEvent, numbers map[int64]int) pipeline.Change {
	n, ok := numbers[e.BufferID]
	if !ok {
		n = len(numbers)
		numbers[e.BufferID] = n
	}
	c := pipeline.Change{
		Event: e.Event, Buffer: n, Class: e.Class, Space: e.Space,
		Capacity: max(0, e.CapacityBytes), Resident: residentOf(e), Estimated: e.Estimated,
	}
	if e.Event == trace.EventFree { // a recorded free still says what was given back
		c.Capacity, c.Resident = 0, 0
	}
	return c
}

// residentOf is the resident bytes after an event; where they were not measured, all of the
// capacity.
func residentOf(e *trace.BufferEvent) int64 {
	if e.ResidentBytes == trace.Null {
		return max(0, e.CapacityBytes)
	}
	return max(0, e.ResidentBytes)
}
