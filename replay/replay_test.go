package replay_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"highwater/internal/units"
	"highwater/replay"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// source is a trace of the example under the incident's policy, simulated.
func source(t testing.TB, set map[string]string) *trace.Trace {
	t.Helper()
	m, err := pipeline.Example().Apply(set)
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := sim.Record(m, sim.Draw{Seed: 42, Bootstrap: true})
	if err != nil {
		t.Fatal(err)
	}
	data.Manifest.Host.CPUs = 2
	data.Manifest.Settings["gogc"] = trace.Setting{Value: "off", Source: "default"}
	return trace.FromData(data)
}

var pileUp = map[string]string{"permit_release": "synth_end"}

func predict(t testing.TB, tr *trace.Trace, opts replay.Options) *replay.Prediction {
	t.Helper()
	p, err := replay.Run(context.Background(), tr, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// within fails unless got is within share of want.
func within(t testing.TB, what string, got, want *int64, share float64) {
	t.Helper()
	if got == nil || want == nil {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
	if e := float64(*got)/float64(*want) - 1; math.Abs(e) > share {
		t.Errorf("%s: %d, recorded %d: %+.2f %%", what, *got, *want, 100*e)
	}
}

func TestIdentity(t *testing.T) {
	for name, set := range map[string]map[string]string{
		"pile-up":       pileUp,
		"held":          {},
		"rendezvous":    {"channel_capacity": "0", "permit_release": "gpu_pickup"},
		"no early free": {"early_free": "false"},
		"not split": {
			"split_proving": "false", "permit_release": "freed",
			"partition_workers": "3",
		},
		"two GPU workers":   {"gpu_workers": "2", "channel_capacity": "unbounded"},
		"budget and order":  {"byte_budget": "20MiB", "queue_order": "priority"},
		"one job in flight": {"jobs_in_flight": "1", "jobs": "6"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := source(t, set)
			frozen := predict(t, tr, replay.Options{Durations: replay.DurationsRecorded})
			within(t, "frozen makespan", frozen.MakespanNS, frozen.Recorded.MakespanNS, 0.001)
			within(t, "frozen peak live", frozen.PeakLiveBytes, frozen.Recorded.PeakLiveBytes,
				0.001)
			within(t, "frozen peak RSS", frozen.PeakRSSBytes, frozen.Recorded.PeakRSSBytes, 0.001)
			if e := *frozen.Rho / *frozen.Recorded.Rho; math.Abs(e-1) > 0.001 {
				t.Errorf("frozen rho %v, recorded %v", *frozen.Rho, *frozen.Recorded.Rho)
			}
			fitted := predict(t, tr, replay.Options{})
			within(t, "fitted makespan", fitted.MakespanNS, fitted.Recorded.MakespanNS, 0.05)
			const partition = 4 << 20
			d := *fitted.PeakLiveBytes - *fitted.Recorded.PeakLiveBytes
			if math.Abs(float64(d)) > partition {
				t.Errorf("fitted peak live %d, recorded %d", *fitted.PeakLiveBytes,
					*fitted.Recorded.PeakLiveBytes)
			}
		})
	}
}

func TestOtherSettingsArePredicted(t *testing.T) {
	for name, set := range map[string]map[string]string{
		"hold the permit": {"permit_release": "send_accepted"},
		"bigger channel":  {"permit_release": "send_accepted", "channel_capacity": "2"},
		"free late":       {"early_free": "false"},
		"not split":       {"split_proving": "false"},
		"more jobs":       {"jobs": "8", "permit_release": "send_accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			truth := source(t, merge(pileUp, set))
			p := predict(t, source(t, pileUp), replay.Options{Set: set})
			want := predict(t, truth, replay.Options{Durations: replay.DurationsRecorded}).Recorded
			within(t, "makespan", p.MakespanNS, want.MakespanNS, 0.05)
			const partition = 4 << 20
			if d := *p.PeakLiveBytes - *want.PeakLiveBytes; math.Abs(float64(d)) > max(partition,
				0.03*float64(*want.PeakLiveBytes)) {
				t.Errorf("peak live %d, in truth %d", *p.PeakLiveBytes, *want.PeakLiveBytes)
			}
			within(t, "peak RSS", p.PeakRSSBytes, want.PeakRSSBytes, 0.05)
		})
	}
}

func merge(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func TestSimulatedTraceSaysWhatThePredictionSays(t *testing.T) {
	dir := t.TempDir() + "/out.hw"
	p := predict(t, source(t, pileUp),
		replay.Options{
			Set: map[string]string{"permit_release": "send_accepted"}, Seed: 7,
			Out: dir,
		})
	out, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	again := predict(t, out, replay.Options{Durations: replay.DurationsRecorded})
	within(t, "peak RSS of the simulated trace", again.Recorded.PeakRSSBytes, p.PeakRSSBytes, 0)
	m := out.Manifest
	if m.Origin != trace.OriginSimulated || m.Anchor.Kind != trace.AnchorVirtual || m.Seed != 7 {
		t.Errorf("manifest: origin %q, anchor %q, seed %d", m.Origin, m.Anchor.Kind, m.Seed)
	}
	if s := m.Settings["permit_release"]; s.Source != "set" || s.Value != "send_accepted" {
		t.Errorf("permit_release: %+v", s)
	}
	if s := m.Settings["partition_workers"]; s.Source != "trace" {
		t.Errorf("partition_workers: %+v", s)
	}
}

func TestSameSeedSamePrediction(t *testing.T) {
	text := func(seed uint64) string {
		b, err := json.Marshal(predict(t, source(t, pileUp), replay.Options{Seed: seed}))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if first, second := text(1), text(1); first != second {
		t.Error("two predictions with one seed differ")
	}
	if text(1) == text(2) {
		t.Error("two seeds give the same prediction to the last digit")
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		opts replay.Options
		want string
	}{
		"not to be varied": {
			replay.Options{Set: map[string]string{"log_size": "20"}},
			"replay cannot vary it",
		},
		"unknown": {
			replay.Options{Set: map[string]string{"partition_worker": "3"}},
			"partition_workers",
		},
		"impossible": {
			replay.Options{Set: map[string]string{"byte_budget": "1MiB"}},
			"it could never start",
		},
		"too large": {replay.Options{Set: map[string]string{
			"jobs":       "1000000",
			"partitions": "60000",
		}}, "more than the"},
		"durations": {replay.Options{Durations: "frozen"}, `"frozen" is neither`},
		"draws":     {replay.Options{Draws: -1}, "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := replay.Run(context.Background(), source(t, pileUp), c.opts)
			if err == nil || strings.Count(err.Error(), c.want) != 1 {
				t.Errorf("got %v, want an error that says %q once", err, c.want)
			}
		})
	}
}

func TestTooFewPartitions(t *testing.T) {
	tr := source(t, map[string]string{"jobs": "1", "partitions": "2"})
	_, err := replay.Run(context.Background(), tr, replay.Options{})
	if err == nil || !strings.Contains(err.Error(), "record 1 more") {
		t.Errorf("got %v, want an error that says how many more are needed", err)
	}
	predict(t, tr, replay.Options{Durations: replay.DurationsRecorded})
}

func TestLimit(t *testing.T) {
	tr := source(t, pileUp)
	p := predict(t, tr, replay.Options{MemoryLimit: 1})
	if *p.PeakOverLimitRatio != 1 {
		t.Errorf("over a limit of 1 byte in %v of the draws", *p.PeakOverLimitRatio)
	}
	p = predict(t, tr, replay.Options{MemoryLimit: 1 << 40})
	if *p.PeakOverLimitRatio != 0 {
		t.Errorf("over a limit of 1 TiB in %v of the draws", *p.PeakOverLimitRatio)
	}
}

// Jobs beyond those recorded arrive as those did, not with the first of them again.
func TestMoreJobsThanRecordedArriveLater(t *testing.T) {
	open := map[string]string{"arrival_interval_ns": "3000000000"}
	truth := predict(t, source(t, merge(open, map[string]string{"jobs": "8"})),
		replay.Options{Durations: replay.DurationsRecorded}).Recorded
	p := predict(t, source(t, open), replay.Options{Set: map[string]string{"jobs": "8"}})
	within(t, "makespan", p.MakespanNS, truth.MakespanNS, 0.03)
	within(t, "peak live", p.PeakLiveBytes, truth.PeakLiveBytes, 0.01)
	if g := p.Growth; g == nil || g.BytesPerSLow > 0 {
		t.Errorf("a machine that keeps up grows by %+v", g)
	}
}

// noisy is source with every second sample of RSS off by bytes, the others by as much the other
// way.
func noisy(t testing.TB, bytes float64) *trace.Trace {
	t.Helper()
	data, err := source(t, pileUp).Load()
	if err != nil {
		t.Fatal(err)
	}
	for i := range data.Samples {
		data.Samples[i].Value += bytes
		bytes = -bytes
	}
	return trace.FromData(data)
}

// RSS that went off its law in the recording may do so again.
func TestBoundsOfRSSHoldTheErrorOfItsLaw(t *testing.T) {
	const off = 10 << 20
	exact := predict(t, source(t, pileUp), replay.Options{})
	p := predict(t, noisy(t, off), replay.Options{MemoryLimit: 1})
	if e := *p.Law.RemainderErrorBytes; math.Abs(float64(e)-off) > off/5 {
		t.Errorf("the law's error is %d bytes, the samples were off by %d", e, off)
	}
	if e := units.Bytes(*p.Law.RemainderErrorBytes); !strings.Contains(p.Law.Text, e) {
		t.Errorf("the law's text %q does not say that it is off by %s", p.Law.Text, e)
	}
	if low := *exact.PeakRSSBytesLow - *p.PeakRSSBytesLow; low < off*2/3 {
		t.Errorf("the lower bound went down by %d bytes only", low)
	}
	if high := *p.PeakRSSBytesHigh - *exact.PeakRSSBytesHigh; high < off*2/3 {
		t.Errorf("the upper bound went up by %d bytes only", high)
	}
	if *p.PeakRSSBytes != *exact.PeakRSSBytes {
		t.Errorf("the median moved from %d to %d", *exact.PeakRSSBytes, *p.PeakRSSBytes)
	}
	limit := *exact.PeakRSSBytesHigh + off/2 // above every draw, but for the error
	p = predict(t, noisy(t, off), replay.Options{MemoryLimit: limit})
	if r := *p.PeakOverLimitRatio; r <= 0 || r >= 0.5 {
		t.Errorf("over a limit within the law's error in %v of the draws", r)
	}
}

// What the recorded settings give does not depend on which others are asked about.
func TestIdentityDoesNotDependOnWhatWasAsked(t *testing.T) {
	tr := fixture(t, "pile-15")
	alone := predict(t, tr, replay.Options{}).Identity
	asked := predict(t, tr,
		replay.Options{Set: map[string]string{"permit_release": "send_accepted"}}).Identity
	if *alone.MakespanErrorRatio != *asked.MakespanErrorRatio ||
		*alone.PeakLiveErrorRatio != *asked.PeakLiveErrorRatio ||
		*alone.PeakRSSErrorRatio != *asked.PeakRSSErrorRatio {
		t.Errorf("identity %+v alone, %+v beside another setting", *alone, *asked)
	}
	if !alone.PeakRSSCalibrated {
		t.Error("the error of RSS is not said to be calibrated")
	}
}

func TestOutsideTheSupportIsSaid(t *testing.T) {
	tr := source(t, merge(pileUp, map[string]string{"jobs": "12", "partition_workers": "3"}))
	verdict := func(workers, release string) *replay.Prediction {
		return predict(t, tr, replay.Options{Draws: 20, Set: map[string]string{
			"partition_workers": workers, "permit_release": release,
		}})
	}
	for workers, want := range map[string]string{
		"3":  replay.SupportInside,
		"4":  replay.SupportInside, // at most half as many again
		"12": replay.SupportOutside,
	} {
		p := verdict(workers, "synth_end")
		said := strings.Contains(strings.Join(p.Warnings, "\n"), "outside what the traces support")
		if p.Support.Verdict != want || said != (want == replay.SupportOutside) {
			t.Errorf("%s workers from a trace of 3: %+v, warnings %q", workers, p.Support, p.Warnings)
		}
	}
	if p := verdict("12", "synth_end"); len(p.Support.Stages) == 0 ||
		p.Support.Stages[len(p.Support.Stages)-1].Seen != 48 {
		t.Errorf("stages %+v, recorded 48 services of each", p.Support.Stages)
	}
}

func TestTooFewServicesAreCounted(t *testing.T) {
	p := predict(t, source(t, pileUp), replay.Options{})
	text := strings.Join(p.Support.Reasons, "\n")
	if p.Support.Verdict != replay.SupportOutside || !strings.Contains(text, "record 4 more partitions") {
		t.Errorf("16 services of each stage: %+v", p.Support)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := replay.Run(ctx, source(t, pileUp), replay.Options{}); err == nil {
		t.Error("a cancelled replay gives a prediction")
	}
}

func TestProgressIsTold(t *testing.T) {
	var last, total int
	predict(t, source(t, pileUp), replay.Options{Draws: 9, Progress: func(done, of int) {
		last, total = done, of
	}})
	if last != 9 || total != 9 {
		t.Errorf("progress ended at %d of %d, want 9 of 9", last, total)
	}
}

// The figures of a prediction are ordered and whole numbers of jobs, whatever the settings.
func TestPredictionsAreConsistent(t *testing.T) {
	tr := source(t, pileUp)
	rapid.Check(t, func(rt *rapid.T) {
		set := map[string]string{
			"partition_workers": rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt,
				"partition_workers"),
			"channel_capacity": rapid.SampledFrom([]string{"0", "1", "4", "unbounded"}).Draw(rt,
				"channel_capacity"),
			"permit_release": rapid.SampledFrom([]string{
				"synth_end", "send_accepted",
				"gpu_pickup", "freed",
			}).Draw(rt, "permit_release"),
			"early_free": rapid.SampledFrom([]string{"true", "false"}).Draw(rt, "early_free"),
		}
		p, err := replay.Run(context.Background(), tr,
			replay.Options{Set: set, Draws: 9, Seed: rapid.Uint64().Draw(rt, "seed")})
		if err != nil {
			rt.Fatal(err)
		}
		ordered := func(what string, low, mid, high *int64) {
			if *low > *mid || *mid > *high {
				rt.Errorf("%s: %d, %d, %d are not in order", what, *low, *mid, *high)
			}
		}
		ordered("peak RSS", p.PeakRSSBytesLow, p.PeakRSSBytes, p.PeakRSSBytesHigh)
		ordered("peak live", p.PeakLiveBytesLow, p.PeakLiveBytes, p.PeakLiveBytesHigh)
		ordered("makespan", p.MakespanNSLow, p.MakespanNS, p.MakespanNSHigh)
		if *p.PeakRSSBytes < *p.PeakLiveBytes {
			rt.Errorf("peak RSS %d below the live bytes %d, all of which are resident here",
				*p.PeakRSSBytes, *p.PeakLiveBytes)
		}
	})
}
