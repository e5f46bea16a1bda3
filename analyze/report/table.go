package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Grid is a table of text. The first column is left-aligned, the others right, unless Left names
// them. A cell may have several lines.
type Grid struct {
	Title  string
	Header []string
	Rows   [][]string
	Left   []int // further columns that are left-aligned
}

// Write lays the grid out in the width of s: columns that do not fit are left out from the right,
// and counted.
func (g Grid) Write(w io.Writer, s Style) error {
	p := &printer{w: w, style: s}
	p.grid(g)
	return p.err
}

func (p *printer) grid(g Grid) {
	if len(g.Rows) == 0 {
		return
	}
	if g.Title != "" {
		p.heading(g.Title)
	}
	keep, dropped := g.fit(p.style.width())
	t := table.NewWriter()
	style := table.StyleDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "  ", ""
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SetColumnConfigs(g.columns())
	if g.Header != nil {
		t.AppendHeader(cells(g.Header, keep))
	}
	for _, r := range g.Rows {
		t.AppendRow(cells(r, keep))
	}
	for _, l := range strings.Split(t.Render(), "\n") {
		p.line("%s", strings.TrimRight(l, " "))
	}
	if dropped > 0 {
		p.paragraph("  ",
			fmt.Sprintf("(%d more columns: widen the terminal or use --json)", dropped))
	}
}

// Fits says whether the first so many columns fit into the width of s; Write leaves out others.
func (g Grid) Fits(s Style, columns int) bool {
	keep, _ := g.fit(s.width())
	return keep >= columns
}

// fit is how many columns fit into width, and how many do not.
func (g Grid) fit(width int) (keep, dropped int) {
	columns := len(g.Header)
	for _, r := range g.Rows {
		columns = max(columns, len(r))
	}
	used := 0
	for c := range columns {
		widest := 0
		for _, r := range append([][]string{g.Header}, g.Rows...) {
			if c < len(r) {
				widest = max(widest, text.LongestLineLen(r[c]))
			}
		}
		used += widest + 2
		if used > width && c >= 2 {
			return c, columns - c
		}
	}
	return columns, 0
}

func (g Grid) columns() []table.ColumnConfig {
	columns := len(g.Header)
	for _, r := range g.Rows {
		columns = max(columns, len(r))
	}
	configs := make([]table.ColumnConfig, 0, columns)
	left := map[int]bool{0: true}
	for _, c := range g.Left {
		left[c] = true
	}
	for c := range columns {
		align := text.AlignRight
		if left[c] {
			align = text.AlignLeft
		}
		configs = append(configs,
			table.ColumnConfig{
				Number: c + 1, Align: align, AlignHeader: align, VAlignHeader: text.VAlignBottom,
			},
		)
	}
	return configs
}

func cells(row []string, keep int) table.Row {
	var out table.Row
	for i, c := range row {
		if i < keep {
			out = append(out, c)
		}
	}
	return out
}

// KeyValue is one line of a list of figures.
type KeyValue struct{ Key, Value, Note string }

// KeyValues writes figures one a line, their values in one column.
func KeyValues(w io.Writer, title string, list []KeyValue, s Style) error {
	p := &printer{w: w, style: s}
	p.keyValues(title, list)
	return p.err
}

func (p *printer) keyValues(title string, list []KeyValue) {
	if len(list) == 0 {
		return
	}
	if title != "" {
		p.heading(title)
	}
	widest := 0
	for _, kv := range list {
		widest = max(widest, text.StringWidthWithoutEscSequences(kv.Key))
	}
	for _, kv := range list {
		value := kv.Value
		if kv.Note != "" {
			value += "  " + kv.Note
		}
		p.paragraph("  "+text.Pad(kv.Key, widest, ' ')+"  ", value)
	}
}
