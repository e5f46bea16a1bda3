package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"highwater/internal/units"
	"highwater/replay"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

type replayCmd struct {
	Traces    []string `arg:"" optional:"" name:"trace" help:"Traces to replay, recorded or simulated by an earlier replay. Several runs of one program, recorded under several settings, support more; settings and recorded figures are those of the first. None with --model."`
	Set       []string `sep:"none" placeholder:"NAME=VALUE" help:"A setting that differs from the recorded one; may be given several times."`
	Durations string   `enum:"recorded,fitted" default:"fitted" placeholder:"recorded|fitted" help:"recorded keeps each partition's own times, which is right only near the recorded settings; fitted draws them from the fitted contention law (default fitted)."`
	Draws     int      `default:"0" placeholder:"N" help:"Simulations to take the median and the interval of (default 200)."`
	Seed      uint64   `default:"1" placeholder:"N" help:"Seed of the draws: same seed, same prediction (default 1)."`
	Memory    string   `placeholder:"SIZE" help:"A limit such as 755GiB: also say how likely the peak is above it."`
	Out       string   `placeholder:"DIR.hw" help:"Write the median draw as a trace."`

	whatIfFlags
	modelFlags
}

// Help says what the exit codes mean.
func (*replayCmd) Help() string {
	var names []string
	for _, s := range setting.Table() {
		if s.Replay {
			names = append(names, s.Name)
		}
	}
	return "Settings that replay can vary: " + strings.Join(names, ", ") +
		". Exit codes: 1 only with --memory, when at least 1 % of the draws peak above it; " +
		"2 for bad usage or a trace that cannot be replayed."
}

// Examples implements exampler.
func (*replayCmd) Examples() string {
	return "  highwater replay run.hw --set permit_release=send_accepted\n" +
		"  highwater replay run.hw --set partition_workers=12 --set channel_capacity=12 --memory 755GiB\n" +
		"  highwater replay few-workers.hw many-workers.hw --set partition_workers=5\n" +
		"  highwater replay run.hw --scale synthesis=0.5 --free a@prove_start\n" +
		"  highwater replay run.hw --durations recorded --out again.hw\n" +
		"  highwater replay --model cuzk/v7b --set partition_workers=12 --set jobs=20 --memory 668GiB\n" +
		"  highwater replay --list-models\n"
}

// Run implements the subcommand.
func (c *replayCmd) Run(ui *tui) error {
	if err := c.usage(ui.json); err != nil {
		return err
	}
	switch {
	case c.ListModels:
		return c.list(ui)
	case c.Published:
		return c.published(ui)
	}
	opts, err := c.options()
	if err != nil {
		return err
	}
	if c.Model != "" {
		return c.runModel(ui, opts)
	}
	traces, err := openTraces(ui, c.Traces)
	defer closeTraces(traces)
	if err != nil {
		return err
	}
	s, err := fitTraces(ui, traces, c.Durations)
	if err != nil {
		return err
	}
	return c.answer(ui, s, opts, func(p *replay.Prediction) error {
		err := printPrediction(ui, strings.Join(c.Traces, ", "), opts.Set, p)
		printWhy(ui, p)
		return err
	})
}

// subject is what is replayed: a model, fitted to traces or not.
type subject struct {
	*replay.Predictor
	traces []*trace.Trace // none of a model that no trace was fitted for
}

// fitTraces fits a model to the traces.
func fitTraces(ui *tui, traces []*trace.Trace, durations string) (*subject, error) {
	p := ui.newProgress()
	if len(traces) > 1 {
		p.update(step{Phase: "fit", Text: "traces"})
	}
	predictor, err := replay.NewPredictor(traces, replay.PredictorOptions{Durations: durations})
	p.done()
	if err != nil {
		return nil, replayFailure(traces, err)
	}
	return &subject{predictor, traces}, nil
}

// predict replays with a progress bar.
func (s *subject) predict(ui *tui, opts replay.Options) (*replay.Prediction, error) {
	ctx, stop := ui.interruptible(nil)
	defer stop()
	p := ui.newProgress()
	opts.Progress = func(done, total int) { p.update(step{Phase: "replay", Done: done, Total: total, Text: "draws"}) }
	prediction, err := s.Run(ctx, opts)
	p.done()
	switch {
	case err == nil:
		return prediction, nil
	case errors.Is(err, context.Canceled):
		return nil, fail(exitInterrupted, errors.New("interrupted before the replay was done"), "")
	}
	return nil, replayFailure(s.traces, err)
}

// replayReport is the prediction with what the optimisation asked about changes.
type replayReport struct {
	*replay.Prediction
	FittedOn []string `json:"fitted_on"` // the traces; none with --model
	Verdict  *string  `json:"verdict"`   // safe | unsafe | unknown, of --memory; null without
	WhatIf   *whatIf  `json:"what_if"`   // null where none was asked about
	Why      *string  `json:"why"`       // what makes the peak, where partitions pile up; null elsewhere
	// the first trace as measured, last
	Recorded replay.Recorded `json:"recorded"`
}

// answer replays, without the what-if flags too where there are any, and prints what comes of it:
// as JSON, or by show.
func (c *replayCmd) answer(ui *tui, s *subject, opts replay.Options, show func(*replay.Prediction) error) error {
	prediction, err := s.predict(ui, opts)
	if err != nil {
		return err
	}
	effect, err := c.effect(ui, s, opts, prediction)
	if err != nil {
		return err
	}
	if ui.json {
		on := append([]string{}, c.Traces...)
		err = ui.printJSON(replayReport{prediction, on, verdictOf(prediction), effect, why(prediction), prediction.Recorded})
	} else if err = show(prediction); err == nil {
		effect.print(ui, prediction)
	}
	if err != nil {
		return err
	}
	return c.verdict(prediction)
}

// effect replays without the what-if flags too, where there are any.
func (c *replayCmd) effect(ui *tui, s *subject, opts replay.Options, with *replay.Prediction) (*whatIf, error) {
	changes, err := c.changes()
	if err != nil || changes.None() {
		return nil, err
	}
	opts.Change, opts.Out = nil, ""
	without, err := s.predict(ui, opts)
	if err != nil {
		return nil, err
	}
	return compareWhatIf(changes.Text(), with, without), nil
}

func (c *replayCmd) options() (replay.Options, error) {
	opts := replay.Options{Durations: c.Durations, Draws: c.Draws, Seed: c.Seed, Out: c.Out}
	set, err := parseAssignments("--set", c.Set)
	if err != nil {
		return opts, err
	}
	if opts.Set, err = c.checkSettings(set); err != nil {
		return opts, err
	}
	changes, err := c.changes()
	if err != nil {
		return opts, err
	}
	opts.Change = applyChanges(changes)
	if err := c.clash(sortedKeys(set)...); err != nil {
		return opts, err
	}
	if c.Memory != "" {
		if opts.MemoryLimit, err = units.ParseBytes(c.Memory); err != nil || opts.MemoryLimit == 0 {
			return opts, badInput("write it as --memory 755GiB", "--memory %s: not a number of bytes above 0", c.Memory)
		}
	}
	if c.Out != "" {
		return opts, checkNewDir(c.Out)
	}
	return opts, nil
}

// checkReplaySettings refuses names and values that no trace could be replayed with, before
// anything is read.
func checkReplaySettings(set map[string]string) (map[string]string, error) {
	checked := map[string]string{}
	for _, name := range sortedKeys(set) {
		if isModelSetting(name) {
			return nil, badInput("replay a model with it, such as highwater replay --model cuzk/v14 --set "+name+"=…",
				"--set %s: only models have this setting, traces do not", name)
		}
		s, err := setting.Lookup(name)
		if err != nil {
			return nil, fail(exitUsage, fmt.Errorf("--set %s=%s: %w", name, set[name], err),
				"run `highwater replay --help` for the settings that replay can vary")
		}
		if !s.Replay {
			return nil, badInput("record another run with it: highwater prove --"+s.Flag()+" …",
				"--set %s: replay cannot vary this setting", name)
		}
		if checked[name], err = s.Parse(set[name]); err != nil {
			return nil, fail(exitUsage, fault("--set "+name, s, err), "")
		}
	}
	return checked, nil
}

// replayWithProgress fits a model to one trace and replays it.
func replayWithProgress(ui *tui, t *trace.Trace, opts replay.Options) (*replay.Prediction, error) {
	s, err := fitTraces(ui, []*trace.Trace{t}, opts.Durations)
	if err != nil {
		return nil, err
	}
	return s.predict(ui, opts)
}

// replayFailure is why traces, or a model, could not be replayed.
func replayFailure(traces []*trace.Trace, err error) error {
	var fe *trace.FileError
	if errors.As(err, &fe) {
		return traceFailure(err)
	}
	if slices.ContainsFunc(traces, func(t *trace.Trace) bool { return t.Live }) {
		return fail(exitUsage, err, "if the run still goes on, wait for more of it; "+
			"if it was killed, sealing it adds nothing: record another run")
	}
	return fail(exitUsage, err, "")
}

func (c *replayCmd) verdict(p *replay.Prediction) error {
	if c.Memory == "" {
		return nil
	}
	if p.PeakOverLimitRatio == nil {
		return badInput("replay a trace whose buffers or RSS were recorded",
			"%s: no memory figures to compare with --memory", c.what())
	}
	if *p.PeakOverLimitRatio >= replay.UnsafeRatio {
		return fail(exitVerdict, nil, "")
	}
	return nil
}
