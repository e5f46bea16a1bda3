package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"highwater/tracer/trace"
)

// openTrace opens a trace for reading and says so where it is not a finished one.
func openTrace(ui *tui, dir string) (*trace.Trace, error) {
	t, err := trace.Open(dir)
	if err != nil {
		return nil, traceFailure(err)
	}
	if t.Live {
		ui.note("%s is not sealed: reading its journal as it stands", dir)
	}
	return t, nil
}

// openTraces opens several; those that were opened come back with an error too, to be closed. One
// that is given twice is refused: what it shows would count twice.
func openTraces(ui *tui, dirs []string) ([]*trace.Trace, error) {
	var out []*trace.Trace
	var seen []os.FileInfo
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			same := func(other os.FileInfo) bool { return os.SameFile(info, other) }
			if slices.ContainsFunc(seen, same) {
				return out, badInput("give each trace once", "%s is given twice", dir)
			}
			seen = append(seen, info)
		}
		t, err := openTrace(ui, dir)
		if err != nil {
			return out, err
		}
		out = append(out, t)
	}
	return out, nil
}

func closeTraces(traces []*trace.Trace) {
	for _, t := range traces {
		t.Close()
	}
}

// traceFailure is a failure to read a trace: the message, and the hint apart from it.
func traceFailure(err error) error {
	if err == nil {
		return nil
	}
	var fe *trace.FileError
	if !errors.As(err, &fe) {
		return fail(exitUsage, err, "")
	}
	hint := fe.Hint
	msg := strings.Replace(err.Error(), " ("+hint+")", "", 1)
	if hint == "" && errors.Is(err, trace.ErrNotTrace) {
		hint = "give the directory NAME.hw that `highwater prove` or `highwater replay --out` made"
	}
	return fail(exitUsage, &reworded{msg, err}, hint)
}

// reworded is an error under a shorter text.
type reworded struct {
	text string
	err  error
}

func (r *reworded) Error() string { return r.text }
func (r *reworded) Unwrap() error { return r.err }

// parseAssignments reads name=value arguments.
func parseAssignments(flag string, args []string) (map[string]string, error) {
	set := map[string]string{}
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		name = strings.ReplaceAll(strings.TrimSpace(name), "-", "_")
		if !ok || name == "" {
			return nil, badInput(fmt.Sprintf("write it as %s permit_release=send_accepted", flag),
				"%s %s: no name=value", flag, a)
		}
		if _, twice := set[name]; twice {
			return nil, badInput("give each setting once", "%s %s: %s is set twice", flag, a, name)
		}
		set[name] = value
	}
	return set, nil
}
