package main

import "fmt"

// printComparison prints predicted against measured, and what to try next.
func (d *demo) printComparison() error {
	c := d.report.Comparison
	fmt.Fprintf(d.ui.out, "\nPredicted against measured\n")
	w := tabbed(d.ui.out)
	fmt.Fprintf(w, "  \tpile-up\tpredicted\tmeasured\terror\n")
	for _, row := range []struct {
		name string
		comparedBytes
	}{{"peak live", c.PeakLive}, {"peak RSS", c.PeakRSS}} {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s, %s partitions\n", row.name, bytesText(row.PileupBytes), bytesText(row.PredictedBytes),
			bytesText(row.MeasuredBytes), errorText(row.ErrorRatio), signedText(row.ErrorPartitions))
	}
	p := c.ProofInterval
	fmt.Fprintf(w, "  proof interval\t%s\t%s\t%s\t%s\n", nanosText(p.PileupNS), nanosText(p.PredictedNS), nanosText(p.MeasuredNS), errorText(p.ErrorRatio))
	fmt.Fprintf(w, "  RSS - ledger\t%s\t\t%s\t%s and %s of the peak\n", bytesText(c.PileupRemainder.Bytes), bytesText(c.HeldRemainder.Bytes),
		shareText(c.PileupRemainder.Ratio), shareText(c.HeldRemainder.Ratio))
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(d.ui.out, demoEnding, bytesText(c.PartitionSettledBytes), ratioText(c.Rho), d.traceDir("pileup"), d.traceDir("held"))
	return nil
}

const demoEnding = `
A partition is %s once synthesised. rho is %s: on the CPU backend synthesis offers far more than proving takes, at
every worker count, so the demo shows what the policy does to memory; what a GPU would do to rho it cannot show.

Try next:
  highwater replay %[3]s --set permit_release=send_accepted --set channel_capacity=2
  highwater replay %[3]s --set partition_workers=4 --memory 1GiB
  highwater analyze %[4]s
  highwater export %[3]s --pprof peak.pb.gz && go tool pprof -top peak.pb.gz
`

func signedText(r *float64) string {
	if r == nil {
		return unknown
	}
	return fmt.Sprintf("%+.2f", *r)
}
