package analyze

import (
	"fmt"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// pinThrash finds a program that page-locks memory over and over instead of using it again.
//
//  1. A pinning is the allocation of a top-level buffer in space pinned, or a pin event, after the
//     first job's request. A reuse is a buffer cut from a pinned one, or handed to another
//     partition.
//  2. The first warm_up times the most pinned buffers alive at once are warm-up.
//  3. A finding needs min_pinnings beyond that, and less than max_reuse_ratio of all uses to be
//     reuses.
type pinThrash struct{}

const pinName = "pin-thrash"

// Prices of page-locking, in nanoseconds a GiB: measured on an H200 host.
const (
	pinAllocNSPerGiB    = 377e6 // cudaHostAlloc of fresh memory
	pinRegisterNSPerGiB = 36e6  // cudaHostRegister of touched 4 KiB pages
	unpinNSPerGiB       = 16e6
)

// Doc implements Analyzer.
func (pinThrash) Doc() Doc {
	return Doc{
		Name: pinName,
		Summary: "Memory is page-locked for every partition anew instead of coming from a pool; " +
			"each pinning stops the other threads' launches.",
		RefutedBy: "Pinnings that were outside of the proving phase after all; or launches that " +
			"did not wait for them (compare the gaps between kernels with the pinnings' times).",
		Remedy: "Pin a pool once, before the run (pinned=pool), as large as the partitions that " +
			"can be in upload at once, and use it again.",
		Thresholds: []Threshold{
			{
				Name: pinName + ".warm_up", Default: 3,
				Meaning: "pinnings allowed, in times the most pinned buffers alive at once",
				Source:  "proposal of the incident's analysis (cuzk, pathology 9)",
			},
			{
				Name: pinName + ".min_pinnings", Default: 8,
				Meaning: "pinnings beyond that",
				Source:  "reasoned: fewer are a pool that still grows",
			},
			{
				Name: pinName + ".max_reuse_ratio", Default: 0.5,
				Meaning: "reuses as a share of all uses, below which it thrashes",
				Source: "proposal of the incident's analysis: 12 of 486 before, 48 of 72 after " +
					"the cure",
			},
		},
	}
}

// Start implements Analyzer.
func (pinThrash) Start(in *Input) Pass { return &pinPass{in: in, pinned: map[int64]pinState{}} }

type pinPass struct {
	in       *Input
	pinned   map[int64]pinState // buffers that are page-locked now
	seen     bool               // any pinned memory at all
	most     int64              // alive at once
	allocs   int64              // of pinned memory, in the job phase
	pins     int64              // pin events, in the job phase
	reuses   int64
	bytes    float64 // pinned anew
	costNS   float64 // by the prices above
	freed    float64 // bytes given back
	beginNS  int64
	endNS    int64
	examples []int64
}

type pinState struct{ bytes int64 }

func (*pinPass) wants() memory.Kinds { return memory.KindsOf(memory.StepBuffer) }

// Observe implements memory.Observer.
func (p *pinPass) Observe(s *memory.Step) {
	e := s.Buffer
	_, held := p.pinned[e.BufferID]
	switch {
	case e.Event == trace.EventAlloc && e.Space == trace.SpacePinned && e.ParentID != 0:
		p.reuse()
	case e.Event == trace.EventAlloc && e.Space == trace.SpacePinned:
		p.pin(e, &p.allocs, pinAllocNSPerGiB)
	case e.Event == trace.EventPin && !held:
		p.pin(e, &p.pins, pinRegisterNSPerGiB)
	case held && e.Event == trace.EventHandoff && e.Job >= 0:
		p.reuse()
	case held && (e.Event == trace.EventUnpin || e.Event == trace.EventFree):
		p.unpin(e.BufferID)
	}
}

func (p *pinPass) proving() bool { return p.in.Memory.Ledger.FirstRequestSeq != trace.Null }

func (p *pinPass) reuse() {
	if p.proving() {
		p.reuses++
	}
}

func (p *pinPass) pin(e *trace.BufferEvent, counter *int64, price float64) {
	p.seen = true
	p.pinned[e.BufferID] = pinState{e.CapacityBytes}
	p.most = max(p.most, int64(len(p.pinned)))
	if !p.proving() {
		return
	}
	if p.allocs+p.pins == 0 {
		p.beginNS = e.TimeNS
	}
	p.endNS = e.TimeNS
	*counter++
	p.bytes += float64(e.CapacityBytes)
	p.costNS += price * float64(e.CapacityBytes) / float64(units.GiB)
	if len(p.examples) < MaxExamples {
		p.examples = append(p.examples, e.BufferID)
	}
}

func (p *pinPass) unpin(id int64) {
	if p.proving() {
		p.freed += float64(p.pinned[id].bytes)
	}
	delete(p.pinned, id)
}

// Finish implements Pass.
func (p *pinPass) Finish(s *Summary, _ *memory.Report) Outcome {
	limit := func(name string) float64 { return p.in.Threshold(pinName, name) }
	if !p.seen {
		return Outcome{NotApplicable: "the trace has no page-locked memory"}
	}
	n := p.allocs + p.pins
	beyond := float64(n) - limit("warm_up")*float64(p.most)
	reuse := ratio(float64(p.reuses), float64(p.reuses+n))
	if beyond < limit("min_pinnings") || reuse >= limit("max_reuse_ratio") {
		return Outcome{}
	}
	cost := p.costNS + unpinNSPerGiB*p.freed/float64(units.GiB)
	f := Finding{
		Severity: Warning,
		Sentence: fmt.Sprintf(
			"Memory was page-locked %s in the proving phase (%s in all, %s at most at "+
				"once) and used again %s: at an H200 host's prices that is %s in which other "+
				"threads cannot launch.",
			times(n), units.Bytes(int64(p.bytes)), count(int(p.most), "buffer"), times(p.reuses),
			units.Nanos(int64(cost))),
		Evidence: Evidence{
			Numbers: Numbers{
				{"pinnings", float64(n)},
				{"pinned_allocations", float64(p.allocs)},
				{"registrations", float64(p.pins)},
				{"reuses", float64(p.reuses)},
				{"reuse_ratio", reuse},
				{"pinned_bytes", p.bytes},
				{"most_pinned_buffers", float64(p.most)},
				{"estimated_cost_ns", cost},
			},
			Window:  &Window{BeginNS: p.beginNS, EndNS: p.endNS},
			Buffers: p.examples,
		},
	}
	if s.MakespanNS != nil && *s.MakespanNS > 0 {
		f.Evidence.Numbers = append(f.Evidence.Numbers,
			Number{"estimated_cost_of_makespan_ratio", cost / float64(*s.MakespanNS)})
	}
	return Outcome{Findings: []Finding{f}}
}
