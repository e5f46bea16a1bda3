package replay

import (
	"strings"
	"testing"

	"highwater/internal/units"
)

// TestGrowthWeighsItsWords: only what a run twice as long could hardly change is called so, and a limit
// that the upper bound passes is not passed over.
func TestGrowthWeighsItsWords(t *testing.T) {
	const mib, gib = float64(units.MiB), float64(units.GiB)
	n := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		g    Growth
		want []string
	}{
		"none": {Growth{}, []string{"does not depend"}},
		"little": {Growth{BytesPerSHigh: mib / 60},
			[]string{"hardly depends", "0 to 1.00 MiB a minute"}},
		"perhaps much": {Growth{BytesPerS: gib / 60, BytesPerSHigh: gib, material: true},
			[]string{"may depend", "by 1.00 GiB a minute of run (0 to 60.0 GiB)"}},
		"much": {Growth{BytesPerS: gib, BytesPerSLow: gib, BytesPerSHigh: gib, material: true},
			[]string{"the peak depends", "by 60.0 GiB"}},
		"above the limit": {Growth{BytesPerSHigh: mib, MostJobs: 40, JobsToLimitLow: n(15)},
			[]string{"may depend", "of up to 40 jobs, passes the limit of 1.00 GiB in the median, one of about 15 jobs may"}},
	} {
		text := c.g.say(units.GiB)
		for _, part := range c.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q does not say %q", name, text, part)
			}
		}
		if said := !strings.Contains(text, "hardly") && !strings.Contains(text, "not depend"); said != c.g.Matters() {
			t.Errorf("%s: matters %v beside %q", name, c.g.Matters(), text)
		}
	}
}

// TestPassesTakesTheTimeOfItsOwnDraws: the upper bound passes a limit where the draws with high peaks
// do, not when the usual ones reach theirs.
func TestPassesTakesTheTimeOfItsOwnDraws(t *testing.T) {
	runs := []length{
		{jobs: 4, peak: spread{low: 50, median: 60, high: 100}, at: spread{low: 5, median: 10, high: 40}},
		{jobs: 8, peak: spread{low: 55, median: 70, high: 200}, at: spread{low: 5, median: 12, high: 80}},
	}
	g := &Growth{Jobs: 4}
	g.reach(runs, 150)
	if g.JobsToLimit != nil || g.JobsToLimitHigh != nil {
		t.Errorf("the median passes 150 at %v", g.JobsToLimit)
	}
	if g.JobsToLimitLow == nil || *g.JobsToLimitLow != 6 || *g.TimeToLimitNSLow != 60 {
		t.Errorf("the upper bound passes 150 at %v jobs, %v ns, want 6 and 60", g.JobsToLimitLow, g.TimeToLimitNSLow)
	}
	if !rises(runs) {
		t.Error("an upper bound twice as high does not count as a rise")
	}
}
