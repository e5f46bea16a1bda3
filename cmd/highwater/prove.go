package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"highwater/prover"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

type proveCmd struct {
	Out      string `placeholder:"DIR.hw" help:"Trace directory to make (default: CIRCUIT-LOGSIZE-TIME.hw here)."`
	NoRecord bool   `help:"Record no trace."`
	CacheDir string `placeholder:"DIR" env:"HIGHWATER_CACHE_DIR" help:"Where keys are kept (default: highwater in the user's cache directory)."`
	// BadWitness is for tests and for seeing what a failed job looks like.
	BadWitness []string `hidden:"" placeholder:"JOB/PARTITION" help:"Make this partition's witness wrong."`
	Config     string   `placeholder:"FILE" env:"HIGHWATER_CONFIG" help:"TOML file of settings; environment and flags win over it."`

	settingFlags
}

// Help says what the exit codes mean.
func (*proveCmd) Help() string {
	return "Every proof is checked with gnark's own verifier. Exit codes: 1 if a job failed, " +
		"2 for bad usage or a backend that is not there, 130 after Ctrl-C " +
		"(the first one finishes cleanly with a sealed trace, the second leaves at once)."
}

// Examples implements exampler.
func (*proveCmd) Examples() string {
	return "  highwater prove --circuit label --log-size 18 --jobs 4 --partitions 4 --out run.hw\n" +
		"  highwater prove --config incident.toml --permit-release synth_end --json\n" +
		"  HIGHWATER_PARTITION_WORKERS=4 highwater prove --circuit mimc --log-size 14 --no-record\n"
}

// Run implements the subcommand.
func (c *proveCmd) Run(ui *tui) error {
	warnUnknownEnv(ui, os.Environ())
	values, err := processLayers(c.Config, c.given()).merge()
	if err != nil {
		return err
	}
	cfg, err := c.proverConfig(values)
	if err != nil {
		return err
	}
	result, err := proveWithProgress(ui, cfg)
	if err != nil {
		return proveFailure(err)
	}
	return reportProof(ui, result, values)
}

func (c *proveCmd) proverConfig(values *setting.Values) (prover.Config, error) {
	v := currentVersion()
	cfg := prover.Config{
		Settings: values, CacheDir: c.CacheDir,
		Program: "highwater", Args: os.Args[1:], Commit: v.Commit, Dirty: v.Dirty, Versions: v.Libraries,
	}
	var err error
	if cfg.BadWitness, err = parseBadWitness(c.BadWitness); err != nil {
		return cfg, err
	}
	switch {
	case c.NoRecord && c.Out != "":
		return cfg, badInput("leave one of them out", "--no-record and --out %s contradict each other", c.Out)
	case c.NoRecord:
		return cfg, nil
	case c.Out != "":
		cfg.Dir = c.Out
	default:
		cfg.Dir = fmt.Sprintf("%s-%s-%s.hw",
			values.Text("circuit"), values.Text("log_size"), time.Now().Format("20060102-150405"))
	}
	return cfg, checkNewDir(cfg.Dir)
}

func parseBadWitness(args []string) (bad []prover.JobPartition, err error) {
	for _, text := range args {
		var jp prover.JobPartition
		if n, err := fmt.Sscanf(text+"\n", "%d/%d\n", &jp.Job, &jp.Partition); n != 2 || err != nil {
			return nil, badInput("write it as --bad-witness 1/0", "--bad-witness %s: no JOB/PARTITION", text)
		}
		bad = append(bad, jp)
	}
	return bad, nil
}

// checkNewDir refuses a trace directory that would mix two traces, and one that cannot be made.
func checkNewDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o777); err == nil {
			err = os.Remove(dir) // only a try: who writes the trace makes it
		}
	}
	if err != nil {
		return fail(exitUsage, fmt.Errorf("make trace directory: %w", err),
			"give an --out in a folder that you may write to")
	}
	if len(entries) == 0 {
		return nil
	}
	return badInput("give another --out, or remove it first",
		"trace directory %s already holds %s", dir, entries[0].Name())
}

func proveWithProgress(ui *tui, cfg prover.Config) (*prover.Result, error) {
	ctx, stop := ui.interruptible(func() string { return abandonedHint(cfg.Dir) })
	defer stop()
	p := ui.newProgress()
	cfg.Progress = func(pr prover.Progress) {
		if pr.Phase != prover.PhaseDone {
			p.update(proverStep(pr))
		}
	}
	result, err := prover.Run(ctx, cfg)
	p.done()
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil, fail(exitInterrupted, errors.New("interrupted before proving began"), "")
	}
	return result, err
}

func abandonedHint(dir string) string {
	if dir == "" {
		return "nothing was being recorded"
	}
	return fmt.Sprintf("run `highwater recover %s` to seal what was recorded", dir)
}

// phaseTexts say what goes on in a phase that has nothing to count.
var phaseTexts = map[string]string{
	prover.PhaseSetup: "compiling the circuit and making its keys, once for this size and seed",
	prover.PhaseLoad:  "reading the keys",
	prover.PhaseSeal:  "writing the trace",
}

// proverStep says where the prover is, in one short line.
func proverStep(p prover.Progress) step {
	s := step{Phase: p.Phase, Text: p.Message}
	if s.Text == "" {
		s.Text = phaseTexts[p.Phase]
	}
	if p.Phase == prover.PhaseProve {
		s.Done, s.Total = p.PartitionsDone, p.Partitions
		s.Text = fmt.Sprintf("partitions, %d waiting, %d/%d jobs", p.Waiting, p.JobsDone, p.Jobs)
		if p.JobsFailed > 0 {
			s.Text += fmt.Sprintf(", %d failed", p.JobsFailed)
		}
	}
	return s
}

// proveFailure adds what to do to an error of the run as a whole.
func proveFailure(err error) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, prover.ErrNoDevice):
		return fail(exitUsage, err, "use --backend cpu, or leave --backend at auto")
	case errors.Is(err, os.ErrPermission):
		return fail(exitUsage, err, "give a --out and a --cache-dir that you may write to")
	}
	return fail(exitUsage, err, "")
}

// reportProof prints the result and gives the status it stands for.
func reportProof(ui *tui, r *prover.Result, values *setting.Values) error {
	report, err := newProveReport(r, values)
	if err != nil {
		return err
	}
	for _, w := range report.Warnings {
		ui.warn("%s", w)
	}
	if ui.json {
		err = ui.printJSON(report)
	} else {
		err = report.print(ui)
	}
	if err != nil {
		return err
	}
	switch r.End {
	case trace.EndInterrupted:
		return fail(exitInterrupted, fmt.Errorf("interrupted: %d of %d jobs finished", r.JobsFinished, len(r.Jobs)), "")
	case trace.EndFailed:
		return fail(exitVerdict, fmt.Errorf("%d of %d jobs failed; %s", r.JobsFailed, len(r.Jobs), firstFailure(r)),
			"--json gives every job's reason")
	}
	return nil
}

func firstFailure(r *prover.Result) string {
	for _, j := range r.Jobs {
		if j.State == prover.JobFailed {
			return fmt.Sprintf("job %d, partition %d, stage %s: %s", j.Job, j.Partition, j.Stage, j.Reason)
		}
	}
	return "no job says why"
}
