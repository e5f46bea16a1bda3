package toy

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// The test's run: small enough for any machine, one fresh round in ten.
const (
	testMiB     = 72
	testThreads = 6
	testRounds  = 20
	freshRounds = testRounds / 10
	smallPages  = testMiB << 20 / 4096 // of one fresh round
)

// storms are the page-fault storms found in d, and the analyzer's status. The rate's threshold is
// lowered, so that a machine under load cannot fall below it: what is judged is how many faults
// there were.
func storms(t *testing.T, d *trace.Data) ([]analyze.Finding, analyze.Status) {
	t.Helper()
	r, err := analyze.Run(trace.FromData(d), analyze.Options{
		Only:       []string{"page-fault-storm"},
		Thresholds: map[string]float64{"page-fault-storm.min_faults_per_s": 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Findings, r.Analyzers[0]
}

// round is one round's runs, and the minor faults between the readings around them.
type round struct {
	begin, end int64
	faults     float64
}

func (r *round) fresh(job int64) bool { return job%10 == 9 }

func roundsOf(d *trace.Data) map[int64]*round {
	rounds := map[int64]*round{}
	for i := range d.Spans {
		s := &d.Spans[i]
		if s.Stage != trace.StageSynthesis {
			continue
		}
		if rounds[s.Job] == nil {
			rounds[s.Job] = &round{begin: math.MaxInt64}
		}
		r := rounds[s.Job]
		r.begin, r.end = min(r.begin, s.BeginNS), max(r.end, s.EndNS)
	}
	for _, r := range rounds {
		before, after := math.Inf(-1), math.Inf(1) // a counter only rises
		for _, s := range d.Samples {
			switch {
			case s.Metric != probe.FaultsMinor:
			case s.TimeNS <= r.begin:
				before = max(before, s.Value)
			case s.TimeNS >= r.end:
				after = min(after, s.Value)
			}
		}
		r.faults = after - before
	}
	return rounds
}

// inStage is the minor faults of the fresh rounds' runs.
func inStage(d *trace.Data) (faults float64) {
	for job, r := range roundsOf(d) {
		if r.fresh(job) {
			faults += r.faults
		}
	}
	return faults
}

// What steady says that CPU time was.
const (
	faultNS = 1000
	fillNS  = 2e6 // of one run without faults
)

// steady is d on a machine on which a run takes fillNS, and faultNS more for each fault. The faults
// and the memory are the kernel's count, which holds anywhere; CPU time is not to be had on a busy
// machine: the kernel tells user from system by where its ticks fall, which are few in so short a
// run, and what a hypervisor withholds counts as used.
func steady(d *trace.Data) *trace.Data {
	out, rounds := *d, roundsOf(d)
	out.Spans, out.Samples = slices.Clone(d.Spans), slices.Clone(d.Samples)
	for i := range out.Spans {
		if s := &out.Spans[i]; s.Stage == trace.StageSynthesis {
			s.CPUNS = fillNS + int64(rounds[s.Job].faults*faultNS/testThreads)
		}
	}
	faults := map[int64]float64{} // by the moment of reading
	for _, s := range d.Samples {
		if s.Metric == probe.FaultsMinor {
			faults[s.TimeNS] = s.Value
		}
	}
	for i := range out.Samples {
		switch s := &out.Samples[i]; s.Metric {
		case probe.CPUSystem:
			s.Value = faults[s.TimeNS] * faultNS / 1e9
		case probe.CPUUser:
			s.Value = 0
			for _, r := range rounds {
				if r.end <= s.TimeNS {
					s.Value += testThreads * fillNS / 1e9
				}
			}
		}
	}
	return &out
}

func TestPageFaultStorm(t *testing.T) {
	program, err := BuildFaults(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(mode string) *trace.Data {
		d, err := Faults(t.Context(), program, mode, testMiB, testThreads, testRounds)
		if errors.Is(err, ErrUnsupported) {
			t.Logf("%v: nothing to compare with", err)
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if v, err := trace.Validate(trace.FromData(d), 3); err != nil || len(v) > 0 {
			t.Fatalf("mode %s: not a valid trace: %v %v", mode, v, err)
		}
		return steady(d)
	}
	small := run(FaultsSmall)
	checkSmall(t, small)
	checkWithoutCounters(t, small)
	if d := run(FaultsHuge); d != nil {
		checkHuge(t, d)
	}
	if d := run(FaultsPopulate); d != nil {
		checkPopulate(t, d)
	}
	if d := run(FaultsDouble); inStage(d) < 1.5*freshRounds*smallPages {
		t.Errorf("growth by doubling: %v faults, want half as many again as %d", inStage(d),
			freshRounds*smallPages)
	}
}

// checkSmall: every page of 4 KiB is a fault inside the stage, and the storm is found and priced: a
// fault at what it costs, and the stage's slow-down by those of its threads.
func checkSmall(t *testing.T, d *trace.Data) {
	t.Helper()
	want := float64(freshRounds * smallPages)
	if got := inStage(d); got < want || got > 1.1*want {
		t.Errorf("4 KiB pages: %v faults in the stage, want %v", got, want)
	}
	found, status := storms(t, d)
	if len(found) != 1 {
		t.Fatalf("4 KiB pages: status %+v, want a storm", status)
	}
	const slowdown = 1 + float64(smallPages)/testThreads*faultNS/fillNS
	for name, want := range map[string]float64{
		"faults": want, "rss_growth_bytes": freshRounds * testMiB << 20,
		"cost_per_fault_ns": faultNS, "slowdown_ratio": slowdown, "stage_runs": testRounds * testThreads,
	} {
		if v, ok := found[0].Evidence.Numbers.Value(name); !ok || v < 0.9*want || v > 1.1*want {
			t.Errorf("4 KiB pages: %s is %v, want %v", name, v, want)
		}
	}
	if len(found[0].Remedies) < 2 || found[0].Remedies[0].Scale[trace.StageSynthesis] >= 1 {
		t.Errorf("remedies %+v, want the pool and huge pages, replayed faster", found[0].Remedies)
	}
}

// checkWithoutCounters: the same run without counters is a large simultaneous allocation, and says
// what is missing.
func checkWithoutCounters(t *testing.T, d *trace.Data) {
	t.Helper()
	blind := *d
	blind.Samples = nil
	if _, s := storms(t, &blind); s.Status != analyze.StatusNotApplicable {
		t.Errorf("without counters: %+v, want not applicable", s)
	}
	r, err := analyze.Run(trace.FromData(&blind), analyze.Options{Only: []string{"large-allocation"},
		// the threads of a loaded machine may be slow to start
		Thresholds: map[string]float64{"large-allocation.window_ratio": 10}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Sentence, probe.FaultsMinor) ||
		!strings.HasPrefix(r.Findings[0].Sentence, "Large simultaneous allocation") {
		t.Errorf("without counters: %+v, want a large allocation that names what is missing",
			r.Findings)
	}
}

// checkHuge: on huge pages there are next to no faults, and so no storm. Where the kernel had none
// to give, the counters show it, and the run is one of small pages.
func checkHuge(t *testing.T, d *trace.Data) {
	t.Helper()
	faults := inStage(d)
	if faults > freshRounds*smallPages/4 {
		setting, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
		t.Logf("the kernel gave few huge pages (%s): %v faults", setting, faults)
		return
	}
	if found, s := storms(t, d); len(found) > 0 {
		t.Errorf("huge pages: %v faults, and yet %+v %s", faults, s, found[0].Sentence)
	}
}

// checkPopulate: the pages are faulted in before the stage, so that it has no faults and no storm.
func checkPopulate(t *testing.T, d *trace.Data) {
	t.Helper()
	if faults := inStage(d); faults > freshRounds*smallPages/10 {
		t.Errorf("populated: %v faults in the stage, want next to none", faults)
	}
	if found, s := storms(t, d); len(found) > 0 {
		t.Errorf("populated: %+v %s", s, found[0].Sentence)
	}
}
