package main

import (
	"fmt"

	"highwater/analyze/report"
)

// printComparison prints predicted against measured, and what to try next.
func (d *demo) printComparison() error {
	c, out := d.report.Comparison, d.ui.out
	p, pile, held := c.ProofInterval, c.PileupRemainder, c.HeldRemainder
	g := report.Grid{
		Header: []string{"", "pile-up", "predicted", "measured", "error", "in partitions"},
		Rows: [][]string{
			comparedRow("peak live", c.PeakLive),
			comparedRow("peak RSS", c.PeakRSS),
			append(row("proof interval", inNanos, p.PileupNS, p.PredictedNS, p.MeasuredNS), deviation(p.ErrorRatio), ""),
			{"RSS - ledger", report.Value(inBytes, pile.Bytes), "", report.Value(inBytes, held.Bytes), "", ""},
			{"  of the peak", report.Value(inRatio, pile.Ratio), "", report.Value(inRatio, held.Ratio), "", ""},
		},
	}
	d.say("\n5. Predicted against measured\n")
	if err := g.Write(out, report.StyleOf(out)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, demoEnding,
		report.Value(inBytes, c.PartitionSettledBytes), report.Value(inRho, c.Rho),
		d.traceDir("pileup"), d.traceDir("held"))
	return err
}

func comparedRow(label string, c comparedBytes) []string {
	partitions := report.Unknown
	if c.ErrorPartitions != nil {
		partitions = fmt.Sprintf("%+.2f", *c.ErrorPartitions)
	}
	return append(row(label, inBytes, c.PileupBytes, c.PredictedBytes, c.MeasuredBytes),
		deviation(c.ErrorRatio), partitions)
}

const demoEnding = `
A synthesised partition is %s. rho is %s: on the CPU backend solving is cheap and proving is
not, so that rho is far above 1 at every worker count. The demo shows what the policy does to
memory, not what a GPU does to rho.

Try next:
  highwater replay %[3]s --set permit_release=send_accepted --set channel_capacity=2
  highwater replay %[3]s --set partition_workers=4 --memory 1GiB
  highwater analyze %[4]s
  highwater export %[3]s --pprof peak.pb.gz && go tool pprof -top peak.pb.gz
`
