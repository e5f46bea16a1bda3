package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"highwater/analyze"
	"highwater/analyze/report"
	"highwater/internal/units"
	"highwater/replay"
	"highwater/tracer/trace"
)

// Units as report.Value takes them.
const (
	inBytes = "_bytes"
	inNanos = "_ns"
	inRatio = "_ratio"
	inRho   = "rho"
)

// deviation is a ratio with its sign: +1.2 %.
func deviation(r *float64) string {
	if r == nil {
		return report.Unknown
	}
	return units.SignedPercent(*r)
}

// row is a table's row: a label, and figures of one unit.
func row(label, unit string, figures ...any) []string {
	cells := []string{label}
	for _, f := range figures {
		cells = append(cells, report.Value(unit, f))
	}
	return cells
}

// figures are the five headline figures, one a line.
func figures(s *analyze.Summary) []report.KeyValue {
	rss := report.KeyValue{Key: "peak RSS", Value: report.Value(inBytes, s.PeakRSSBytes)}
	if s.PeakRSSSource != "" {
		rss.Note = "(" + string(s.PeakRSSSource) + ")"
	}
	live := report.KeyValue{Key: "peak live", Value: report.Value(inBytes, s.PeakLiveBytes)}
	if s.PeakLiveBytes != nil {
		live.Note = "of recorded buffers"
	}
	return []report.KeyValue{
		rss,
		live,
		{Key: "makespan", Value: report.Value(inNanos, s.MakespanNS)},
		{Key: "proof interval", Value: report.Value(inNanos, s.ProofIntervalNS)},
		{Key: "rho", Value: report.Value(inRho, s.Rho)},
	}
}

// print prints what a run did.
func (r *proveReport) print(ui *tui) error {
	fmt.Fprintf(ui.out, "%s: %d of %d jobs, %d proofs verified by gnark (%s, %s constraints, backend %s)\n",
		r.End, r.finished(), len(r.JobResults), r.Pipeline.Verified,
		r.Circuit.Name, units.Count(r.Circuit.Constraints), r.Backend)
	list := append(figures(r.Summary), report.KeyValue{
		Key: "waiting", Value: report.Value("waiting_partitions", r.Pipeline.WaitingPeak) + " at most",
		Note: "synthesised, and not yet with a GPU worker",
	})
	recorded := report.KeyValue{Key: "trace", Value: "none", Note: "peak live and rho need one"}
	if r.Trace != nil {
		recorded = report.KeyValue{Key: "trace", Value: *r.Trace}
	}
	if err := report.KeyValues(ui.out, "", append(list, recorded), report.StyleOf(ui.out)); err != nil {
		return err
	}
	if r.Trace != nil {
		ui.note("next: highwater analyze %s", *r.Trace)
	}
	return nil
}

// print prints the loss ledger of a recovery.
func (r *recoverReport) print(ui *tui) error {
	if r.AlreadySealed {
		_, err := fmt.Fprintf(ui.out, "%s is already sealed: nothing to recover\n", r.Dir)
		return err
	}
	var list []report.KeyValue
	for _, kind := range sortedKeys(r.Events) {
		key := strings.ReplaceAll(kind, "_", " ") + " events"
		list = append(list, report.KeyValue{Key: key, Value: units.Count(r.Events[kind]) + " recovered"})
	}
	list = append(list,
		report.KeyValue{
			Key: "torn records", Value: units.Count(r.TornRecords),
			Note: "never acknowledged, or damaged: left out",
		},
		report.KeyValue{Key: "open spans", Value: units.Count(r.OpenSpans), Note: "kept, and marked open"},
		report.KeyValue{Key: "live buffers", Value: units.Count(r.LiveBuffers), Note: units.Bytes(r.LiveBytes)},
	)
	if r.LastNS != trace.Null {
		list = append(list, report.KeyValue{Key: "last event", Value: units.Nanos(r.LastNS), Note: "after the start"})
	}
	if err := report.KeyValues(ui.out, "sealed "+r.Dir, list, report.StyleOf(ui.out)); err != nil {
		return err
	}
	if err := r.printLoss(ui); err != nil {
		return err
	}
	ui.note("next: highwater analyze %s", r.Dir)
	return nil
}

func (r *recoverReport) printLoss(ui *tui) error {
	if len(r.Loss) == 0 {
		_, err := fmt.Fprintln(ui.out, "no acknowledged event was lost")
		return err
	}
	g := report.Grid{
		Title: "lost events", Header: []string{"writer", "count", "from", "to", "reason"}, Left: []int{4},
	}
	for _, l := range r.Loss {
		g.Rows = append(g.Rows, []string{
			l.Writer, units.Count(l.Count), units.Nanos(l.FromNS), units.Nanos(l.ToNS), l.Reason,
		})
	}
	return g.Write(ui.out, report.StyleOf(ui.out))
}

// printPrediction prints what a replay says.
func printPrediction(ui *tui, dir string, set map[string]string, p *replay.Prediction) error {
	changed := "as recorded"
	if len(set) > 0 {
		var parts []string
		for _, name := range sortedKeys(set) {
			parts = append(parts, name+"="+set[name])
		}
		changed = "with " + strings.Join(parts, " ")
	}
	fmt.Fprintf(ui.out, "%s replayed %s: %s durations, %s, seed %d\n",
		dir, changed, p.Durations, drawsText(p.Draws), p.Seed)
	if err := printPredictionTable(ui.out, p); err != nil {
		return err
	}
	printVerdict(ui.out, p)
	printSupport(ui.out, &p.Support)
	for _, warning := range p.Warnings {
		ui.warn("%s", warning)
	}
	if p.Out != "" {
		ui.note("wrote the median draw to %s", p.Out)
	}
	return nil
}

func drawsText(n int) string {
	if n == 1 {
		return "1 draw"
	}
	return fmt.Sprintf("%d draws", n)
}

// printVerdict says how likely a peak above the limit is, and what follows, where a limit was asked
// about.
func printVerdict(out io.Writer, p *replay.Prediction) {
	v := verdictOf(p)
	if v == nil {
		return
	}
	text := *v
	switch {
	case p.Support.Verdict == replay.SupportOutside:
		text += ": outside what the traces support"
	case text == replay.VerdictUnknown && p.Durations == replay.DurationsRecorded:
		text += ": recorded durations are one draw"
	case p.Support.Verdict == replay.SupportUnknown:
		text += " by the model, which no trace supports"
	case text == replay.VerdictSafe && p.Growth != nil && p.Growth.JobsToLimit != nil:
		text += ", for a run of " + plural(int(p.Growth.Jobs), "job")
	}
	fmt.Fprintf(out, "  above %s  %s of the draws: %s\n", units.Bytes(*p.MemoryLimitBytes),
		units.Percent(*p.PeakOverLimitRatio), text)
}

// verdictOf is what may be said of the limit that was asked about, nil without one. A model that no
// trace was fitted for may call a setting unsafe, but none safe.
func verdictOf(p *replay.Prediction) *string {
	if p.MemoryLimitBytes == nil || p.PeakOverLimitRatio == nil {
		return nil
	}
	v := p.Verdict()
	model := p.Support.Verdict == replay.SupportUnknown && p.Durations == replay.DurationsFitted
	if model && *p.PeakOverLimitRatio >= replay.UnsafeRatio {
		v = replay.VerdictUnsafe
	}
	return &v
}

// printSupport says how many services of each stage would run at once, and how many were recorded, where
// the traces support that; where they do not, the warnings say so.
func printSupport(out io.Writer, s *replay.Support) {
	if s.Verdict != replay.SupportInside {
		return
	}
	var parts []string
	for _, at := range s.Stages {
		if at.SeenLow != nil && at.SeenHigh != nil {
			low, high := min(*at.SeenLow, *at.SeenHigh), max(*at.SeenLow, *at.SeenHigh)
			parts = append(parts, fmt.Sprintf("%s %.1f (%.1f to %.1f)", at.Stage, at.Concurrency, low, high))
		}
	}
	fmt.Fprintln(out, "  inside what was recorded; services at once, and as recorded:")
	for line := range slices.Chunk(parts, 3) {
		fmt.Fprintf(out, "  %s\n", strings.Join(line, ", "))
	}
}

func printPredictionTable(out io.Writer, p *replay.Prediction) error {
	r := p.Recorded
	g := report.Grid{
		Header: []string{"", "recorded", "predicted", "low", "high"},
		Rows: [][]string{
			row("peak RSS", inBytes, r.PeakRSSBytes, p.PeakRSSBytes, p.PeakRSSBytesLow, p.PeakRSSBytesHigh),
			row("peak live", inBytes, r.PeakLiveBytes, p.PeakLiveBytes, p.PeakLiveBytesLow, p.PeakLiveBytesHigh),
			row("makespan", inNanos, r.MakespanNS, p.MakespanNS, p.MakespanNSLow, p.MakespanNSHigh),
			row("proof interval", inNanos,
				r.ProofIntervalNS, p.ProofIntervalNS, p.ProofIntervalNSLow, p.ProofIntervalNSHigh),
			row("rho", inRho, r.Rho, p.Rho, p.RhoLow, p.RhoHigh),
		},
	}
	if err := g.Write(out, report.StyleOf(out)); err != nil || p.Identity == nil {
		return err
	}
	id := p.Identity
	calibrated := ""
	if id.PeakRSSCalibrated {
		calibrated = ", calibrated: no check"
	}
	if err := printMiddle(out, p); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "  replaying the recorded settings errs by "+
		"%s (makespan), %s (peak live),\n  %s (peak RSS%s)\n  %s\n  %s\n",
		deviation(id.MakespanErrorRatio), deviation(id.PeakLiveErrorRatio),
		deviation(id.PeakRSSErrorRatio), calibrated,
		strings.ReplaceAll(p.Law.ServiceText, "; ", ";\n  "),
		strings.ReplaceAll(p.Law.Text, "; ", ";\n  "))
	return err
}

// printMiddle says what the columns low and high are, and what bounds 80 %.
func printMiddle(out io.Writer, p *replay.Prediction) error {
	if p.MakespanNSLow80 == nil {
		_, err := fmt.Fprintln(out, "  recorded durations have no spread: no bounds")
		return err
	}
	_, err := fmt.Fprintf(out, "  low and high bound 95 %% of the draws; 80 %%: peak RSS %s to %s,\n"+
		"  proof interval %s to %s, rho %s to %s\n",
		report.Value(inBytes, p.PeakRSSBytesLow80), report.Value(inBytes, p.PeakRSSBytesHigh80),
		report.Value(inNanos, p.ProofIntervalNSLow80), report.Value(inNanos, p.ProofIntervalNSHigh80),
		report.Value(inRho, p.RhoLow80), report.Value(inRho, p.RhoHigh80))
	return err
}
