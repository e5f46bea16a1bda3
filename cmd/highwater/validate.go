package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"highwater/replay"
)

type validateCmd struct {
	Traces    []string `arg:"" name:"trace" help:"Runs of one program under several settings."`
	FitOn     []string `sep:"none" placeholder:"PATTERN" help:"Fit to the traces whose name matches, such as 'held-*', and predict the others; may be given several times (default: the run whose stages ran the most at once and the one whose stages ran the least)."`
	Limit     []string `sep:"none" placeholder:"RATIO" help:"Also ask whether a limit of so many times the measured peak is safe; may be given several times (default 0.8 0.9 1 1.1 1.25)."`
	Durations string   `enum:"recorded,fitted" default:"fitted" placeholder:"recorded|fitted" help:"recorded keeps each partition's own times of the one trace fitted to; fitted draws them from the fitted contention law (default fitted)."`
	Draws     int      `default:"0" placeholder:"N" help:"Simulations of each run (default 200)."`
	Seed      uint64   `default:"1" placeholder:"N" help:"Seed of the draws: same seed, same predictions (default 1)."`
}

// Help says what is compared and what the exit codes mean.
func (*validateCmd) Help() string {
	return "A model is fitted to some of the runs; the others are predicted from nothing but their settings and " +
		"set beside what was measured. Runs whose work differs (size, circuit, threads) form groups, each with a " +
		"model of its own. Exit codes: 0 whatever the errors are; 1 if a setting was called safe at a limit that " +
		"the measured peak reaches; 2 for bad usage or traces that cannot be fitted."
}

// Examples implements exampler.
func (*validateCmd) Examples() string {
	return "  highwater validate runs/*.hw\n" +
		"  highwater validate runs/*.hw --fit-on 'pile-*' --fit-on held-2\n" +
		"  highwater validate a.hw b.hw c.hw --json\n"
}

// Run implements the subcommand.
func (c *validateCmd) Run(ui *tui) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	traces, err := openTraces(ui, c.Traces)
	defer closeTraces(traces)
	if err != nil {
		return err
	}
	var runs []replay.NamedTrace
	for i, t := range traces {
		runs = append(runs, replay.NamedTrace{Name: c.Traces[i], Trace: t})
	}
	ctx, stop := ui.interruptible(nil)
	defer stop()
	p := ui.newProgress()
	opts.Progress = func(done, total int) {
		p.update(step{Phase: "validate", Done: done, Total: total, Text: "runs"})
	}
	v, err := replay.Validate(ctx, runs, opts)
	p.done()
	switch {
	case errors.Is(err, context.Canceled):
		return fail(exitInterrupted, errors.New("interrupted before all runs were predicted"), "")
	case err != nil:
		return replayFailure(traces, err)
	}
	if ui.json {
		err = ui.printJSON(v)
	} else {
		err = printValidation(ui, v)
	}
	if err != nil {
		return err
	}
	if wronglySafe(v) > 0 {
		return fail(exitVerdict, nil, "")
	}
	return nil
}

func (c *validateCmd) options() (replay.ValidateOptions, error) {
	opts := replay.ValidateOptions{
		FitOn: c.FitOn, Durations: c.Durations, Draws: c.Draws, Seed: c.Seed,
	}
	for _, text := range c.Limit {
		ratio, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return opts, badInput("write it as --limit 1.1", "--limit %s: not a number", text)
		}
		opts.Limits = append(opts.Limits, ratio)
	}
	if err := opts.Validate(); err != nil {
		return opts, fail(exitUsage, fmt.Errorf("%w", err), "run `highwater validate --help` for an example")
	}
	return opts, nil
}

// wronglySafe counts the verdicts "safe" on limits that the measured peak reaches.
func wronglySafe(v *replay.Validation) (n int64) {
	for _, row := range v.Limits {
		if row.Unsafe {
			n += row.Safe
		}
	}
	return n
}
