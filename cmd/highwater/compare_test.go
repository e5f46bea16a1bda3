package main

import (
	"slices"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/analyze/memory"
	"highwater/replay"
	"highwater/tracer/trace"
)

const mib = int64(1 << 20)

func of[T any](v T) *T { return &v }

// demoFigures is a demo of three runs: peaks and remainders in MiB; a partition settles at 32 MiB.
type demoFigures struct {
	live, rss [3]int64 // pile-up, predicted, held
	remainder [2]float64
}

func (f demoFigures) compare(logSize int) *comparison {
	run := func(i int) *proveReport {
		return &proveReport{Summary: &analyze.Summary{
			PeakLiveBytes: of(f.live[i] * mib), PeakRSSBytes: of(f.rss[i] * mib), ProofIntervalNS: of(int64(9e9)), Rho: of(6.5),
			Circuit: &trace.Circuit{DomainSize: 1 << 18, Wires: 1 << 18},
		}}
	}
	analysis := func(i int) *analyze.Report {
		r := &memory.Remainder{OfPeakBytes: of(int64(f.remainder[i] * float64(mib))), OfPeakRatio: of(f.remainder[i])}
		return &analyze.Report{Attribution: &memory.Report{Remainder: r}}
	}
	return compareRuns(&demoReport{
		Pileup: run(0), Held: run(2), Analysis: analysis(0),
		Prediction: &replay.Prediction{PeakLiveBytes: of(f.live[1] * mib), PeakRSSBytes: of(f.rss[1] * mib), ProofIntervalNS: of(int64(9e9))},
	}, analysis(1), logSize)
}

func TestCompareRuns(t *testing.T) {
	good := demoFigures{live: [3]int64{700, 400, 400}, rss: [3]int64{750, 440, 440}, remainder: [2]float64{.06, .09}}
	for _, c := range []struct {
		name    string
		change  func(*demoFigures)
		logSize int
		misses  []string // the beginning of each
	}{
		{"as predicted", func(*demoFigures) {}, 18, nil},
		{"live off by one partition", func(f *demoFigures) { f.live[1] = 432 }, 18, nil},
		{"live off by more", func(f *demoFigures) { f.live[1] = 433 }, 18, []string{"peak live bytes are predicted +8.3 % off"}},
		{"live within 3 % of much", func(f *demoFigures) { f.live[1], f.live[2] = 4115, 4000 }, 18, nil},
		{"rss too low", func(f *demoFigures) { f.rss[1] = 400 }, 18, []string{"peak RSS is predicted -9.1 % off"}},
		{"remainder too large", func(f *demoFigures) { f.remainder[1] = .15 }, 18, []string{"RSS - ledger of the held run is 15.0 %"}},
		{"remainder of a small run", func(f *demoFigures) { f.remainder[0] = .8 }, 14, nil},
		{"everything", func(f *demoFigures) { f.live[1], f.rss[1], f.remainder[0] = 1, 1, 1 }, 18, []string{"peak live", "peak RSS", "RSS - ledger of the pile-up"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := good
			c.change(&f)
			got := f.compare(c.logSize)
			same := slices.EqualFunc(got.Misses, c.misses, strings.HasPrefix)
			if !same || got.Passed != (len(c.misses) == 0) {
				t.Errorf("passed %v, misses %q, want %q", got.Passed, got.Misses, c.misses)
			}
		})
	}
}

// TestCompareUnknown: what was not measured is no pass.
func TestCompareUnknown(t *testing.T) {
	r := &demoReport{Pileup: &proveReport{Summary: &analyze.Summary{}}, Held: &proveReport{Summary: &analyze.Summary{}},
		Analysis: &analyze.Report{}, Prediction: &replay.Prediction{}}
	c := compareRuns(r, &analyze.Report{}, 18)
	if c.Passed || len(c.Misses) != 4 || c.PeakLive.ErrorRatio != nil || c.PartitionSettledBytes != nil {
		t.Errorf("%+v", c)
	}
}
