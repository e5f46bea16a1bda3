package main

import (
	"errors"
	"fmt"
	"os"

	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

type exportCmd struct {
	Trace string `arg:"" help:"Trace to export; one that is still being written is read as it stands."`
	Pprof string `placeholder:"FILE" help:"What was live at the peak, as a pprof profile: go tool pprof -http=: FILE."`
	CSV   string `name:"csv" placeholder:"DIR" help:"The four tables as CSV files with the columns of docs/format.md, and peak.csv and series.csv: what held the memory at the peak, and over time."`
	Text  string `placeholder:"FILE" help:"The whole trace in the text form of docs/format.md; - is stdout."`
}

// Examples implements exampler.
func (*exportCmd) Examples() string {
	return "  highwater export run.hw --pprof peak.pb.gz && go tool pprof -top peak.pb.gz\n" +
		"  highwater export run.hw --csv tables/\n" +
		"  highwater export run.hw --text -\n"
}

// exportReport is the --json output of `highwater export`.
type exportReport struct {
	Trace string         `json:"trace"`
	Files []exportedFile `json:"files"`
}

type exportedFile struct {
	Path string `json:"path"`
	What string `json:"what"`
	Rows int64  `json:"rows"` // rows of a table, samples of a profile, lines of a text
}

// Run implements the subcommand.
func (c *exportCmd) Run(ui *tui) error {
	if c.Pprof == "" && c.CSV == "" && c.Text == "" {
		return badInput("add --pprof FILE, --csv DIR or --text FILE", "export %s: nothing to write", c.Trace)
	}
	if c.Text == "-" && ui.json {
		return badInput("give --text a file", "--text - and --json would both write to stdout")
	}
	t, err := openTrace(ui, c.Trace)
	if err != nil {
		return err
	}
	defer t.Close()
	report := exportReport{Trace: c.Trace, Files: []exportedFile{}}
	for _, export := range []func(*tui, *trace.Trace) ([]exportedFile, error){c.exportPprof, c.exportCSV, c.exportText} {
		files, err := export(ui, t)
		if err != nil {
			return err
		}
		report.Files = append(report.Files, files...)
	}
	if ui.json {
		return ui.printJSON(report)
	}
	for _, f := range report.Files {
		ui.note("wrote %s: %s, %d rows", f.Path, f.What, f.Rows)
	}
	return nil
}

// exportText writes the whole trace in its text form.
func (c *exportCmd) exportText(ui *tui, t *trace.Trace) ([]exportedFile, error) {
	if c.Text == "" {
		return nil, nil
	}
	data, err := t.Load()
	if err != nil {
		return nil, traceFailure(err)
	}
	text := trace.FormatText(data)
	if c.Text == "-" {
		_, err := fmt.Fprint(ui.out, text)
		return nil, err
	}
	if err := os.WriteFile(c.Text, []byte(text), 0o666); err != nil {
		return nil, fmt.Errorf("write the text form: %w", err)
	}
	lines := int64(0)
	for i := range text {
		if text[i] == '\n' {
			lines++
		}
	}
	return []exportedFile{{Path: c.Text, What: "text", Rows: lines}}, nil
}

// exportPprof writes what was live at the peak.
func (c *exportCmd) exportPprof(_ *tui, t *trace.Trace) ([]exportedFile, error) {
	if c.Pprof == "" {
		return nil, nil
	}
	p, err := memory.Profile(t)
	if err != nil {
		return nil, traceFailure(err)
	}
	f, err := os.Create(c.Pprof)
	if err != nil {
		return nil, fmt.Errorf("write the profile: %w", err)
	}
	if err := errors.Join(p.Write(f), f.Close()); err != nil {
		return nil, fmt.Errorf("write the profile %s: %w", c.Pprof, err)
	}
	return []exportedFile{{Path: c.Pprof, What: "profile", Rows: int64(len(p.Sample))}}, nil
}
