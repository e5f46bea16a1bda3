package main

import (
	"highwater/analyze"
	"highwater/analyze/report"
)

type infoCmd struct {
	Trace string `arg:"" help:"Trace directory; one that is still being written is read as it stands."`
}

// Examples implements exampler.
func (*infoCmd) Examples() string {
	return "  highwater info run.hw\n  highwater info run.hw --json | jq .peak_live_bytes\n"
}

// Run implements the subcommand.
func (c *infoCmd) Run(ui *tui) error {
	t, err := openTrace(ui, c.Trace)
	if err != nil {
		return err
	}
	defer t.Close()
	summary, err := analyze.Summarise(t)
	if err != nil {
		return traceFailure(err)
	}
	if ui.json {
		return ui.printJSON(summary)
	}
	return report.Info(ui.out, summary, report.StyleOf(ui.out))
}
