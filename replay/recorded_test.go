package replay_test

import (
	"math"
	"path/filepath"
	"testing"

	"highwater/analyze"
	"highwater/replay"
	"highwater/tracer/trace"
)

// The fixtures are real runs of `highwater prove --circuit label --log-size 15 --jobs 4
// --partitions 4` on two quiet cores, with --permit-release synth_end (pile-15) and send_accepted
// (held-15); of their samples only RSS is kept.
func fixture(t testing.TB, name string) *trace.Trace {
	t.Helper()
	tr, err := trace.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

const settledBytes = 4 << 20 // of one of their partitions

func TestIdentityOfRealRuns(t *testing.T) {
	for _, name := range []string{"pile-15", "held-15"} {
		t.Run(name, func(t *testing.T) {
			p := predict(t, fixture(t, name), replay.Options{Durations: replay.DurationsRecorded})
			within(t, "frozen makespan", p.MakespanNS, p.Recorded.MakespanNS, 0.002)
			within(t, "frozen peak live", p.PeakLiveBytes, p.Recorded.PeakLiveBytes, 0.002)
			within(t, "frozen peak RSS", p.PeakRSSBytes, p.Recorded.PeakRSSBytes, 0.002)
			p = predict(t, fixture(t, name), replay.Options{})
			within(t, "fitted makespan", p.MakespanNS, p.Recorded.MakespanNS, 0.02)
			within(t, "fitted peak RSS", p.PeakRSSBytes, p.Recorded.PeakRSSBytes, 0.03)
			live(t, p.PeakLiveBytes, p.Recorded.PeakLiveBytes)
			if e := *p.Law.RemainderErrorOf; math.Abs(e) > 0.05 {
				t.Errorf("the law of RSS is %+.1f %% off before it is moved", 100*e)
			}
		})
	}
}

// live fails beyond 3 % or one partition, whichever is more.
func live(t testing.TB, got, want *int64) {
	t.Helper()
	if d := math.Abs(float64(*got - *want)); d > max(settledBytes, 0.03*float64(*want)) {
		t.Errorf("peak live %d, recorded %d", *got, *want)
	}
}

func TestRealRunsPredictEachOther(t *testing.T) {
	for _, c := range []struct{ from, to, release string }{
		{"pile-15", "held-15", "send_accepted"},
		{"held-15", "pile-15", "synth_end"},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			p := predict(t, fixture(t, c.from),
				replay.Options{Set: map[string]string{"permit_release": c.release}})
			truth := predict(t, fixture(t, c.to),
				replay.Options{Durations: replay.DurationsRecorded}).Recorded
			live(t, p.PeakLiveBytes, truth.PeakLiveBytes)
			within(t, "peak RSS", p.PeakRSSBytes, truth.PeakRSSBytes, 0.05)
			within(t, "proof interval", p.ProofIntervalNS, truth.ProofIntervalNS, 0.05)
		})
	}
}

func TestSimulatedTraceOfARealRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "held.hw")
	p := predict(t, fixture(t, "pile-15"),
		replay.Options{Set: map[string]string{"permit_release": "send_accepted"}, Out: dir})
	out, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	again := predict(t, out, replay.Options{Durations: replay.DurationsRecorded}).Recorded
	within(t, "peak RSS of the simulated trace", again.PeakRSSBytes, p.PeakRSSBytes, 0)
	base, from := out.Manifest.BaseBytes, fixture(t, "pile-15").Manifest.BaseBytes
	if base == nil || *base != *from {
		t.Errorf("base_bytes %v, measured as %d", base, *from)
	}
	if c := out.Manifest.Fit["calibrated_base_bytes"]; c != float64(*p.Law.RemainderBytes) {
		t.Errorf("calibrated base %v, want %d", c, *p.Law.RemainderBytes)
	}
	s, err := analyze.Summarise(out)
	if err != nil {
		t.Fatal(err)
	}
	if s.Setup != (analyze.SetupPeaks{}) {
		t.Errorf("a simulated trace has no set-up, but says %+v", s.Setup)
	}
	if d := out.Manifest.DerivedFrom; len(d) != 1 || len(d[0].SHA256) != 64 {
		t.Errorf("derived from %+v", d)
	}
}

// BenchmarkReplays is whole predictions: reading, fitting and 200 draws of 16 partitions, with the
// identity check.
func BenchmarkReplays(b *testing.B) {
	tr := fixture(b, "pile-15")
	for b.Loop() {
		predict(b, tr, replay.Options{Set: map[string]string{"permit_release": "send_accepted"}})
	}
}
