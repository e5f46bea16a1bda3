package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"highwater/analyze/compare"
	"highwater/analyze/report"
	"highwater/internal/units"
)

// diffText prints a comparison: the verdict, what it rests on, the sides, outcomes, explanations,
// the peak by class.
func diffText(out io.Writer, d *compare.Diff, all bool) error {
	style := report.StyleOf(out)
	w := &lineWriter{out: out, style: style}
	for _, x := range d.Differences {
		if x.Accepted {
			w.line("across %s: %s", x.Kind, x)
		}
	}
	w.paragraph("%s", d.Sentence)
	if d.BasisText != "" {
		w.paragraph("  %s.", d.BasisText)
	}
	w.blank()
	w.values(diffSides(d))
	w.barriers(d)
	w.grid(judged(d, rowsGrid("what users pay", d.Outcomes, all)))
	w.hidden(d.Outcomes, all, "outcomes")
	w.grid(rowsGrid("what moved beside it; which of it is a cause, counters do not say",
		d.Explanations, all))
	w.hidden(d.Explanations, all, "explanations")
	for i := range d.PeakSplits {
		w.split(&d.PeakSplits[i])
	}
	w.remarks(d)
	return w.err
}

// lineWriter prints paragraphs and tables and keeps the first error.
type lineWriter struct {
	out   io.Writer
	style report.Style
	err   error
}

func (w *lineWriter) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format+"\n", args...)
	}
}

func (w *lineWriter) blank() { w.line("") }

// paragraph wraps a sentence to the width, continuation lines indented like the first.
func (w *lineWriter) paragraph(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	indent := len(text) - len(strings.TrimLeft(text, " "))
	width := w.style.Width
	if width <= 0 {
		width = 100
	}
	line := strings.Repeat(" ", indent)
	for i, word := range strings.Fields(text) {
		if i > 0 && len([]rune(line))+1+len([]rune(word)) > width {
			w.line("%s", line)
			line = strings.Repeat(" ", indent)
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	w.line("%s", line)
}

func (w *lineWriter) grid(g report.Grid) {
	if w.err == nil && len(g.Rows) > 0 {
		w.blank()
		w.err = g.Write(w.out, w.style)
	}
}

func (w *lineWriter) values(list []report.KeyValue) {
	if w.err == nil {
		w.err = report.KeyValues(w.out, "", list, w.style)
	}
}

func diffSides(d *compare.Diff) []report.KeyValue {
	return []report.KeyValue{
		{Key: "base", Value: sideText(&d.Base)}, {Key: "new", Value: sideText(&d.New)},
	}
}

func sideText(s *compare.Side) string {
	text := s.Traces[0]
	if n := len(s.Traces); n > 1 {
		text += " … " + s.Traces[n-1]
	}
	text += fmt.Sprintf(" (%s, commit %s", plural(s.Runs, "run"), strings.Join(s.Commits, ", "))
	if t := s.ThroughputPerHour; t != nil {
		text += ", " + perHour(*t)
	}
	return text + ")"
}

func perHour(v float64) string {
	digits := 0
	if v < 100 {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " proofs/h"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// barriers lists what keeps the sides from being compared.
func (w *lineWriter) barriers(d *compare.Diff) {
	if d.Basis != compare.BasisNone {
		return
	}
	g := report.Grid{
		Title:  "what differs besides the code",
		Header: []string{"", "", "base", "new"}, Left: []int{1, 2, 3},
	}
	kinds := map[string]bool{}
	for _, x := range d.Differences {
		if !x.Accepted {
			g.Rows = append(g.Rows, []string{
				x.Kind, x.Name, compare.ValueList(x.Base), compare.ValueList(x.New),
			})
			kinds[x.Kind] = x.Kind != compare.KindRun
		}
	}
	w.grid(g)
	var across []string
	for _, k := range compare.AcrossKinds() {
		if kinds[k] {
			across = append(across, k)
		}
	}
	if len(across) > 0 {
		w.paragraph("  To compare across it on purpose: --across %s. The figures below judge "+
			"nothing.", strings.Join(across, ","))
	} else {
		w.paragraph("  The figures below judge nothing.")
	}
}

// rowsGrid is a table of rows: those that moved or could not be judged, and headline figures.
func rowsGrid(title string, rows []compare.Row, all bool) report.Grid {
	g := report.Grid{
		Title:  title,
		Header: []string{"", "base", "new", "change", "p", ""}, Left: []int{5},
	}
	for i := range rows {
		r := &rows[i]
		if !all && !isShown(r) {
			continue
		}
		g.Rows = append(g.Rows, []string{
			r.Label(), medianText(r.Name, r.BaseMedian, r.BaseLow, r.BaseHigh),
			medianText(r.Name, r.NewMedian, r.NewLow, r.NewHigh), r.Change(), pText(r),
			verdictText(r),
		})
	}
	return g
}

// judged is a table of outcomes without verdicts where the sides cannot be compared.
func judged(d *compare.Diff, g report.Grid) report.Grid {
	if d.Basis == compare.BasisNone {
		for _, r := range g.Rows {
			r[len(r)-1] = ""
		}
	}
	return g
}

// isShown says whether a row is worth a line where not all are asked for.
func isShown(r *compare.Row) bool {
	switch {
	case r.Headline() || r.Name == compare.StageTime:
		return true
	case !r.Outcome():
		return r.Verdict == compare.Moved
	}
	return r.Verdict == compare.Regression || r.Verdict == compare.Improvement
}

// hidden says how many rows are not shown.
func (w *lineWriter) hidden(rows []compare.Row, all bool, what string) {
	neutral, unsure := 0, 0
	for i := range rows {
		switch r := &rows[i]; {
		case all || isShown(r):
		case r.Verdict == compare.Inconclusive:
			unsure++
		default:
			neutral++
		}
	}
	if neutral+unsure > 0 {
		w.line("  (%d more %s did not move, %d are within noise: --all shows them)", neutral, what,
			unsure)
	}
}

// medianText is a median with the half-width of its interval.
func medianText(name string, mid, low, high *float64) string {
	text := report.Value(name, mid)
	if mid == nil || low == nil || high == nil || *mid == 0 {
		return text
	}
	half := max(*high / *mid - 1, 1 - *low / *mid)
	return text + " ± " + strconv.FormatFloat(100*half, 'f', 0, 64) + " %"
}

func pText(r *compare.Row) string {
	switch {
	case r.PCorrected == nil && r.FloorRatio != nil && r.Delta != nil && *r.Delta < 0:
		// floors are of the logarithm: twice as much is as far as half as much
		return "floor " + units.SignedPercent(1/(1+*r.FloorRatio)-1)
	case r.PCorrected == nil && r.FloorRatio != nil && *r.FloorRatio >= 10:
		return "floor " + strconv.FormatFloat(*r.FloorRatio, 'f', 0, 64) + "x"
	case r.PCorrected == nil && r.FloorRatio != nil:
		return "floor " + units.Percent(*r.FloorRatio)
	case r.PCorrected == nil:
		return ""
	case *r.PCorrected < 0.0005:
		return "<0.001"
	}
	return strconv.FormatFloat(*r.PCorrected, 'f', 3, 64)
}

// verdictText is a row's last column: nothing for what did not move.
func verdictText(r *compare.Row) string {
	switch r.Verdict {
	case compare.Neutral:
		return "~"
	case compare.Moved:
		return "moved"
	}
	return r.Verdict
}

// split prints the peak's difference by class.
func (w *lineWriter) split(s *compare.PeakSplit) {
	if s.DeltaBytes == 0 && s.Unattributed == 0 && !anyTerm(s) {
		return
	}
	g := report.Grid{
		Title: fmt.Sprintf("peak live of %s: %s -> %s (%s), by class", s.Space,
			units.Bytes(s.BaseBytes), units.Bytes(s.NewBytes), units.SignedBytes(s.DeltaBytes)),
		Header: []string{"", "stage", "buffers", "change", "of count", "of size", "of lifetime"},
		Left:   []int{1},
	}
	for i := range s.Classes {
		if t := &s.Classes[i]; t.DeltaBytes != 0 || hasTerm(t) {
			g.Rows = append(g.Rows, []string{
				t.Class, t.Stage, fmt.Sprintf("%d -> %d", t.BaseBuffers, t.NewBuffers),
				units.SignedBytes(t.DeltaBytes), units.SignedBytes(t.CountBytes),
				units.SignedBytes(t.SizeBytes), units.SignedBytes(t.LifetimeBytes),
			})
		}
	}
	if s.Unattributed != 0 {
		g.Rows = append(g.Rows, []string{
			"unattributed", "", "", units.SignedBytes(s.Unattributed), "", "", "",
		})
	}
	w.grid(g)
	w.line("  (of the runs in the middle: %s, %s)", s.BaseRun, s.NewRun)
}

func hasTerm(t *compare.ClassTerm) bool {
	return t.CountBytes != 0 || t.SizeBytes != 0 || t.LifetimeBytes != 0
}

func anyTerm(s *compare.PeakSplit) bool {
	for i := range s.Classes {
		if hasTerm(&s.Classes[i]) {
			return true
		}
	}
	return false
}

// remarks prints what could not be compared, and doubts.
func (w *lineWriter) remarks(d *compare.Diff) {
	list := diffRemarks(d)
	if len(list) > 0 {
		w.blank()
	}
	for _, text := range list {
		w.paragraph("  note: %s", text)
	}
}

// diffRemarks are what could not be compared, and doubts.
func diffRemarks(d *compare.Diff) (list []string) {
	for _, u := range d.Unmatched {
		lack := "that not all runs have"
		if u.Only {
			lack = "that the other side has not"
		}
		list = append(list, fmt.Sprintf("%s: %s of the %s side %s, %s each in the mean: in no figure "+
			"above", u.Stage, plural(u.Spans, "span"), u.Side, lack, units.Nanos(int64(u.MeanNS))))
	}
	list = append(list, d.Unknown...)
	return append(list, d.Warnings...)
}
