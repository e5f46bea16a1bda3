package main

import (
	"fmt"
	"io"
	"strings"

	"highwater/analyze/compare"
	"highwater/internal/units"
)

// verdictMarks head a Markdown report, so that the verdict is seen in a list of comments.
var verdictMarks = map[string]string{
	compare.Regression: "❌", compare.Improvement: "✅", compare.Neutral: "✅",
	compare.Inconclusive: "⚠️",
}

// diffMarkdown prints a comparison as Markdown for a pull-request comment.
func diffMarkdown(out io.Writer, d *compare.Diff, all bool) error {
	w := &lineWriter{out: out}
	w.line("### %s highwater diff: %s", verdictMarks[d.Verdict], d.Verdict)
	w.blank()
	for _, x := range d.Differences {
		if x.Accepted {
			w.line("**Across %s:** %s", x.Kind, cellText(x.String()))
			w.blank()
		}
	}
	w.line("%s", cellText(d.Sentence))
	w.blank()
	if d.BasisText != "" {
		w.line("%s.", cellText(d.BasisText))
		w.blank()
	}
	w.markdownSides(d)
	if d.Basis == compare.BasisNone {
		w.markdownBarriers(d)
	}
	w.markdownRows("Outcomes", d.Outcomes, all, true)
	w.markdownRows("What moved beside it (which of it is a cause, counters do not say)",
		d.Explanations, all, false)
	for i := range d.PeakSplits {
		w.markdownSplit(&d.PeakSplits[i])
	}
	for _, text := range diffRemarks(d) {
		w.line("- %s", cellText(text))
	}
	return w.err
}

// cellText keeps Markdown and HTML out of names that come from a trace.
func cellText(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", ">", "&gt;", "`", "'", "*", "\\*",
		"_", "\\_", "@", "&#64;", "[", "\\[").Replace(text)
}

func (w *lineWriter) table(header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	w.line("| %s |", strings.Join(header, " | "))
	rule := make([]string, len(header))
	for i := range rule {
		rule[i] = "--:"
	}
	rule[0] = ":--"
	w.line("|%s|", strings.Join(rule, "|"))
	for _, r := range rows {
		escaped := make([]string, len(r))
		for i, c := range r {
			escaped[i] = cellText(c)
		}
		w.line("| %s |", strings.Join(escaped, " | "))
	}
	w.blank()
}

func (w *lineWriter) markdownSides(d *compare.Diff) {
	var rows [][]string
	for _, s := range []struct {
		name string
		side *compare.Side
	}{{"base", &d.Base}, {"new", &d.New}} {
		throughput := "not known"
		if t := s.side.ThroughputPerHour; t != nil {
			throughput = perHour(*t)
		}
		rows = append(rows, []string{
			s.name, strings.Join(s.side.Commits, ", "), fmt.Sprint(s.side.Runs), throughput,
		})
	}
	w.table([]string{"side", "commit", "runs", "throughput"}, rows)
}

func (w *lineWriter) markdownBarriers(d *compare.Diff) {
	var rows [][]string
	for _, x := range d.Differences {
		if !x.Accepted {
			rows = append(rows, []string{
				x.Kind, x.Name, compare.ValueList(x.Base), compare.ValueList(x.New),
			})
		}
	}
	w.table([]string{"differs in", "", "base", "new"}, rows)
}

// markdownRows prints outcomes openly and explanations folded.
func (w *lineWriter) markdownRows(title string, rows []compare.Row, all, open bool) {
	g := rowsGrid(title, rows, all)
	if len(g.Rows) == 0 {
		return
	}
	if !open {
		w.line("<details><summary>%s: %d</summary>", title, len(g.Rows))
		w.blank()
	}
	header := append([]string{}, g.Header...)
	header[0], header[len(header)-1] = "metric", "verdict"
	w.table(header, g.Rows)
	if !open {
		w.line("</details>")
		w.blank()
	}
}

func (w *lineWriter) markdownSplit(s *compare.PeakSplit) {
	var rows [][]string
	for i := range s.Classes {
		if t := &s.Classes[i]; t.DeltaBytes != 0 || hasTerm(t) {
			rows = append(rows, []string{
				t.Class, t.Stage, fmt.Sprintf("%d → %d", t.BaseBuffers, t.NewBuffers),
				units.SignedBytes(t.DeltaBytes), units.SignedBytes(t.CountBytes),
				units.SignedBytes(t.SizeBytes), units.SignedBytes(t.LifetimeBytes),
			})
		}
	}
	if len(rows) == 0 {
		return
	}
	w.line("<details><summary>Peak live of %s: %s → %s (%s), by class</summary>", cellText(s.Space),
		units.Bytes(s.BaseBytes), units.Bytes(s.NewBytes), units.SignedBytes(s.DeltaBytes))
	w.blank()
	w.table([]string{
		"class", "stage", "buffers", "change", "of count", "of size", "of lifetime",
	}, rows)
	w.line("</details>")
	w.blank()
}
