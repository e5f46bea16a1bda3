package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"highwater/analyze"
	"highwater/analyze/report"
	"highwater/internal/units"
	"highwater/replay"
	"highwater/replay/pipeline"
	"highwater/replay/whatif"
	"highwater/tracer/trace"
)

type analyzeCmd struct {
	Trace      string   `arg:"" optional:"" help:"Trace to analyze; one that is still being written is read as it stands."`
	List       bool     `help:"List the analyzers, what each claims and its thresholds, and do nothing else."`
	FailOn     string   `enum:"info,warning,error,never" default:"error" placeholder:"info|warning|error|never" help:"Exit with 1 for a finding at or above this severity (default error)."`
	Only       []string `placeholder:"NAME,..." help:"Run only these analyzers."`
	Threshold  []string `sep:"none" placeholder:"NAME=VALUE" help:"Judge by another threshold; each finding shows those it used."`
	Thresholds string   `placeholder:"FILE" help:"TOML file of thresholds, a table an analyzer: [queue-pileup] min_partitions = 3. --threshold goes before it."`
	Format     string   `enum:"text,json,sarif,junit" default:"text" placeholder:"text|json|sarif|junit" help:"What to print (default text; json is what --json prints)."`
	Sarif      string   `placeholder:"FILE" help:"Also write the findings to FILE as SARIF 2.1.0, for code scanning."`
	Junit      string   `placeholder:"FILE" help:"Also write the findings to FILE as JUnit XML, a test case an analyzer."`
	WhatIf     bool     `negatable:"" default:"true" help:"Replay the trace under each finding's remedy to say what it would have done (default on)."`
}

// Help says what the exit codes mean.
func (*analyzeCmd) Help() string {
	return "Analyzers: " + strings.Join(analyzerNames(), ", ") +
		" (--list says what each claims). Exit codes: 0 if no finding is at or above --fail-on; " +
		"1 if one is; 2 for bad usage or a trace that cannot be read."
}

func analyzerNames() []string {
	var names []string
	for _, a := range analyze.All() {
		names = append(names, a.Doc().Name)
	}
	return names
}

// Examples implements exampler.
func (*analyzeCmd) Examples() string {
	return "  highwater analyze run.hw\n" +
		"  highwater analyze run.hw --fail-on warning --json\n" +
		"  highwater analyze run.hw --only queue-pileup,leak --no-what-if\n" +
		"  highwater analyze run.hw --sarif findings.sarif --junit findings.xml\n" +
		"  highwater analyze --list\n"
}

// Run implements the subcommand.
func (c *analyzeCmd) Run(ui *tui) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	if c.List {
		return c.list(ui, opts)
	}
	if c.Trace == "" {
		return badInput("run `highwater analyze --help` for its flags and an example",
			"missing argument: <trace>")
	}
	t, err := openTrace(ui, c.Trace)
	if err != nil {
		return err
	}
	defer t.Close()
	result, err := analyzeTrace(ui, t, opts, c.WhatIf)
	if err != nil {
		return err
	}
	if err := c.write(ui, result); err != nil {
		return err
	}
	if c.FailOn != "never" && result.Worst().AtLeast(analyze.Severity(c.FailOn)) {
		return fail(exitVerdict, nil, "")
	}
	return nil
}

// list prints the analyzers instead of running them.
func (c *analyzeCmd) list(ui *tui, opts analyze.Options) error {
	if c.Trace != "" {
		return badInput("leave one of them out", "--list takes no trace: %s", c.Trace)
	}
	list := report.Analyzers(opts.Thresholds)
	if len(c.Only) > 0 {
		list = slices.DeleteFunc(list,
			func(a report.AnalyzerDoc) bool { return !slices.Contains(c.Only, a.Name) })
	}
	if ui.json || c.Format == "json" {
		return ui.printJSON(analyzerList{list})
	}
	return report.Listing(ui.out, list, report.StyleOf(ui.out))
}

// analyzerList is the JSON of --list.
type analyzerList struct {
	Analyzers []report.AnalyzerDoc `json:"analyzers"`
}

// write prints the result in the format asked for, and writes the files.
func (c *analyzeCmd) write(ui *tui, result *analyze.Report) error {
	for _, f := range []struct{ path, format string }{{c.Sarif, "sarif"}, {c.Junit, "junit"}} {
		if f.path == "" {
			continue
		}
		var text bytes.Buffer
		err := c.print(&text, f.format, result)
		if err == nil {
			err = os.WriteFile(f.path, text.Bytes(), 0o666)
		}
		if err != nil {
			return fail(exitUsage, fmt.Errorf("write %s report: %w", f.format, err), "")
		}
	}
	format := c.Format
	if ui.json && format == "text" {
		format = "json"
	}
	return c.print(ui.out, format, result)
}

func (c *analyzeCmd) print(w io.Writer, format string, result *analyze.Report) error {
	failOn := analyze.Severity(c.FailOn)
	if c.FailOn == "never" {
		failOn = ""
	}
	switch format {
	case "json":
		return report.JSON(w, result)
	case "sarif":
		return report.SARIF(w, result, c.Trace, currentVersion().Version)
	case "junit":
		return report.JUnit(w, result, c.Trace, failOn)
	}
	return report.Analysis(w, result, report.StyleOf(w))
}

func (c *analyzeCmd) options() (analyze.Options, error) {
	opts := analyze.Options{Only: c.Only, Thresholds: map[string]float64{}}
	for _, name := range c.Only {
		if !slices.Contains(analyzerNames(), name) {
			return opts, badInput("the analyzers are "+strings.Join(analyzerNames(), ", "),
				"--only %s: no such analyzer", name)
		}
	}
	if c.Thresholds != "" {
		if err := thresholdFile(c.Thresholds, opts.Thresholds); err != nil {
			return opts, fail(exitUsage, err, "write it as a table an analyzer: [leak] min_jobs = 12")
		}
	}
	for _, arg := range c.Threshold {
		set, err := parseThreshold(arg)
		if err != nil {
			return opts, err
		}
		opts.Thresholds[set.name] = set.value
	}
	return opts, checkThresholds(opts.Thresholds)
}

// analyzeTrace runs the analyzers and answers the what-ifs of their findings by replay.
func analyzeTrace(ui *tui, t *trace.Trace, opts analyze.Options, whatIf bool) (*analyze.Report, error) {
	result, err := analyze.Run(t, opts)
	if err != nil || !whatIf {
		return result, traceFailure(err)
	}
	if n := t.Rows(); n > maxWhatIfRows {
		leaveOut(result, n)
		return result, nil
	}
	ctx, stop := ui.interruptible(nil)
	defer stop()
	if err := answerWhatIfs(ctx, t, result); err != nil {
		return nil, err
	}
	return result, answerRemedies(ctx, t, result)
}

// maxWhatIfRows is the largest trace whose remedies analyze replays by itself: a replay holds the
// whole trace in memory, about 240 bytes a row (trace.MaxLoadRows).
const maxWhatIfRows = 2_000_000

// leaveOut says of each counterfactual that it was not computed, and how to have it.
func leaveOut(result *analyze.Report, rows int64) {
	why := fmt.Sprintf("the trace has %s rows, more than the %s that analyze replays by itself: run "+
		"highwater replay with these settings", units.Count(rows), units.Count(maxWhatIfRows))
	for i := range result.Findings {
		if f := &result.Findings[i]; len(f.WhatIf) > 0 {
			f.Counterfactual = &analyze.Counterfactual{Settings: f.WhatIf, Error: why}
		}
	}
}

// answerWhatIfs fills the counterfactual of each finding that asks for one. Equal questions are
// replayed once.
func answerWhatIfs(ctx context.Context, t *trace.Trace, result *analyze.Report) error {
	answers := map[string]*analyze.Counterfactual{}
	for i := range result.Findings {
		f := &result.Findings[i]
		if len(f.WhatIf) == 0 {
			continue
		}
		key := fmt.Sprint(f.WhatIf)
		if answers[key] == nil {
			answers[key] = counterfactual(ctx, t, f.WhatIf, nil)
		}
		f.Counterfactual = answers[key]
		if ctx.Err() != nil {
			return fail(exitInterrupted, errors.New("interrupted before the analysis was done"), "")
		}
	}
	return nil
}

// answerRemedies replays each way out of the findings by itself.
func answerRemedies(ctx context.Context, t *trace.Trace, result *analyze.Report) error {
	for i := range result.Findings {
		for j := range result.Findings[i].Remedies {
			r := &result.Findings[i].Remedies[j]
			if len(r.WhatIf)+len(r.Scale) == 0 {
				continue
			}
			r.Counterfactual = counterfactual(ctx, t, r.WhatIf, r.Scale)
			if ctx.Err() != nil {
				return fail(exitInterrupted, errors.New("interrupted before the analysis was done"), "")
			}
		}
	}
	return nil
}

// counterfactual is what replay says of other settings. That it cannot say is part of the answer,
// not a failure of analyze.
func counterfactual(ctx context.Context, t *trace.Trace, set map[string]string,
	scale map[string]float64,
) *analyze.Counterfactual {
	opts := replay.Options{Set: set, Seed: 1}
	if len(scale) > 0 {
		changes := whatif.Changes{Scale: scale}
		opts.Change = func(m *pipeline.Model) error {
			changed, err := changes.Apply(m)
			if err == nil {
				*m = *changed
			}
			return err
		}
	}
	p, err := replay.Run(ctx, t, opts)
	if err != nil {
		return &analyze.Counterfactual{Settings: set, Error: err.Error()}
	}
	return &analyze.Counterfactual{
		Settings:     set,
		PeakRSSBytes: p.PeakRSSBytes, PeakRSSBytesLow: p.PeakRSSBytesLow, PeakRSSBytesHigh: p.PeakRSSBytesHigh,
		PeakLiveBytes: p.PeakLiveBytes, PeakLiveBytesLow: p.PeakLiveBytesLow, PeakLiveBytesHigh: p.PeakLiveBytesHigh,
		MakespanNS: p.MakespanNS, ProofIntervalNS: p.ProofIntervalNS, Rho: p.Rho,
	}
}
