package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"highwater/analyze/report"
	"highwater/internal/units"
	"highwater/replay"
)

// printValidation prints each group's runs, then the errors and the verdicts over all held out.
func printValidation(ui *tui, v *replay.Validation) error {
	for i := range v.Groups {
		if err := printGroup(ui, v, i); err != nil {
			return err
		}
	}
	if err := printErrors(ui, v); err != nil {
		return err
	}
	if err := printVerdicts(ui, v); err != nil {
		return err
	}
	for _, w := range v.Warnings {
		ui.warn("%s", w)
	}
	return nil
}

// printGroup prints the runs of one group, those fitted to first.
func printGroup(ui *tui, v *replay.Validation, group int) error {
	g := &v.Groups[group]
	var names []string
	for _, n := range g.FittedOn {
		names = append(names, filepath.Base(n))
	}
	grid := report.Grid{
		Title: fmt.Sprintf("fitted to %s (%d partitions, %s durations, %s)",
			strings.Join(names, ", "), g.Partitions, v.Durations, drawsText(v.Draws)),
		Header: []string{
			"run", "peak live", "error", "peak RSS", "error", "interval", "error", "backlog", "support",
		},
		Left: []int{8},
	}
	for _, fitted := range []bool{true, false} {
		for i := range v.Cases {
			if c := &v.Cases[i]; c.Group == group && c.FittedOn == fitted {
				grid.Rows = append(grid.Rows, caseRow(c))
			}
		}
	}
	if err := grid.Write(ui.out, report.StyleOf(ui.out)); err != nil {
		return err
	}
	for i := range v.Cases {
		if c := &v.Cases[i]; c.Group == group && c.Failure != "" {
			ui.warn("%s: %s", filepath.Base(c.Trace), c.Failure)
		}
	}
	for _, w := range g.Warnings {
		ui.warn("%s", w)
	}
	return nil
}

func caseRow(c *replay.ValidationCase) []string {
	name := filepath.Base(c.Trace)
	if c.FittedOn {
		name += " (fit)"
	}
	cells := []string{name}
	for _, f := range []struct {
		unit string
		of   *replay.Compared
	}{{inBytes, c.PeakLive}, {inBytes, c.PeakRSS}, {inNanos, c.ProofInterval}} {
		cells = append(cells, measuredText(f.unit, f.of), errorText(f.of))
	}
	backlog := report.Unknown
	if b := c.Backlog; b != nil {
		backlog = fmt.Sprintf("%d %+d", b.Measured, b.Predicted-b.Measured)
	}
	support := c.Support
	if c.Failure != "" {
		support = "not predicted"
	}
	return append(cells, backlog, support)
}

func measuredText(unit string, c *replay.Compared) string {
	if c == nil {
		return report.Unknown
	}
	return report.Value(unit, c.Measured)
}

// errorText is the error, marked where the bounds do not hold what was measured.
func errorText(c *replay.Compared) string {
	if c == nil {
		return report.Unknown
	}
	text := deviation(c.ErrorRatio)
	if c.Within != nil && !*c.Within {
		text += " !"
	}
	return text
}

// printErrors prints the errors over the runs held out and over those fitted to.
func printErrors(ui *tui, v *replay.Validation) error {
	grid := report.Grid{
		Title:  "errors: predicted over measured (above, ! is outside the 95 % bounds)",
		Header: []string{"", "runs", "mean size", "worst", "mean", "within 95 %"},
	}
	for _, set := range []struct {
		name string
		of   *replay.ValidationErrors
	}{{"held out", v.HeldOut}, {"fitted to", v.Fitted}} {
		if set.of == nil {
			continue
		}
		for _, f := range []struct {
			name string
			of   *replay.ErrorStats
		}{
			{"peak live", set.of.PeakLive}, {"peak RSS", set.of.PeakRSS},
			{"proof interval", set.of.ProofInterval}, {"backlog", set.of.Backlog},
		} {
			grid.Rows = append(grid.Rows, errorRow(set.name+": "+f.name, f.of))
		}
	}
	if err := grid.Write(ui.out, report.StyleOf(ui.out)); err != nil {
		return err
	}
	return printPace(ui, v)
}

// printPace says by how much the machine's own speed differed from run to run.
func printPace(ui *tui, v *replay.Validation) error {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range v.Cases {
		if r := v.Cases[i].CPUPaceRatio; r != nil {
			low, high = min(low, *r), max(high, *r)
		}
	}
	if low > high {
		return nil
	}
	_, err := fmt.Fprintf(ui.out, "  the same computation took %.2f to %.2f times as long as in the traces fitted to; "+
		"each run is predicted at its own pace\n", low, high)
	return err
}

func errorRow(name string, s *replay.ErrorStats) []string {
	if s == nil {
		u := report.Unknown
		return []string{name, "0", u, u, u, u}
	}
	within := report.Unknown
	if s.Within != nil {
		within = units.Percent(*s.Within)
	}
	return []string{
		name, fmt.Sprint(s.Runs), units.Percent(s.Mean), units.SignedPercent(s.Worst),
		units.SignedPercent(s.Bias), within,
	}
}

// printVerdicts prints the confusion matrix over the runs held out.
func printVerdicts(ui *tui, v *replay.Validation) error {
	if v.HeldOut == nil {
		return nil
	}
	grid := report.Grid{
		Title:  "verdicts on limits around the measured peak, runs held out",
		Header: []string{"limit", "in truth", "called safe", "called unsafe", "unknown"},
		Left:   []int{1},
	}
	for _, r := range v.Limits {
		truth := "safe"
		if r.Unsafe {
			truth = "unsafe"
		}
		grid.Rows = append(grid.Rows, []string{
			fmt.Sprintf("%.4g × peak", r.LimitRatio), truth, fmt.Sprint(r.Safe), fmt.Sprint(r.NotSafe),
			fmt.Sprint(r.Unknown),
		})
	}
	if err := grid.Write(ui.out, report.StyleOf(ui.out)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(ui.out, "  %d of %d runs held out are inside what the traces support; "+
		"%d unsafe limits were called safe\n", v.HeldOut.Inside, v.HeldOut.Runs, wronglySafe(v))
	return err
}
