package plan

import (
	"context"
	"strings"
	"testing"

	"highwater/replay"
	"highwater/replay/pipeline"
)

// result has rows along partition_workers, then permit_release: pw:release:verdict:peak:interval.
func result(t *testing.T, rows ...Row) *Result {
	t.Helper()
	r := &Result{
		LimitBytes: 100, Rows: rows,
		axes: axes(t, "partition_workers=1..9", "channel_capacity=1,partition_workers"),
	}
	r.pick()
	r.explain()
	return r
}

func made(pw, channel string, v Verdict, peak, interval int64) Row {
	over := 0.0
	if v == Unsafe {
		over = 0.25
	}
	return Row{
		Set:     map[string]string{"partition_workers": pw, "channel_capacity": channel},
		Verdict: v, PeakBytes: &peak, PeakBytesLow: &peak, PeakBytesHigh: &peak,
		ProofIntervalNS: &interval, PeakOverLimitRatio: &over, Reasons: []string{"because"},
	}
}

func at(i *int) int {
	if i == nil {
		return -1
	}
	return *i
}

// A setting that is safe for as long as was asked, and grows, says so.
func TestAnswerTellsOfGrowth(t *testing.T) {
	row := made("1", "1", Safe, 10, 1000)
	after := int64(90e9)
	row.Growth = &replay.Growth{
		BytesPerS: 2, BytesPerSLow: 1, BytesPerSHigh: 3, TimeToLimitNS: &after,
		Text: "this run of 4 jobs stays below the limit of 100 B in the median, one of about 9 jobs or more " +
			"would pass it 1 m 30 s after its start",
	}
	if r := result(t, row); !strings.Contains(r.Answer, "1 m 30 s after its start: say with --jobs") {
		t.Errorf("got %q", r.Answer)
	}
	row.Growth = &replay.Growth{BytesPerSHigh: 3, Text: "the peak hardly depends on the run's length"}
	if r := result(t, row); strings.Contains(r.Answer, "run's length") {
		t.Errorf("got %q", r.Answer)
	}
}

func TestPick(t *testing.T) {
	for name, c := range map[string]struct {
		rows                 []Row
		recommended, cheap   int
		nextUp               int
		answer, why          string
		unsafe, unknown, all int
	}{
		"fastest safe, cheapest near it, next up of the same kind": {
			rows: []Row{
				made("1", "1", Safe, 10, 2000), made("2", "1", Safe, 20, 1015),
				made("2", "2", Safe, 30, 1000), made("3", "3", Unsafe, 101, 900),
				made("3", "1", Unknown, 40, 900),
			},
			recommended: 2, cheap: 1, nextUp: 3,
			answer: "Take partition_workers=2 channel_capacity=2: 30 B of 100 B",
			why:    "partition_workers=3 channel_capacity=3 is unsafe: predicted peak 101 B",
		},
		"equal to half a per cent: the lower peak": {
			rows:        []Row{made("1", "1", Safe, 30, 1000), made("2", "1", Safe, 10, 1004)},
			recommended: 1, cheap: 1, nextUp: -1,
			answer: "Take partition_workers=2 channel_capacity=1",
		},
		"a safe one beyond is passed over": {
			rows: []Row{
				made("1", "1", Safe, 10, 1000), made("2", "1", Safe, 20, 1100),
				made("10", "1", Unsafe, 200, 1), made("3", "1", Unsafe, 150, 1),
			},
			recommended: 0, cheap: 0, nextUp: 3, why: "partition_workers=3 channel_capacity=1 is unsafe",
			answer: "Take partition_workers=1",
		},
		"none": {
			rows:        []Row{made("1", "1", Unsafe, 120, 5), made("2", "1", Unknown, 110, 5)},
			recommended: -1, cheap: -1, nextUp: 1,
			answer: "No setting tried is safe under 100 B: 1 unsafe, 1 unknown, 0 refused.",
			why:    "partition_workers=2 channel_capacity=1, is unknown: because.",
		},
	} {
		r := result(t, c.rows...)
		if at(r.Recommended) != c.recommended || at(r.Cheapest) != c.cheap || at(r.NextUp) != c.nextUp {
			t.Errorf("%s: recommended %d, cheapest %d, next up %d", name, at(r.Recommended),
				at(r.Cheapest), at(r.NextUp))
		}
		if !strings.Contains(r.Answer, c.answer) || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: %q, %q", name, r.Answer, r.Why)
		}
	}
}

// TestRunOnAModel: without traces nothing is known of the support, so nothing is called safe; the
// figures are there all the same, and equal whatever the order of the work.
func TestRunOnAModel(t *testing.T) {
	p := replay.FromModel(pipeline.Example())
	opts := Options{Axes: axes(t, "partition_workers=1..4", "permit_release=all"), Limit: 1 << 40, Draws: 5}
	r, err := Run(context.Background(), p, opts)
	if err != nil {
		t.Fatal(err)
	}
	if r.Count(Unknown) != 16 || r.Recommended != nil {
		t.Errorf("%d of %d unknown, recommended %d", r.Count(Unknown), len(r.Rows), at(r.Recommended))
	}
	again, err := Run(context.Background(), p, opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Rows {
		a, b := &r.Rows[i], &again.Rows[i]
		if a.PeakBytes == nil || *a.PeakBytes != *b.PeakBytes || *a.ProofIntervalNS != *b.ProofIntervalNS {
			t.Errorf("%s: %v %v", r.Name(i), a.PeakBytes, b.PeakBytes)
		}
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	opts := Options{Axes: axes(t, "partition_workers=1..4"), Limit: 1, Draws: 5}
	opts.Progress = func(int, int) { cancel() }
	if _, err := Run(ctx, replay.FromModel(pipeline.Example()), opts); err == nil {
		t.Error("an interrupted plan gave a result")
	}
}

func TestOptionsValidate(t *testing.T) {
	o := Options{
		Limit: -1, Jobs: 2, DurationNS: 3, Draws: -1,
		Axes: []Axis{{Name: "jobs", Values: []string{"1"}}}, Set: map[string]string{"jobs": "1"},
	}
	err := o.Validate()
	for _, want := range []string{"limit", "give one of them", "draws", "both set and varied", "jobs is varied"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v says nothing of %q", err, want)
		}
	}
}

func TestCharts(t *testing.T) {
	rows := []Row{made("2", "2", Safe, 30, 1000), made("10", "10", Unsafe, 120, 900), made("2", "1", Safe, 20, 1010)}
	rows = append(rows, Row{Set: map[string]string{"partition_workers": "1", "channel_capacity": "1"}, Verdict: Refused})
	charts := result(t, rows...).Charts()
	if got := charts[0].X.Categories; strings.Join(got, " ") != "1 2 10" {
		t.Errorf("places %v", got)
	}
	if len(charts[0].Series) != 2 || charts[0].Series[0].Name != "channel_capacity=partition_workers" {
		t.Errorf("series %+v", charts[0].Series)
	}
	var sink strings.Builder
	for _, c := range charts {
		if err := c.SVG(&sink); err != nil {
			t.Error(err)
		}
	}
}
