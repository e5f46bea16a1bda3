package analyze

import (
	"fmt"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/probe"
)

// hiddenLimit finds a bound below what the machine shows, which the run met or came near.
//
//  1. The bound on memory is the smallest on the process at the start (the manifest's), or the
//     cgroup's own as sampled, where that is lower than max_of_ram of the RAM.
//  2. The run met it when the cgroup's counters of OOM events grew, or of charges that hit the
//     limit; it came near when what is charged (else the peak RSS) reached near_ratio of it.
//  3. A CPU quota is met when the cgroup's threads were kept off the CPU for min_throttled_ratio
//     of the time.
type hiddenLimit struct{}

const hiddenName = "hidden-limit"

// Doc implements Analyzer.
func (hiddenLimit) Doc() Doc {
	return Doc{
		Name: hiddenName,
		Summary: "A limit below what the machine shows (cgroup, rlimit, quota) is what the run " +
			"met or came near.",
		RefutedBy: "The limit having been raised during the run; or a charge that is page cache " +
			"which the kernel can drop (memory.stat: file).",
		Remedy: "Plan against this limit, not against the RAM: highwater plan --memory LIMIT; or " +
			"raise it where the container or unit sets it.",
		Thresholds: []Threshold{
			{
				Name: hiddenName + ".max_of_ram", Default: 0.95,
				Meaning: "limit over RAM, above which nothing is hidden",
				Source:  "the kernel keeps some per cent for itself",
			},
			{
				Name: hiddenName + ".near_ratio", Default: 0.85,
				Meaning: "charge over limit from which the run came near",
				Source:  "reasoned: reclaim begins, and one more partition would not fit",
			},
			{
				Name: hiddenName + ".error_ratio", Default: 0.97,
				Meaning: "charge over limit from which it is an error",
				Source:  "reasoned: an OOM kill is one allocation away",
			},
			{
				Name: hiddenName + ".min_throttled_ratio", Default: 0.05,
				Meaning: "time kept off the CPU by the quota, over the run's time",
				Source:  "reasoned: below it stages stretch by less than their own spread",
			},
		},
	}
}

// Start implements Analyzer.
func (hiddenLimit) Start(in *Input) Pass { return &hiddenPass{in: in} }

type hiddenPass struct {
	in *Input
	noSteps
}

func (p *hiddenPass) limit(name string) float64 { return p.in.Threshold(hiddenName, name) }

// bound is a limit on memory and who sets it.
type bound struct {
	bytes float64
	kind  string
	path  string
}

// Finish implements Pass.
func (p *hiddenPass) Finish(s *Summary, _ *memory.Report) Outcome {
	var found []Finding
	quota, told := p.quota(s)
	if quota != nil {
		found = append(found, *quota)
	}
	b, ok := p.bound()
	ram := float64(p.in.Trace.Manifest.Host.RAMBytes)
	switch {
	case !ok && !told:
		return Outcome{
			NotApplicable: "neither a limit of a cgroup or rlimit nor CPU throttling is in the trace",
		}
	case ok && ram > 0 && b.bytes < p.limit("max_of_ram")*ram:
		if f := p.memory(s, b, ram); f != nil {
			found = append(found, *f)
		}
	}
	return Outcome{Findings: found}
}

// bound is the smallest limit that is known; what MemAvailable gave at the start is no limit.
func (p *hiddenPass) bound() (bound, bool) {
	m := p.in.Trace.Manifest.Memory
	var b bound
	if m.EffectiveBytes > 0 && m.Kind != "mem_available" {
		b = bound{float64(m.EffectiveBytes), m.Kind, m.Path}
	}
	if c := p.in.facts.curve(probe.CgroupLimit); c.len() > 0 && c.last() > 0 &&
		(b.bytes == 0 || c.last() < b.bytes) {
		b = bound{c.last(), "cgroup", ""}
	}
	return b, b.bytes > 0
}

// memory judges the bound on memory.
func (p *hiddenPass) memory(s *Summary, b bound, ram float64) *Finding {
	charge, what := p.charge(s)
	n := Numbers{
		{"memory_limit_bytes", b.bytes},
		{"ram_bytes", ram},
		{"of_ram_ratio", b.bytes / ram},
	}
	var hits float64
	for _, x := range []struct{ metric, name string }{
		{probe.CgroupOOMs, "oom_kill_events"}, {eventsOOM, "oom_events"},
		{eventsMax, "at_limit_events"}, {failCount, "failed_charges"},
	} {
		if c := p.in.facts.curve(x.metric); c.len() > 1 {
			rise := c.rise(c.at[0], c.at[c.len()-1])
			n = append(n, Number{x.name, rise})
			hits += rise
		}
	}
	near := ratio(charge, b.bytes)
	if hits == 0 && near < p.limit("near_ratio") {
		return nil
	}
	if charge > 0 {
		n = append(n, Number{"highest_charge_bytes", charge}, Number{"of_limit_ratio", near})
	}
	f := &Finding{
		Check: "memory", Severity: Warning, Evidence: Evidence{Numbers: n},
		Sentence: fmt.Sprintf("The limit was %s (%s), not the machine's %s:", units.Bytes(int64(b.bytes)),
			b.who(), units.Bytes(int64(ram))),
	}
	if charge > 0 {
		f.Sentence += fmt.Sprintf(" %s reached %s, %.0f %% of it", what, units.Bytes(int64(charge)),
			100*near)
	}
	if hits > 0 {
		f.Sentence += fmt.Sprintf(", and it was hit %s", times(int64(hits)))
	}
	f.Sentence += "."
	kills, _ := n.Value("oom_kill_events")
	ooms, _ := n.Value("oom_events")
	if kills+ooms > 0 || near >= p.limit("error_ratio") {
		f.Severity = Error
	}
	return f
}

func (b bound) who() string {
	if b.path != "" {
		return b.kind + " " + b.path
	}
	return b.kind
}

// charge is the most that was charged to the cgroup as sampled, else the peak RSS; 0 where neither
// is known.
func (p *hiddenPass) charge(s *Summary) (bytes float64, what string) {
	for _, metric := range []string{probe.CgroupUsage, probe.CgroupPeak} {
		if c := p.in.facts.curve(metric); c.len() > 0 {
			v, _ := c.highest()
			if v > bytes {
				bytes, what = v, "The cgroup's charge"
			}
		}
	}
	if s.PeakRSSBytes != nil && (bytes == 0 || float64(*s.PeakRSSBytes) > bytes) {
		bytes, what = float64(*s.PeakRSSBytes), "RSS"
	}
	return bytes, what
}

// quota judges CPU throttling; told says whether it was sampled.
func (p *hiddenPass) quota(s *Summary) (f *Finding, told bool) {
	c := p.in.facts.curve(throttledTime)
	if c.len() < 2 {
		return nil, false
	}
	begin, end := c.at[0], c.at[c.len()-1]
	lost := c.rise(begin, end)
	share := ratio(lost*1e9, float64(end-begin))
	if share < p.limit("min_throttled_ratio") {
		return nil, true
	}
	n := Numbers{
		{"throttled_ns", lost * 1e9},
		{"throttled_ratio", share},
	}
	if s.Host != nil && s.Host.CPUs > 0 {
		n = append(n, Number{"cpus", float64(s.Host.CPUs)})
	}
	return &Finding{
		Check: "cpu_quota", Severity: Warning,
		Sentence: fmt.Sprintf("A CPU quota of the cgroup kept its threads off the CPU for %s "+
			"(%.0f %% of the time): stages stretch for no reason of their own.",
			units.Nanos(int64(lost*1e9)), 100*share),
		Evidence: Evidence{Numbers: n, Window: &Window{BeginNS: begin, EndNS: end}},
		Remedy:   "Raise the quota (cpu.max), or use as many threads as it gives CPUs.",
	}, true
}
