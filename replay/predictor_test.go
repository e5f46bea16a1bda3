package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"highwater/internal/units"
	"highwater/replay"
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

func predictor(t testing.TB, traces ...*trace.Trace) *replay.Predictor {
	t.Helper()
	p, err := replay.NewPredictor(traces, replay.PredictorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func answer(t testing.TB, p *replay.Predictor, q replay.Question) *replay.Prediction {
	t.Helper()
	got, err := p.Predict(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// One predictor gives each question the same answer, whoever else asks and however many work on it.
func TestPredictorIsShared(t *testing.T) {
	p := predictor(t, source(t, pileUp), source(t, nil))
	questions := []replay.Question{
		{Draws: 20, Seed: 1, Workers: 1},
		{Draws: 20, Seed: 1, Set: map[string]string{"permit_release": "freed"}},
		{Draws: 20, Seed: 1, Set: map[string]string{"early_free": "false"}, MemoryLimit: 100 << 20},
	}
	var want []string
	for _, q := range questions {
		want = append(want, asJSON(t, answer(t, p, q)))
	}
	var group sync.WaitGroup
	for range 3 {
		for i, q := range questions {
			group.Go(func() {
				q.Workers = 3 - q.Workers
				got, err := p.Predict(context.Background(), q)
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := json.Marshal(got); err != nil || string(text) != want[i] {
					t.Errorf("question %d has another answer beside others (%v)", i, err)
				}
			})
		}
	}
	group.Wait()
}

func TestChangeReachesTheModel(t *testing.T) {
	p := predictor(t, source(t, pileUp))
	twice := func(m *pipeline.Model) error {
		m.Machine.CPUs *= 2
		return nil
	}
	before := answer(t, p, replay.Question{Draws: 20})
	after := answer(t, p, replay.Question{Draws: 20, Change: twice})
	if !(float64(*after.MakespanNS) < 0.8*float64(*before.MakespanNS)) {
		t.Errorf("a makespan of %d with twice the cores, %d without", *after.MakespanNS,
			*before.MakespanNS)
	}
	if p.Model().Machine.CPUs != 2 {
		t.Errorf("the change stays: %g cores", p.Model().Machine.CPUs)
	}
	no := errors.New("not so")
	_, err := p.Predict(context.Background(), replay.Question{
		Change: func(*pipeline.Model) error { return no },
	})
	if !errors.Is(err, no) {
		t.Errorf("got %v, want the change's own error", err)
	}
}

func TestModelWithoutATrace(t *testing.T) {
	m := pipeline.Example()
	p := replay.FromModel(m)
	got := answer(t, p, replay.Question{Draws: 20, MemoryLimit: 1 << 40})
	if got.Support.Verdict != replay.SupportUnknown || got.Verdict() != replay.VerdictUnknown {
		t.Errorf("support %+v, verdict %s of a model that no trace is behind", got.Support,
			got.Verdict())
	}
	if s := got.Settings["partition_workers"]; s.Source != "model" || s.Value != "2" {
		t.Errorf("partition_workers: %+v", s)
	}
	if got.Recorded.PeakLiveBytes != nil || got.Identity != nil {
		t.Errorf("figures of a run that never was: %+v", got.Recorded)
	}
}

// Above rho = 1 without a bound the peak grows with the run, and the limit is passed when about as
// much of it has been synthesised as fits; where permits bound it, it does not.
func TestGrowth(t *testing.T) {
	p := predictor(t, source(t, merge(pileUp, map[string]string{"jobs": "8"})))
	piles := answer(t, p, replay.Question{Draws: 40, Growth: true, MemoryLimit: 100 << 20})
	g := piles.Growth
	if g == nil || !(g.BytesPerSLow <= g.BytesPerS && g.BytesPerS <= g.BytesPerSHigh) ||
		g.BytesPerS < 10<<20 {
		t.Fatalf("a pile-up grows by %+v", g)
	}
	if g.TimeToLimitNS == nil || *g.TimeToLimitNS <= 0 || *g.TimeToLimitNS >= *piles.MakespanNS {
		t.Errorf("the limit, below the peak of %d, is passed after %v of %d", *piles.PeakRSSBytes,
			g.TimeToLimitNS, *piles.MakespanNS)
	}
	if g.Jobs != 8 || g.JobsToLimit == nil || *g.JobsToLimit < 1 || *g.JobsToLimit > 8 ||
		*g.JobsToLimitLow > *g.JobsToLimit || *g.JobsToLimitHigh < *g.JobsToLimit {
		t.Errorf("of %d jobs, the limit is reached by %v", g.Jobs, g.JobsToLimit)
	}
	if !strings.Contains(g.Text, "depends on the run's length") ||
		!strings.Contains(g.Text, "in this run of 8 jobs") {
		t.Errorf("said as %q", g.Text)
	}
	longer := answer(t, p, replay.Question{
		Draws: 40, Growth: true, MemoryLimit: 2 * *piles.PeakRSSBytes,
	}).Growth
	if longer.TimeToLimitNS == nil || *longer.TimeToLimitNS <= *g.TimeToLimitNS {
		t.Errorf("a limit of twice the peak is passed after %v", longer.TimeToLimitNS)
	}
	if longer.JobsToLimit == nil || *longer.JobsToLimit <= 8 || *longer.JobsToLimit > longer.MostJobs {
		t.Errorf("a limit of twice the peak of 8 jobs is reached by %v", longer.JobsToLimit)
	}
	held := answer(t, p, replay.Question{
		Set:   map[string]string{"permit_release": "freed"},
		Draws: 40, Growth: true, MemoryLimit: 2 * *piles.PeakRSSBytes,
	}).Growth
	if held.BytesPerS > 1<<20 || held.TimeToLimitNS != nil ||
		held.JobsToLimit != nil || !strings.Contains(held.Text, "no run that was tried, of up to 16 jobs") {
		t.Errorf("a peak that permits bound grows by %+v", held)
	}
}

// TestGrowthSaysOfWhichRunItSpeaks: all of a pile-up's partitions are synthesised within the first
// part of its run, so a longer run passes the limit at a time that the run asked about also has,
// below the limit.
func TestGrowthSaysOfWhichRunItSpeaks(t *testing.T) {
	p := predictor(t, source(t, merge(pileUp, map[string]string{"jobs": "4"})))
	q := replay.Question{Draws: 100, Growth: true}
	q.MemoryLimit = *answer(t, p, q).PeakRSSBytesHigh * 3 / 2
	got := answer(t, p, q)
	g := got.Growth
	if *got.PeakOverLimitRatio >= replay.UnsafeRatio || g.TimeToLimitNS == nil ||
		*g.TimeToLimitNS >= *got.MakespanNS {
		t.Fatalf("P %v, limit passed after %v of %d: not the case to be told", *got.PeakOverLimitRatio,
			g.TimeToLimitNS, *got.MakespanNS)
	}
	if *g.JobsToLimit <= 4 {
		t.Errorf("a safe run of 4 jobs, and the limit is passed by %d", *g.JobsToLimit)
	}
	for _, part := range []string{
		"this run of 4 jobs stays below the limit of " + units.Bytes(q.MemoryLimit),
		fmt.Sprintf("one of about %d jobs or more would pass it ", *g.JobsToLimit), "after its start",
	} {
		if !strings.Contains(g.Text, part) {
			t.Errorf("%q does not say %q", g.Text, part)
		}
	}
}

func TestPredictorRefuses(t *testing.T) {
	two := []*trace.Trace{source(t, pileUp), source(t, nil)}
	for name, c := range map[string]struct {
		traces []*trace.Trace
		opts   replay.PredictorOptions
		want   string
	}{
		"no trace":   {nil, replay.PredictorOptions{}, "no trace"},
		"durations":  {two, replay.PredictorOptions{Durations: "frozen"}, "is neither"},
		"two frozen": {two, replay.PredictorOptions{Durations: "recorded"}, "give one trace, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := replay.NewPredictor(c.traces, c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that says %q", err, c.want)
			}
		})
	}
}

// A changed predictor says what each question with the change would.
func TestChangedPredictor(t *testing.T) {
	p := predictor(t, source(t, nil))
	twice := func(m *pipeline.Model) error {
		m.Policy.Devices *= 2
		return nil
	}
	changed, err := p.Changed(twice)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []map[string]string{nil, {"partition_workers": "3"}} {
		q := replay.Question{Draws: 10, Seed: 1, Set: set, MemoryLimit: 100 << 20}
		got := asJSON(t, answer(t, changed, q))
		same := asJSON(t, answer(t, p, q))
		q.Change = twice
		if want := asJSON(t, answer(t, p, q)); got != want || got == same {
			t.Errorf("changed once:\n%s\nwith each question:\n%s\nunchanged:\n%s", got, want, same)
		}
	}
	broken := errors.New("broken")
	if _, err := p.Changed(func(*pipeline.Model) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
