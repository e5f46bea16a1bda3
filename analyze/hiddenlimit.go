package analyze

import (
	"fmt"
	"strings"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/probe"
)

// hiddenLimit finds a bound below what the machine shows, which the run met or came near.
//
//  1. The bound on memory is the smallest of: the one on the process at the start (the manifest's),
//     the cgroup's own as sampled, the memory of the NUMA nodes that the process may use. It is
//     hidden where it is lower than max_of_ram of the RAM.
//  2. The run met it when the cgroup's counters of OOM events grew, or of charges that hit the
//     limit; it came near when what counts against it (charge) reached near_ratio of it.
//  3. The cgroup's memory.high is met when its counter of throttled tasks grew.
//  4. A CPU quota is met when the cgroup's threads were kept off the CPU for min_throttled_ratio
//     of the time.
type hiddenLimit struct{}

const hiddenName = "hidden-limit"

// Doc implements Analyzer.
func (hiddenLimit) Doc() Doc {
	return Doc{
		Name: hiddenName,
		Summary: "A limit below what the machine shows (cgroup, rlimit, NUMA nodes, quota) is what " +
			"the run met or came near.",
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
				Name: hiddenName + ".min_high_events", Default: 1,
				Meaning: "times a task was throttled at the cgroup's memory.high",
				Source:  "memory.high is met where somebody set it: each time, reclaim ran first",
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
	quota, toldQuota := p.quota(s)
	high, toldHigh := p.high()
	for _, f := range []*Finding{quota, high} {
		if f != nil {
			found = append(found, *f)
		}
	}
	b, ok := p.bound()
	ram := float64(p.in.Trace.Manifest.Host.RAMBytes)
	switch {
	case !ok && !toldQuota && !toldHigh:
		return Outcome{
			NotApplicable: "neither a limit of a cgroup, rlimit or NUMA nodes nor throttling is in " +
				"the trace",
		}
	case ok && ram > 0 && b.bytes < p.limit("max_of_ram")*ram:
		if f := p.memory(s, b, ram); f != nil {
			found = append(found, *f)
		}
	}
	return Outcome{Findings: found, Unseen: p.unseen()}
}

// unseen says which limits the trace does not tell of.
func (p *hiddenPass) unseen() string {
	switch n := p.in.Trace.Manifest.Memory.Nodes; {
	case n == nil:
		return "from which NUMA nodes the process may take memory is not recorded"
	case n.SetBy != "" && n.AllowedBytes == 0:
		return "how much memory NUMA nodes " + n.Allowed + " have, which a " + n.SetBy +
			" confines the process to, is not recorded"
	}
	return ""
}

// bound is the smallest limit that is known; what MemAvailable gave at the start is no limit.
func (p *hiddenPass) bound() (bound, bool) {
	m := p.in.Trace.Manifest.Memory
	var b bound
	least := func(bytes float64, kind, path string) {
		if bytes > 0 && (b.bytes == 0 || bytes < b.bytes) {
			b = bound{bytes, kind, path}
		}
	}
	if m.Kind != probe.LimitMemAvailable {
		least(float64(m.EffectiveBytes), m.Kind, m.Path)
	}
	least(p.in.facts.curve(probe.CgroupLimit).last(), probe.LimitCgroup, "")
	if n := m.Nodes; n != nil && n.SetBy != "" {
		least(float64(n.AllowedBytes), probe.LimitNUMA, n.SetBy+" "+n.Allowed)
	}
	return b, b.bytes > 0
}

// memory judges the bound on memory.
func (p *hiddenPass) memory(s *Summary, b bound, ram float64) *Finding {
	charge, what := p.charge(s, b)
	n := Numbers{
		{"memory_limit_bytes", b.bytes},
		{"ram_bytes", ram},
		{"of_ram_ratio", b.bytes / ram},
	}
	hits := p.hits(b, &n)
	near := ratio(charge, b.bytes)
	if hits == 0 && near < p.limit("near_ratio") {
		return nil
	}
	if charge > 0 {
		n = append(n, Number{"highest_charge_bytes", charge}, Number{"of_limit_ratio", near})
	}
	f := &Finding{
		Check: "memory", Severity: Warning, Evidence: Evidence{Numbers: n}, Remedy: b.remedy(),
	}
	var said []string
	if charge > 0 {
		said = append(said, fmt.Sprintf("%s reached %s, %.0f %% of it", what, units.Bytes(int64(charge)),
			100*near))
	}
	if hits > 0 {
		said = append(said, "it was hit "+times(int64(hits)))
	}
	f.Sentence = fmt.Sprintf("The limit was %s (%s), not the machine's %s: %s.",
		units.Bytes(int64(b.bytes)), b.who(), units.Bytes(int64(ram)), strings.Join(said, ", and "))
	kills, _ := n.Value("oom_kill_events")
	ooms, _ := n.Value("oom_events")
	if kills+ooms > 0 || near >= p.limit("error_ratio") {
		f.Severity = Error
	}
	return f
}

// hits is how often the cgroup's counters say that its limit was met; they do not count for a bound
// that is not a cgroup's.
func (p *hiddenPass) hits(b bound, n *Numbers) (hits float64) {
	if b.kind != probe.LimitCgroup {
		return 0
	}
	for _, x := range []struct{ metric, name string }{
		{probe.CgroupOOMs, "oom_kill_events"}, {eventsOOM, "oom_events"},
		{eventsMax, "at_limit_events"}, {failCount, "failed_charges"},
	} {
		if c := p.in.facts.curve(x.metric); c.len() > 1 {
			rise := c.rise(c.at[0], c.at[c.len()-1])
			*n = append(*n, Number{x.name, rise})
			hits += rise
		}
	}
	return hits
}

// who names what sets the bound.
func (b bound) who() string {
	switch {
	case b.kind == probe.LimitNUMA:
		setBy, nodes, _ := strings.Cut(b.path, " ")
		return "NUMA nodes " + nodes + ", by a " + setBy
	case b.kind == probe.LimitRlimit && b.path != "":
		return b.path
	case b.path != "":
		return b.kind + " " + b.path
	}
	return b.kind
}

// remedy is what to do about the bound, "" for the analyzer's.
func (b bound) remedy() string {
	if b.kind != probe.LimitNUMA {
		return ""
	}
	return "Plan against these nodes: highwater plan --memory " + units.Bytes(int64(b.bytes)) +
		"; or allow more of them (cpuset.mems, numactl --membind), or prefer instead of binding " +
		"(numactl --preferred)."
}

// charge is the most that counted against the bound; 0 where it is not known.
//
//   - Against RLIMIT_AS: address space, touched or not.
//   - Against a cgroup: what was charged to it, or to the ancestor that sets the limit. The kernel's own
//     peak counts only where it rose in the run: it is the cgroup's, which may be older.
//   - In every case at least the peak RSS.
func (p *hiddenPass) charge(s *Summary, b bound) (bytes float64, what string) {
	most := func(v float64, name string) {
		if v > bytes {
			bytes, what = v, name
		}
	}
	if b.path == "RLIMIT_AS" {
		v, _ := p.in.facts.curve(virtualBytes).highest()
		most(v, "Address space")
	}
	if b.kind == probe.LimitCgroup {
		for _, metric := range []string{limiterUsage, probe.CgroupUsage} {
			v, _ := p.in.facts.curve(metric).highest()
			most(v, "The cgroup's charge")
		}
		if c := p.in.facts.curve(probe.CgroupPeak); c.last() > c.first() {
			most(c.last(), "The cgroup's charge")
		}
	}
	if s.PeakRSSBytes != nil {
		most(float64(*s.PeakRSSBytes), "RSS")
	}
	return bytes, what
}

// high judges memory.high; told says whether its counter was sampled.
func (p *hiddenPass) high() (f *Finding, told bool) {
	c := p.in.facts.curve(eventsHigh)
	if c.len() < 2 {
		return nil, false
	}
	begin, end := c.at[0], c.at[c.len()-1]
	events := c.rise(begin, end)
	if events < p.limit("min_high_events") {
		return nil, true
	}
	return &Finding{
		Check: "memory_high", Severity: Warning,
		Sentence: fmt.Sprintf("The cgroup's memory.high was met: its tasks were throttled %s to "+
			"reclaim memory; its value is not in the trace.", times(int64(events))),
		Evidence: Evidence{
			Numbers: Numbers{{"memory_high_events", events}},
			Window:  &Window{BeginNS: begin, EndNS: end},
		},
		RefutedBy: "The same run with memory.high at max, and no stage faster.",
		Remedy: "Plan against memory.high (cat it in the cgroup's folder; MemoryHigh= of a unit) " +
			"as against a limit: above it every allocation waits for reclaim.",
	}, true
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
