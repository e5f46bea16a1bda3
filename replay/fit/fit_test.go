package fit_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"highwater/replay/fit"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// recording simulates a model and dresses the run as a recording on two CPUs.
func recording(t testing.TB, m *pipeline.Model) *trace.Data {
	t.Helper()
	d, _, err := sim.Record(m, sim.Draw{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.Manifest.Host.CPUs = 2
	d.Manifest.Settings["gogc"] = trace.Setting{Value: "off", Source: "default"}
	return d
}

// even is the example with services that all take the same time alone.
func even() *pipeline.Model {
	m := pipeline.Example()
	for i := range m.Partitions {
		job, partition := m.Partitions[i].Job, m.Partitions[i].Partition
		m.Partitions[i] = m.Partitions[0]
		m.Partitions[i].Job, m.Partitions[i].Partition = job, partition
	}
	return m
}

func fitOf(t testing.TB, d *trace.Data) *fit.Result {
	t.Helper()
	r, err := fit.Fit(d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// solo lists the solo times of one stage over the pool.
func solo(m *pipeline.Model, stage string) []float64 {
	var out []float64
	for _, p := range m.Partitions {
		for _, piece := range p.Pieces {
			if piece.Stage == stage {
				out = append(out, piece.SoloNS)
			}
		}
	}
	return out
}

func TestLawExplainsWhatSharingDid(t *testing.T) {
	for name, release := range map[string]string{"pile-up": "synth_end", "held": "send_accepted"} {
		t.Run(name, func(t *testing.T) {
			m := even()
			m.Policy.PermitRelease = release
			r := fitOf(t, recording(t, m))
			if r.Report.Law != fit.LawSharing {
				t.Errorf("law %q", r.Report.Law)
			}
			if r.Report.Misfit > 0.02 || r.Report.Misfit > r.Report.MisfitIndependent/2 {
				t.Errorf("the law leaves a spread of %.4f, no law %.4f", r.Report.Misfit,
					r.Report.MisfitIndependent)
			}
			for stage, tolerance := range map[string]float64{
				trace.StageProveStart: 0.05,
				trace.StageBG2:        0.1, trace.StageSynthesis: 0.1,
			} {
				want := solo(m, stage)[0]
				got := solo(r.Fitted, stage)
				slices.Sort(got)
				if e := got[len(got)/2]/want - 1; math.Abs(e) > tolerance {
					t.Errorf("%s: solo time %+.1f %% off", stage, 100*e)
				}
			}
		})
	}
}

func TestFrozenKeepsRecordedTimes(t *testing.T) {
	d := recording(t, pipeline.Example())
	r := fitOf(t, d)
	want := map[[2]int64]float64{}
	for _, s := range d.Spans {
		if s.Stage == trace.StageProveStart {
			want[[2]int64{s.Job, s.Partition}] = float64(s.EndNS - s.BeginNS)
		}
	}
	for _, p := range r.Frozen.Partitions {
		for _, piece := range p.Pieces {
			if piece.Stage == trace.StageProveStart &&
				piece.SoloNS != want[[2]int64{p.Job, p.Partition}] {
				t.Errorf("job %d partition %d: %v, recorded %v", p.Job, p.Partition, piece.SoloNS,
					want[[2]int64{p.Job, p.Partition}])
			}
		}
	}
	if len(r.Frozen.Partitions) != 16 || r.Report.Left != 0 {
		t.Errorf("pool of %d, %d left out", len(r.Frozen.Partitions), r.Report.Left)
	}
}

func TestWhatTheModelTakesFromTheTrace(t *testing.T) {
	m := pipeline.Example()
	r := fitOf(t, recording(t, m))
	got := &r.Fitted.Machine
	if got.LockCapacity != 1 || got.CPUs != 2 || got.TurnaroundNS != m.Machine.TurnaroundNS {
		t.Errorf("machine: %+v", got)
	}
	if r.Fitted.Policy != m.Policy {
		t.Errorf("policy %+v, recorded %+v", r.Fitted.Policy, m.Policy)
	}
	p := &r.Fitted.Partitions[0]
	if p.SettledBytes != 4<<20 || p.EarlyBytes != 3<<20 || len(p.EarlyFree) != 3 {
		t.Errorf("settled %d, early %d, buffers freed early %v", p.SettledBytes, p.EarlyBytes,
			p.EarlyFree)
	}
	if n := len(r.Fitted.Memory.Resident); n != 2 {
		t.Errorf("%d resident buffers, recorded key and system", n)
	}
}

func TestRemainder(t *testing.T) {
	const mib = 1 << 20
	base := int64(11 * mib)
	for name, c := range map[string]struct {
		change func(*trace.Manifest)
		law    string
		base   int64
	}{
		"measured": {func(*trace.Manifest) {}, pipeline.LawScratchHighWater, base},
		"base not measured": {func(m *trace.Manifest) {
			m.BaseBytes = nil
			m.PeakRSS.Bytes += 3 * mib
		}, pipeline.LawScratchHighWater, base + 3*mib},
		"collector on": {func(m *trace.Manifest) {
			m.Settings["gogc"] = trace.Setting{Value: "100", Source: "flag"}
			m.PeakRSS.Bytes *= 2
		}, pipeline.LawProportional, base},
	} {
		t.Run(name, func(t *testing.T) {
			d := recording(t, pipeline.Example())
			c.change(&d.Manifest)
			r := fitOf(t, d)
			if got := r.Fitted.Memory; got.Law != c.law || got.BaseBytes != c.base {
				t.Errorf("law %q with base %d, want %q with %d", got.Law, got.BaseBytes, c.law,
					c.base)
			}
			s, err := sim.New(r.Frozen)
			if err != nil {
				t.Fatal(err)
			}
			st, err := s.Run(sim.Draw{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := st.PeakRSSBytes(&r.Frozen.Memory), d.Manifest.PeakRSS.Bytes; math.Abs(float64(got-want)) > 1 {
				t.Errorf("peak RSS %d, recorded %d", got, want)
			}
		})
	}
	d := recording(t, pipeline.Example())
	d.Manifest.BaseBytes, d.Manifest.PeakRSS, d.Samples = nil, nil, nil
	if r := fitOf(t, d); r.Fitted.Memory.Law != pipeline.LawNone {
		t.Errorf("law %q for a trace that knows nothing of RSS", r.Fitted.Memory.Law)
	}
}

func TestIncompletePartitionsAreLeftOut(t *testing.T) {
	d := recording(t, pipeline.Example())
	for i := range d.Spans {
		s := &d.Spans[i]
		if s.Stage == trace.StageBG2 && s.Job == 1 && s.Partition == 2 {
			s.EndNS, s.EndSeq = trace.Null, trace.Null // killed in it
		}
	}
	r := fitOf(t, d)
	if len(r.Fitted.Partitions) != 15 || r.Report.Left != 1 {
		t.Errorf("pool of %d, %d left out", len(r.Fitted.Partitions), r.Report.Left)
	}
	if len(r.Report.Warnings) == 0 || !strings.Contains(r.Report.Warnings[0],
		"1 of 16 partitions") {
		t.Errorf("warnings %q", r.Report.Warnings)
	}
}

func TestTooFew(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions = 1, 1
	r := fitOf(t, recording(t, m))
	var few *fit.TooFewError
	if r.Fitted != nil || !errors.As(r.Report.TooFew, &few) || few.Need-few.Have != 2 {
		t.Errorf("fitted from one partition: %v, %v", r.Fitted != nil, r.Report.TooFew)
	}
	if _, err := fit.Fit(&trace.Data{}); err == nil || !strings.Contains(err.Error(), "no job") {
		t.Errorf("an empty trace: %v", err)
	}
}

func TestUnsaidSettingsAreTakenFromTheResources(t *testing.T) {
	m := pipeline.Example()
	m.Policy.ChannelCapacity, m.Policy.PartitionWorkers = 3, 4
	d := recording(t, m)
	d.Manifest.Settings = nil
	r := fitOf(t, d)
	p := r.Fitted.Policy
	if p.ChannelCapacity != 3 || p.PartitionWorkers != 4 || p.Jobs != 4 || p.Partitions != 4 {
		t.Errorf("policy %+v", p)
	}
	if !strings.Contains(strings.Join(r.Report.Warnings, "\n"), "does not say permit_release") {
		t.Errorf("warnings %q do not tell that permit_release is a guess", r.Report.Warnings)
	}
}

// FuzzFit gives traces that a person, or damage, has changed: an error or a model that runs, never
// a panic.
func FuzzFit(f *testing.F) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions = 1, 3
	f.Add(trace.FormatText(recording(f, m)))
	m.Policy.SplitProving, m.Policy.EarlyFree = false, false
	f.Add(trace.FormatText(recording(f, m)))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := trace.ParseText(text)
		if err != nil {
			return
		}
		r, err := fit.Fit(d, d)
		if err != nil {
			return
		}
		fit.Backlog(d)
		fit.OtherCores(d)
		for _, m := range append([]*pipeline.Model{r.Frozen, r.Fitted}, r.Variants...) {
			if m == nil || m.Policy.Jobs*m.Policy.Partitions > 1000 {
				continue
			}
			s, err := sim.New(m)
			if err != nil {
				t.Fatalf("a fitted model does not compile: %v", err)
			}
			if _, err := s.Run(sim.Draw{Bootstrap: true}); err != nil {
				t.Fatalf("a fitted model does not run: %v", err)
			}
		}
	})
}
