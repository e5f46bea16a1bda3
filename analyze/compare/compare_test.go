package compare

import (
	"math"
	"slices"
	"strings"
	"testing"

	"highwater/tracer/trace"
)

func TestEqualSidesAreNeutral(t *testing.T) {
	d := mustCompare(t, side(t, "base", 1, 10, nil), side(t, "new", 101, 10, nil), Options{})
	if d.Verdict != Neutral || d.Basis != BasisTest || d.Tested == 0 {
		t.Errorf("verdict %s (%s) by %s over %d outcomes", d.Verdict, d.Sentence, d.Basis, d.Tested)
	}
}

func TestRegressionIsNamed(t *testing.T) {
	slow := func(s *shop) { s.synthNS *= 1.05; s.faults *= 2 }
	d := mustCompare(t, side(t, "base", 1, 10, nil), side(t, "new", 101, 10, slow), Options{})
	if d.Verdict != Regression || !strings.Contains(d.Sentence, "stage synthesis +5.") &&
		!strings.Contains(d.Sentence, "stage synthesis +4.") {
		t.Errorf("%s: %s", d.Verdict, d.Sentence)
	}
	if v := verdictOf(d, StageTime, "prove_start"); v != Neutral {
		t.Errorf("prove_start is %s", v)
	}
	if v := verdictOf(d, Counter, "process.paging.faults.minor"); v != Moved {
		t.Errorf("faults are %s", v)
	}
	if strings.Contains(d.Sentence, "fault") {
		t.Errorf("the sentence names a counter as if it were the cause: %s", d.Sentence)
	}
	back := mustCompare(t, side(t, "base", 101, 10, slow), side(t, "new", 1, 10, nil), Options{})
	if back.Verdict != Improvement {
		t.Errorf("the way back is %s: %s", back.Verdict, back.Sentence)
	}
}

func TestThresholdDecidesWhatMatters(t *testing.T) {
	slow := func(s *shop) { s.synthNS *= 1.05 }
	base, next := side(t, "base", 1, 10, nil), side(t, "new", 101, 10, slow)
	d := mustCompare(t, base, next, Options{Thresholds: map[string]float64{
		"stage_time_ns/synthesis": 0.10, ClassArea: 1,
	}})
	if v := verdictOf(d, StageTime, "synthesis"); v != Neutral {
		t.Errorf("5 %% is %s at a threshold of 10 %%", v)
	}
	only := mustCompare(t, base, next, Options{Metrics: []string{"stage_time_ns/synthesis"}})
	if len(only.Outcomes) != 1 || only.Verdict != Regression || only.Tested != 1 {
		t.Errorf("one metric asked for: %d rows, %s", len(only.Outcomes), only.Verdict)
	}
}

func TestFewRunsRestOnAFloor(t *testing.T) {
	base := side(t, "base", 1, 1, nil)
	for _, c := range []struct {
		name    string
		factor  float64
		verdict string
	}{
		{"within the default floor", 1.2, Inconclusive},
		{"beyond it", 2, Regression},
		{"beyond it, faster", 0.5, Improvement},
	} {
		next := side(t, "new", 50, 1, func(s *shop) { s.synthNS *= c.factor; s.proveNS *= c.factor })
		d := mustCompare(t, base, next, Options{})
		if d.Verdict != c.verdict || d.Basis != BasisDefault {
			t.Errorf("%s: %s by %s: %s", c.name, d.Verdict, d.Basis, d.Sentence)
		}
		if !strings.Contains(d.BasisText, "too few") {
			t.Errorf("%s: the report does not say what it rests on: %s", c.name, d.BasisText)
		}
	}
	noise, err := LearnNoise(side(t, "history", 200, 20, nil), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	slower := side(t, "new", 50, 1, func(s *shop) { s.synthNS *= 1.2 })
	d := mustCompare(t, base, slower, Options{Noise: noise})
	if d.Verdict != Regression || d.Basis != BasisHistory {
		t.Errorf("20 %% with a learnt floor: %s by %s: %s", d.Verdict, d.Basis, d.Sentence)
	}
	equal := mustCompare(t, base, side(t, "new", 50, 1, nil), Options{Noise: noise})
	if equal.Verdict == Regression || equal.Verdict == Improvement {
		t.Errorf("equal runs with a learnt floor: %s: %s", equal.Verdict, equal.Sentence)
	}
}

// TestShortStageIsNoVerdictOfOneRun: that a stage of 0.2 ms takes 0.7 ms more is a wake-up, whatever
// floor history gives; that it takes 3 ms more is not.
func TestShortStageIsNoVerdictOfOneRun(t *testing.T) {
	of := func(ns float64) func(*shop) { return func(s *shop) { s.synthNS = ns } }
	noise, err := LearnNoise(side(t, "history", 200, 20, of(2e5)), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	base := side(t, "base", 1, 1, of(2e5))
	for ns, want := range map[float64]string{9e5: Inconclusive, 3.2e6: Regression} {
		d := mustCompare(t, base, side(t, "new", 50, 1, of(ns)), Options{Noise: noise})
		if v := verdictOf(d, StageTime, "synthesis"); v != want {
			t.Errorf("0.2 ms that become %v ms are %s, want %s", ns/1e6, v, want)
		}
	}
}

func TestLearnNoiseNeedsRuns(t *testing.T) {
	if _, err := LearnNoise(side(t, "h", 1, 9, nil), 1, 1); err == nil {
		t.Error("nine runs are enough")
	}
}

func TestSameTracesAreNeutral(t *testing.T) {
	runs := side(t, "x", 1, 1, nil)
	d := mustCompare(t, runs, runs, Options{})
	if d.Verdict != Neutral || d.Basis != BasisSame {
		t.Errorf("%s by %s", d.Verdict, d.Basis)
	}
}

func TestComparability(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*shop)
		across []string
		kind   string // of the difference that stands in the way, "" for none
	}{
		{"equal", nil, nil, ""},
		{"settings", func(s *shop) { s.settings = map[string]string{"presize": "false"} }, nil,
			KindSettings},
		{"settings asked for", func(s *shop) { s.settings = map[string]string{"presize": "false"} },
			[]string{KindSettings}, ""},
		{"settings, another asked for",
			func(s *shop) { s.settings = map[string]string{"presize": "false"} },
			[]string{KindMachine}, KindSettings},
		{"a setting more", func(s *shop) { s.settings = map[string]string{"presize": "true", "x": "1"} },
			nil, KindSettings},
		{"seed", func(s *shop) { s.settings = map[string]string{"presize": "true", "seed": "9"} }, nil,
			""},
		{"killed", func(s *shop) { s.end = trace.EndKilled }, []string{KindSettings}, KindRun},
		{"commit", func(s *shop) { s.commit = "other" }, nil, ""},
	} {
		next := side(t, "new", 101, 8, c.change)
		d := mustCompare(t, side(t, "base", 1, 8, nil), next, Options{Across: c.across})
		if c.kind == "" {
			if d.Basis == BasisNone {
				t.Errorf("%s: %s", c.name, d.Sentence)
			}
			if c.across != nil && (len(d.Differences) == 0 || !d.Differences[0].Accepted) {
				t.Errorf("%s: the difference is not shown: %v", c.name, d.Differences)
			}
			continue
		}
		if d.Verdict != Inconclusive || d.Basis != BasisNone {
			t.Errorf("%s: %s by %s", c.name, d.Verdict, d.Basis)
		}
		if !slices.ContainsFunc(d.Differences, func(x Difference) bool {
			return x.Kind == c.kind && !x.Accepted
		}) {
			t.Errorf("%s: no %s among %v", c.name, c.kind, d.Differences)
		}
	}
}

func TestRunsOfOneSideMustAgree(t *testing.T) {
	mixed := side(t, "base", 1, 8, nil)
	mixed[3] = side(t, "odd", 50, 1,
		func(s *shop) { s.settings = map[string]string{"presize": "false"} })[0]
	d := mustCompare(t, mixed, side(t, "new", 101, 8, nil), Options{})
	if d.Basis != BasisNone || len(d.Differences) != 1 || len(d.Differences[0].Base) != 2 {
		t.Errorf("%s: %v", d.Basis, d.Differences)
	}
}

func TestJobsAreAlignedByOrder(t *testing.T) {
	base := side(t, "base", 1, 1, nil)
	next := side(t, "new", 1, 1, func(s *shop) { s.firstJob = 40 })
	d := mustCompare(t, base, next, Options{})
	if len(d.Unmatched) != 0 {
		t.Fatalf("other job ids are not aligned: %v", d.Unmatched)
	}
	for _, r := range d.Outcomes {
		if r.Delta == nil || *r.Delta != 0 {
			t.Errorf("%s differs between equal runs with other job ids", r.Metric)
		}
	}
}

// TestUnmatchedIsInNoMean: a partition that one side lacks does not change the mean of the stage,
// however long it took.
func TestUnmatchedIsInNoMean(t *testing.T) {
	quiet := func(s *shop) { s.noise = 0 }
	base := side(t, "base", 1, 1, quiet)
	next := side(t, "new", 1, 1, func(s *shop) {
		quiet(s)
		s.skip = map[[2]int64]bool{{1, 1}: true}
	})
	d := mustCompare(t, base, next, Options{})
	want := []string{"prove_start", "synthesis"}
	for i, u := range d.Unmatched {
		if i >= len(want) || u.Stage != want[i] || u.Side != "base" || u.Spans != 1 ||
			!(u.MeanNS > 0) || u.Only {
			t.Errorf("unmatched %d is %+v", i, u)
		}
	}
	if len(d.Unmatched) != len(want) {
		t.Errorf("unmatched %v, want %v", d.Unmatched, want)
	}
	if r := d.row(StageTime, "synthesis"); r == nil || *r.Delta != 0 {
		t.Errorf("the mean moved: %+v", r)
	}
}

func TestAlignedMean(t *testing.T) {
	base, next := side(t, "b", 1, 1, nil), side(t, "n", 1, 1, func(s *shop) {
		s.skip = map[[2]int64]bool{{0, 0}: true, {2, 2}: true}
	})
	mustCompare(t, base, next, Options{})
	table := base[0].stages
	sum, count := 0.0, 0
	for _, e := range table.of("synthesis") {
		if p := e.place(); p != [2]int32{0, 0} && p != [2]int32{2, 2} {
			sum += float64(e.ns)
			count++
		}
	}
	if got := base[0].Values[Metric{StageTime, "synthesis"}]; math.Abs(got-sum/float64(count)) > 1 {
		t.Errorf("mean %v over %d partitions, want %v", got, count, sum/float64(count))
	}
}

func TestMissingCountersAreSaid(t *testing.T) {
	blind := func(s *shop) { s.noCounters = true }
	d := mustCompare(t, side(t, "base", 1, 8, blind), side(t, "new", 101, 8, blind), Options{})
	if !slices.ContainsFunc(d.Unknown, func(s string) bool {
		return strings.Contains(s, "page faults were not sampled")
	}) {
		t.Errorf("unknown: %q", d.Unknown)
	}
	if r := d.row(Counter, "process.paging.faults.minor"); r != nil {
		t.Errorf("a counter that was not recorded has a row: %+v", r)
	}
}

func TestWithoutJobs(t *testing.T) {
	none := func(s *shop) { s.noJobs = true }
	d := mustCompare(t, side(t, "base", 1, 8, none), side(t, "new", 101, 8, none), Options{})
	if r := d.row(ProofInterval, ""); r != nil {
		t.Errorf("a proof interval without jobs: %+v", r)
	}
	if d.row(StageTime, "synthesis") == nil || d.row(ClassPeak, "a") == nil {
		t.Error("stages and classes are not compared without jobs")
	}
}

func TestNoRuns(t *testing.T) {
	if _, err := Compare(nil, side(t, "new", 1, 1, nil), Options{}); err == nil {
		t.Error("an empty side passes")
	}
}

func TestClassFigures(t *testing.T) {
	s := usualShop(1)
	s.noise = 0
	r := s.run(t, "x")
	for _, c := range []struct {
		name, class string
		want        float64
	}{
		{ClassMade, "a", 9}, {ClassSize, "a", 4 << 20},
		{ClassPeak, "key", 8 << 20},
	} {
		if got := r.Values[Metric{c.name, c.class}]; got != c.want {
			t.Errorf("%s of %s is %v, want %v", c.name, c.class, got, c.want)
		}
	}
	area := r.Values[Metric{ClassArea, "a"}]
	life := r.Values[Metric{ClassLifetime, "a"}]
	want := gibSeconds(9 * (4 << 20) * life)
	if math.Abs(area/want-1) > 1e-9 {
		t.Errorf("area of a is %v, count times size times lifetime %v", area, want)
	}
	if _, ok := r.Values[Metric{ClassArea, "key"}]; ok {
		t.Error("a buffer of no job is in the jobs' bytes times time")
	}
}

// TestDevice: what a GPU backend records is compared too: copies by name and direction, bytes that
// they moved, device memory, a device's peak with its own split.
func TestDevice(t *testing.T) {
	gpu := func(copyNS int64, poolBytes int64) func(*shop) {
		return func(s *shop) {
			s.edit = func(e *shopEvents) {
				e.span("stage_in", s.firstJob, 0, 2e9, 2e9+copyNS)
				e.copied("copy h2d pageable", s.firstJob, 2e9, copyNS, 1<<26)
				e.buffer("d_a", s.firstJob, 0, poolBytes, 2e9, 3e9)
				for i := len(e.d.Buffers) - 2; i < len(e.d.Buffers); i++ {
					e.d.Buffers[i].Space, e.d.Buffers[i].Device = trace.SpaceDevice, 0
				}
			}
		}
	}
	d := mustCompare(t, side(t, "base", 1, 8, gpu(4e8, 1<<28)), side(t, "new", 101, 8,
		gpu(1e8, 1<<29)), Options{})
	for _, c := range []struct{ name, subject, verdict string }{
		{StageTime, "stage_in", Improvement},
		{CopyTime, "copy h2d pageable", Moved},
		{CopyBytes, "copy h2d pageable", Neutral},
		{DevicePeak, "0", Regression},
		{ClassPeak, "d_a on device", Regression},
	} {
		if v := verdictOf(d, c.name, c.subject); v != c.verdict {
			t.Errorf("%s of %s is %s, want %s", c.name, c.subject, v, c.verdict)
		}
	}
	if len(d.PeakSplits) != 2 || d.PeakSplits[1].Space != "device/0" ||
		d.PeakSplits[1].DeltaBytes != 1<<28 || d.PeakSplits[1].Classes[0].SizeBytes != 1<<28 {
		t.Errorf("splits %+v", d.PeakSplits)
	}
}

func TestBusyMachineIsSaid(t *testing.T) {
	busy := func(s *shop) {
		s.edit = func(e *shopEvents) {
			from, to := e.d.Samples[0].TimeNS, e.d.Samples[len(e.d.Samples)-1].TimeNS
			for _, at := range []int64{from, to} {
				share := float64(at-from) / float64(to-from)
				e.d.Samples = append(e.d.Samples, trace.Sample{
					TimeNS: at, Source: "main", Metric: "system.cpu.time.user", Value: 4 * share,
				})
			}
			e.d.Manifest.Metrics = append(e.d.Manifest.Metrics,
				trace.Metric{Name: "system.cpu.time.user", Unit: "s", Kind: "counter"})
		}
	}
	slow := func(s *shop) { s.proveNS *= 4; s.aBytes *= 4 }
	d := mustCompare(t, side(t, "base", 1, 1, busy), side(t, "new", 2, 1, slow), Options{})
	if !strings.Contains(strings.Join(d.Warnings, " "), "during 1 of 2 runs") {
		t.Errorf("warnings %q", d.Warnings)
	}
	if v := verdictOf(d, StageTime, "prove_start"); v != Inconclusive {
		t.Errorf("a time by the default floor on a busy machine is %s", v)
	}
	if v := verdictOf(d, ClassPeak, "a"); v != Regression {
		t.Errorf("bytes on a busy machine are %s", v)
	}
	quiet := mustCompare(t, side(t, "base", 1, 1, nil), side(t, "new", 2, 1, slow), Options{})
	if v := verdictOf(quiet, StageTime, "prove_start"); v != Regression {
		t.Errorf("a time by the default floor on a quiet machine is %s", v)
	}
}

// TestSlowerCPUIsSaid: where the computation that is always the same took longer on one side, the
// machine was slower, which no commit does.
func TestSlowerCPUIsSaid(t *testing.T) {
	at := func(ns float64) func(*shop) {
		return func(s *shop) {
			s.edit = func(e *shopEvents) {
				from, to := e.d.Samples[0].TimeNS, e.d.Samples[len(e.d.Samples)-1].TimeNS
				for i := range int64(40) {
					e.d.Samples = append(e.d.Samples, trace.Sample{TimeNS: from + i*(to-from)/40,
						Source: "main", Metric: "system.cpu.pace", Value: ns + float64(i%2)})
				}
				e.d.Manifest.Metrics = append(e.d.Manifest.Metrics,
					trace.Metric{Name: "system.cpu.pace", Unit: "ns", Kind: "gauge"})
			}
		}
	}
	for _, c := range []struct {
		base, next func(*shop)
		want       string
	}{
		{at(9000), at(10000), "slower in the new side's runs: a computation that is always the same took 1.11"},
		{at(10000), at(9000), "faster"},
		{at(9000), at(9100), ""},
		{at(9000), nil, ""},
	} {
		d := mustCompare(t, side(t, "base", 1, 3, c.base), side(t, "new", 11, 3, c.next), Options{})
		said := strings.Join(d.Warnings, " ")
		if c.want == "" && strings.Contains(said, "the CPU itself") || !strings.Contains(said, c.want) {
			t.Errorf("warnings %q, want %q", said, c.want)
		}
		if d.Base.CPUPaceNS == nil || (d.New.CPUPaceNS == nil) != (c.next == nil) {
			t.Errorf("pace %v and %v", d.Base.CPUPaceNS, d.New.CPUPaceNS)
		}
	}
}

// TestSmallClassIsNoVerdictOfOneRun: that a class of a hundredth of the peak doubles is chance,
// where there is one run a side and no history; of a large class it is not.
func TestSmallClassIsNoVerdictOfOneRun(t *testing.T) {
	for name, c := range map[string]struct {
		aux  int64
		want string
	}{"small": {4 << 10, Inconclusive}, "large": {1 << 20, Regression}} {
		of := func(bytes int64) func(*shop) { return func(s *shop) { s.auxBytes = bytes } }
		d := mustCompare(t, side(t, "base", 1, 1, of(c.aux)), side(t, "new", 2, 1, of(2*c.aux)), Options{})
		if v := verdictOf(d, ClassPeak, "aux"); v != c.want {
			t.Errorf("a %s class that doubles is %s, want %s", name, v, c.want)
		}
	}
}

// TestOthersIsOneSum: sums of floats depend on their order, and the order of a map's keys on chance.
func TestOthersIsOneSum(t *testing.T) {
	r := &Run{sampledNS: 1e9, Values: Values{}, counters: map[string]bool{
		"process.cpu.time.user": true, "system.cpu.time.user": true,
	}}
	for name, v := range map[string]float64{
		"system.cpu.time.user": 12.31, "system.cpu.time.system": 4.17, "process.cpu.time.user": 7.7,
		"process.cpu.time.system": 1.13,
	} {
		r.Values.set(Counter, name, v)
	}
	first, ok := r.others()
	if !ok || math.Abs(first-7.65) > 1e-9 {
		t.Errorf("others used %v cores (%v), want 7.65", first, ok)
	}
	for range 100 {
		if again, _ := r.others(); again != first {
			t.Fatalf("others used %v cores, or %v", first, again)
		}
	}
}

// TestAliasesAmongEqualVersions: a short name of a module counts as such, whichever other modules have
// its version.
func TestAliasesAmongEqualVersions(t *testing.T) {
	versions := map[string]string{
		"gnark": "v1", "github.com/consensys/gnark": "v1", "example.org/a": "v1", "example.org/b/c": "v1",
		"otel-sdk": "v2", "go.opentelemetry.io/otel/sdk": "v2", "go.opentelemetry.io/otel/trace": "v2",
		"cuda_driver": "v1",
	}
	for range 50 { // the order of a map's keys is another each time
		for name, want := range map[string]bool{
			"gnark": true, "otel-sdk": true, "cuda_driver": false, "example.org/a": false,
		} {
			if got := aliased(name, versions); got != want {
				t.Fatalf("%s also stands under a full path: %v", name, got)
			}
		}
	}
}
