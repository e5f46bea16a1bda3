package main

import (
	"fmt"
	"io"
	"strings"

	"highwater/analyze"
	"highwater/internal/units"
	"highwater/replay"
	"highwater/tracer/trace"
)

// writeFigures writes the five headline figures as rows of a table.
func writeFigures(w io.Writer, s *analyze.Summary) {
	rss := bytesText(s.PeakRSSBytes)
	if s.PeakRSSSource != "" {
		rss += " (" + s.PeakRSSSource + ")"
	}
	fmt.Fprintf(w, "  peak RSS\t%s\n", rss)
	fmt.Fprintf(w, "  peak live\t%s\n", bytesText(s.PeakLiveBytes))
	fmt.Fprintf(w, "  makespan\t%s\n", nanosText(s.MakespanNS))
	fmt.Fprintf(w, "  proof interval\t%s\n", nanosText(s.ProofIntervalNS))
	fmt.Fprintf(w, "  rho\t%s\n", ratioText(s.Rho))
}

func printLoss(out io.Writer, lost int64, loss []trace.Loss) {
	if lost == 0 && len(loss) == 0 {
		fmt.Fprintf(out, "\n  no event was lost\n")
		return
	}
	w := tabbed(out)
	defer w.Flush()
	fmt.Fprintf(w, "\n  %d events lost\n  writer\tcount\tfrom\tto\treason\n", lost)
	for _, l := range loss {
		fmt.Fprintf(w, "  %s\t%d\t%s\t%s\t%s\n", l.Writer, l.Count, nanosText(&l.FromNS), nanosText(&l.ToNS), l.Reason)
	}
}

// print prints the loss ledger of a recovery.
func (r *recoverReport) print(ui *tui) error {
	if r.AlreadySealed {
		fmt.Fprintf(ui.out, "%s is already sealed: nothing to recover\n", r.Dir)
		return nil
	}
	fmt.Fprintf(ui.out, "sealed %s\n\n", r.Dir)
	w := tabbed(ui.out)
	for _, kind := range sortedKeys(r.Events) {
		fmt.Fprintf(w, "  %s\t%d recovered\n", strings.ReplaceAll(kind, "_", " "), r.Events[kind])
	}
	fmt.Fprintf(w, "  torn records\t%d (never acknowledged, or damaged: left out)\n", r.TornRecords)
	fmt.Fprintf(w, "  open spans\t%d\n", r.OpenSpans)
	fmt.Fprintf(w, "  live buffers\t%d, %s\n", r.LiveBuffers, units.Bytes(r.LiveBytes))
	if r.LastNS != trace.Null {
		fmt.Fprintf(w, "  last event\t%s after the start\n", nanosText(&r.LastNS))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var lost int64
	for _, n := range r.Lost {
		lost += n
	}
	printLoss(ui.out, lost, r.Loss)
	ui.note("next: highwater analyze %s", r.Dir)
	return nil
}

// printPrediction prints what a replay says.
func printPrediction(ui *tui, dir string, set map[string]string, p *replay.Prediction) error {
	changed := "as recorded"
	if len(set) > 0 {
		var parts []string
		for _, name := range sortedKeys(set) {
			parts = append(parts, name+"="+set[name])
		}
		changed = strings.Join(parts, " ")
	}
	fmt.Fprintf(ui.out, "%s, %s: %s durations, %d draws, seed %d\n\n", dir, changed, p.Durations, p.Draws, p.Seed)
	if err := printPredictionTable(ui.out, p); err != nil {
		return err
	}
	if p.PeakOverLimitRatio != nil && p.MemoryLimitBytes != nil {
		fmt.Fprintf(ui.out, "  above %s: %.3g %% of the draws\n", units.Bytes(*p.MemoryLimitBytes), 100**p.PeakOverLimitRatio)
	}
	if p.Out != "" {
		fmt.Fprintf(ui.out, "  median draw: %s\n", p.Out)
	}
	for _, warning := range p.Warnings {
		ui.warn("%s", warning)
	}
	return nil
}

func printPredictionTable(out io.Writer, p *replay.Prediction) error {
	r := p.Recorded
	w := tabbed(out)
	fmt.Fprintf(w, "  \trecorded\tpredicted\t95 %% of draws\n")
	row := func(name, recorded, predicted, low, high string) {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", name, recorded, predicted, rangeText(low, high))
	}
	row("peak RSS", bytesText(r.PeakRSSBytes), bytesText(p.PeakRSSBytes), bytesText(p.PeakRSSBytesLow), bytesText(p.PeakRSSBytesHigh))
	row("peak live", bytesText(r.PeakLiveBytes), bytesText(p.PeakLiveBytes), bytesText(p.PeakLiveBytesLow), bytesText(p.PeakLiveBytesHigh))
	row("makespan", nanosText(r.MakespanNS), nanosText(p.MakespanNS), nanosText(p.MakespanNSLow), nanosText(p.MakespanNSHigh))
	row("proof interval", nanosText(r.ProofIntervalNS), nanosText(p.ProofIntervalNS), nanosText(p.ProofIntervalNSLow), nanosText(p.ProofIntervalNSHigh))
	row("rho", ratioText(r.Rho), ratioText(p.Rho), ratioText(p.RhoLow), ratioText(p.RhoHigh))
	if id := p.Identity; id != nil {
		fmt.Fprintf(w, "  the recorded settings, replayed the same way, come out at makespan %s, peak live %s, peak RSS %s\n",
			errorText(id.MakespanErrorRatio), errorText(id.PeakLiveErrorRatio), errorText(id.PeakRSSErrorRatio))
	}
	return w.Flush()
}
