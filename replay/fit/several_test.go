package fit_test

import (
	"math"
	"strings"
	"testing"

	"highwater/replay/fit"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// under is a recording of the example under another policy.
func under(t testing.TB, change func(*pipeline.Policy)) *trace.Data {
	t.Helper()
	m := pipeline.Example()
	change(&m.Policy)
	return recording(t, m)
}

func TestSeveralTracesMakeOnePool(t *testing.T) {
	pile := under(t, func(p *pipeline.Policy) { p.PermitRelease = pipeline.ReleaseSynthEnd })
	held := under(t, func(p *pipeline.Policy) { p.PartitionWorkers = 1 })
	r, err := fit.Fit(pile, held)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.Fitted.Partitions); n != 28 || r.Report.Partitions != 32 {
		t.Errorf("a pool of %d (reported %d) from two traces of 16, without their ends", n, r.Report.Partitions)
	}
	if len(r.Frozen.Partitions) != 16 {
		t.Errorf("frozen durations of %d partitions, those of the first trace are 16",
			len(r.Frozen.Partitions))
	}
	if r.Fitted.Policy.PermitRelease != pipeline.ReleaseSynthEnd {
		t.Errorf("settings %+v are not those of the first trace", r.Fitted.Policy)
	}
	alone := len(fitOf(t, pile).Report.Concurrency[trace.StageSynthesis])
	if n := len(r.Report.Concurrency[trace.StageSynthesis]); alone != 16 || n != 32 {
		t.Errorf("the concurrency of %d services was seen, of %d in one trace", n, alone)
	}
}

func TestTracesOfOtherWorkAreNotFittedTogether(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*trace.Manifest)
		want   string
	}{
		"size": {func(m *trace.Manifest) {
			m.Settings["log_size"] = trace.Setting{Value: "20", Source: "flag"}
		}, "trace 1 has log_size=16, trace 2 has 20"},
		"machine": {func(m *trace.Manifest) { m.Host.CPUs = 64 }, "one with 64"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := recording(t, pipeline.Example()), recording(t, pipeline.Example())
			a.Manifest.Settings["log_size"] = trace.Setting{Value: "16", Source: "default"}
			b.Manifest.Settings["log_size"] = trace.Setting{Value: "16", Source: "default"}
			c.change(&b.Manifest)
			if _, err := fit.Fit(a, b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
}

// cpuUsed is the program's CPU time until at, in seconds, if stages that run alone use so many cores.
func cpuUsed(d *trace.Data, at int64, cores func(stage string) float64) (used float64) {
	for _, s := range d.Spans {
		if s.Kind == trace.KindStage {
			used += cores(s.Stage) * float64(max(0, min(at, s.EndNS)-s.BeginNS)) / 1e9
		}
	}
	return used
}

// cpuSamples adds the counters of CPU time that the prover samples, twice a second: the program's
// as its stages used cores, which run alone here, and the machine's with what others used beside it.
func cpuSamples(d *trace.Data, parallelism map[string]float64, others float64) {
	end := int64(0)
	for _, s := range d.Spans {
		end = max(end, s.EndNS)
	}
	for at := int64(0); at <= end; at += 250e6 {
		used := cpuUsed(d, at, func(stage string) float64 { return parallelism[stage] })
		seconds := float64(at) / 1e9
		for _, c := range []struct {
			metric string
			value  float64
		}{
			{"process.cpu.time.user", used}, {"process.cpu.time.system", 0},
			{"system.cpu.time.idle", (2-others)*seconds - used}, {"system.cpu.time.iowait", 0},
		} {
			d.Samples = append(d.Samples, trace.Sample{
				TimeNS: at, Source: "simulator", Metric: c.metric, Value: c.value,
			})
		}
	}
}

// alone is the example with one partition after another, so that no two stages run at once.
func alone(t testing.TB, jobs int64) *trace.Data {
	t.Helper()
	m := even()
	m.Policy.Jobs, m.Policy.PartitionWorkers = jobs, 1
	m.Policy.PermitRelease, m.Policy.SplitProving = pipeline.ReleaseFreed, false
	return recording(t, m)
}

// Stages that run alone take as long whatever cores they use: only the program's CPU time tells.
func TestCPUTimeTellsHowManyCoresAStageUses(t *testing.T) {
	uses := map[string]float64{
		trace.StageSynthesis: 1, trace.StageProveStart: 1.25, trace.StageBG2: 2,
		trace.StageFinalise: 1, trace.StageVerify: 1,
	}
	d := alone(t, 8)
	cpuSamples(d, uses, 0)
	r := fitOf(t, d)
	for _, s := range r.Report.Stages {
		if s.Name == trace.StageProveStart && math.Abs(s.Parallelism-1.25) > 0.01 {
			t.Errorf("prove_start is taken to use %.2f cores, it used 1.25", s.Parallelism)
		}
	}
	if c := r.Report.OtherCores; c == nil || *c > 0.02 {
		t.Errorf("others are taken to use %v cores, they used none", c)
	}
}

// What other programs take is not the stages' doing.
func TestOtherProgramsAreTakenIntoAccount(t *testing.T) {
	uses := map[string]float64{}
	for _, s := range even().Stages {
		uses[s.Name] = s.Parallelism
	}
	d := alone(t, 8)
	cpuSamples(d, uses, 0.8)
	r := fitOf(t, d)
	if c := r.Report.OtherCores; c == nil || math.Abs(*c-0.8) > 0.02 {
		t.Fatalf("others are taken to use %v cores, they used 0.8", c)
	}
	if c := fit.OtherCores(d); c == nil || math.Abs(*c-0.8) > 0.02 {
		t.Errorf("OtherCores says %v, they used 0.8", c)
	}
	if c := r.Fitted.Machine.CPUs; math.Abs(c-1.2) > 0.02 {
		t.Errorf("the model has %.2f cores, the program had 1.2", c)
	}
	if !strings.Contains(strings.Join(r.Report.Warnings, "\n"), "other programs used 0.8") {
		t.Errorf("warnings %q do not tell of the load", r.Report.Warnings)
	}
	if fit.OtherCores(recording(t, even())) != nil {
		t.Error("a load is told where none was sampled")
	}
}

// Where recordings cannot tell two laws apart, some variant has another law than the fit; where
// they differ only in luck, stages are no surer than recordings repeat.
func TestVariantsAndDriftSayWhatIsNotKnown(t *testing.T) {
	d := recording(t, pipeline.Example())
	r := fitOf(t, d)
	if len(r.Variants) != fit.Variants {
		t.Fatalf("%d variants", len(r.Variants))
	}
	other := false
	for _, v := range r.Variants {
		for i, s := range v.Stages {
			other = other || s.Parallelism != r.Fitted.Stages[i].Parallelism ||
				s.Weight != r.Fitted.Stages[i].Weight
		}
		if len(v.Partitions) != len(r.Fitted.Partitions) {
			t.Errorf("a variant with a pool of %d", len(v.Partitions))
		}
	}
	if !other {
		t.Error("all variants have the law of the fit")
	}
	drift := func(ds ...*trace.Data) float64 {
		r, err := fit.Fit(ds...)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Fitted.Stages {
			if s.Name == trace.StageProveStart {
				return s.Uncertainty
			}
		}
		t.Fatal("no prove_start")
		return 0
	}
	slow := pipeline.Example()
	for i := range slow.Partitions {
		for k := range slow.Partitions[i].Pieces {
			slow.Partitions[i].Pieces[k].SoloNS *= 1.2
		}
	}
	one, same, apart := drift(d), drift(d, d), drift(d, recording(t, slow))
	if !(same < one && one < 0.1 && apart > 0.1) {
		t.Errorf("uncertainty %.3f from one recording, %.3f from two alike, %.3f from two 20 %% apart",
			one, same, apart)
	}
}

func TestBacklog(t *testing.T) {
	m := pipeline.Example()
	m.Policy.PermitRelease = pipeline.ReleaseSynthEnd
	d, stats, err := sim.Record(m, sim.Draw{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := fit.Backlog(d); got != stats.QueueMax.Backlog || got < 5 {
		t.Errorf("a backlog of %d, the simulation had %d", got, stats.QueueMax.Backlog)
	}
	if got := fit.Backlog(&trace.Data{}); got != 0 {
		t.Errorf("an empty trace has a backlog of %d", got)
	}
}

func TestConcurrency(t *testing.T) {
	span := func(begin, end int64) trace.Span {
		return trace.Span{Kind: trace.KindStage, Stage: "s", BeginNS: begin, EndNS: end}
	}
	open := span(0, trace.Null)
	free := span(0, 100)
	free.Job = trace.None
	got := fit.Concurrency([]trace.Span{span(0, 10), span(5, 15), span(20, 30), open, free})
	want := []float64{1, 1.5, 1.5}
	if len(got) != 1 || len(got["s"]) != 3 {
		t.Fatalf("got %v", got)
	}
	for i, x := range want {
		if math.Abs(got["s"][i]-x) > 1e-12 {
			t.Errorf("got %v, want %v", got["s"], want)
		}
	}
}
