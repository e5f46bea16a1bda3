package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"highwater/analyze"
	"highwater/analyze/report"
	"highwater/replay"
	"highwater/tracer/trace"
)

type analyzeCmd struct {
	Trace     string   `arg:"" help:"Trace to analyze; one that is still being written is read as it stands."`
	FailOn    string   `enum:"info,warning,error,never" default:"error" placeholder:"info|warning|error|never" help:"Exit with 1 for a finding at or above this severity (default error)."`
	Only      []string `placeholder:"NAME" help:"Run only these analyzers."`
	Threshold []string `sep:"none" placeholder:"NAME=VALUE" help:"Judge by another threshold; each finding shows those it used."`
	WhatIf    bool     `negatable:"" default:"true" help:"Replay the trace under each finding's remedy to say what it would have done (default on)."`
}

// Help says what the exit codes mean.
func (*analyzeCmd) Help() string {
	return "Analyzers: " + strings.Join(analyzerNames(), ", ") +
		". Exit codes: 0 if no finding is at or above --fail-on; 1 if one is; " +
		"2 for bad usage or a trace that cannot be read."
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
		"  highwater analyze run.hw --only queue-pileup --no-what-if\n"
}

// Run implements the subcommand.
func (c *analyzeCmd) Run(ui *tui) error {
	opts, err := c.options()
	if err != nil {
		return err
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
	if ui.json {
		err = ui.printJSON(result)
	} else {
		err = report.Analysis(ui.out, result, report.StyleOf(ui.out))
	}
	if err != nil {
		return err
	}
	if c.FailOn != "never" && result.Worst().AtLeast(analyze.Severity(c.FailOn)) {
		return fail(exitVerdict, nil, "")
	}
	return nil
}

func (c *analyzeCmd) options() (analyze.Options, error) {
	opts := analyze.Options{Only: c.Only, Thresholds: map[string]float64{}}
	for _, name := range c.Only {
		if !slices.Contains(analyzerNames(), name) {
			return opts, badInput("the analyzers are "+strings.Join(analyzerNames(), ", "),
				"--only %s: no such analyzer", name)
		}
	}
	for _, arg := range c.Threshold {
		set, err := parseThreshold(arg)
		if err != nil {
			return opts, err
		}
		opts.Thresholds[set.name] = set.value
	}
	return opts, nil
}

type threshold struct {
	name  string
	value float64
}

func parseThreshold(arg string) (threshold, error) {
	for i := range arg {
		if arg[i] != '=' {
			continue
		}
		value, err := strconv.ParseFloat(arg[i+1:], 64)
		if err == nil && i > 0 {
			return threshold{arg[:i], value}, nil
		}
	}
	return threshold{}, badInput("write it as --threshold queue-pileup.NAME=3", "--threshold %s: no name=number", arg)
}

// analyzeTrace runs the analyzers and answers the what-ifs of their findings by replay.
func analyzeTrace(ui *tui, t *trace.Trace, opts analyze.Options, whatIf bool) (*analyze.Report, error) {
	result, err := analyze.Run(t, opts)
	if err != nil || !whatIf {
		return result, traceFailure(err)
	}
	ctx, stop := ui.interruptible(nil)
	defer stop()
	return result, answerWhatIfs(ctx, t, result)
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
			answers[key] = counterfactual(ctx, t, f.WhatIf)
		}
		f.Counterfactual = answers[key]
		if ctx.Err() != nil {
			return fail(exitInterrupted, errors.New("interrupted before the analysis was done"), "")
		}
	}
	return nil
}

// counterfactual is what replay says of other settings. That it cannot say is part of the answer,
// not a failure of analyze.
func counterfactual(ctx context.Context, t *trace.Trace, set map[string]string) *analyze.Counterfactual {
	p, err := replay.Run(ctx, t, replay.Options{Set: set, Seed: 1})
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
