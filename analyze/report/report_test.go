package report_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"

	"highwater/analyze"
	"highwater/analyze/memory"
	"highwater/analyze/report"
	"highwater/tracer/trace"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden files are of a locale where · and µ are one column wide, whatever the one of the tests.
func init() { text.OverrideRuneWidthEastAsianWidth(false) }

// golden compares got with testdata/NAME.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with go test -update)", err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s differs (-want +got; -update accepts it):\n%s", path, d)
	}
}

func open(t *testing.T, name string) *trace.Trace {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := trace.ParseText(string(text))
	if err != nil {
		t.Fatal(err)
	}
	violations, err := trace.Validate(trace.FromData(d), 5)
	if err != nil || len(violations) > 0 {
		t.Fatalf("%s: %v %v", name, err, violations)
	}
	return trace.FromData(d)
}

func analysis(t *testing.T, name string) *analyze.Report {
	t.Helper()
	r, err := analyze.Run(open(t, name), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func show(t *testing.T, write func(w io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func value[T any](v T) *T { return &v }

// answered fills the counterfactuals as a command does.
func answered(r *analyze.Report) *analyze.Report {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.WhatIf != nil {
			f.Counterfactual = &analyze.Counterfactual{
				Settings: f.WhatIf, PeakLiveBytes: value(int64(224 << 20)),
				PeakLiveBytesLow:  value(int64(220 << 20)),
				PeakLiveBytesHigh: value(int64(230 << 20)), ProofIntervalNS: value(int64(7e9)),
			}
		}
	}
	return r
}

func TestAnalysisText(t *testing.T) {
	for _, name := range []string{"pileup", "held", "late", "killed"} {
		t.Run(name, func(t *testing.T) {
			r := answered(analysis(t, name))
			golden(t, name+".golden",
				show(t, func(w io.Writer) error { return report.Analysis(w, r, report.Style{}) }))
		})
	}
}

func TestExplanationText(t *testing.T) {
	r := answered(analysis(t, "pileup"))
	golden(t, "explanation.golden",
		show(t, func(w io.Writer) error { return report.Explanation(w, r, report.Style{}) }))
}

func TestAnalysisJSON(t *testing.T) {
	r := answered(analysis(t, "pileup"))
	golden(t, "pileup.json.golden", show(t, func(w io.Writer) error { return report.JSON(w, r) }))
}

func TestInfoText(t *testing.T) {
	s, err := analyze.Summarise(open(t, "killed"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "info.golden",
		show(t, func(w io.Writer) error { return report.Info(w, s, report.Style{}) }))
}

// TestWidth: no line is wider than the terminal, whatever its width.
func TestWidth(t *testing.T) {
	for _, width := range []int{40, 60, 80, 100, 140} {
		for _, name := range []string{"pileup", "late", "killed"} {
			r := answered(analysis(t, name))
			for _, line := range strings.Split(string(show(t, func(w io.Writer) error {
				return report.Analysis(w, r, report.Style{Width: width, Color: true})
			})), "\n") {
				if n := text.StringWidthWithoutEscSequences(line); n > width {
					t.Errorf("%s: %d columns at width %d: %q", name, n, width, line)
				}
			}
		}
	}
}

func TestColorOnlyWhereAsked(t *testing.T) {
	r := analysis(t, "pileup")
	plain := show(t, func(w io.Writer) error { return report.Analysis(w, r, report.StyleOf(w)) })
	if bytes.ContainsRune(plain, '\x1b') {
		t.Error("escape sequences in what is no terminal")
	}
	colored := show(t,
		func(w io.Writer) error { return report.Analysis(w, r, report.Style{Color: true}) })
	if !bytes.ContainsRune(colored, '\x1b') {
		t.Error("no colour although asked for")
	}
}

func TestCompare(t *testing.T) {
	rows := []report.Compared{
		{
			Name:         "peak_live_bytes",
			Predicted:    value(150.0 * (1 << 20)),
			Low:          value(148.0 * (1 << 20)),
			High:         value(155.0 * (1 << 20)),
			Measured:     value(147.5 * (1 << 20)),
			ErrorRatio:   value(0.0169),
			AllowedRatio: value(0.03),
			Within:       true,
		},
		{
			Name:       "proof_interval_ns",
			Predicted:  value(9.5e9),
			Measured:   value(1e10),
			ErrorRatio: value(-0.05),
		},
		{Name: "peak_rss_bytes"},
	}
	golden(t, "compare.golden", show(t, func(w io.Writer) error {
		return report.Compare(w, "Predicted against measured", rows, report.Style{})
	}))
}

func TestSeriesCSV(t *testing.T) {
	r := analysis(t, "killed")
	got := show(t, func(w io.Writer) error { return report.SeriesCSV(w, r.Attribution.Series) })
	lines := strings.Split(strings.TrimSpace(string(got)), "\n")
	if lines[0] != "series,begin_ns,end_ns,min,max,last" || len(lines) < 100 {
		t.Fatalf("%d lines, the first %q", len(lines), lines[0])
	}
	seen := map[string]bool{}
	for _, l := range lines[1:] {
		if strings.Count(l, ",") != 5 {
			t.Fatalf("line %q", l)
		}
		seen[l[:strings.IndexByte(l, ',')]] = true
	}
	for _, want := range []string{
		"live_bytes", "rss_bytes", "remainder_bytes", "class/aux",
		"place/blocked_send", "waiting_without_permit_partitions",
	} {
		if !seen[want] {
			t.Errorf("no series %s", want)
		}
	}
	golden(t, "peak.csv.golden",
		show(t, func(w io.Writer) error { return report.PeakCSV(w, r.Attribution.Peak) }))
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"peak_live_bytes", value(int64(1 << 20)), "1.00 MiB"},
		{"peak_live_bytes", (*int64)(nil), "not known"},
		{"rho", (*float64)(nil), "not known"},
		{"rho", 4.0, "4.00"},
		{"waiting_partitions", 1.0, "1 partition"},
		{"makespan_ns", int64(1500), "1.50 µs"},
		{"share_of_peak_ratio", 0.7612, "76.1 %"},
		{"slowdown_ratio", 1.4649, "1.46 times"},
		{"growth_partitions_per_s", 0.3333, "0.333 /s"},
		{"overdue_gib_s", 1.2345, "1.23 GiB·s"},
		{"lost_events", 12345.0, "12,345 events"},
		{"overdue_gib_s", 1e-9, "< 0.001 GiB·s"},
		{"events", nil, "not known"},
		{"class", "aux", "aux"},
	} {
		if got := report.Value(c.name, c.v); got != c.want {
			t.Errorf("Value(%s, %v) is %q, want %q", c.name, c.v, got, c.want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe closed") }

func TestWriteErrorsAreReturned(t *testing.T) {
	r := analysis(t, "pileup")
	for name, err := range map[string]error{
		"analysis": report.Analysis(broken{}, r, report.Style{}),
		"info":     report.Info(broken{}, r.Summary, report.Style{}),
		"json":     report.JSON(broken{}, r),
		"series":   report.SeriesCSV(broken{}, r.Attribution.Series),
		"peak":     report.PeakCSV(broken{}, &memory.Attribution{}),
		"grid":     report.Grid{Rows: [][]string{{"x"}}}.Write(broken{}, report.Style{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "pipe closed") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestWrapWide: words of wide characters, and of bytes that are no characters, are cut and not lost.
func TestWrapWide(t *testing.T) {
	for _, word := range []string{strings.Repeat("メ", 120), strings.Repeat("\xda", 200), strings.Repeat("x", 300)} {
		var out strings.Builder
		if err := report.KeyValues(&out, "", []report.KeyValue{{Key: "note", Value: "a " + word + " b"}}, report.Style{}); err != nil {
			t.Fatal(err)
		}
		shown := strings.NewReplacer("\n", "", " ", "").Replace(out.String())
		if shown != "notea"+word+"b" {
			t.Errorf("%q is shown as %q", word, shown)
		}
	}
}
