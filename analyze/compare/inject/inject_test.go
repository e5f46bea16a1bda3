package inject_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"highwater/analyze/compare"
	"highwater/analyze/compare/inject"
	"highwater/tracer/trace"
)

// recorded is a trace that the prover recorded.
func recorded(t *testing.T) *trace.Data {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "replay", "testdata", "held-15")
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	d, err := tr.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func values(t *testing.T, d *trace.Data) compare.Values {
	t.Helper()
	r, err := compare.ReadRun(trace.FromData(d))
	if err != nil {
		t.Fatal(err)
	}
	return r.Values
}

// TestEffects: each edit leaves a valid trace and changes its metric by just what was asked.
func TestEffects(t *testing.T) {
	d := recorded(t)
	before := values(t, d)
	m := func(name, subject string) compare.Metric {
		return compare.Metric{Name: name, Subject: subject}
	}
	for _, c := range []struct {
		name   string
		edit   func() (*trace.Data, error)
		metric compare.Metric
		factor float64 // by which the metric rises
		same   []compare.Metric
	}{
		{
			"stage time", func() (*trace.Data, error) { return inject.StageTime(d, "synthesis", 0.05) },
			m(compare.StageTime, "synthesis"), 1.05,
			[]compare.Metric{m(compare.StageTime, "prove_start"), m(compare.PeakLive, "")},
		},
		{
			"size", func() (*trace.Data, error) { return inject.BufferSize(d, "a", 0.05) },
			m(compare.ClassPeak, "a"), 1.05,
			[]compare.Metric{m(compare.ClassPeak, "b"), m(compare.StageTime, "synthesis")},
		},
		{
			"lifetime", func() (*trace.Data, error) { return inject.Lifetime(d, "c", 0.10) },
			m(compare.ClassArea, "c"), 1.10, []compare.Metric{m(compare.ClassArea, "a")},
		},
		{
			"one more", func() (*trace.Data, error) { return inject.OneMore(d, "b") },
			m(compare.ClassMade, "b"), 1 + 1/before[m(compare.ClassMade, "b")],
			[]compare.Metric{m(compare.ClassPeak, "a")},
		},
	} {
		edited, err := c.edit()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		broken, err := trace.Validate(trace.FromData(edited), 3)
		if err != nil || len(broken) > 0 {
			t.Errorf("%s: not valid: %v %v", c.name, err, broken)
		}
		after := values(t, edited)
		if got := after[c.metric] / before[c.metric]; math.Abs(got-c.factor) > 0.005 {
			t.Errorf("%s: %s rises by a factor of %v, want %v", c.name, c.metric, got, c.factor)
		}
		for _, s := range c.same {
			if after[s] != before[s] {
				t.Errorf("%s: %s changes too, from %v to %v", c.name, s, before[s], after[s])
			}
		}
	}
	if again := values(t, d); again[m(compare.ClassPeak, "a")] != before[m(compare.ClassPeak, "a")] {
		t.Error("an edit changed the trace it was given")
	}
}

func TestNothingToInjectInto(t *testing.T) {
	d := recorded(t)
	for name, err := range map[string]error{
		"stage": second(inject.StageTime(d, "no such stage", 0.05)),
		"class": second(inject.OneMore(d, "no such class")),
		"size":  second(inject.BufferSize(d, "no such class", 0.05)),
		"life":  second(inject.Lifetime(d, "no such class", 0.05)),
	} {
		if err == nil {
			t.Errorf("%s that is not there: no error", name)
		}
	}
}

func second(_ *trace.Data, err error) error { return err }
