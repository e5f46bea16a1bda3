package replay_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"highwater/replay"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// truth is a machine whose laws are known, from which runs are recorded by simulation: what they
// came to is then known to follow from their settings and from luck alone.
type truth struct {
	name  string
	model *pipeline.Model
	cpus  int
	gpu   bool
	// spread of single services, of a stage's mean between runs, of RSS between runs
	service, run, rss float64
	// spread of the CPU's speed between runs, which the runs' samples tell
	speed float64
	// rho is near 1 for some settings: the peak of a single run is luck, and only the bounds are
	// held to a bar
	near bool
}

// cores is two cores shared by all stages, rho far above 1.
func cores() truth {
	return truth{
		name: "cores", model: pipeline.Example(), cpus: 2, service: 0.12, run: 0.01, rss: 0.015,
	}
}

// device proves on a device of its own, which synthesis does not slow: rho crosses 1 where
// partition_workers does 3.
func device() truth {
	m := pipeline.Example()
	for i := range m.Stages {
		if m.Stages[i].Name == trace.StageProveStart || m.Stages[i].Name == trace.StageBG2 {
			m.Stages[i].Parallelism, m.Stages[i].Weight = 0, 0
		}
	}
	for i := range m.Partitions {
		pieces := append([]pipeline.Piece(nil), m.Partitions[i].Pieces...)
		for k := range pieces {
			switch pieces[k].Stage {
			case trace.StageSynthesis:
				pieces[k].SoloNS = 90e6
			case trace.StageProveStart:
				pieces[k].SoloNS = 30e6
			}
		}
		m.Partitions[i].Pieces = pieces
	}
	m.Machine.CPUs = 16
	return truth{
		name: "device", model: m, cpus: 16, gpu: true, service: 0.12, run: 0.01, rss: 0.015, near: true,
	}
}

// drifting is cores on a host whose CPUs are sometimes slower.
func drifting() truth {
	w := cores()
	w.name, w.speed = "drifting", 0.1
	return w
}

// record is one run of the truth under settings, with luck of its own.
func (w *truth) record(t testing.TB, set map[string]string, seed uint64) *trace.Trace {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed*0x9e3779b97f4a7c15, seed^0xbf58476d1ce4e5b9))
	m, err := w.model.Apply(set)
	if err != nil {
		t.Fatal(err)
	}
	mean := map[string]float64{}
	for _, s := range m.Stages {
		mean[s.Name] = math.Exp(w.run * rng.NormFloat64())
	}
	slow := 1.0
	if w.speed > 0 {
		slow = math.Exp(w.speed * rng.NormFloat64())
	}
	var pool []pipeline.Partition
	for i := range m.Policy.Jobs * m.Policy.Partitions {
		p := w.model.Partitions[i%int64(len(w.model.Partitions))]
		p.Job, p.Partition = i/m.Policy.Partitions, i%m.Policy.Partitions
		pieces := append([]pipeline.Piece(nil), p.Pieces...)
		for k := range pieces {
			if f := mean[pieces[k].Stage]; f > 0 {
				pieces[k].SoloNS *= slow * f * math.Exp(w.service*rng.NormFloat64())
			}
		}
		p.Pieces = pieces
		pool = append(pool, p)
	}
	m.Partitions = pool
	data, stats, err := sim.Record(m, sim.Draw{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	man := &data.Manifest
	man.Host.CPUs = w.cpus
	if w.gpu {
		man.Host.GPUs = []string{"known law"}
	}
	man.Settings["gogc"] = trace.Setting{Value: "off", Source: "default"}
	off := 1 + w.rss*rng.NormFloat64()
	man.PeakRSS = &trace.PeakRSS{
		Bytes:  int64(off * float64(stats.PeakRSSBytes(&m.Memory))),
		Source: "vmhwm",
	}
	for i := range data.Samples {
		data.Samples[i].Value *= off * (1 - 0.02*rng.Float64())
	}
	if w.speed > 0 {
		pace(data, 9000*slow, rng)
	}
	return trace.FromData(data)
}

// pace adds what a probe of the CPU's pace would have sampled, in ns.
func pace(d *trace.Data, ns float64, rng *rand.Rand) {
	end := d.Samples[len(d.Samples)-1].TimeNS
	for i := range int64(100) {
		d.Samples = append(d.Samples, trace.Sample{
			TimeNS: i * end / 100, Source: "simulator", Metric: "system.cpu.pace",
			Value: ns * math.Exp(0.05*rng.NormFloat64()),
		})
	}
}

// hypercube is n settings, each range cut into n parts of which each is taken once.
func hypercube(n int, workers int64, seed uint64) []map[string]string {
	rng := rand.New(rand.NewPCG(seed, 11))
	column := func() []float64 {
		out := make([]float64, n)
		for i, place := range rng.Perm(n) {
			out[i] = (float64(place) + rng.Float64()) / float64(n)
		}
		return out
	}
	pick := func(words []string, place float64) string {
		return words[int(place*float64(len(words)))]
	}
	w, c, r, e, b := column(), column(), column(), column(), column()
	var out []map[string]string
	for i := range n {
		budget := "unbounded"
		if b[i] > 0.5 {
			budget = fmt.Sprintf("%dMiB", 4*(2+int((b[i]-0.5)*14)))
		}
		out = append(out, map[string]string{
			"partition_workers": strconv.FormatInt(1+int64(w[i]*float64(workers)), 10),
			"channel_capacity":  pick([]string{"0", "1", "2", "4", "8", "unbounded"}, c[i]),
			"permit_release":    pick([]string{"synth_end", "send_accepted", "gpu_pickup", "freed"}, r[i]),
			"early_free":        pick([]string{"true", "false"}, e[i]),
			"byte_budget":       budget,
		})
	}
	return out
}

// The bars that real runs are held to (docs/validation.md), where nothing but luck is in the way.
func TestHeldOutSettingsOfAKnownLaw(t *testing.T) {
	for _, w := range []truth{cores(), device(), drifting()} {
		t.Run(w.name, func(t *testing.T) {
			long := map[string]string{"jobs": "10"}
			runs := []replay.NamedTrace{
				{Name: "fit-pile", Trace: w.record(t, merge(long, map[string]string{
					"partition_workers": "6", "permit_release": "synth_end",
				}), 1)},
				{Name: "fit-held", Trace: w.record(t, merge(long, map[string]string{
					"partition_workers": "1",
				}), 2)},
			}
			for i, set := range hypercube(48, 8, 5) {
				set["jobs"] = "6"
				runs = append(runs, replay.NamedTrace{
					Name: fmt.Sprintf("run-%d", i), Trace: w.record(t, set, uint64(100+i)),
				})
			}
			v, err := replay.Validate(context.Background(), runs, replay.ValidateOptions{
				FitOn: []string{"fit-*"}, Seed: 1, Draws: 80,
			})
			if err != nil {
				t.Fatal(err)
			}
			w.holds(t, v)
		})
	}
}

// holds fails where a bar is missed.
func (w *truth) holds(t *testing.T, v *replay.Validation) {
	t.Helper()
	h := v.HeldOut
	if h.Failed != 0 {
		t.Errorf("%d runs were not predicted", h.Failed)
	}
	bar := func(what string, is, most float64) {
		if is > most+1e-9 {
			t.Errorf("%s: %.3f, at most %.3f is wanted", what, is, most)
		}
	}
	bar("peak live outside its bounds", 1-*h.PeakLive.Within, 0.10)
	bar("peak RSS outside its bounds", 1-*h.PeakRSS.Within, 0.10)
	bar("proof interval outside its bounds", 1-*h.ProofInterval.Within, 0.10)
	bar("peak live, mean error", h.PeakLive.Mean, 0.03)
	bar("peak RSS, mean error", h.PeakRSS.Mean, 0.04)
	bar("proof interval, mean error", h.ProofInterval.Mean, 0.05)
	for i := range v.Cases {
		c := &v.Cases[i]
		if w.near || c.FittedOn {
			continue
		}
		bar(c.Trace+", error of peak RSS", math.Abs(*c.PeakRSS.ErrorRatio), 0.10)
		if d := c.PeakLive.Predicted - c.PeakLive.Measured; max(d, -d) > v.Groups[0].SettledBytes {
			bar(c.Trace+", error of peak live", math.Abs(*c.PeakLive.ErrorRatio), 0.08)
		}
	}
	asked, unknown := int64(0), int64(0)
	for _, r := range v.Limits {
		asked += r.Safe + r.NotSafe + r.Unknown
		unknown += r.Unknown
		if r.Unsafe && r.Safe > 0 {
			t.Errorf("%d runs were called safe at %g times their peak", r.Safe, r.LimitRatio)
		}
	}
	if 5*unknown > asked {
		t.Errorf("%d of %d limits are unknown", unknown, asked)
	}
}

func TestValidateRefuses(t *testing.T) {
	one := []replay.NamedTrace{{Name: "a.hw", Trace: source(t, pileUp)}}
	for name, c := range map[string]struct {
		opts replay.ValidateOptions
		want string
	}{
		"pattern":   {replay.ValidateOptions{FitOn: []string{"["}}, "syntax error"},
		"no match":  {replay.ValidateOptions{FitOn: []string{"b"}}, "none of the 1 traces"},
		"limit":     {replay.ValidateOptions{Limits: []float64{math.NaN()}}, "not a number above 0"},
		"durations": {replay.ValidateOptions{Durations: "x"}, "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := replay.Validate(context.Background(), one, c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
}

// A group whose runs are too short to fit to does not keep the others from being predicted.
func TestGroupsTooShortToFitAreTold(t *testing.T) {
	short := source(t, map[string]string{"jobs": "1", "partitions": "1"})
	short.Manifest.Settings["log_size"] = trace.Setting{Value: "20", Source: "flag"}
	runs := []replay.NamedTrace{{Name: "short.hw", Trace: short}, {Name: "a.hw", Trace: source(t, pileUp)}}
	v, err := replay.Validate(context.Background(), runs, replay.ValidateOptions{Draws: 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Cases) != 1 || len(v.Warnings) != 2 || !strings.Contains(v.Warnings[0], "record 2 more") ||
		!strings.Contains(v.Warnings[1], "none is held out") {
		t.Errorf("%d cases, warnings %q", len(v.Cases), v.Warnings)
	}
	if _, err = replay.Validate(context.Background(), runs[:1], replay.ValidateOptions{}); err == nil ||
		!strings.Contains(err.Error(), "nothing to predict: short.hw: ") {
		t.Errorf("got %v, want an error that says what is lacking", err)
	}
}

// Runs of other work do not predict each other.
func TestGroupsAreOfTheSameWork(t *testing.T) {
	other := source(t, pileUp)
	other.Manifest.Settings["log_size"] = trace.Setting{Value: "20", Source: "flag"}
	v, err := replay.Validate(context.Background(), []replay.NamedTrace{
		{Name: "a.hw", Trace: source(t, pileUp)}, {Name: "b.hw", Trace: source(t, nil)},
		{Name: "c.hw", Trace: other},
	}, replay.ValidateOptions{FitOn: []string{"a", "c"}, Draws: 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(v.Groups) != 2 || len(v.Cases) != 3 || v.HeldOut.Runs != 1 || v.Fitted.Runs != 2 {
		t.Errorf("%d groups, %d cases, %d held out", len(v.Groups), len(v.Cases), v.HeldOut.Runs)
	}
	if v.Cases[1].Set["permit_release"] != "send_accepted" || v.Cases[1].FittedOn {
		t.Errorf("the run that was predicted: %+v", v.Cases[1])
	}
}
