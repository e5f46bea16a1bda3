package whatif

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

func run(t *testing.T, m *pipeline.Model) sim.Stats {
	t.Helper()
	s, err := sim.New(m)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := s.Run(sim.Draw{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// small is the example with one partition at a time, so that peaks can be told by hand.
func small() *pipeline.Model {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions, m.Policy.PartitionWorkers = 1, 1, 1
	return m
}

func apply(t *testing.T, m *pipeline.Model, c Changes) *pipeline.Model {
	t.Helper()
	out, err := c.Apply(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestApplyLeavesTheModelAlone(t *testing.T) {
	m, same := pipeline.Example(), pipeline.Example()
	apply(t, m, Changes{
		Scale: map[string]float64{"synthesis": 0.5}, Buffer: map[string]float64{"a": 2, "key": 0.5},
		Free: []FreeAt{{"b", "prove_start"}}, GPUs: 2,
	})
	if d := cmp.Diff(same, m); d != "" {
		t.Error(d)
	}
}

func TestScale(t *testing.T) {
	m := small()
	before := run(t, m)
	after := run(t, apply(t, m, Changes{Scale: map[string]float64{"b_g2": 0.5}}))
	saved := before.MakespanNS - after.MakespanNS
	solo := 0.0
	for _, p := range m.Partitions {
		for _, piece := range p.Pieces {
			if piece.Stage == trace.StageBG2 && solo == 0 {
				solo = piece.SoloNS
			}
		}
	}
	// Drawn from a pool whose members differ by 10 %, alone on the machine.
	if saved < 0.5*0.89*solo || saved > 0.5*1.23*solo {
		t.Errorf("half of b_g2 saves %.0f ns of its %.0f", saved, solo)
	}
}

func TestBuffer(t *testing.T) {
	m := small()
	c := Changes{Buffer: map[string]float64{trace.ClassAux: 3, trace.ClassKey: 0.5}}
	changed := apply(t, m, c)
	const mib = 1 << 20
	p := changed.Partitions[0]
	if p.SettledBytes != 6*mib || p.EarlyBytes != 3*mib {
		t.Errorf("settles at %d, early %d", p.SettledBytes, p.EarlyBytes)
	}
	peak := run(t, changed).PeakLiveBytes - run(t, m).PeakLiveBytes
	if peak != (2-10)*mib { // aux is held at the peak, and the key all the time
		t.Errorf("the peak moves by %d bytes", peak)
	}
	// What a becomes (h) goes with it, also in the budget.
	p = apply(t, m, Changes{Buffer: map[string]float64{trace.ClassA: 0.5}}).Partitions[0]
	if p.SettledBytes != 7*mib/2 || p.EarlyBytes != 5*mib/2 {
		t.Errorf("with half of a it settles at %d, early %d", p.SettledBytes, p.EarlyBytes)
	}
}

// What jobs share, an SRS, is a buffer too, although no partition allocates it.
func TestBufferThatIsCached(t *testing.T) {
	m := small()
	m.Cached = []pipeline.Cached{{Class: "srs", Space: trace.SpacePinned, Bytes: 8 << 20, LoadBytes: 2 << 20}}
	changed := apply(t, m, Changes{Buffer: map[string]float64{"srs": 0.5}})
	if c := changed.Cached[0]; c.Bytes != 4<<20 || c.LoadBytes != 1<<20 || m.Cached[0].Bytes != 8<<20 {
		t.Errorf("half of it is %+v, the model's own %+v", c, m.Cached[0])
	}
	if d := run(t, changed).PeakLiveBytes - run(t, m).PeakLiveBytes; d != -4<<20 {
		t.Errorf("the peak moves by %d bytes", d)
	}
}

func TestFree(t *testing.T) {
	m := small()
	m.Policy.EarlyFree = false
	const mib = 1 << 20
	// b and c live to the end without early_free; b_g2 has the peak.
	changed := apply(t, m, Changes{Free: []FreeAt{{"b", "prove_start"}, {"c", "prove_start"}}})
	if d := run(t, changed).PeakLiveBytes - run(t, m).PeakLiveBytes; d != -2*mib {
		t.Errorf("freeing b and c early moves the peak by %d", d)
	}
	if got := changed.Partitions[0].EarlyFree; !cmp.Equal(got, []int{0}) {
		t.Errorf("early_free still places %v", got)
	}
}

func TestGPUs(t *testing.T) {
	m := pipeline.Example()
	for i := range m.Stages { // the device's stages alone: nothing else in the way
		m.Stages[i].Parallelism = 0
	}
	m.Policy.ChannelCapacity = pipeline.Unbounded
	one, two := run(t, m), run(t, apply(t, m, Changes{GPUs: 2}))
	if two.MakespanNS > 0.7*one.MakespanNS {
		t.Errorf("two devices take %.0f ns, one %.0f", two.MakespanNS, one.MakespanNS)
	}
}

func TestMemoryBandwidth(t *testing.T) {
	m := pipeline.Example()
	m.Machine.MemoryBandwidth = 10
	m.Stages[0].Pressure, m.Stages[0].Sensitivity = 3, 0.1
	out := apply(t, m, Changes{MemoryBandwidth: 1.5})
	if out.Machine.MemoryBandwidth != 15 || out.Stages[0].Pressure != 2 {
		t.Errorf("%g GB/s, pressure %g", out.Machine.MemoryBandwidth, out.Stages[0].Pressure)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		Changes
		want string
	}{
		"stage":     {Changes{Scale: map[string]float64{"synth": 1}}, "the trace has b_g2, finalise"},
		"class":     {Changes{Buffer: map[string]float64{"h": 1}}, "no buffer is allocated as this class; the trace has a, aux"},
		"no stage":  {Changes{Free: []FreeAt{{"a", "ntt"}}}, "no partition goes through that stage"},
		"not held":  {Changes{Free: []FreeAt{{"d_a", "synthesis"}}}, "no partition holds that class"},
		"in use":    {Changes{Free: []FreeAt{{"a", "synthesis"}}}, "still used in prove_start"},
		"no GPU":    {Changes{GPUs: -1}, "devices"},
		"bandwidth": {Changes{MemoryBandwidth: 1.5}, "memory bandwidth"},
	} {
		_, err := c.Apply(pipeline.Example())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	name, f, err := ParseFactor("synthesis=0.5")
	if name != "synthesis" || f != 0.5 || err != nil {
		t.Error(name, f, err)
	}
	for _, bad := range []string{"", "x", "=1", "x=", "x=0", "x=-1", "x=NaN", "x=1e9", "x=1,5"} {
		if _, _, err := ParseFactor(bad); err == nil {
			t.Errorf("%q is taken for a factor", bad)
		}
	}
	if at, err := ParseFree("a@b_g2"); err != nil || at != (FreeAt{"a", "b_g2"}) {
		t.Error(at, err)
	}
	for _, bad := range []string{"", "a", "a@", "@b"} {
		if _, err := ParseFree(bad); err == nil {
			t.Errorf("%q is taken for CLASS@STAGE", bad)
		}
	}
}

func TestText(t *testing.T) {
	c := Changes{
		Scale: map[string]float64{"b_g2": 0.5, "a": 2}, Buffer: map[string]float64{"c": 0.25},
		Free: []FreeAt{{"a", "x"}}, GPUs: 2, MemoryBandwidth: 1.5,
	}
	want := "--scale a=2 --scale b_g2=0.5 --buffer c=0.25 --free a@x --gpus 2 --memory-bandwidth 1.5"
	if c.Text() != want || c.None() || !(&Changes{}).None() {
		t.Error(c.Text())
	}
}
