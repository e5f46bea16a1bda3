// Command highwater finds out why a proving pipeline ran out of memory, and says what other
// settings would do: it records a run, replays the recording under other settings, and explains
// where the memory waited.
//
// Each subcommand has its own file; none computes anything itself. Exit codes: 0 fine, 2 bad input
// or usage, 130 after Ctrl-C; commands that give a verdict say in their help what their 1 means, and
// `plan` and `diff` what their 3 does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/consensys/gnark/logger"

	"highwater/prover"
)

// cli is the command line's grammar.
type cli struct {
	JSON  bool `name:"json" help:"Print one JSON object on stdout instead of text (keys: docs/json.md)."`
	Quiet bool `short:"q" help:"Print no progress on stderr."`

	Prove      proveCmd      `cmd:"" help:"Prove jobs through the pipeline and record the run as a trace."`
	Replay     replayCmd     `cmd:"" help:"Predict peak memory and throughput of a recorded run under other settings."`
	Plan       planCmd       `cmd:"" help:"Say which settings are safe under a memory limit, and which of them to take."`
	Validate   validateCmd   `cmd:"" help:"Fit to some runs of a program, predict the others, and print by how much that errs."`
	Analyze    analyzeCmd    `cmd:"" help:"Say what held the memory at a trace's peak, and why."`
	Diff       diffCmd       `cmd:"" help:"Say what changed between two traces or sets of traces, with a verdict that CI can gate on."`
	History    historyCmd    `cmd:"" help:"Show a series of traces by commit, and the commits where something changed."`
	Corpus     corpusCmd     `cmd:"" hidden:"" help:"Make labelled traces, faulty and clean, and count how analyze judges them."`
	Oom        oomCmd        `cmd:"" name:"oom" help:"Say why a process was killed for memory, from kernel logs, exit statuses and error messages."`
	Recover    recoverCmd    `cmd:"" help:"Seal the trace of a killed run, and print what was lost."`
	Info       infoCmd       `cmd:"" help:"Show what a trace holds, finished or still being written."`
	Export     exportCmd     `cmd:"" help:"Write a trace as a pprof profile, as CSV tables or as text."`
	Demo       demoCmd       `cmd:"" help:"Reproduce the incident on this machine, predict the remedy, and check the prediction."`
	Bench      benchCmd      `cmd:"" help:"Time NTTs, MSMs and whole proofs, on a device or on the CPU."`
	Version    versionCmd    `cmd:"" help:"Print the version, and those of the schema and of the libraries that matter."`
	Completion completionCmd `cmd:"" help:"Print a completion script for your shell."`
}

func main() {
	logger.Disable() // gnark logs to stdout, which is the result's
	os.Exit(run(os.Stdout, os.Stderr, os.Args[1:]))
}

// run is the whole program but for the exit: it turns the command's error into messages and a
// status.
func run(stdout, stderr io.Writer, args []string) (code int) {
	ui := &tui{out: stdout, err: stderr}
	defer func() {
		if r := recover(); r != nil {
			code = ui.internalError(r, debug.Stack())
		}
	}()
	return ui.exit(highwater(ui, args))
}

// highwater parses args and runs the subcommand that they name.
func highwater(ui *tui, args []string) error {
	var c cli
	parser, err := newParser(&c, ui)
	if err != nil {
		return fmt.Errorf("build the command line: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if args[0] == prover.SetupSubcommand {
		// The process in which prove sets keys up. It ends with its parent, which also handles Ctrl-C.
		return prover.SetupMain(context.Background(), args[1:])
	}
	kctx, err := parser.Parse(args)
	if errors.Is(err, errHelpPrinted) {
		return nil
	}
	if err != nil {
		return usageError(err)
	}
	ui.json, ui.quiet = c.JSON, c.Quiet
	return kctx.Run(ui)
}

func newParser(c *cli, ui *tui) (*kong.Kong, error) {
	c.Prove.settingFlags = newSettingFlags()
	return kong.New(c,
		kong.Name("highwater"),
		kong.Description("Find out why a proving pipeline ran out of memory, and what other settings would do."),
		kong.Writers(ui.out, ui.err),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ExplicitGroups([]kong.Group{settingsGroup}),
	)
}

// errHelpPrinted ends parsing once help was printed: kong's own way out is os.Exit.
var errHelpPrinted = errors.New("help printed")

// exampler is a command that shows how it is used, at the end of its help.
type exampler interface{ Examples() string }

func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	node := ctx.Selected()
	if node == nil {
		fmt.Fprint(ctx.Stdout, "\n"+rootExamples)
	} else if e, ok := node.Target.Addr().Interface().(exampler); ok {
		fmt.Fprint(ctx.Stdout, "\nExamples:\n"+e.Examples())
	}
	return errHelpPrinted
}

const rootExamples = `Examples:
  highwater demo
  highwater prove --circuit label --log-size 16 --jobs 2 --partitions 4 --out run.hw
  highwater analyze run.hw
  highwater replay run.hw --set permit_release=synth_end
`

// usageError wraps an error of the parser: status 2, and where to read on.
func usageError(err error) error {
	hint := "run `highwater --help` for the commands"
	var pe *kong.ParseError
	if errors.As(err, &pe) && pe.Context != nil && pe.Context.Selected() != nil {
		hint = fmt.Sprintf("run `%s --help` for its flags and an example", pe.Context.Selected().FullPath())
	}
	if missing, ok := strings.CutPrefix(err.Error(), "expected "); ok {
		err = fmt.Errorf("missing argument: %s", strings.ReplaceAll(missing, `"`, ""))
	}
	return fail(exitUsage, err, hint)
}
