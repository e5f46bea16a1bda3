package main

// Rules of the interface:
//   - stdout carries the result and nothing else; with --json it is one JSON object.
//   - Progress, warnings, errors and hints go to stderr, each line headed "highwater: ".
//   - A failure is one message that says what went wrong and where, then at most one hint that says what to do.
//   - Bars are drawn on a terminal; elsewhere progress is a plain line every few seconds. --quiet leaves it out.
//   - A panic is a bug of ours: the user gets one line, and a file with the stack to send us.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"highwater/analyze/report"
)

// Exit codes; design.md, "Commands".
const (
	exitFine        = 0
	exitVerdict     = 1 // what the command was asked to look out for is there; each command's help says what that is
	exitUsage       = 2 // bad input or usage
	exitUnsure      = 3 // no verdict: too little is known; each command's help says when
	exitInterrupted = 130
)

// tui is where a command's result, messages and progress go.
type tui struct {
	out, err    io.Writer
	json, quiet bool
	drawing     atomic.Pointer[bars] // messages go above bars while they are drawn
}

// failure is an error with its exit code and a hint. A nil err exits with the code without a
// message: the result said it.
type failure struct {
	code int
	err  error
	hint string
}

func fail(code int, err error, hint string) error { return &failure{code, err, hint} }

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit status %d", f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// badInput is a failure with status 2.
func badInput(hint, format string, args ...any) error {
	return fail(exitUsage, fmt.Errorf(format, args...), hint)
}

// exit prints err and gives the status to exit with. An error that is no failure counts as bad
// input.
func (ui *tui) exit(err error) int {
	if err == nil {
		return exitFine
	}
	f := &failure{code: exitUsage, err: err}
	errors.As(err, &f)
	if f.err != nil {
		ui.say("error: %s", oneMessage(f.err))
	}
	if f.hint != "" {
		ui.say("hint: %s", f.hint)
	}
	return f.code
}

// oneMessage keeps a message on lines that are plainly part of it: continuation lines are indented.
func oneMessage(err error) string {
	return strings.ReplaceAll(strings.TrimRight(err.Error(), "\n"), "\n", "\n  ")
}

// say prints a line on stderr.
func (ui *tui) say(format string, args ...any) {
	line := fmt.Sprintf("highwater: "+format+"\n", args...)
	if b := ui.drawing.Load(); b == nil || !b.above(line) {
		io.WriteString(ui.err, line)
	}
}

// warn prints a doubt about the result.
func (ui *tui) warn(format string, args ...any) { ui.say("warning: "+format, args...) }

// note prints what the user may want to know while waiting; --quiet leaves it out.
func (ui *tui) note(format string, args ...any) {
	if !ui.quiet {
		ui.say(format, args...)
	}
}

// printJSON prints the result as one JSON object.
func (ui *tui) printJSON(v any) error { return report.JSON(ui.out, v) }

// internalError reports a panic without its stack, which goes to a file.
func (ui *tui) internalError(panicked any, stack []byte) int {
	ui.say("error: internal error: %v", panicked)
	f, err := os.CreateTemp("", "highwater-bug-*.txt")
	if err != nil {
		ui.say("hint: this is a bug in highwater; no file for its stack could be made: %v", err)
		return exitUsage
	}
	defer f.Close()
	fmt.Fprintf(f, "%s\nargs: %q\npanic: %v\n\n%s", versionLine(), os.Args, panicked, stack)
	ui.say("hint: this is a bug in highwater: please report it with %s", f.Name())
	return exitUsage
}
