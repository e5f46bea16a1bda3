package analyze

import (
	"fmt"
	"strings"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// transferStall finds uploads to the device that run at the speed of pageable memory and hold the
// GPU side up.
//
//  1. Spans of kind copy count whose name says host to device (h2d) and whose bytes reach
//     min_copy_bytes: small copies are bound by latency.
//  2. Slow ones run below max_rate.
//  3. A finding needs slow copies that take min_share of the time of the GPU side's stages
//     (stage_in and prove_start).
type transferStall struct{}

const stallName = "transfer-stall"

// Doc implements Analyzer.
func (transferStall) Doc() Doc {
	return Doc{
		Name: stallName,
		Summary: "Uploads to the device run at a fraction of what page-locked memory gives, and " +
			"the GPU side waits for them.",
		RefutedBy: "The buffers being page-locked at the time (space pinned), and the link being " +
			"slow by itself: another device's traffic, or a narrower slot.",
		Remedy: "Upload from page-locked memory that was pinned before the run (pinned=pool); " +
			"overlap what is left with compute.",
		Thresholds: []Threshold{
			{
				Name: stallName + ".max_rate_gb_per_s", Default: 10,
				Meaning: "GB/s below which an upload is slow",
				Source: "H200 host, PCIe 5: pageable 6.5 to 8.7, page-locked 55; the incident's " +
					"analysis took 8 on a slower link. Set 5 for PCIe 3",
			},
			{
				Name: stallName + ".min_copy_bytes", Default: 4 << 20,
				Meaning: "bytes of a copy that counts",
				Source:  "1 MiB takes 27 µs page-locked (38 GB/s): below that latency counts",
			},
			{
				Name: stallName + ".min_share", Default: 0.1,
				Meaning: "time of slow uploads over that of the GPU side's stages",
				Source:  "reasoned: a tenth of the GPU side is worth the pool",
			},
		},
	}
}

// Start implements Analyzer.
func (transferStall) Start(in *Input) Pass {
	return &stallPass{
		in: in, limit: in.Threshold(stallName, "max_rate_gb_per_s") * 1e9,
		least: int64(in.Threshold(stallName, "min_copy_bytes")),
	}
}

type stallPass struct {
	in    *Input
	limit float64 // bytes a second
	least int64

	copies     int64 // uploads of any size
	slow, all  transfers
	gpuNS      float64
	begin, end int64
	examples   []int64
}

// transfers sums copies.
type transfers struct {
	n         int64
	bytes, ns float64
}

func (t *transfers) add(bytes, ns int64) {
	t.n++
	t.bytes += float64(bytes)
	t.ns += float64(ns)
}

// rate is bytes a second, 0 for no time.
func (t *transfers) rate() float64 { return ratio(t.bytes*1e9, t.ns) }

func (*stallPass) wants() memory.Kinds { return memory.KindsOf(memory.StepSpanEnd) }

// Observe implements memory.Observer.
func (p *stallPass) Observe(s *memory.Step) {
	x := s.Span
	switch {
	case x.Kind == trace.KindStage && x.Job >= 0 &&
		(x.Stage == trace.StageProveStart || x.Stage == trace.StageStageIn):
		p.gpuNS += float64(x.EndNS - x.BeginNS)
	case x.Kind == trace.KindCopy && isUpload(x.Name) && x.Bytes > 0 && x.Job >= 0:
		p.upload(x)
	}
}

// isUpload says whether a copy's name gives its direction as host to device.
func isUpload(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "h2d") || strings.Contains(name, "htod") ||
		strings.Contains(name, "host to device")
}

func (p *stallPass) upload(x *trace.Span) {
	p.copies++
	ns := x.EndNS - x.BeginNS
	if x.Bytes < p.least || ns <= 0 {
		return
	}
	p.all.add(x.Bytes, ns)
	if float64(x.Bytes)*1e9/float64(ns) >= p.limit {
		return
	}
	if p.slow.n == 0 {
		p.begin = x.BeginNS
	}
	p.end = x.EndNS
	p.slow.add(x.Bytes, ns)
	if len(p.examples) < MaxExamples {
		p.examples = append(p.examples, x.SpanID)
	}
}

// Finish implements Pass.
func (p *stallPass) Finish(s *Summary, _ *memory.Report) Outcome {
	switch {
	case p.copies == 0:
		return Outcome{NotApplicable: "the trace has no copies to a device"}
	case p.gpuNS == 0:
		return Outcome{NotApplicable: "the trace has no prove_start that ended to hold them against"}
	}
	share := ratio(p.slow.ns, p.gpuNS)
	if share < p.in.Threshold(stallName, "min_share") {
		return Outcome{}
	}
	fast := transfers{p.all.n - p.slow.n, p.all.bytes - p.slow.bytes, p.all.ns - p.slow.ns}
	f := Finding{
		Severity: Warning,
		Sentence: fmt.Sprintf(
			"%s to the device ran at %s GB/s (%s in %s), the speed of pageable memory: %.0f %% of "+
				"the GPU side's time.",
			count(int(p.slow.n), "upload"), Plain(p.slow.rate()/1e9),
			units.Bytes(int64(p.slow.bytes)), units.Nanos(int64(p.slow.ns)), 100*share),
		Evidence: Evidence{
			Numbers: Numbers{
				{"slow_copies", float64(p.slow.n)},
				{"slow_bytes", p.slow.bytes},
				{"slow_ns", p.slow.ns},
				{"slow_bytes_per_s", p.slow.rate()},
				{"copies", float64(p.copies)},
				{"gpu_side_ns", p.gpuNS},
				{"of_gpu_side_ratio", share},
			},
			Window: &Window{BeginNS: p.begin, EndNS: p.end},
			Spans:  p.examples,
		},
		Remedies: []Remedy{{
			Text: "Upload from a page-locked pool. Replayed as prove_start without what the slow " +
				"copies take beyond page-locked speed (55 GB/s on an H200 host).",
			Scale: map[string]float64{trace.StageProveStart: p.pinnedScale()},
		}},
	}
	if fast.n > 0 {
		f.Evidence.Numbers = append(f.Evidence.Numbers, Number{"other_bytes_per_s", fast.rate()})
	}
	if v := s.Settings["pinned"].Value; v != "" {
		f.Sentence += " The setting was pinned=" + v + "."
	}
	return Outcome{Findings: []Finding{f}}
}

// pinnedRate is what page-locked uploads reach on an H200 host, bytes a second.
const pinnedRate = 55e9

// pinnedScale is the GPU side's time if the slow copies ran from page-locked memory, over what it
// was.
func (p *stallPass) pinnedScale() float64 {
	saved := p.slow.ns - p.slow.bytes*1e9/pinnedRate
	return max(0.05, 1-ratio(saved, p.gpuNS))
}
