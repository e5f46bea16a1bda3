package analyze

import (
	"fmt"
	"math"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// allocatorRetention finds memory that the program has freed and the process still holds.
//
//  1. With a ledger: while no job holds a buffer, RSS less the resident ledger less the base is
//     what is retained. The least of it over an idle stretch of min_idle_s with three samples
//     counts, so that memory on its way out does not.
//  2. It needs min_share of the peak RSS and min_bytes.
//  3. Without any buffer event, all there is is the shape of RSS over min_span_s: growth of
//     min_growth_ratio that flattens is the shape of arenas at their high water; growth that does
//     not could as well be a leak, and the finding says so.
type allocatorRetention struct{}

const retentionName = "allocator-retention"

// Doc implements Analyzer.
func (allocatorRetention) Doc() Doc {
	return Doc{
		Name: retentionName,
		Summary: "The process keeps memory that was freed: allocator arenas, a collected heap, " +
			"or fragmentation, at the high water of the work that is over.",
		RefutedBy: "RSS that falls back when the allocator is told to (malloc_trim, " +
			"debug.FreeOSMemory) leaves no doubt; RSS that stays means live memory that the " +
			"ledger does not know.",
		Remedy: "Fewer arenas (MALLOC_ARENA_MAX=2), an allocator that gives back (jemalloc, " +
			"mimalloc), a trim after each job, or large buffers by mmap; then measure again. " +
			"Until then count it as part of the process's size.",
		Thresholds: []Threshold{
			{
				Name: retentionName + ".min_idle_s", Default: 10,
				Meaning: "length of a stretch without jobs' buffers, in seconds",
				Source:  "jemalloc returns dirty pages within 10 s; glibc trims at once or never",
			},
			{
				Name: retentionName + ".min_share", Default: 0.1,
				Meaning: "what is retained, as a share of the peak RSS",
				Source:  "proposal of the incident's analysis (cuzk, pathology 4)",
			},
			{
				Name: retentionName + ".min_bytes", Default: 32 << 20,
				Meaning: "what is retained, at the least",
				Source:  "a Go program's runtime, stacks and mapped files",
			},
			{
				Name: retentionName + ".min_span_s", Default: 600,
				Meaning: "without a ledger: seconds of RSS samples",
				Source:  "reasoned: a start-up may last minutes",
			},
			{
				Name: retentionName + ".min_growth_ratio", Default: 0.1,
				Meaning: "without a ledger: growth of RSS over its first value",
				Source:  "as min_share",
			},
			{
				Name: retentionName + ".max_tail_ratio", Default: 0.5,
				Meaning: "without a ledger: growth in the last third of the time over that in the " +
					"first third, up to which it flattens",
				Source: "steady growth gives 1; saturation halves at the least",
			},
		},
	}
}

// Start implements Analyzer.
func (allocatorRetention) Start(in *Input) Pass { return &retentionPass{in: in} }

type retentionPass struct {
	in      *Input
	buffers int64
	base    *int64 // remainder before the first job, as last sampled
	peakRSS int64

	run     idle // the stretch under way
	longest idle // the one kept: the last that was long enough
	samples int
}

// idle is a stretch in which no job held a buffer.
type idle struct {
	beginNS, endNS int64
	samples        int
	least          int64 // of the remainder
	rss, resident  int64 // at the least
	atNS           int64
}

func (*retentionPass) wants() memory.Kinds {
	return memory.KindsOf(memory.StepBuffer, memory.StepSample)
}

// Observe implements memory.Observer.
func (p *retentionPass) Observe(s *memory.Step) {
	l := p.in.Memory.Ledger
	if s.Kind == memory.StepBuffer {
		p.buffers++
		if p.run.samples > 0 && l.OwnedBytes() > 0 {
			p.close()
		}
		return
	}
	if s.Sample.Metric != probe.RSS || !(s.Sample.Value >= 0) ||
		s.Sample.Value > math.MaxInt64/2 {
		return
	}
	if l.FirstRequestSeq != trace.Null && s.Sample.Source != l.JobSource {
		return
	}
	p.samples++
	rss, resident := int64(s.Sample.Value), l.ResidentOf(s.Sample.Source)
	if l.FirstRequestSeq == trace.Null {
		base := rss - resident
		p.base = &base
		return
	}
	p.peakRSS = max(p.peakRSS, rss)
	if l.OwnedBytes() > 0 {
		return
	}
	p.idle(s.TimeNS, rss, resident)
}

func (p *retentionPass) idle(timeNS, rss, resident int64) {
	r := &p.run
	if r.samples == 0 {
		*r = idle{beginNS: timeNS, least: math.MaxInt64}
	}
	r.samples++
	r.endNS = timeNS
	if rem := rss - resident; rem < r.least {
		r.least, r.rss, r.resident, r.atNS = rem, rss, resident, timeNS
	}
}

func (p *retentionPass) close() {
	if float64(p.run.endNS-p.run.beginNS) >= p.limit("min_idle_s")*1e9 && p.run.samples >= 3 {
		p.longest = p.run
	}
	p.run = idle{}
}

func (p *retentionPass) limit(name string) float64 { return p.in.Threshold(retentionName, name) }

// Finish implements Pass.
func (p *retentionPass) Finish(s *Summary, _ *memory.Report) Outcome {
	p.close()
	switch {
	case p.in.facts.curve(probe.RSS).len() == 0:
		return Outcome{NotApplicable: "the trace has no samples of RSS"}
	case s.Origin == trace.OriginSimulated:
		return Outcome{
			NotApplicable: "a simulated trace samples RSS at new maxima only: what stays after " +
				"the work is not predicted",
		}
	case p.buffers == 0:
		return p.shape(p.in.facts.curve(probe.RSS))
	case p.longest.samples == 0:
		return Outcome{
			NotApplicable: fmt.Sprintf("the process was never sampled for %s s without a job's "+
				"buffers alive: what it keeps then is not known", Plain(p.limit("min_idle_s"))),
		}
	}
	base := s.BaseBytes
	if base == nil {
		base = p.base
	}
	if base == nil {
		return Outcome{
			NotApplicable: "neither the manifest nor a sample from before the first job says what " +
				"the process takes besides its buffers (base)",
		}
	}
	kept := p.longest.least - *base
	if float64(kept) < p.limit("min_bytes") ||
		float64(kept) < p.limit("min_share")*float64(p.peakRSS) {
		return Outcome{}
	}
	return Outcome{Findings: []Finding{p.finding(kept, *base)}}
}

func (p *retentionPass) finding(kept, base int64) Finding {
	w := p.longest
	f := Finding{
		Check: "after_work", Severity: Warning,
		Sentence: fmt.Sprintf(
			"%s after their buffers were freed the process still held %s beyond ledger and base "+
				"(RSS %s, ledger %s, base %s): %.0f %% of the peak RSS.",
			units.Nanos(w.endNS-w.beginNS), units.Bytes(kept), units.Bytes(w.rss),
			units.Bytes(w.resident), units.Bytes(base), 100*ratio(float64(kept), float64(p.peakRSS))),
		Evidence: Evidence{
			Numbers: Numbers{
				{"retained_bytes", float64(kept)},
				{"rss_bytes", float64(w.rss)},
				{"ledger_resident_bytes", float64(w.resident)},
				{"base_bytes", float64(base)},
				{"peak_rss_bytes", float64(p.peakRSS)},
				{"of_peak_ratio", ratio(float64(kept), float64(p.peakRSS))},
				{"idle_ns", float64(w.endNS - w.beginNS)},
				{"samples", float64(w.samples)},
			},
			Window: &Window{BeginNS: w.beginNS, EndNS: w.endNS},
		},
	}
	p.heap(&f, kept)
	return f
}

// heap says how much of it the Go heap is, where it was sampled.
func (p *retentionPass) heap(f *Finding, kept int64) {
	c := p.in.facts.curve(heapFree)
	if c.len() == 0 {
		return
	}
	free := c.when(p.longest.atNS)
	f.Evidence.Numbers = append(f.Evidence.Numbers, Number{"go_heap_free_bytes", free})
	if free >= 0.5*float64(kept) {
		f.Sentence += fmt.Sprintf(" %s of it is free Go heap that was not returned.",
			units.Bytes(int64(free)))
		f.Remedy = "debug.FreeOSMemory() after the work, a lower gogc, or a memory limit: the " +
			"runtime returns free heap by itself only slowly."
	}
}

// shape judges RSS alone: no buffer was recorded.
func (p *retentionPass) shape(rss *curve) Outcome {
	n := rss.len()
	seconds := 0.0
	if n > 0 {
		seconds = float64(rss.at[n-1]-rss.at[0]) / 1e9
	}
	if n < 4 || seconds < p.limit("min_span_s") {
		return Outcome{
			NotApplicable: fmt.Sprintf("no buffer events, and RSS over less than %s s: its shape "+
				"says nothing yet", Plain(p.limit("min_span_s"))),
		}
	}
	rise := rss.last() - rss.first()
	if rise < p.limit("min_growth_ratio")*rss.first() || rise < p.limit("min_bytes") {
		return Outcome{}
	}
	return Outcome{Findings: []Finding{p.shapeFinding(rss, rise, seconds)}}
}

func (p *retentionPass) shapeFinding(rss *curve, rise, seconds float64) Finding {
	n := rss.len()
	third := (rss.at[n-1] - rss.at[0]) / 3
	early := rss.when(rss.at[0]+third) - rss.first()
	late := rss.last() - rss.when(rss.at[n-1]-third)
	falls := 0
	for i := 1; i < n; i++ {
		if rss.value[i] < rss.value[i-1] {
			falls++
		}
	}
	tail := late / math.Max(early, rise/float64(n))
	f := Finding{
		Severity: Warning,
		Evidence: Evidence{
			Numbers: Numbers{
				{"first_rss_bytes", rss.first()},
				{"last_rss_bytes", rss.last()},
				{"growth_bytes", rise},
				{"first_third_growth_bytes", early},
				{"last_third_growth_bytes", late},
				{"falls", float64(falls)},
				{"samples", float64(n)},
				{"span_ns", seconds * 1e9},
			},
			Window: &Window{BeginNS: rss.at[0], EndNS: rss.at[n-1]},
		},
	}
	told := fmt.Sprintf("RSS rose from %s to %s in %s", units.Bytes(int64(rss.first())),
		units.Bytes(int64(rss.last())), units.Nanos(int64(seconds*1e9)))
	thirds := fmt.Sprintf("%s in the first third of the time, %s in the last",
		units.Bytes(int64(early)), units.Bytes(int64(late)))
	if falls > 0 {
		thirds += ", falling " + times(int64(falls)) + " on the way"
	}
	if tail <= p.limit("max_tail_ratio") {
		f.Check = "rss_high_water"
		f.Sentence = fmt.Sprintf("%s and flattens (%s): allocator arenas at their high water are "+
			"likely; a leak is not proven by %s.", told, thirds, count(n, "sample"))
		return f
	}
	f.Check = "rss_growth"
	f.Sentence = fmt.Sprintf("%s without flattening (%s): retention or a leak, which %s of RSS "+
		"cannot tell apart; buffer events are missing.", told, thirds, count(n, "sample"))
	f.Remedy = "Record buffers (the tracer's ledger, or an allocator's own profile) and look at " +
		"the leak analyzer; try MALLOC_ARENA_MAX=2 or another allocator meanwhile."
	return f
}
