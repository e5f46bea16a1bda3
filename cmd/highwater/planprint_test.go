package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"highwater/analyze/report"
	"highwater/replay/plan"
)

// varied is a plan over so many axes, of rows as wide as they get.
func varied(axes ...string) *planReport {
	words := map[string][]string{
		"partition_workers": {"1", "12"}, "channel_capacity": {"1", "unbounded"},
		"permit_release": {"synth_end", "send_accepted"}, "queue_order": {"fifo", "priority"},
		"split_proving": {"true", "false"},
	}
	r := &planReport{}
	r.Axes = axes
	for i := range 4 {
		set := map[string]string{}
		for k, name := range axes {
			set[name] = words[name][(i>>(k%2))&1]
		}
		peak, interval, ratio := int64(1023)<<30, int64(83e9), 0.123
		r.Rows = append(r.Rows, plan.Row{
			Set: set, Verdict: plan.Safe, PeakBytes: &peak, PeakBytesLow: &peak, PeakBytesHigh: &peak,
			ProofIntervalNS: &interval, PeakOverLimitRatio: &ratio, GPUIdleRatio: &ratio, Rho: &ratio,
		})
	}
	take, cheapest := 0, 1
	r.Recommended, r.Cheapest = &take, &cheapest
	return r
}

// TestPlanShowsAllAxes: however narrow the terminal, each row says all its settings, the verdict, the
// peak and the time a proof.
func TestPlanShowsAllAxes(t *testing.T) {
	all := []string{
		"partition_workers", "channel_capacity", "permit_release", "queue_order", "split_proving",
	}
	for _, width := range []int{140, 110, 100, 80, 72} {
		for n := 1; n <= len(all); n++ {
			t.Run(fmt.Sprintf("%d columns, %d axes", width, n), func(t *testing.T) {
				r, style := varied(all[:n]...), report.Style{Width: width}
				var out bytes.Buffer
				if err := r.grid(style).Write(&out, style); err != nil {
					t.Fatal(err)
				}
				lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
				for _, line := range lines {
					if len(line) > width {
						t.Errorf("%d columns: %q", len(line), line)
					}
				}
				for _, word := range []string{"verdict", "peak", "a proof", "safe, cheapest", "83.0 s"} {
					if !strings.Contains(out.String(), word) {
						t.Errorf("no %q in\n%s", word, out.String())
					}
				}
				for i := range r.Rows {
					for _, name := range r.Axes {
						if !strings.Contains(out.String(), r.Rows[i].Set[name]) {
							t.Errorf("%s=%s is not shown in\n%s", name, r.Rows[i].Set[name], out.String())
						}
					}
				}
			})
		}
	}
}

func TestPlanHeadersBreakWhereThatIsNarrowest(t *testing.T) {
	for name, want := range map[string]string{
		"partition_workers": "partition_\nworkers", "jobs_in_flight": "jobs_in_\nflight",
		"devices": "devices", "GPU idle": "GPU\nidle", "P": "P", "a proof": "a proof",
	} {
		if got := breakName(name); got != want {
			t.Errorf("%s breaks as %q, want %q", name, got, want)
		}
	}
	r, style := varied("partition_workers", "channel_capacity", "permit_release"), report.Style{Width: 80}
	var out bytes.Buffer
	if err := r.grid(style).Write(&out, style); err != nil {
		t.Fatal(err)
	}
	if head := strings.SplitN(out.String(), "\n", 3); !strings.Contains(head[0], "partition_") ||
		!strings.Contains(head[1], "workers") || !strings.Contains(head[1], "a proof") {
		t.Errorf("three axes on 80 columns:\n%s", out.String())
	}
}
