// Package report shows what analyze and replay found: to people as text, to programs as JSON and
// CSV.
//
// Rules of the text form: the sentence that matters comes first, then what held the memory, then
// the evidence, what would refute it, the remedy and what a replay says of it. Lines keep to the
// width of the terminal (100 columns elsewhere); colour only on a terminal, and never as the only
// sign of anything. This package computes nothing: every figure comes from its caller.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// Style is how text is laid out. The zero Style is 100 columns without colour.
type Style struct {
	Width int  // columns; 0 means 100
	Color bool // escape sequences
}

const (
	defaultWidth = 100
	usualWidth   = 80 // of a terminal that does not say
	minWidth     = 40
	maxWidth     = 140 // longer lines are hard to read
)

// StyleOf suits w: a terminal's width, and colour unless NO_COLOR is set or TERM is dumb; otherwise
// the zero Style.
func StyleOf(w io.Writer) Style {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Style{}
	}
	s := Style{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		s.Width = terminalWidth(width)
	}
	return s
}

// terminalWidth is the width to use of a terminal that says it has so many columns; one that does
// not know its width says 0.
func terminalWidth(columns int) int {
	if columns == 0 {
		columns = usualWidth
	}
	return min(max(columns, minWidth), maxWidth)
}

func (s Style) width() int {
	if s.Width <= 0 {
		return defaultWidth
	}
	return max(s.Width, minWidth)
}

func (s Style) paint(c text.Color, t string) string {
	if !s.Color {
		return t
	}
	return c.EscapeSeq() + t + text.Reset.EscapeSeq()
}

func (s Style) bold(t string) string { return s.paint(text.Bold, t) }

// JSON writes v as one indented JSON object and a newline.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}

// printer writes lines and keeps the first error.
type printer struct {
	w     io.Writer
	style Style
	err   error
}

func (p *printer) line(format string, args ...any) {
	if p.err != nil {
		return
	}
	_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *printer) blank() { p.line("") }

func (p *printer) heading(t string) {
	for _, l := range wrap(t, p.style.width()) {
		p.line("%s", p.style.bold(l))
	}
}

// paragraph wraps t, its lines after a hanging lead: the first line begins with lead, the others
// with blanks.
func (p *printer) paragraph(lead, t string) { p.painted(lead, lead, t) }

// painted is paragraph with a lead that is shown as shown.
func (p *printer) painted(lead, shown, t string) {
	indent := text.StringWidthWithoutEscSequences(lead)
	for i, l := range wrap(t, p.style.width()-indent) {
		if i > 0 {
			shown = strings.Repeat(" ", indent)
		}
		p.line("%s", strings.TrimRight(shown+l, " "))
	}
}

// fitting is how many bytes of word fit into width columns: one character at least.
func fitting(word string, width int) int {
	columns := 0
	for i, r := range word {
		if columns += text.RuneWidth(r); columns > width && i > 0 {
			return i
		}
	}
	return len(word)
}

// wrap breaks t at blanks into lines of at most width columns; a word that is wider has a line of
// its own, cut.
func wrap(t string, width int) []string {
	width = max(width, 8)
	var lines []string
	line := ""
	for _, word := range strings.Split(t, " ") {
		for text.StringWidthWithoutEscSequences(word) > width {
			if line != "" {
				lines = append(lines, line)
				line = ""
			}
			cut := fitting(word, width)
			lines, word = append(lines, word[:cut]), word[cut:]
		}
		switch {
		case line == "":
			line = word
		case text.StringWidthWithoutEscSequences(line+" "+word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
