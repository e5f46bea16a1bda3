package report

import (
	"fmt"
	"io"
	"strconv"

	"highwater/analyze"
)

// AnalyzerDoc is one analyzer as `highwater analyze --list` shows it.
type AnalyzerDoc struct {
	Name       string              `json:"name"`
	Summary    string              `json:"summary"`
	RefutedBy  string              `json:"refuted_by"`
	Remedy     string              `json:"remedy"`
	Page       string              `json:"page"`
	Thresholds []analyze.Threshold `json:"thresholds"` // value is the one in effect
}

// Analyzers lists every analyzer with the thresholds in effect: set by name, else the default.
func Analyzers(set map[string]float64) []AnalyzerDoc {
	var list []AnalyzerDoc
	for _, a := range analyze.All() {
		d := a.Doc()
		x := AnalyzerDoc{
			Name: d.Name, Summary: d.Summary, RefutedBy: d.RefutedBy, Remedy: d.Remedy,
			Page: "docs/findings/" + d.Name + ".md",
		}
		for _, t := range d.Thresholds {
			t.Value = t.Default
			if v, ok := set[t.Name]; ok {
				t.Value = v
			}
			x.Thresholds = append(x.Thresholds, t)
		}
		list = append(list, x)
	}
	return list
}

// Listing writes the analyzers with their thresholds.
func Listing(w io.Writer, list []AnalyzerDoc, s Style) error {
	p := &printer{w: w, style: s}
	for i, a := range list {
		if i > 0 {
			p.blank()
		}
		p.heading(a.Name)
		p.paragraph("  ", a.Summary)
		for _, t := range a.Thresholds {
			value := strconv.FormatFloat(t.Value, 'f', -1, 64)
			if t.Value != t.Default {
				value += fmt.Sprintf(" (default %s)", strconv.FormatFloat(t.Default, 'f', -1, 64))
			}
			p.paragraph("    "+t.Name+"="+value+"  ", t.Meaning+".")
		}
		p.paragraph("  more  ", a.Page)
	}
	return p.err
}
