package analyze_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

func run(t testing.TB, tr *trace.Trace, opts analyze.Options) *analyze.Report {
	t.Helper()
	r, err := analyze.Run(tr, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// only is the findings of one analyzer, and its status.
func only(t testing.TB, tr *trace.Trace, name string) ([]analyze.Finding, analyze.Status) {
	t.Helper()
	r := run(t, tr, analyze.Options{Only: []string{name}})
	if len(r.Analyzers) != 1 || r.Analyzers[0].Analyzer != name {
		t.Fatalf("analyzers %v, want %s alone", r.Analyzers, name)
	}
	return r.Findings, r.Analyzers[0]
}

func number(t testing.TB, f analyze.Finding, name string) float64 {
	t.Helper()
	v, ok := f.Evidence.Numbers.Value(name)
	if !ok {
		t.Fatalf("%s: no number %s in %v", f.ID, name, f.Evidence.Numbers)
	}
	return v
}

func TestFiveFiguresStandAtTopLevel(t *testing.T) {
	text, err := json.Marshal(run(t, incident().run(t), analyze.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"peak_rss_bytes", "peak_live_bytes", "makespan_ns", "proof_interval_ns", "rho", "findings",
		"not_applicable", "memory",
		"verdict", "settings",
	} {
		if _, ok := top[key]; !ok {
			t.Errorf("no key %s at top level", key)
		}
	}
	if got := string(top["peak_rss_bytes"]); got != "null" {
		t.Errorf("peak_rss_bytes %s without a sample, want null", got)
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	tr := held().run(t)
	for _, c := range []struct {
		name string
		opts analyze.Options
		want string
	}{
		{"analyzer", analyze.Options{Only: []string{"queue-pile"}}, "queue-pileup, late-free, " +
			"ledger-audit"},
		{
			"threshold",
			analyze.Options{Thresholds: map[string]float64{"late-free.share": 1}},
			"late-free.min_share",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := analyze.Run(tr, c.opts); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that lists %s", err, c.want)
			}
		})
	}
}

func TestHealthyRunIsClean(t *testing.T) {
	r := run(t, held().run(t), analyze.Options{})
	if len(r.Findings) != 0 {
		t.Errorf("findings %v, want none", r.Findings)
	}
	if !strings.HasPrefix(r.Verdict, "Nothing found by 8 analyzers (8 not applicable)") {
		t.Errorf("verdict %q", r.Verdict)
	}
	// What it takes to judge by is in this trace for these.
	able := []string{
		"queue-pileup", "late-free", "ledger-audit", "large-allocation", "gpu-starvation",
		"lock-convoy", "thundering-herd", "hidden-limit",
	}
	for _, s := range r.Analyzers {
		if s.Status == analyze.StatusClean != slices.Contains(able, s.Analyzer) {
			t.Errorf("%s is %s: %s", s.Analyzer, s.Status, s.Why)
		}
	}
}

func TestEveryAnalyzerIsDocumented(t *testing.T) {
	for _, a := range analyze.All() {
		d := a.Doc()
		if d.Name == "" || d.Summary == "" || d.RefutedBy == "" || d.Remedy == "" ||
			len(d.Thresholds) == 0 {
			t.Errorf("%s: documentation incomplete: %+v", d.Name, d)
		}
		page, err := os.ReadFile("../docs/findings/" + d.Name + ".md")
		if err != nil {
			t.Errorf("%s has no page: %v", d.Name, err)
		}
		for _, x := range d.Thresholds {
			if !strings.Contains(string(page), "`"+x.Name+"`") {
				t.Errorf("the page of %s does not explain threshold %s", d.Name, x.Name)
			}
			if !strings.HasPrefix(x.Name, d.Name+".") || x.Meaning == "" || x.Source == "" {
				t.Errorf("%s: threshold %+v is not documented", d.Name, x)
			}
		}
	}
}

// TestReportIsRepeatable: one trace gives one report, to the last digit and the last example,
// whatever the order of Go's maps.
func TestReportIsRepeatable(t *testing.T) {
	leftOver := held()
	leftOver.keepBuffers = true // more than a finding names
	late := held()
	late.earlyFree, late.bg2NS, late.synthNS = false, 2_000_000_000/3, 1_000_000_000/7 // areas that floats do not hold
	for name, p := range map[string]pipe{"pile-up": incident(), "left over": leftOver, "late": late} {
		tr := p.run(t)
		report := func() string {
			text, err := json.Marshal(run(t, tr, analyze.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		first := report()
		for range 20 {
			if again := report(); again != first {
				t.Errorf("%s: two reports of one trace:\n%s\n%s", name, first, again)
				break
			}
		}
	}
}
