package replay_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/replay"
	"highwater/tracer/trace"
)

// gpuSettled is what a partition of the GPU fixtures settles at: a, b, c and W at 2^22. Those at
// other sizes hold the narrower bar.
const gpuSettled = 4 * 32 << 22

// TestIdentityOfGPURuns holds the bars of docs/bench/validation.md on the runs of docs/bench/gpu.md.
func TestIdentityOfGPURuns(t *testing.T) {
	dirs, err := filepath.Glob("testdata/gpu/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no GPU fixtures: %v", err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			tr := fixture(t, "gpu/"+name)
			p := predict(t, tr, replay.Options{Durations: replay.DurationsRecorded})
			within(t, "frozen makespan", p.MakespanNS, p.Recorded.MakespanNS, 0.01)
			within(t, "frozen peak live", p.PeakLiveBytes, p.Recorded.PeakLiveBytes, 0.01)
			within(t, "frozen peak RSS", p.PeakRSSBytes, p.Recorded.PeakRSSBytes, 0.02)
			if name == "mimc-24" {
				return // one partition: too few to fit to, see TestTooFewPartitions
			}
			p = predict(t, tr, replay.Options{Seed: 1})
			within(t, "fitted makespan", p.MakespanNS, p.Recorded.MakespanNS, 0.05)
			live := float64(*p.Recorded.PeakLiveBytes)
			settled := 0.0
			if !strings.HasSuffix(name, "-20") {
				settled = gpuSettled
			}
			within(t, "fitted peak live", p.PeakLiveBytes, p.Recorded.PeakLiveBytes,
				math.Max(0.03, settled/live))
			within(t, "fitted peak RSS", p.PeakRSSBytes, p.Recorded.PeakRSSBytes, 0.05)
		})
	}
}

// The runs around rho = 1 predict each other: bounds hold what was measured, no unsafe limit is called
// safe.
func TestGPURunsAroundRhoOne(t *testing.T) {
	var runs []replay.NamedTrace
	for _, name := range []string{"rho-8", "rho-13", "rho-16"} {
		runs = append(runs, replay.NamedTrace{Name: name, Trace: fixture(t, "gpu/"+name)})
	}
	for _, on := range [][]string{{"rho-8", "rho-16"}, {"rho-13"}} {
		v, err := replay.Validate(context.Background(), runs, replay.ValidateOptions{FitOn: on})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range v.Limits {
			if r.Unsafe && r.Safe > 0 {
				t.Errorf("fitted to %v: %d runs are called safe at %g times their peak", on, r.Safe, r.LimitRatio)
			}
		}
		for i := range v.Cases {
			c := &v.Cases[i]
			for what, x := range map[string]*replay.Compared{
				"peak live": c.PeakLive, "peak RSS": c.PeakRSS, "proof interval": c.ProofInterval,
			} {
				if x == nil || x.Within == nil || !*x.Within {
					t.Errorf("fitted to %v: the bounds of %s do not hold its %s: %+v", on, c.Trace, what, x)
				}
			}
		}
	}
}

// TestRhoIsThatOfThePeriod: in the runs of one GPU worker around rho = 1, what it takes from one
// receive to the next while partitions wait is what rho counts, of the recording and of its replay.
func TestRhoIsThatOfThePeriod(t *testing.T) {
	for _, name := range []string{"rho-8", "rho-13", "rho-16"} {
		t.Run(name, func(t *testing.T) {
			tr := fixture(t, "gpu/"+name)
			s, err := analyze.Summarise(tr)
			if err != nil {
				t.Fatal(err)
			}
			period := receivePeriod(t, tr)
			if g := float64(s.RhoInputs.GPUNS); math.Abs(g/period-1) > 0.02 {
				t.Errorf("rho counts %.1f ms a partition, from receive to receive it is %.1f ms", g/1e6, period/1e6)
			}
			p := predict(t, tr, replay.Options{Seed: 1})
			if e := *p.Rho / *s.Rho; math.Abs(e-1) > 0.05 {
				t.Errorf("rho is predicted as %.2f, recorded %.2f", *p.Rho, *s.Rho)
			}
		})
	}
}

// receivePeriod is the mean time from one receive to the next where the next partition had been sent
// before the earlier receive: the worker then did not wait for it.
func receivePeriod(t *testing.T, tr *trace.Trace) float64 {
	t.Helper()
	data, err := tr.Load()
	if err != nil {
		t.Fatal(err)
	}
	sent := map[[2]int64]int64{}
	last, sum, n := int64(-1), 0.0, 0
	for _, q := range data.Queues {
		key := [2]int64{q.Job, q.Partition}
		switch q.Event {
		case trace.EventSend:
			sent[key] = q.TimeNS
		case trace.EventRecv:
			if last >= 0 && sent[key] < last {
				sum, n = sum+float64(q.TimeNS-last), n+1
			}
			last = q.TimeNS
		}
	}
	if n < 5 {
		t.Fatalf("%d partitions waited for the worker: too few for a mean", n)
	}
	return sum / float64(n)
}
