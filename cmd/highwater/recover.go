package main

import (
	"errors"
	"fmt"

	"highwater/tracer/trace"
)

type recoverCmd struct {
	Dir        string `arg:"" help:"Trace directory of the killed run."`
	ProcessEnd string `enum:"unknown,killed,finished,failed,interrupted" default:"unknown" placeholder:"unknown|killed|finished|failed|interrupted" help:"How the run ended, where you know it (a kernel or cgroup report shows a kill)."`
	Reason     string `placeholder:"TEXT" help:"A sentence for the manifest: how you know."`
}

// Help says what the exit codes mean.
func (*recoverCmd) Help() string {
	return "Every acknowledged event is recovered, spans that were open at the kill included and " +
		"marked open. Exit codes: 0 whenever a trace was sealed, " +
		"losses included; 2 if the run still lives or the directory holds no trace."
}

// Examples implements exampler.
func (*recoverCmd) Examples() string {
	return "  highwater recover run.hw\n" +
		"  highwater recover run.hw --process-end killed --reason 'oom-kill in dmesg'\n"
}

// recoverReport is the --json output of `highwater recover`.
type recoverReport struct {
	*trace.Recovery
	Loss []trace.Loss `json:"loss"` // every counted loss of the sealed trace
}

// Run implements the subcommand.
func (c *recoverCmd) Run(ui *tui) error {
	ledger, err := trace.Recover(c.Dir, trace.RecoverOptions{ProcessEnd: c.ProcessEnd, Reason: c.Reason})
	if errors.Is(err, trace.ErrLiving) {
		hint := fmt.Sprintf("`highwater info %s` and `highwater analyze %s` read it as it stands", c.Dir, c.Dir)
		return fail(exitUsage, err, hint)
	}
	if err != nil {
		return traceFailure(err)
	}
	report := recoverReport{Recovery: ledger, Loss: []trace.Loss{}}
	if ledger.Manifest != nil && ledger.Manifest.Loss != nil {
		report.Loss = ledger.Manifest.Loss
	}
	for _, w := range ledger.Warnings {
		ui.warn("%s", w)
	}
	if ui.json {
		return ui.printJSON(report)
	}
	return report.print(ui)
}
