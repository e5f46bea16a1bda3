package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/analyze/memory"
	"highwater/analyze/report"
)

// found is a report with one finding of each severity, one analyzer that could not look, and
// characters that XML cannot hold.
func found() *analyze.Report {
	return &analyze.Report{
		Summary: &analyze.Summary{}, Verdict: "x", Attribution: &memory.Report{},
		Findings: []analyze.Finding{
			{
				ID: "leak", Severity: analyze.Error, Sentence: "grows <&> \x01", Remedy: "free",
				RefutedBy: "no", Page: "docs/findings/leak.md",
				Evidence: analyze.Evidence{
					Numbers: analyze.Numbers{{Name: "growth_bytes", Value: 7},
						{Name: "z_ratio", Value: math.NaN()}},
					Window: &analyze.Window{BeginNS: 1, EndNS: 2},
				},
			},
			{ID: "late-free", Severity: analyze.Warning, Sentence: "late"},
			{ID: "large-allocation", Severity: analyze.Info, Sentence: "large"},
		},
		NotApplicable: []analyze.Status{
			{Analyzer: "pin-thrash", Status: analyze.StatusNotApplicable, Why: "no pins"},
		},
		Analyzers: []analyze.Status{
			{Analyzer: "late-free", Status: analyze.StatusFindings},
			{Analyzer: "large-allocation", Status: analyze.StatusFindings},
			{Analyzer: "leak", Status: analyze.StatusFindings},
			{Analyzer: "pin-thrash", Status: analyze.StatusNotApplicable, Why: "no pins"},
			{Analyzer: "lock-convoy", Status: analyze.StatusClean},
		},
	}
}

func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := report.SARIF(&b, found(), "a dir/run.hw", "1.2"); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name, Version string
					Rules         []struct{ ID string }
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
				Properties struct{ Evidence map[string]*float64 }
			}
			Invocations []struct {
				ExecutionSuccessful        bool
				ToolExecutionNotifications []struct{ Message struct{ Text string } }
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || run.Tool.Driver.Name != "highwater" ||
		len(run.Tool.Driver.Rules) != len(analyze.All()) || len(run.Results) != 3 {
		t.Fatalf("log %+v", log)
	}
	levels := map[string]string{"leak": "error", "late-free": "warning", "large-allocation": "note"}
	for _, r := range run.Results {
		if levels[r.RuleID] != r.Level || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
			t.Errorf("result %+v", r)
		}
	}
	leak := run.Results[0]
	if uri := leak.Locations[0].PhysicalLocation.ArtifactLocation.URI; uri !=
		"a%20dir/run.hw/manifest.json" {
		t.Errorf("located in %q", uri)
	}
	if v := leak.Properties.Evidence; v["z_ratio"] != nil || *v["growth_bytes"] != 7 {
		t.Errorf("evidence %v", v)
	}
	notes := run.Invocations[0].ToolExecutionNotifications
	if !run.Invocations[0].ExecutionSuccessful || len(notes) != 1 ||
		!strings.Contains(notes[0].Message.Text, "no pins") {
		t.Errorf("invocation %+v", run.Invocations[0])
	}
}

func TestJUnit(t *testing.T) {
	type testcase struct {
		Name    string `xml:"name,attr"`
		Failure *struct {
			Message string `xml:"message,attr"`
			Text    string `xml:",chardata"`
		} `xml:"failure"`
		Skipped *struct {
			Message string `xml:"message,attr"`
		} `xml:"skipped"`
		Out string `xml:"system-out"`
	}
	for _, c := range []struct {
		failOn   analyze.Severity
		failures int
	}{{analyze.Error, 1}, {analyze.Warning, 2}, {analyze.Info, 3}, {"", 0}} {
		var b bytes.Buffer
		if err := report.JUnit(&b, found(), "run.hw", c.failOn); err != nil {
			t.Fatal(err)
		}
		var suites struct {
			Suite struct {
				Tests    int        `xml:"tests,attr"`
				Failures int        `xml:"failures,attr"`
				Skipped  int        `xml:"skipped,attr"`
				Cases    []testcase `xml:"testcase"`
			} `xml:"testsuite"`
		}
		if err := xml.Unmarshal(b.Bytes(), &suites); err != nil {
			t.Fatalf("not XML: %v\n%s", err, b.String())
		}
		s := suites.Suite
		if s.Tests != 5 || s.Failures != c.failures || s.Skipped != 1 {
			t.Errorf("fail on %q: %+v, want %d failures", c.failOn, s, c.failures)
		}
		if c.failOn != analyze.Error {
			continue
		}
		if f := s.Cases[2].Failure; f == nil || f.Message != "grows <&> " ||
			!strings.Contains(f.Text, "growth: 7 B") {
			t.Errorf("failure %+v", f)
		}
		if s.Cases[0].Failure != nil || !strings.Contains(s.Cases[0].Out, "late") {
			t.Errorf("a warning below the bar: %+v, want it in the output", s.Cases[0])
		}
	}
}
