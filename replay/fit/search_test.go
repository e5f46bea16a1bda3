package fit_test

import (
	"math"
	"slices"
	"testing"

	"highwater/replay/fit"
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// crowded is a recording on 32 cores with a GPU: of 32 partitions so many are synthesised at once, the
// others alone at the end. Services slow each other down in memory by 3 % a core, but for those of
// prove_start, which wait for the device and keep a core busy. Spans do not say how many threads
// synthesis has.
func crowded(t *testing.T, workers int64) *trace.Data {
	t.Helper()
	m := even()
	p := &m.Policy
	p.Jobs, p.Partitions, p.JobsInFlight = 1, 32, pipeline.Unbounded
	p.PartitionWorkers, p.ChannelCapacity = workers, pipeline.Unbounded
	m.Machine.CPUs = 32
	for i := range m.Stages {
		s := &m.Stages[i]
		s.Parallelism, s.Weight, s.Pressure, s.Sensitivity = 1, 1, 1, 0.03
		if s.Name == trace.StageProveStart {
			s.Sensitivity = 0
		}
	}
	one := m.Partitions[0]
	m.Partitions = nil
	for i := range int64(32) {
		member := one
		member.Job, member.Partition = 0, i
		member.Pieces = slices.Clone(one.Pieces)
		for k := range member.Pieces {
			switch piece := &member.Pieces[k]; piece.Stage {
			case trace.StageSynthesis:
				piece.SoloNS = 2e9 * math.Exp(0.03*math.Sin(float64(i)))
			case trace.StageProveStart:
				piece.SoloNS = 60e6
			}
		}
		m.Partitions = append(m.Partitions, member)
	}
	d := recording(t, m)
	d.Manifest.Host.CPUs, d.Manifest.Host.GPUs = 32, []string{"a GPU"}
	for i := range d.Spans {
		if d.Spans[i].Stage == trace.StageSynthesis {
			d.Spans[i].Threads = trace.Null
		}
	}
	oneCoreEach(d)
	return d
}

// oneCoreEach adds the program's CPU time, as if each stage kept a core busy.
func oneCoreEach(d *trace.Data) {
	end := int64(0)
	for _, s := range d.Spans {
		end = max(end, s.EndNS)
	}
	for at := int64(0); at <= end; at += 250e6 {
		used := cpuUsed(d, at, func(string) float64 { return 1 })
		d.Samples = append(d.Samples, trace.Sample{
			TimeNS: at, Source: "simulator", Metric: "process.cpu.time.user", Value: used,
		})
	}
}

func stageOf(t *testing.T, m *pipeline.Model, name string) pipeline.Stage {
	t.Helper()
	i := slices.IndexFunc(m.Stages, func(s pipeline.Stage) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("the model has no stage %s", name)
	}
	return m.Stages[i]
}

// Of 32 services 28 run beside each other: that the others are faster is the law's, not their luck,
// although the spans leave it open how many cores each uses.
func TestManyCoresSlowEachOtherInMemory(t *testing.T) {
	r := fitOf(t, crowded(t, 28))
	s := stageOf(t, r.Fitted, trace.StageSynthesis)
	if s.Parallelism != 1 || s.Sensitivity < 0.02 || s.Sensitivity > 0.05 {
		t.Errorf("law %+v of a stage on one core that others slow by 3 %% a core", s)
	}
	for _, x := range solo(r.Fitted, trace.StageSynthesis) {
		if math.Abs(math.Log(x/2e9)) > 0.3 {
			t.Errorf("a service takes %.2f s alone, want 2", x/1e9)
		}
	}
	if x := spread(r.Fitted, trace.StageSynthesis); x > 0.1 {
		t.Errorf("solo times spread by %.3f", x)
	}
}

// What waits for a device is not slowed by those that compute.
func TestWaitingForADeviceIsNotSlowedInMemory(t *testing.T) {
	r := fitOf(t, crowded(t, 28))
	s := stageOf(t, r.Fitted, trace.StageProveStart)
	if s.Sensitivity != 0 {
		t.Errorf("law %+v of a stage that waits for a device", s)
	}
	for _, x := range solo(r.Fitted, trace.StageProveStart) {
		if math.Abs(x/60e6-1) > 0.01 {
			t.Errorf("a service takes %.1f ms alone, want 60", x/1e6)
		}
	}
}

// Where cores were never short nothing tells weights apart.
func TestUntoldWeightsArePlain(t *testing.T) {
	r := fitOf(t, crowded(t, 4))
	for _, s := range r.Fitted.Stages {
		if s.Weight != s.Parallelism {
			t.Errorf("%s: weight %g at a parallelism of %g", s.Name, s.Weight, s.Parallelism)
		}
	}
}

// How much services slow each other down shows where company varies, and is a doubt where it does
// not.
func TestVariantsDoubtWhatIsNotTold(t *testing.T) {
	wrong := func(r *fit.Result) (n int) {
		for _, v := range r.Variants {
			if x := stageOf(t, v, trace.StageSynthesis).Sensitivity; x < 0.02 || x > 0.05 {
				n++
			}
		}
		return n
	}
	if n := wrong(fitOf(t, crowded(t, 28))); n > 2 {
		t.Errorf("%d of %d variants miss the 3 %% a core that the services show", n, fit.Variants)
	}
	if n := wrong(fitOf(t, crowded(t, 4))); n < 3 {
		t.Errorf("%d of %d variants miss what services do not show that always run in one company",
			n, fit.Variants)
	}
}
