package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// thunderingHerd finds syntheses that begin together and end together, over and over, so that the
// GPU side gets nothing and then everything at once.
//
//  1. Syntheses whose begins follow each other within max_spread of the mean synthesis time are one
//     herd if they are min_size or more and their ends lie within max_spread of it too.
//  2. The first herd is the start of the run and does not count.
//  3. A finding needs min_herds others, min_share of all syntheses in them, and the GPU side idle
//     for min_idle_share of the time from each herd's begin to its end.
type thunderingHerd struct{}

const herdName = "thundering-herd"

// Doc implements Analyzer.
func (thunderingHerd) Doc() Doc {
	return Doc{
		Name: herdName,
		Summary: "Syntheses begin together and end together: the GPU side stands idle while they " +
			"run and is flooded when they end.",
		RefutedBy: "The GPU side busy in the gaps (device utilisation samples); or a run with " +
			"staggered starts that has the same throughput.",
		Remedy: "Stagger the starts: let the next job's partitions in as permits come free " +
			"(jobs_in_flight above 1 and a permit that is given back one by one), not job by " +
			"job.",
		Thresholds: []Threshold{
			{
				Name: herdName + ".max_spread", Default: 0.1,
				Meaning: "spread of begins (one to the next) and of ends, in mean synthesis times",
				Source:  "proposal of the incident's analysis (cuzk, pathology 5)",
			},
			{
				Name: herdName + ".min_size", Default: 4,
				Meaning: "syntheses in a herd",
				Source:  "reasoned: two or three in step are chance",
			},
			{
				Name: herdName + ".min_herds", Default: 2,
				Meaning: "herds after the first",
				Source:  "the first is the start of the run",
			},
			{
				Name: herdName + ".min_share", Default: 0.5,
				Meaning: "syntheses in herds (the first left out), of all after it",
				Source:  "reasoned: most of the run must go this way",
			},
			{
				Name: herdName + ".min_idle_share", Default: 0.25,
				Meaning: "GPU side idle while the herds run",
				Source: "5 s of 20 to 30 s a sector in the incident's proposal; without it " +
					"the rhythm costs nothing",
			},
		},
	}
}

// Start implements Analyzer.
func (thunderingHerd) Start(in *Input) Pass { return &herdPass{in: in} }

type herdPass struct {
	in *Input
	noSteps
}

// herd is syntheses in step.
type herd struct {
	beginNS, endNS int64
	size           int
}

func (p *herdPass) limit(name string) float64 { return p.in.Threshold(herdName, name) }

// Finish implements Pass.
func (p *herdPass) Finish(*Summary, *memory.Report) Outcome {
	f := p.in.facts
	runs := slices.DeleteFunc(f.of(trace.StageSynthesis), func(r stageRun) bool { return r.job < 0 })
	gpu := busySpans(slices.Concat(f.of(trace.StageProveStart), f.of(trace.StageStageIn)))
	if len(runs) == 0 || len(gpu) == 0 {
		return Outcome{
			NotApplicable: "the trace lacks syntheses or prove_starts that ended: there is no " +
				"rhythm to see",
		}
	}
	herds, rest := p.herds(byBegin(runs))
	if float64(len(herds)) < 1+p.limit("min_herds") {
		return Outcome{}
	}
	// What ends before the first herd's end is the start of the run.
	first := herds[0]
	herds = herds[1:]
	in, idle, lasted := 0, 0.0, 0.0
	for _, h := range herds {
		in += h.size
		lasted += float64(h.endNS - h.beginNS)
		idle += float64(h.endNS-h.beginNS) - overlap(gpu, h.beginNS, h.endNS)
	}
	share := ratio(float64(in), float64(len(runs)-first.size))
	if float64(len(herds)) < p.limit("min_herds") || share < p.limit("min_share") ||
		ratio(idle, lasted) < p.limit("min_idle_share") {
		return Outcome{}
	}
	return Outcome{Findings: []Finding{p.finding(herds, in, rest, share, idle, lasted)}}
}

// herds groups syntheses, in order of their begins; rest is how many are in none.
func (p *herdPass) herds(runs []stageRun) (herds []herd, rest int) {
	spread := p.limit("max_spread") * meanOwn(runs)
	for i := 0; i < len(runs); {
		j := i + 1
		for j < len(runs) && float64(runs[j].beginNS-runs[j-1].beginNS) <= spread {
			j++
		}
		ends := make([]int64, 0, j-i)
		for _, r := range runs[i:j] {
			ends = append(ends, r.endNS)
		}
		first, last := slices.Min(ends), slices.Max(ends)
		if float64(j-i) >= p.limit("min_size") && float64(last-first) <= spread {
			herds = append(herds, herd{runs[i].beginNS, last, j - i})
		} else {
			rest += j - i
		}
		i = j
	}
	return herds, rest
}

// busySpans joins runs into stretches that do not overlap, in order.
func busySpans(runs []stageRun) []Window {
	var all []Window
	for _, r := range byBegin(runs) {
		if n := len(all); n > 0 && r.beginNS <= all[n-1].EndNS {
			all[n-1].EndNS = max(all[n-1].EndNS, r.endNS)
			continue
		}
		all = append(all, Window{BeginNS: r.beginNS, EndNS: r.endNS})
	}
	return all
}

// overlap is how much of the time from begin to end lies in the stretches.
func overlap(all []Window, begin, end int64) float64 {
	i, _ := slices.BinarySearchFunc(all, begin,
		func(w Window, t int64) int { return cmp.Compare(w.EndNS, t) })
	sum := 0.0
	for ; i < len(all) && all[i].BeginNS < end; i++ {
		sum += float64(max(0, min(all[i].EndNS, end)-max(all[i].BeginNS, begin)))
	}
	return sum
}

func (p *herdPass) finding(herds []herd, in, rest int, share, idle, lasted float64) Finding {
	n := float64(len(herds))
	largest := slices.MaxFunc(herds, func(a, b herd) int { return cmp.Compare(a.size, b.size) })
	t := Table{Name: "herds", Columns: []string{"begin_ns", "end_ns", "syntheses"}}
	for _, h := range herds[:min(len(herds), MaxExamples)] {
		t.Rows = append(t.Rows, []any{h.beginNS, h.endNS, int64(h.size)})
	}
	return Finding{
		Severity: Warning,
		Sentence: fmt.Sprintf(
			"Syntheses run in herds: %d times up to %d began and ended together (%.0f %% of all "+
				"after the first herd); the GPU side stood idle for %s of each (%.0f %%).",
			len(herds), largest.size, 100*share, units.Nanos(int64(idle/n)),
			100*ratio(idle, lasted)),
		Evidence: Evidence{
			Numbers: Numbers{
				{"herds", n},
				{"largest_syntheses", float64(largest.size)},
				{"in_herds_syntheses", float64(in)},
				{"others_syntheses", float64(rest)},
				{"in_herds_ratio", share},
				{"gpu_idle_ns_per_herd", idle / n},
				{"gpu_idle_ratio", ratio(idle, lasted)},
				{"mean_herd_ns", lasted / math.Max(1, n)},
			},
			Window: &Window{BeginNS: herds[0].beginNS, EndNS: herds[len(herds)-1].endNS},
			Tables: []Table{t},
		},
		WhatIf: p.whatIf(),
	}
}

// whatIf asks for a second job in flight, whose partitions fill the gaps.
func (p *herdPass) whatIf() map[string]string {
	if p.in.facts.setting("jobs_in_flight") == 1 {
		return map[string]string{"jobs_in_flight": "2"}
	}
	return nil
}
