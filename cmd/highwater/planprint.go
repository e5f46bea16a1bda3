package main

import (
	"fmt"
	"slices"
	"strings"

	"highwater/analyze/report"
	"highwater/internal/units"
	"highwater/replay/plan"
)

// maxPlanRows bounds the table on a terminal; --json has every row.
const maxPlanRows = 60

// print shows the answer first, then what it rests on.
func (r *planReport) print(ui *tui) error {
	style := report.StyleOf(ui.out)
	fmt.Fprintf(ui.out, "%s\n", r.Answer)
	if c := r.cheaper(); c != "" {
		fmt.Fprintf(ui.out, "%s\n", c)
	}
	if r.Why != "" {
		fmt.Fprintf(ui.out, "%s\n", r.Why)
	}
	fmt.Fprintf(ui.out, "Limit: %s = %s (%s) less %s reserved (%s). %s\n\n", units.Bytes(r.LimitBytes),
		units.Bytes(r.MemoryBytes), r.MemorySource, units.Bytes(r.ReservedBytes), r.ReservedSource,
		r.runLength())
	if err := r.grid(style).Write(ui.out, style); err != nil {
		return err
	}
	fmt.Fprintf(ui.out, "\n  peak: %s, median; low and high bound 95 %%. P: probability of a peak above the limit.\n",
		r.peakKind())
	if n := len(r.Rows) - maxPlanRows; n > 0 {
		fmt.Fprintf(ui.out, "  %d further combinations are not shown: use --json, or vary less.\n", n)
	}
	r.printReasons(ui)
	for _, w := range r.Warnings {
		ui.warn("%s", w)
	}
	for _, path := range r.Charts {
		ui.note("drew %s", path)
	}
	return nil
}

// cheaper names the cheapest setting, where it is another one.
func (r *planReport) cheaper() string {
	if r.Cheapest == nil || *r.Cheapest == *r.Recommended {
		return ""
	}
	row, best := &r.Rows[*r.Cheapest], &r.Rows[*r.Recommended]
	return fmt.Sprintf("Cheapest within %s of its throughput: %s, %s at the peak (%s less), %s a proof.",
		units.Percent(plan.NearBestRatio), r.Name(*r.Cheapest), units.Bytes(*row.PeakBytes),
		units.Bytes(*best.PeakBytes-*row.PeakBytes), report.Value(inNanos, row.ProofIntervalNS))
}

func (r *planReport) runLength() string {
	if r.DurationNS != nil {
		return "Each setting runs for " + units.Nanos(*r.DurationNS) + "."
	}
	for i := range r.Rows {
		if n := r.Rows[i].Jobs; n > 0 {
			if n == 1 {
				return "Each setting runs 1 job."
			}
			return fmt.Sprintf("Each setting runs %d jobs.", n)
		}
	}
	return ""
}

func (r *planReport) peakKind() string {
	for i := range r.Rows {
		if r.Rows[i].PeakKind == "live" {
			return "live bytes (RSS is not known)"
		}
	}
	return "RSS"
}

// planFigures are the columns beside the varied settings; the first planNeeded of them are never
// left out for those.
var planFigures = []string{"verdict", "peak", "a proof", "P", "low", "high", "GPU idle", "rho"}

const planNeeded = 3

// grid is a row a combination. Where the terminal is narrow the names of settings take two lines;
// where that does not suffice, a row has a line for each setting.
func (r *planReport) grid(style report.Style) report.Grid {
	g := r.wide()
	if g.Fits(style, len(g.Header)) {
		return g
	}
	for i, name := range g.Header {
		g.Header[i] = breakName(name)
	}
	if g.Fits(style, len(r.Axes)+planNeeded) {
		return g
	}
	return r.stacked()
}

// wide has a column for each setting.
func (r *planReport) wide() report.Grid {
	g := report.Grid{
		Header: append(slices.Clone(r.Axes), planFigures...),
		Left:   []int{len(r.Axes)},
	}
	for i := range r.Rows[:min(len(r.Rows), maxPlanRows)] {
		var cells []string
		for _, name := range r.Axes {
			cells = append(cells, r.Rows[i].Set[name])
		}
		g.Rows = append(g.Rows, append(cells, r.figures(i)...))
	}
	return g
}

// stacked has one column for all settings.
func (r *planReport) stacked() report.Grid {
	g := report.Grid{Header: append([]string{"settings"}, planFigures...), Left: []int{1}}
	for i := range r.Rows[:min(len(r.Rows), maxPlanRows)] {
		var lines []string
		for _, name := range r.Axes {
			lines = append(lines, name+"="+r.Rows[i].Set[name])
		}
		g.Rows = append(g.Rows, append([]string{strings.Join(lines, "\n")}, r.figures(i)...))
	}
	return g
}

// figures are a row's cells under planFigures.
func (r *planReport) figures(i int) []string {
	row := &r.Rows[i]
	return []string{
		string(row.Verdict) + r.mark(i), report.Value(inBytes, row.PeakBytes),
		report.Value(inNanos, row.ProofIntervalNS), report.Value(inRatio, row.PeakOverLimitRatio),
		report.Value(inBytes, row.PeakBytesLow), report.Value(inBytes, row.PeakBytesHigh),
		report.Value(inRatio, row.GPUIdleRatio), report.Value(inRho, row.Rho),
	}
}

// breakName puts a name of several words on two lines, as narrow as that gets.
func breakName(name string) string {
	best, widest := name, len(name)
	for i, c := range name[:len(name)-1] {
		if i < 2 || c != '_' && c != ' ' {
			continue
		}
		first, second := strings.TrimRight(name[:i+1], " "), name[i+1:]
		if w := max(len(first), len(second)); w < widest {
			best, widest = first+"\n"+second, w
		}
	}
	return best
}

// mark tells the rows that the answer names.
func (r *planReport) mark(i int) string {
	switch {
	case r.Recommended != nil && *r.Recommended == i:
		return ", take"
	case r.Cheapest != nil && *r.Cheapest == i:
		return ", cheapest"
	}
	return ""
}

// maxReasons bounds the reasons shown.
const maxReasons = 6

// printReasons says once each why rows are unknown or refused.
func (r *planReport) printReasons(ui *tui) {
	seen := map[string][]string{}
	var order []string
	for i := range r.Rows {
		for _, reason := range r.Rows[i].Reasons {
			if len(seen[reason]) == 0 {
				order = append(order, reason)
			}
			seen[reason] = append(seen[reason], r.Name(i))
		}
	}
	for _, reason := range order[:min(len(order), maxReasons)] {
		fmt.Fprintf(ui.out, "  %s: %s\n", r.which(seen[reason]), reason)
	}
	if n := len(order) - maxReasons; n > 0 {
		fmt.Fprintf(ui.out, "  %d further reasons: see --json.\n", n)
	}
}

// which names some settings, short where they are many.
func (r *planReport) which(names []string) string {
	switch {
	case len(names) == len(r.Rows):
		return "all"
	case len(names) > 3:
		names = append(names[:2:2], fmt.Sprintf("and %d more", len(names)-2))
	}
	return strings.Join(names, ", ")
}
