package analyze

import (
	"fmt"
	"strconv"
	"strings"

	"highwater/analyze/memory"
	"highwater/internal/units"
)

// pageFaultStorm finds stretches in which so many pages were touched for the first time that a
// stage became slower. The claim needs counters: faults a second, RSS growth and the system's share
// of CPU time, all over the run's baseline, and a stage that is slower there than elsewhere in the
// same run. Without them large-allocation says what is known and what is missing. judgeStorm has
// the steps.
type pageFaultStorm struct{}

const stormName = "page-fault-storm"

// Doc implements Analyzer.
func (pageFaultStorm) Doc() Doc {
	return Doc{
		Name: stormName,
		Summary: "Memory was touched for the first time by so many threads at once that page " +
			"faults slowed a stage down.",
		RefutedBy: "The same run with the memory already faulted in (pooled, or on huge pages) " +
			"and the stage as slow: then the time goes elsewhere; or another process taking " +
			"the CPUs in the same window (steal and CPU pressure samples).",
		Remedy: "Touch less memory anew at once: keep the buffers and use them again (a pool), " +
			"put them on huge pages (MADV_HUGEPAGE: 512 times fewer faults), or start fewer " +
			"partitions at the same moment.",
		Thresholds: []Threshold{
			{
				Name: stormName + ".min_faults_per_s", Default: 50_000,
				Meaning: "minor faults a second in the window, at the least",
				Source: "one thread that only touches pages makes 530,000 to 590,000 (H200 host, " +
					"4 KiB pages): a tenth of a thread",
			},
			{
				Name: stormName + ".min_faults", Default: 10_000,
				Meaning: "minor faults in all windows, at the least",
				Source: "20 ms of CPU time at 1.7 to 2.7 µs each (H200 host): less slows no stage " +
					"that can be seen. Huge pages take as much memory with 512 times fewer",
			},
			{
				Name: stormName + ".min_factor", Default: 3,
				Meaning: "times the rate below which a quarter of the run's time lies",
				Source:  "a rate that the whole run has is no event in it",
			},
			{
				Name: stormName + ".min_system_ratio", Default: 0.2,
				Meaning: "system share of the process's CPU time in the window",
				Source:  "proposal of the incident's analysis (cuzk, pathology 1)",
			},
			{
				Name: stormName + ".min_system_rise_ratio", Default: 0.1,
				Meaning: "by how much that share lies above the rest of the run",
				Source:  "a program that lives in the kernel all along shows no storm by it",
			},
			{
				Name: stormName + ".min_rss_ratio", Default: 0.1,
				Meaning: "growth of RSS in the windows, as a share of its peak",
				Source:  "faults that bring no memory are not first touches",
			},
			{
				Name: stormName + ".min_slowdown", Default: 1.1,
				Meaning: "mean time of the stage's runs inside the window over those outside",
				Source:  "proposal of the incident's analysis: 10 % against the baseline",
			},
			{
				Name: stormName + ".max_load_gap", Default: 0.5,
				Meaning: "threads beside a stage's runs: how many fewer there may be outside of the " +
					"windows, where own times are compared",
				Source: "reasoned: half a thread is no other company; a stage that waits for a CPU " +
					"in a crowd was not slowed by faults",
			},
			{
				Name: stormName + ".min_cost_share", Default: 0.25,
				Meaning: "what the stage's threads lost together, over the faults' CPU time",
				Source: "the threads that touch the memory spend that time: a C program that does " +
					"nothing else lost 1.0 of it; verify, which waits beside, 0.02 to 0.07 (2 CPUs)",
			},
			{
				Name: stormName + ".max_cost_share", Default: 3,
				Meaning: "the same, at the most",
				Source: "reasoned: where CPUs are short, faults also hold up who does not fault; but " +
					"two thirds of a larger loss have another cause",
			},
			{
				Name: stormName + ".error_slowdown", Default: 1.5,
				Meaning: "slowdown from which it is an error",
				Source:  "reasoned: a stage that loses a third of its speed decides the throughput",
			},
		},
	}
}

// Start implements Analyzer.
func (pageFaultStorm) Start(in *Input) Pass { return &stormPass{in: in} }

type stormPass struct {
	in *Input
	noSteps
}

func limitsOfStorm(in *Input) stormLimits {
	t := func(name string) float64 { return in.Threshold(stormName, name) }
	return stormLimits{
		minFaults: t("min_faults"), minFaultsPerS: t("min_faults_per_s"), minFactor: t("min_factor"),
		minSystemRatio: t("min_system_ratio"), minSystemRise: t("min_system_rise_ratio"),
		minRSSRatio: t("min_rss_ratio"), minSlowdown: t("min_slowdown"),
		maxLoadGap: t("max_load_gap"), minCostShare: t("min_cost_share"),
		maxCostShare: t("max_cost_share"),
	}
}

// Finish implements Pass.
func (p *stormPass) Finish(s *Summary, _ *memory.Report) Outcome {
	l := limitsOfStorm(p.in)
	x := p.in.facts.judgeStorm(l)
	if len(x.missing) > 0 {
		return Outcome{
			NotApplicable: "the trace has no samples of " + strings.Join(x.missing, ", ") +
				": a storm cannot be told from an allocation that is merely large",
		}
	}
	if !x.holds(l) {
		return Outcome{}
	}
	f := Finding{
		Severity: Warning, Sentence: x.sentence(), Evidence: x.evidence(s),
		WhatIf: stagger(s),
	}
	if x.slowdown >= p.in.Threshold(stormName, "error_slowdown") {
		f.Severity = Error
	}
	f.Remedies = x.remedies(s)
	return Outcome{Findings: []Finding{f}}
}

// stagger asks for half as many partitions that start at once; nil where there is but one.
func stagger(s *Summary) map[string]string {
	pw, err := strconv.ParseInt(s.Settings["partition_workers"].Value, 10, 64)
	if err != nil || pw < 2 {
		return nil
	}
	return map[string]string{"partition_workers": strconv.FormatInt(pw/2, 10)}
}

// remedies are what can be done, each with what a replay needs to price it.
func (x *storm) remedies(s *Summary) []Remedy {
	// All its runs are replayed faster, by what those in the windows lost.
	spent := float64(x.inside)*x.insideNS + float64(x.total-x.inside)*x.outsideNS
	faster := map[string]float64{x.stage: max(0.01, 1-ratio(x.lostNS, spent))}
	all := []Remedy{
		{
			Text: "Keep the buffers in a pool: their pages are faulted in once. Replayed as " +
				x.stage + " without the time that its runs in the windows lost.",
			Scale: faster,
		},
		{
			Text: "Put them on huge pages (MADV_HUGEPAGE, or MADV_POPULATE_WRITE before the " +
				"threads start): at most the same effect, so replayed alike.",
			Scale: faster,
		},
	}
	if set := stagger(s); set != nil {
		all = append(all, Remedy{
			Text: "Stagger the starts: half as many partitions at once.", WhatIf: set,
		})
	}
	return all
}

func (x *storm) sentence() string {
	what := ""
	if x.cpuTime {
		what = " of CPU time"
	}
	return fmt.Sprintf(
		"%s page faults in %s (%s a second, %s in the quiet of the run) brought in %s and took "+
			"%s of system CPU time, %s ns each; %s took %s%s instead of %s meanwhile (%+.0f %%).",
		units.Count(int64(x.faults)), units.Nanos(int64(x.durationNS)), units.Count(int64(x.rate)),
		units.Count(int64(x.baseRate)), units.Bytes(int64(x.rssBytes)),
		units.Nanos(int64(x.systemS*1e9)), Plain(x.costNS), x.stage, units.Nanos(int64(x.insideNS)), what,
		units.Nanos(int64(x.outsideNS)), 100*(x.slowdown-1))
}

func (x *storm) evidence(s *Summary) Evidence {
	e := Evidence{Numbers: x.numbers()}
	if s.Host != nil && s.Host.CPUs > 0 && x.durationNS > 0 {
		e.Numbers = append(e.Numbers, Number{
			"storm_of_all_cpus_ratio", x.systemS * 1e9 / (x.durationNS * float64(s.Host.CPUs)),
		})
	}
	if n := len(x.windows); n > 0 {
		e.Window = &Window{BeginNS: x.windows[0].BeginNS, EndNS: x.windows[n-1].EndNS}
	}
	t := Table{Name: "windows", Columns: []string{"begin_ns", "end_ns"}}
	for _, w := range x.windows[:min(len(x.windows), MaxExamples)] {
		t.Rows = append(t.Rows, []any{w.BeginNS, w.EndNS})
	}
	e.Tables = []Table{t}
	return e
}

// numbers are the counters' figures, as far as they were measured.
func (x *storm) numbers() Numbers {
	n := Numbers{
		{"faults", x.faults},
		{"window_ns", x.durationNS},
		{"faults_per_s", x.rate},
		{"quiet_faults_per_s", x.baseRate},
		{"rss_growth_bytes", x.rssBytes},
		{"rss_growth_bytes_per_s", x.rssPerS},
		{"rss_growth_elsewhere_bytes_per_s", x.baseRSSPerS},
		{"system_cpu_ratio", x.systemRatio},
		{"system_cpu_elsewhere_ratio", x.baseSystemRatio},
		{"fault_cpu_ns", x.systemS * 1e9},
		{"cost_per_fault_ns", x.costNS},
	}
	if x.slowdown > 0 {
		n = append(n,
			Number{"stage_inside_ns", x.insideNS}, Number{"stage_outside_ns", x.outsideNS},
			Number{"slowdown_ratio", x.slowdown}, Number{"lost_ns", x.lostNS},
			Number{"stage_inside_runs", float64(x.inside)}, Number{"stage_runs", float64(x.total)},
			Number{"lost_of_fault_cpu_ratio", x.costShare},
		)
	}
	return n
}
