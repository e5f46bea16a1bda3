package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// oversubscription finds that all stages stretch together when more of them run at once: they share
// something that does not suffice.
//
//  1. A run's load is the mean number of threads of other stages beside it. Of each stage the third
//     of the runs with the lowest load is compared with the third with the highest, by the median
//     of their own time (waiting excluded).
//  2. A stage counts where both thirds have min_runs and the loads are min_load_rise threads apart.
//  3. A finding needs two stages or more that stretch by min_stretch, making up min_agreement of
//     the compared stages' time.
//  4. Apart from that (check cpu_short): a stage whose runs own their threads is off the CPU for
//     what its own time exceeds its CPU time by. It counts where that is min_wall_over_cpu and the
//     stages under way asked for more threads than there are CPUs meanwhile.
//  5. What they share is said only as far as the counters show it: the CPUs, where the process used
//     nearly all of them; else memory bandwidth or caches are suspected, and named as such.
type oversubscription struct{}

const overName = "oversubscription"

// Doc implements Analyzer.
func (oversubscription) Doc() Doc {
	return Doc{
		Name: overName,
		Summary: "Every stage becomes slower when more run beside it: they share CPUs or memory " +
			"bandwidth that does not suffice.",
		RefutedBy: "Runs at high load that differ in work (larger circuits), not in speed; a " +
			"replay or run with fewer workers that is no faster a partition.",
		Remedy: "Fewer things at once: partition_workers, gpu_threads and backend_threads that " +
			"add up to the CPUs there are. Adding workers past that point lengthens every " +
			"stage and holds more memory for longer.",
		Thresholds: []Threshold{
			{
				Name: overName + ".min_stretch", Default: 1.2,
				Meaning: "median time at high load over that at low load",
				Source:  "proposal of the incident's analysis (cuzk, pathology 6: +20 %)",
			},
			{
				Name: overName + ".min_load_rise", Default: 0.75,
				Meaning: "threads beside a run: how far the two thirds are apart",
				Source:  "reasoned: below one thread the comparison is of equals",
			},
			{
				Name: overName + ".min_runs", Default: 4,
				Meaning: "runs in each third",
				Source:  "a median of fewer is a single run's time",
			},
			{
				Name: overName + ".min_agreement", Default: 0.8,
				Meaning: "share of the compared stages' time that stretches",
				Source:  "one stage alone has a cause of its own",
			},
			{
				Name: overName + ".min_wall_over_cpu", Default: 1.5,
				Meaning: "own time over CPU time of stages that own their threads",
				Source:  "reasoned: half as long again is more than interrupts and faults take",
			},
			{
				Name: overName + ".busy_ratio", Default: 0.85,
				Meaning: "use of the CPUs from which they are what is short",
				Source:  "reasoned: the rest is the scheduler's and other processes'",
			},
		},
	}
}

// Start implements Analyzer.
func (oversubscription) Start(in *Input) Pass { return &overPass{in: in} }

type overPass struct {
	in *Input
	noSteps
}

// stretched is one stage at low and at high load.
type stretched struct {
	stage                string
	runs                 int
	lowLoad, highLoad    float64
	lowNS, highNS, ratio float64
	totalNS              float64
	use                  float64 // of the CPUs during the runs at high load
	useKnown             bool
}

func (p *overPass) limit(name string) float64 { return p.in.Threshold(overName, name) }

// Finish implements Pass.
func (p *overPass) Finish(s *Summary, _ *memory.Report) Outcome {
	f := p.in.facts
	if len(f.runs) == 0 {
		return Outcome{NotApplicable: "the trace has no stage that ended"}
	}
	byStage := make([][]stageRun, len(f.stages)+1)
	for _, r := range f.runs {
		if r.job >= 0 {
			byStage[r.stage] = append(byStage[r.stage], r)
		}
	}
	var all []stretched
	for i, runs := range byStage {
		if x, ok := p.compare(f.stageName(uint16(i)), runs); ok {
			all = append(all, x)
		}
	}
	short, measured := p.shortOfCPU()
	if len(all) < 2 && !measured {
		return Outcome{
			NotApplicable: "fewer than two stages ran often enough at loads that differ, and none " +
				"measured its CPU time: whether they stretch together is not known",
		}
	}
	var found []Finding
	if agreement, ok := p.together(all); ok {
		found = append(found, p.finding(s, all, agreement, short))
	} else if short != nil {
		found = append(found, *p.shortFinding(s, short))
	}
	return Outcome{Findings: found}
}

// together says whether the compared stages stretch, and what share of their time agrees. It orders
// them, those with the most time first.
func (p *overPass) together(all []stretched) (agreement float64, ok bool) {
	var slow, total float64
	n := 0
	for _, x := range all {
		total += x.totalNS
		if x.ratio >= p.limit("min_stretch") {
			slow += x.totalNS
			n++
		}
	}
	slices.SortFunc(all, func(a, b stretched) int {
		return cmp.Or(cmp.Compare(b.totalNS, a.totalNS), cmp.Compare(a.stage, b.stage))
	})
	return ratio(slow, total), n >= 2 && slow >= p.limit("min_agreement")*total
}

// offCPU is a stage that waits for a CPU.
type offCPU struct {
	stage         string
	runs          int
	ownNS, cpuNS  float64
	demand        float64 // threads of all stages, in the mean over its runs
	wallOverRatio float64
}

// shortOfCPU finds the stage that was off the CPU the longest; measured says whether any stage owns
// its threads.
func (p *overPass) shortOfCPU() (short *offCPU, measured bool) {
	f := p.in.facts
	of := make([]offCPU, len(f.stages)+1)
	for i := range f.runs {
		r := &f.runs[i]
		if r.job < 0 || r.cpuNS == trace.Null || r.cpuNS <= 0 {
			continue
		}
		x := &of[r.stage]
		x.runs++
		x.ownNS += float64(r.ownNS)
		x.cpuNS += float64(r.cpuNS)
		x.demand += float64(r.load+r.threads) * float64(r.ownNS)
	}
	cpus := float64(f.manifest.Host.CPUs)
	for i := range of {
		x := &of[i]
		if float64(x.runs) < p.limit("min_runs") || x.ownNS <= 0 || cpus <= 0 {
			continue
		}
		measured = true
		x.stage, x.demand = f.stageName(uint16(i)), x.demand/x.ownNS
		x.wallOverRatio = x.ownNS / x.cpuNS
		if x.wallOverRatio >= p.limit("min_wall_over_cpu") && x.demand > cpus &&
			(short == nil || x.ownNS-x.cpuNS > short.ownNS-short.cpuNS) {
			short = x
		}
	}
	return short, measured
}

func (p *overPass) shortFinding(s *Summary, x *offCPU) *Finding {
	f := p.in.facts
	cpus := f.manifest.Host.CPUs
	n := Numbers{
		{"own_time_ns", x.ownNS},
		{"cpu_time_ns", x.cpuNS},
		{"own_over_cpu_ratio", x.wallOverRatio},
		{"mean_demand_threads", x.demand},
		{"peak_demand_threads", f.peak},
		{"cpus", float64(cpus)},
		{"runs", float64(x.runs)},
	}
	who := "this process's own stages took them"
	use, ok := f.busy(f.of(x.stage))
	switch {
	case !ok:
		who = "who had them the trace does not show: it has no CPU samples"
	case use < p.limit("busy_ratio"):
		who = fmt.Sprintf("this process got %.0f %% of them, so others (processes, the hypervisor) "+
			"had the rest", 100*use)
	}
	if ok {
		n = append(n, Number{"cpu_use_ratio", use})
	}
	return &Finding{
		Check: "cpu_short", Severity: Warning,
		Sentence: fmt.Sprintf(
			"%s took %s for %s of CPU time: its threads waited for a CPU most of the time, while all "+
				"stages asked for %s threads in the mean on %s; %s.",
			x.stage, units.Nanos(int64(x.ownNS)), units.Nanos(int64(x.cpuNS)), Plain(x.demand),
			count(cpus, "CPU"), who),
		Evidence: Evidence{Numbers: append(n, stealOf(f)...)},
		WhatIf:   fewerWorkers(s, f),
	}
}

func (p *overPass) compare(stage string, runs []stageRun) (stretched, bool) {
	third := len(runs) / 3
	if float64(third) < p.limit("min_runs") {
		return stretched{}, false
	}
	slices.SortStableFunc(runs, func(a, b stageRun) int { return cmp.Compare(a.load, b.load) })
	low, high := runs[:third], runs[len(runs)-third:]
	x := stretched{stage: stage, runs: len(runs)}
	x.lowLoad, x.lowNS = middle(low)
	x.highLoad, x.highNS = middle(high)
	x.use, x.useKnown = p.in.facts.busy(high)
	for i := range runs {
		x.totalNS += float64(runs[i].ownNS)
	}
	x.ratio = ratio(x.highNS, x.lowNS)
	return x, x.highLoad-x.lowLoad >= p.limit("min_load_rise") && x.lowNS > 0
}

// middle is the median load and own time of runs.
func middle(runs []stageRun) (load, ns float64) {
	loads, times := make([]float64, len(runs)), make([]float64, len(runs))
	for i := range runs {
		loads[i], times[i] = float64(runs[i].load), float64(runs[i].ownNS)
	}
	return median(loads), median(times)
}

// busy is the share of the CPUs that the process used while those runs went on, each for itself;
// false where it is not known.
func (f *facts) busy(runs []stageRun) (float64, bool) {
	user, system := f.curve(probe.CPUUser), f.curve(probe.CPUSystem)
	if user.len() < 2 || system.len() < 2 || f.manifest.Host.CPUs <= 0 {
		return 0, false
	}
	var used, time float64
	for i := range runs {
		begin, end := runs[i].beginNS, runs[i].endNS
		used += user.rise(begin, end) + system.rise(begin, end)
		time += float64(end-begin) / 1e9
	}
	if time <= 0 {
		return 0, false
	}
	return used / (time * float64(f.manifest.Host.CPUs)), true
}

func (p *overPass) finding(s *Summary, all []stretched, agreement float64, short *offCPU) Finding {
	f := p.in.facts
	f1 := Finding{Check: "stages_stretch", Severity: Warning}
	n := Numbers{
		{"stages", float64(len(all))},
		{"agreement_ratio", agreement},
		{"peak_demand_threads", f.peak},
	}
	var weighted, total float64
	t := Table{Name: "by stage", Columns: []string{
		"stage", "runs", "low_load_threads", "high_load_threads", "low_load_ns", "high_load_ns",
		"stretch_ratio",
	}}
	for _, x := range all {
		weighted += x.ratio * x.totalNS
		total += x.totalNS
		t.Rows = append(t.Rows, []any{
			x.stage, int64(x.runs), x.lowLoad, x.highLoad, int64(x.lowNS), int64(x.highNS), x.ratio,
		})
	}
	stretch := weighted / total
	n = append(n, Number{"stretch_ratio", stretch})
	why, more := p.shared(&all[0], short)
	n = append(n, more...)
	n = append(n, stealOf(f)...)
	if s.Rho != nil {
		n = append(n, Number{"rho", *s.Rho})
	}
	f1.Evidence = Evidence{Numbers: n, Tables: []Table{t}}
	f1.Sentence = fmt.Sprintf("Stages stretch together: %s takes %s at low load and %s at high "+
		"load, and %s do likewise (%.2f times in the mean); %s.",
		all[0].stage, units.Nanos(int64(all[0].lowNS)), units.Nanos(int64(all[0].highNS)),
		count(len(all)-1, "other stage"), stretch, why)
	f1.WhatIf = fewerWorkers(s, f)
	return f1
}

// shared says what the stages share, as far as the counters show it.
func (p *overPass) shared(x *stretched, short *offCPU) (why string, n Numbers) {
	f := p.in.facts
	cpus := f.manifest.Host.CPUs
	use, ok := x.use, x.useKnown
	if ok {
		n = Numbers{{"cpus", float64(cpus)}, {"cpu_use_ratio", use}}
	}
	switch {
	case ok && use >= p.limit("busy_ratio"):
		why = fmt.Sprintf("they share %s, used to %.0f %%, and ask for up to %s threads",
			count(cpus, "CPU"), 100*use, Plain(f.peak))
	case short != nil && ok:
		why = fmt.Sprintf("they wait for a CPU (%s was on one for %.0f %% of its time) although this "+
			"process used %.0f %% of %s: others had the rest", short.stage,
			100*short.cpuNS/short.ownNS, 100*use, count(cpus, "CPU"))
	case ok:
		why = fmt.Sprintf("the CPUs were used to %.0f %% only, so memory bandwidth or caches are "+
			"suspected; no counter of the trace shows them", 100*use)
	default:
		why = "what they share the trace does not show: it has no CPU samples"
	}
	return why, n
}

// stealOf is the time that the hypervisor gave to others, where it was sampled.
func stealOf(f *facts) Numbers {
	c := f.curve(probe.Steal)
	if c.len() < 2 {
		return nil
	}
	return Numbers{{"steal_s", c.rise(c.at[0], c.at[c.len()-1])}}
}

// fewerWorkers asks for as many partition workers as the CPUs can serve, at least one less than
// there are; nil where that is none.
func fewerWorkers(s *Summary, f *facts) map[string]string {
	pw := f.setting("partition_workers")
	if pw < 2 {
		return nil
	}
	fits := pw - 1
	if s.Host != nil && s.Host.CPUs > 0 && f.peak > 0 {
		scaled := math.Floor(float64(pw) * float64(s.Host.CPUs) / f.peak)
		fits = min(fits, max(1, int64(scaled)))
	}
	return map[string]string{"partition_workers": strconv.FormatInt(fits, 10)}
}
