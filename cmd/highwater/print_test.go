package main

import (
	"bytes"
	"testing"

	"highwater/replay"
)

// TestVerdictSaysForWhichRunItHolds: a run that is safe while a longer one would pass the limit is
// called safe for its length.
func TestVerdictSaysForWhichRunItHolds(t *testing.T) {
	limit, nine := int64(400<<20), int64(9)
	for name, c := range map[string]struct {
		over   float64
		growth *replay.Growth
		want   string
	}{
		"a longer run passes": {
			0.002, &replay.Growth{Jobs: 4, JobsToLimit: &nine},
			"  above 400.0 MiB  0.2 % of the draws: safe, for a run of 4 jobs\n",
		},
		"none does":      {0.002, &replay.Growth{Jobs: 4}, "  above 400.0 MiB  0.2 % of the draws: safe\n"},
		"growth unknown": {0.002, nil, "  above 400.0 MiB  0.2 % of the draws: safe\n"},
		"unsafe already": {
			0.25, &replay.Growth{Jobs: 4, JobsToLimit: &nine},
			"  above 400.0 MiB  25.0 % of the draws: unsafe\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &replay.Prediction{
				MemoryLimitBytes: &limit, PeakOverLimitRatio: &c.over, Growth: c.growth,
				Support: replay.Support{Verdict: replay.SupportInside}, Durations: replay.DurationsFitted,
			}
			var out bytes.Buffer
			if printVerdict(&out, p); out.String() != c.want {
				t.Errorf("got %q, want %q", out.String(), c.want)
			}
		})
	}
}
