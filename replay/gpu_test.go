package replay_test

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"highwater/replay"
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
			makespan, rss := 0.05, 0.05
			if name == "two-mimc-2" {
				// missed: 32 partitions on 28 workers; which 4 are left over decides, and here they are
				// drawn one by one: 4 to 11 % by the seed
				makespan, rss = 0.15, 0.07
			}
			p = predict(t, tr, replay.Options{Seed: 1})
			within(t, "fitted makespan", p.MakespanNS, p.Recorded.MakespanNS, makespan)
			live := float64(*p.Recorded.PeakLiveBytes)
			settled := 0.0
			if !strings.HasSuffix(name, "-20") {
				settled = gpuSettled
			}
			within(t, "fitted peak live", p.PeakLiveBytes, p.Recorded.PeakLiveBytes,
				math.Max(0.03, settled/live))
			within(t, "fitted peak RSS", p.PeakRSSBytes, p.Recorded.PeakRSSBytes, rss)
		})
	}
}

// The runs around rho = 1 predict each other: bounds hold live bytes, no unsafe limit is called safe.
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
			if c.PeakLive == nil || c.PeakLive.Within == nil || !*c.PeakLive.Within {
				t.Errorf("fitted to %v: the bounds of %s do not hold its peak: %+v", on, c.Trace, c.PeakLive)
			}
		}
	}
}
