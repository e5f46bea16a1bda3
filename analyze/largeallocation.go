package analyze

import (
	"fmt"
	"math"
	"strings"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// largeAllocation finds a moment at which many partitions reserved a large part of the peak at
// once, where the trace lacks the counters that would say whether that cost anything.
//
//  1. Only allocations of partitions count, in the host's memory, each pool for itself.
//  2. The window is window_ratio of the mean synthesis time, at most one second.
//  3. A finding needs min_partitions of them in one window, min_bytes, and min_share of the peak.
//  4. Where the counters are there (page-fault-storm could look) and compare a stage inside with
//     outside, nothing is said: the storm's analyzer has answered.
type largeAllocation struct{}

const largeName = "large-allocation"

// Doc implements Analyzer.
func (largeAllocation) Doc() Doc {
	return Doc{
		Name: largeName,
		Summary: "Many partitions reserved a large part of the peak at the same moment; what " +
			"that cost, the trace does not show.",
		RefutedBy: "Fault counters, RSS and system CPU time of the same moment that stay at " +
			"their usual level: then the allocation was large, and harmless.",
		Remedy: "Record again with sampling on (sample_hz=20, or highwater record), so that " +
			"page-fault-storm can look. Until then do not call it a page-fault storm.",
		Thresholds: []Threshold{
			{
				Name: largeName + ".window_ratio", Default: 0.1,
				Meaning: "length of a moment, in mean synthesis times (at most one second)",
				Source:  "starts within a second are what the incident's analysis counted",
			},
			{
				Name: largeName + ".min_partitions", Default: 6,
				Meaning: "partitions that reserve in the same window",
				Source:  "reasoned: fewer is the start of an ordinary run; the incident had ten",
			},
			{
				Name: largeName + ".min_share", Default: 0.5,
				Meaning: "what they reserve, as a share of the live peak",
				Source:  "reasoned: less than half leaves the peak to something else",
			},
			{
				Name: largeName + ".min_bytes", Default: 64 << 20,
				Meaning: "what they reserve, at the least",
				Source: "16,384 faults of 4 KiB take 30 to 45 ms of CPU (1.7 to 2.7 µs each, H200 " +
					"host): less slows no stage that can be seen",
			},
		},
	}
}

// Start implements Analyzer.
func (largeAllocation) Start(in *Input) Pass { return &largePass{in: in} }

type largePass struct {
	in      *Input
	allocs  []reservation
	dropped int64
}

type reservation struct {
	atNS, bytes int64
	owner       *memory.Owner
	id          int64
}

// maxReservations bounds what is kept; a trace with more is judged by its first part.
const maxReservations = 1 << 20

func (*largePass) wants() memory.Kinds { return memory.KindsOf(memory.StepBuffer) }

// Observe implements memory.Observer.
func (p *largePass) Observe(s *memory.Step) {
	e := s.Buffer
	if e.Event != trace.EventAlloc || e.ParentID != 0 || e.Job < 0 || e.Partition < 0 {
		return
	}
	b := p.in.Memory.Ledger.Live(e.BufferID)
	if b == nil || b.OnDevice() {
		return
	}
	if len(p.allocs) >= maxReservations {
		p.dropped++
		return
	}
	p.allocs = append(p.allocs, reservation{e.TimeNS, b.CapacityBytes, b.Owner, b.ID})
}

// burst is the window in which the most was reserved by enough partitions.
type burst struct {
	beginNS, endNS, bytes int64
	owners                int
	ids                   []int64
}

// largest slides a window of that length over the allocations.
func (p *largePass) largest(windowNS int64, owners int) burst {
	var best burst
	held := map[*memory.Owner]int{}
	var sum int64
	first := 0
	for i, a := range p.allocs {
		held[a.owner]++
		sum += a.bytes
		for ; p.allocs[first].atNS < a.atNS-windowNS; first++ {
			old := p.allocs[first]
			sum -= old.bytes
			if held[old.owner]--; held[old.owner] == 0 {
				delete(held, old.owner)
			}
		}
		if len(held) >= owners && sum > best.bytes {
			best = burst{
				beginNS: p.allocs[first].atNS, endNS: a.atNS, bytes: sum, owners: len(held),
			}
			for _, x := range p.allocs[first:min(i+1, first+MaxExamples)] {
				best.ids = append(best.ids, x.id)
			}
		}
	}
	return best
}

// Finish implements Pass.
func (p *largePass) Finish(s *Summary, m *memory.Report) Outcome {
	if len(p.allocs) == 0 || m.Peak == nil {
		return Outcome{
			NotApplicable: "the trace has no partition's allocations: what was reserved at once " +
				"is not known",
		}
	}
	limit := func(name string) float64 { return p.in.Threshold(largeName, name) }
	synthesis := meanOwn(p.in.facts.of(trace.StageSynthesis))
	if synthesis == 0 {
		return Outcome{
			NotApplicable: "the trace has no synthesis span that ended: how long a moment is, " +
				"against the work, is not known",
		}
	}
	window := math.Min(1e9, limit("window_ratio")*synthesis)
	b := p.largest(int64(window), int(limit("min_partitions")))
	share := ratio(float64(b.bytes), float64(m.Peak.LiveBytes))
	if share < limit("min_share") || float64(b.bytes) < limit("min_bytes") {
		return Outcome{}
	}
	x := p.in.facts.judgeStorm(limitsOfStorm(p.in))
	missing := x.missing
	if len(missing) == 0 {
		if len(x.windows) == 0 || x.slowdown > 0 {
			return Outcome{} // the counters have answered, whichever way
		}
		missing = []string{"a stage with runs both inside and outside of the window"}
	}
	return Outcome{Findings: []Finding{p.finding(s, b, share, missing, x)}}
}

func (p *largePass) finding(s *Summary, b burst, share float64, missing []string,
	x *storm,
) Finding {
	f := Finding{
		Severity: Info,
		Sentence: fmt.Sprintf("Large simultaneous allocation: %d partitions reserved %s within "+
			"%s, %.0f %% of the live peak. What it cost is not known: the trace lacks %s.",
			b.owners, units.Bytes(b.bytes), units.Nanos(b.endNS-b.beginNS), 100*share,
			strings.Join(missing, ", ")),
		Evidence: Evidence{
			Numbers: Numbers{
				{"partitions", float64(b.owners)},
				{"bytes", float64(b.bytes)},
				{"of_peak_ratio", share},
				{"small_pages", math.Ceil(float64(b.bytes) / 4096)},
				{"huge_pages", math.Ceil(float64(b.bytes) / (2 << 20))},
			},
			Window:  &Window{BeginNS: b.beginNS, EndNS: b.endNS},
			Buffers: b.ids,
		},
		WhatIf: stagger(s),
	}
	if len(x.missing) == 0 {
		f.Evidence.Numbers = append(f.Evidence.Numbers, x.numbers()...)
	}
	t := Table{Name: "missing", Columns: []string{"what"}}
	for _, m := range missing {
		t.Rows = append(t.Rows, []any{m})
	}
	f.Evidence.Tables = []Table{t}
	return f
}
