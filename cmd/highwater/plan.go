package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"highwater/analyze/report/plot"
	"highwater/internal/units"
	"highwater/replay"
	"highwater/replay/plan"
	"highwater/tracer/trace"
)

type planCmd struct {
	Traces   []string      `arg:"" name:"trace" help:"Recorded runs of one program on one machine; several settings support more."`
	Memory   string        `placeholder:"SIZE" help:"What the machine has, such as 755GiB (default: the limit on the recorded run)."`
	Reserved string        `placeholder:"SIZE" help:"What the rest of the machine uses of it (default: measured from the first trace)."`
	Vary     []string      `sep:"none" placeholder:"NAME=VALUES" help:"A setting to vary: 1..12, 2..32:2, 1,4,partition_workers (another setting's value) or all. May be given several times (default: partition_workers from 1 to just beyond 1.5 times the most recorded)."`
	Set      []string      `sep:"none" placeholder:"NAME=VALUE" help:"A setting that differs from the recorded one in all combinations."`
	Jobs     int64         `placeholder:"N" help:"Jobs that each combination runs (default: as recorded)."`
	Duration time.Duration `placeholder:"D" help:"Run each combination for at least this long instead, such as 24h: near rho = 1 the peak depends on it."`
	Draws    int           `placeholder:"N" help:"Simulations of each combination (default 200)."`
	Seed     uint64        `default:"1" placeholder:"N" help:"Seed of the draws: same seed, same plan (default 1)."`
	Chart    []string      `sep:"none" placeholder:"FILE" help:"Also draw the plan, as FILE.html, FILE.png or FILE.svg. May be given several times."`

	whatIfFlags
}

// Help says what the exit codes mean.
func (*planCmd) Help() string {
	return "A setting is safe if the predicted probability of a peak above --memory less --reserved is below 1 % " +
		"and the traces support the setting; outside what they support it is unknown. " +
		"Exit codes: 0 if some setting is safe, 1 if all are unsafe, 3 if none is safe and some are unknown, " +
		"2 for bad usage or traces that cannot be replayed."
}

// Examples implements exampler.
func (*planCmd) Examples() string {
	return "  highwater plan run.hw --memory 755GiB --reserved 87GiB --vary partition_workers=1..12\n" +
		"  highwater plan a.hw b.hw --duration 24h --vary partition_workers=1..8 --vary channel_capacity=1,partition_workers --vary permit_release=all\n" +
		"  highwater plan run.hw --memory 256GiB --buffer a=0.5 --chart plan.html --chart plan.png\n"
}

// planReport is the plan with what the command knows of it.
type planReport struct {
	plan.Result

	MemoryBytes    int64    `json:"memory_bytes"`
	MemorySource   string   `json:"memory_source"`   // given | the limit of the recorded run, by kind
	ReservedBytes  int64    `json:"reserved_bytes"`  //
	ReservedSource string   `json:"reserved_source"` // given | measured | none
	DurationNS     *int64   `json:"duration_ns"`     // asked for; null where a number of jobs was
	Changes        string   `json:"changes"`         // what-if flags, "" for none
	Warnings       []string `json:"warnings"`
	Charts         []string `json:"charts"` // files drawn
	// the runs that the model was fitted to, as measured, last
	Recorded []replay.Recorded `json:"recorded"`
}

// Run implements the subcommand.
func (c *planCmd) Run(ui *tui) error {
	r := &planReport{Warnings: []string{}, Charts: []string{}}
	opts, err := c.options(r)
	if err != nil {
		return err
	}
	traces, err := openTraces(ui, c.Traces)
	defer closeTraces(traces)
	if err != nil {
		return err
	}
	if opts.Limit, err = c.limit(traces[0], r); err != nil {
		return err
	}
	if err := c.plan(ui, traces, opts, r); err != nil {
		return err
	}
	if err := c.draw(r); err != nil {
		return err
	}
	if ui.json {
		err = ui.printJSON(r)
	} else {
		err = r.print(ui)
	}
	if err != nil {
		return err
	}
	return r.verdict()
}

// options checks the flags before anything is read.
func (c *planCmd) options(r *planReport) (plan.Options, error) {
	opts := plan.Options{Jobs: c.Jobs, DurationNS: int64(c.Duration), Draws: c.Draws, Seed: c.Seed}
	set, err := parseAssignments("--set", c.Set)
	if err != nil {
		return opts, err
	}
	if opts.Set, err = checkReplaySettings(set); err != nil {
		return opts, err
	}
	for _, text := range c.Vary {
		axis, err := plan.ParseVary(text)
		if err != nil {
			return opts, fail(exitUsage, fmt.Errorf("--%w", err), "run `highwater plan --help` for an example")
		}
		opts.Axes = append(opts.Axes, axis)
	}
	changes, err := c.changes()
	if err != nil {
		return opts, err
	}
	opts.Change, r.Changes = applyChanges(changes), changes.Text()
	if err := c.contradiction(&opts); err != nil {
		return opts, err
	}
	if c.Draws > 0 && c.Draws < replay.ManyDraws {
		r.Warnings = append(r.Warnings, replay.FewDraws(c.Draws))
	}
	if c.Duration > 0 {
		r.DurationNS = &opts.DurationNS
	}
	for _, path := range c.Chart {
		if err := checkChart(path); err != nil {
			return opts, err
		}
	}
	check := opts // what is not known yet passes
	check.Limit, check.Axes = 1, append(check.Axes, plan.Axis{Name: "-"})
	if err := check.Validate(); err != nil {
		return opts, fail(exitUsage, err, "run `highwater plan --help` for an example")
	}
	return opts, nil
}

// contradiction refuses flags that say the same thing twice.
func (c *planCmd) contradiction(opts *plan.Options) error {
	names := sortedKeys(opts.Set)
	for _, a := range opts.Axes {
		names = append(names, a.Name)
	}
	if _, ok := opts.Set["jobs"]; ok && (c.Jobs != 0 || c.Duration != 0) {
		return badInput("give one of them", "--set jobs=%s, and --jobs or --duration: both say how long to run", opts.Set["jobs"])
	}
	return c.clash(names...)
}

func checkChart(path string) error {
	switch filepath.Ext(path) {
	case ".html", ".png", ".svg":
		return nil
	}
	return badInput("end its name in .html, .png or .svg", "--chart %s: not a kind of picture", path)
}

// limit is what the program may have: given, or that of the recorded run.
func (c *planCmd) limit(t *trace.Trace, r *planReport) (int64, error) {
	var err error
	if c.Memory != "" {
		r.MemorySource = "given"
		r.MemoryBytes, err = units.ParseBytes(c.Memory)
		if err != nil || r.MemoryBytes == 0 {
			return 0, badInput("write it as --memory 755GiB", "--memory %s: not a number of bytes above 0", c.Memory)
		}
	} else if err := recordedMemory(t, r); err != nil {
		return 0, err
	}
	switch {
	case c.Reserved != "":
		r.ReservedSource = "given"
		if r.ReservedBytes, err = units.ParseBytes(c.Reserved); err != nil {
			return 0, badInput("write it as --reserved 87GiB", "--reserved %s: not a number of bytes", c.Reserved)
		}
	case r.MemorySource == "cgroup" || r.MemorySource == "rlimit":
		r.ReservedSource = "none" // the limit is the program's own
	default:
		if err := measuredReserve(t, r); err != nil {
			return 0, err
		}
	}
	if r.ReservedBytes >= r.MemoryBytes {
		return 0, badInput("give the memory of the machine, and what of it others use",
			"%s reserved of %s: nothing is left", units.Bytes(r.ReservedBytes), units.Bytes(r.MemoryBytes))
	}
	return r.MemoryBytes - r.ReservedBytes, nil
}

// recordedMemory takes the bound that the recorded run had. What was available at its start is no
// bound of the machine; its RAM is.
func recordedMemory(t *trace.Trace, r *planReport) error {
	m := &t.Manifest
	switch {
	case m.Memory.EffectiveBytes > 0 && m.Memory.Kind != "" && m.Memory.Kind != "mem_available":
		r.MemoryBytes, r.MemorySource = m.Memory.EffectiveBytes, m.Memory.Kind
	case m.Host.RAMBytes > 0:
		r.MemoryBytes, r.MemorySource = m.Host.RAMBytes, "host"
	default:
		return badInput("give it: --memory 755GiB", "%s does not say how much memory its machine had", t.Dir)
	}
	return nil
}

func measuredReserve(t *trace.Trace, r *planReport) error {
	bytes, ok, err := plan.Reserved(t)
	if err != nil {
		return traceFailure(err)
	}
	if !ok {
		r.ReservedSource = "none"
		r.Warnings = append(r.Warnings, "what the rest of the machine uses is not known: "+
			"the trace has no samples of it; give --reserved")
		return nil
	}
	r.ReservedBytes, r.ReservedSource = bytes, "measured"
	return nil
}

func (c *planCmd) plan(ui *tui, traces []*trace.Trace, opts plan.Options, r *planReport) error {
	ctx, stop := ui.interruptible(nil)
	defer stop()
	p := ui.newProgress()
	p.update(step{Phase: "fit", Text: "traces"})
	predictor, err := replay.NewPredictor(traces, replay.PredictorOptions{})
	if err != nil {
		p.done()
		return replayFailure(traces, err)
	}
	if len(opts.Axes) == 0 {
		opts.Axes = []plan.Axis{usualAxis(predictor)}
	}
	opts.Progress = func(done, total int) {
		p.update(step{Phase: "plan", Done: done, Total: total, Text: "settings"})
	}
	result, err := plan.Run(ctx, predictor, opts)
	p.done()
	switch {
	case errors.Is(err, context.Canceled):
		return fail(exitInterrupted, errors.New("interrupted before the plan was done"), "")
	case err != nil:
		return replayFailure(traces, err)
	}
	r.Result, r.Recorded = *result, predictor.Recorded()
	return nil
}

// usualAxis is partition_workers from 1 to just beyond 1.5 times the most recorded: what the traces may
// support, and the next one up.
func usualAxis(p *replay.Predictor) plan.Axis {
	most := int64(1)
	for _, rec := range p.Recorded() {
		if s, ok := rec.Settings["partition_workers"]; ok {
			var n int64
			if _, err := fmt.Sscan(s.Value, &n); err == nil {
				most = max(most, n)
			}
		}
	}
	axis := plan.Axis{Name: "partition_workers"}
	for n := range (3*most+1)/2 + 1 {
		axis.Values = append(axis.Values, fmt.Sprint(n+1))
	}
	return axis
}

// draw writes the charts asked for.
func (c *planCmd) draw(r *planReport) error {
	for _, path := range c.Chart {
		if err := drawChart(path, &r.Result); err != nil {
			return err
		}
		r.Charts = append(r.Charts, path)
	}
	return nil
}

func drawChart(path string, result *plan.Result) error {
	charts := result.Charts()
	f, err := os.Create(path)
	if err != nil {
		return fail(exitUsage, fmt.Errorf("write chart: %w", err), "")
	}
	switch filepath.Ext(path) {
	case ".html":
		err = plot.Page(f, "Plan", result.Sentences(), charts...)
	case ".png":
		err = charts[0].PNG(f)
	default:
		err = charts[0].SVG(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
		return fail(exitUsage, err, "")
	}
	return nil
}

func (r *planReport) verdict() error {
	switch {
	case r.Count(plan.Safe) > 0:
		return nil
	case r.Count(plan.Unknown) > 0:
		return fail(exitUnsure, nil, "")
	case r.Count(plan.Unsafe) > 0:
		return fail(exitVerdict, nil, "")
	}
	return badInput("vary something else", "every setting tried is refused; the first: %s", r.Rows[0].Reasons)
}
