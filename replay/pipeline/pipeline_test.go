package pipeline_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"highwater/replay/models"
	"highwater/replay/pipeline"
	"highwater/tracer/setting"
)

func format(t testing.TB, m *pipeline.Model) string {
	t.Helper()
	text, err := pipeline.Format(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRoundTrip(t *testing.T) {
	m := pipeline.Example()
	m.Policy.ByteBudget = 1 << 30
	m.Jobs = []pipeline.Job{{
		Job: 0, SubmitNS: 5,
		Before: []pipeline.Piece{{Stage: "verify", SoloNS: 7}},
	}}
	got, err := pipeline.Parse(format(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, got); d != "" {
		t.Errorf("after a round trip (-want +got):\n%s", d)
	}
}

func TestParseRefuses(t *testing.T) {
	good := format(t, pipeline.Example())
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key":    {"jobs = 4", "jobs = 4\njob_s = 3", `unknown key "policy.job_s"`},
		"wrong type":     {"jobs = 4", `jobs = "four"`, "policy.jobs"},
		"negative bound": {"channel_capacity = 1", "channel_capacity = -1", `write "unbounded"`},
		"word": {
			`permit_release = "send_accepted"`, `permit_release = "never"`,
			`permit_release: "never" is not one of`,
		},
		"unknown stage": {`stage = "b_g2"`, `stage = "b_g3"`, `stage "b_g3" has no law`},
		"segment order": {`segment = "after"`, `segment = "pickup"`, "out of order"},
		"not a number":  {"turnaround_ns = 20000.0", "turnaround_ns = nan", "turnaround_ns"},
		"too many":      {"jobs = 4", "jobs = 4000000", "more than the"},
		"never fits": {
			`byte_budget = "unbounded"`, "byte_budget = 1024",
			"byte_budget: 1.00 KiB is less than the 4.00 MiB that a partition settles at: " +
				"it could never start",
		},
		"open loop":       {"[arrivals]", "[arrivals]\nkind = \"every\"", "interval_ns 0 does not go with kind"},
		"no hand-off":     {"[admission]", "[admission]\nserial = true", "needs a hand-off channel"},
		"two ways":        {"[admission]", "[admission]\nno_permit = true\npermit_first = true", "contradicts no_permit"},
		"endless batch":   {"[batch]\nsize = 0", "[batch]\nsize = 2", "would wait for ever"},
		"pacer":           {"rate_max = 0.0", "rate_max = 0.1", "a lower clamp lies above"},
		"lock of nothing": {"[machine]", "[[lock]]\nname = \"l\"\ncapacity = 1\nfrom = \"x\"\nto = \"x\"\n[machine]", `stage "x" has no law`},
		"lock backwards":  {"[machine]", "[[lock]]\nname = \"l\"\ncapacity = 1\nfrom = \"b_g2\"\nto = \"synthesis\"\n[machine]", "not taken and given once"},
		"lost in a share": {"memory_bandwidth = 0.0", "memory_bandwidth = 1e-300", "below 1e-6"},
		"evicts nothing":  {"[machine]", "[[cached]]\nclass = \"srs\"\nspace = \"pinned\"\nbytes = 5\nevictable = true\n[machine]", "none of the budget"},
		"no syntax":       {"jobs = 4", "jobs = = 4", "line "},
		"share above one": {"at = 0.02", "at = 1.02", "outside"},
		"unknown law":     {`law = "scratch_high_water"`, `law = "gut feeling"`, "memory law"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatalf("the model has no %q", c.old)
			}
			_, err := pipeline.Parse(text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
}

// A question checks its model several times: names of parts are made for bad ones alone.
func TestValidateMakesNoNamesForAGoodModel(t *testing.T) {
	m := pipeline.Example()
	allocs := func() float64 {
		return testing.AllocsPerRun(10, func() {
			if err := m.Validate(); err != nil {
				t.Fatal(err)
			}
		})
	}
	few := allocs()
	for len(m.Partitions) < 256 {
		m.Partitions = append(m.Partitions, m.Partitions[0])
	}
	if many := allocs(); many > few {
		t.Errorf("Validate allocates %v times, with 256 partitions %v times", few, many)
	}
	m.Partitions[255].SettledBytes = -1
	err := m.Validate()
	if err == nil || !strings.HasPrefix(err.Error(), "partition 255 settled_bytes: -1 is outside") {
		t.Errorf("a bad partition gives %v", err)
	}
}

func TestEveryReplaySettingCanBeApplied(t *testing.T) {
	m := pipeline.Example()
	for _, s := range setting.Table() {
		text, ok := m.Policy.Text(s.Name)
		if ok != s.Replay {
			t.Errorf("%s: replay %v in the table of settings, %v in the policy", s.Name, s.Replay,
				ok)
			continue
		}
		_, err := m.Apply(map[string]string{s.Name: s.Default})
		if (err == nil) != s.Replay {
			t.Errorf("apply %s: %v", s.Name, err)
		}
		if s.Replay {
			if canon, err := s.Parse(text); err != nil || canon != text {
				t.Errorf("%s: %q is not its canonical text %q (%v)", s.Name, text, canon, err)
			}
		}
	}
}

func TestApplyChangesOnlyTheCopy(t *testing.T) {
	m := pipeline.Example()
	got, err := m.Apply(map[string]string{
		"jobs": "9", "byte_budget": "1GiB",
		"channel_capacity": "unbounded",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Policy.Jobs != 9 || got.Policy.ByteBudget != 1<<30 ||
		got.Policy.ChannelCapacity != pipeline.Unbounded {
		t.Errorf("applied: %+v", got.Policy)
	}
	if d := cmp.Diff(pipeline.Example(), m); d != "" {
		t.Errorf("the model itself changed (-want +got):\n%s", d)
	}
}

func TestRatesConserveWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "stages")
		cpus := rapid.Float64Range(0.5, 64).Draw(t, "cpus")
		stages, counts, rates := make([]pipeline.Stage, n), make([]int32, n), make([]float64, n)
		demand := 0.0
		for i := range stages {
			stages[i] = pipeline.Stage{Parallelism: rapid.Float64Range(0.1, 16).Draw(t,
				"parallelism"), Weight: rapid.Float64Range(0.1, 16).Draw(t, "weight")}
			counts[i] = int32(rapid.IntRange(0, 5).Draw(t, "count"))
			demand += float64(counts[i]) * stages[i].Parallelism
		}
		pipeline.Rates(cpus, stages, counts, rates)
		used := 0.0
		for i := range stages {
			if rates[i] <= 0 || rates[i] > 1+1e-12 {
				t.Fatalf("stage %d goes on at rate %v", i, rates[i])
			}
			used += float64(counts[i]) * rates[i] * stages[i].Parallelism
		}
		if want := min(demand, cpus); math.Abs(used-want) > 1e-9*want {
			t.Errorf("%v cores used of %v, asked for %v", used, cpus, demand)
		}
	})
}

// TestRatesShareBandwidthToo: nobody is above full speed, nothing is used beyond what there is, and
// who is below full speed is so because something that he uses is used up.
func TestRatesShareBandwidthToo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "stages")
		m := pipeline.Machine{
			CPUs:            rapid.SampledFrom([]float64{0, 1, 4, 64}).Draw(t, "cpus"),
			MemoryBandwidth: rapid.SampledFrom([]float64{0, 1, 10, 300}).Draw(t, "bandwidth"),
		}
		stages, counts, rates := make([]pipeline.Stage, n), make([]int32, n), make([]float64, n)
		for i := range stages {
			stages[i] = pipeline.Stage{
				Parallelism: rapid.SampledFrom([]float64{0, 0.5, 1, 8}).Draw(t, "parallelism"),
				Weight:      rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(t, "weight"),
				Bandwidth:   rapid.SampledFrom([]float64{0, 0.3, 5}).Draw(t, "moved"),
			}
			counts[i] = int32(rapid.IntRange(0, 5).Draw(t, "count"))
		}
		m.Rates(stages, counts, rates)
		cores, moved := 0.0, 0.0
		for i := range stages {
			if rates[i] <= 0 || rates[i] > 1 {
				t.Fatalf("stage %d goes on at rate %v", i, rates[i])
			}
			cores += float64(counts[i]) * rates[i] * stages[i].Parallelism
			moved += float64(counts[i]) * rates[i] * stages[i].Bandwidth
		}
		full := func(used, there float64) bool { return there > 0 && used > there*(1-1e-6) }
		if full(cores, m.CPUs*(1+2e-6)) || full(moved, m.MemoryBandwidth*(1+2e-6)) {
			t.Errorf("%v of %v cores and %v of %v GB/s are used", cores, m.CPUs, moved, m.MemoryBandwidth)
		}
		for i := range stages {
			stopped := full(cores, m.CPUs) && stages[i].Parallelism > 0 ||
				full(moved, m.MemoryBandwidth) && stages[i].Bandwidth > 0
			if counts[i] > 0 && rates[i] < 1-1e-9 && !stopped {
				t.Errorf("stage %d goes on at %v although nothing is short", i, rates[i])
			}
		}
	})
}

func TestPressureSlowsWithoutABound(t *testing.T) {
	m := pipeline.Machine{}
	stages := []pipeline.Stage{{Pressure: 1, Sensitivity: 0.1}, {Pressure: 2}}
	rates := make([]float64, 2)
	m.Rates(stages, []int32{3, 1}, rates)
	if want := 1 / (1 + 0.1*4); math.Abs(rates[0]-want) > 1e-12 || rates[1] != 1 {
		t.Errorf("rates %v, want %v and 1", rates, want)
	}
}

func FuzzParse(f *testing.F) {
	text, err := pipeline.Format(pipeline.Example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("")
	for _, name := range []string{"cuzk/v1b", "cuzk/v8", "cuzk/v15"} {
		m, err := models.Load(name)
		if err != nil {
			f.Fatal(err)
		}
		if text, err = pipeline.Format(m); err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add("[policy]\njobs = 1")
	f.Add("name = \"x\"\n[[partition]]\n[[partition.piece]]\nsolo_ns = 1e400")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := pipeline.Parse(text)
		if err != nil {
			return
		}
		again, err := pipeline.Parse(format(t, m))
		if err != nil {
			t.Fatalf("a model that was read cannot be read again: %v", err)
		}
		if d := cmp.Diff(m, again); d != "" {
			t.Errorf("round trip (-first +second):\n%s", d)
		}
	})
}

// Jobs that were recorded to arrive over time go on arriving so: those of a second recording after
// those of the first, and further ones after all.
func TestRecordedArrivalsGoOn(t *testing.T) {
	m := pipeline.Example()
	for _, at := range []float64{0, 10e9, 30e9, 0, 20e9} {
		m.Jobs = append(m.Jobs, pipeline.Job{SubmitNS: at})
	}
	times := func(m *pipeline.Model) (out []float64) {
		for i := range m.Jobs {
			out = append(out, m.Jobs[i].SubmitNS/1e9)
		}
		return out
	}
	for jobs, want := range map[string][]float64{
		"2": {0, 10, 30, 45, 65},              // the first has a distance of 15 s in the mean
		"8": {0, 10, 30, 45, 65, 85, 95, 115}, // and the second one of 20
	} {
		out, err := m.Apply(map[string]string{"jobs": jobs})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, times(out)); d != "" {
			t.Errorf("%s jobs (-want +got):\n%s", jobs, d)
		}
	}
	for i := range m.Jobs {
		m.Jobs[i].SubmitNS /= 1e7 // all at once
	}
	if out := m.WithJobs(8); len(out.Jobs) != 5 || out.Policy.Jobs != 8 {
		t.Errorf("%d jobs arrive at once, of %d", len(out.Jobs), out.Policy.Jobs)
	}
}

// What settings can do wrong is found without another look at the rest of the model, and said in the
// same words.
func TestSettingsAreValidatedAlone(t *testing.T) {
	for name, change := range map[string]func(*pipeline.Model){
		"policy":  func(m *pipeline.Model) { m.Policy.GPUWorkers = 0 },
		"budget":  func(m *pipeline.Model) { m.Policy.ByteBudget = 1 << 20 },
		"batch":   func(m *pipeline.Model) { m.Batch.Size = -1 },
		"handoff": func(m *pipeline.Model) { m.Admission.Handoff = 2 },
		"pacer":   func(m *pipeline.Model) { m.Pacer.Target = -1 },
		"arrival": func(m *pipeline.Model) { m.Arrivals.IntervalNS = 5 },
		"submit":  func(m *pipeline.Model) { m.Jobs = []pipeline.Job{{SubmitNS: -1}} },
		"scope": func(m *pipeline.Model) {
			m.Machine.LockScope, m.Policy.SplitProving = pipeline.LockWorker, true
		},
		"cached": func(m *pipeline.Model) {
			m.Cached = []pipeline.Cached{{Class: "srs", Space: "host", Bytes: 1 << 30, Budgeted: true}}
			m.Policy.ByteBudget = 1 << 29
		},
	} {
		m := pipeline.Example()
		change(m)
		all, settings := m.Validate(), m.ValidateSettings()
		if all == nil || settings == nil || all.Error() != settings.Error() {
			t.Errorf("%s: settings alone: %v, all: %v", name, settings, all)
		}
	}
}
