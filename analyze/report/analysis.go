package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"highwater/analyze"
	"highwater/analyze/memory"
	"highwater/internal/units"
)

// Analysis writes a report of analyze.Run: the verdict, what held the memory at the peak, RSS
// against the ledger, each finding with its evidence, and what could not be looked at.
func Analysis(w io.Writer, r *analyze.Report, s Style) error {
	p := &printer{w: w, style: s}
	p.verdict(r)
	p.blank()
	p.figures(r.Summary)
	if a := r.Attribution; a != nil {
		p.attribution(a)
		p.remainder(a.Remainder)
	}
	for i := range r.Findings {
		p.blank()
		p.finding(i+1, &r.Findings[i], r.Verdict)
	}
	p.endings(r)
	return p.err
}

// Explanation writes the part of a report that a reader in a hurry needs: what held the memory at
// the peak, and the findings in one sentence each.
func Explanation(w io.Writer, r *analyze.Report, s Style) error {
	p := &printer{w: w, style: s}
	if r.Attribution != nil {
		p.attribution(r.Attribution)
	}
	p.blank()
	if len(r.Findings) == 0 {
		p.verdict(r)
	}
	for _, f := range r.Findings {
		p.painted(string(f.Severity)+"  ", p.severity(f.Severity)+"  ", f.Sentence)
		p.counterfactual("       ", f.Counterfactual)
	}
	return p.err
}

func (p *printer) severity(s analyze.Severity) string {
	switch s {
	case analyze.Error:
		return p.style.paint(text.FgRed, string(s))
	case analyze.Warning:
		return p.style.paint(text.FgYellow, string(s))
	}
	return string(s)
}

func (p *printer) verdict(r *analyze.Report) {
	lead := "clean"
	shown := p.style.paint(text.FgGreen, lead)
	if worst := r.Worst(); worst != "" {
		lead, shown = string(worst), p.severity(worst)
	}
	p.painted(lead+"  ", shown+"  ", r.Verdict)
}

// figures are the five of the design, each with where it comes from.
func (p *printer) figures(s *analyze.Summary) {
	rss := KeyValue{Key: "peak RSS", Value: Value("_bytes", s.PeakRSSBytes)}
	if s.PeakRSSSource != "" {
		rss.Note = "(" + string(s.PeakRSSSource) + ")"
	}
	rho := KeyValue{Key: "rho", Value: Value("rho", s.Rho)}
	if in := s.RhoInputs; in != nil {
		rho.Note = fmt.Sprintf("%d synthesis x %s a partition; %d GPU x %s", in.PartitionWorkers,
			units.Nanos(in.SynthesisNS), in.GPUWorkers*in.Devices, units.Nanos(in.GPUNS))
		if in.LockNS != nil {
			rho.Note += ", lock held " + units.Nanos(*in.LockNS)
		}
	}
	p.keyValues("", []KeyValue{
		rss,
		{Key: "peak live", Value: Value("_bytes", s.PeakLiveBytes), Note: "of recorded buffers"},
		{Key: "makespan", Value: Value("_ns", s.MakespanNS)},
		{Key: "proof interval", Value: Value("_ns", s.ProofIntervalNS)},
		rho,
	})
}

// attribution is a table of classes by place at the peak.
func (p *printer) attribution(m *memory.Report) {
	a := m.Peak
	if a == nil {
		return
	}
	p.blank()
	when := "set-up left out"
	if m.Phase == memory.PhaseWhole {
		when = "of the whole trace: it has no job"
	}
	p.heading(
		fmt.Sprintf("What held the memory at the peak: %s live, %s into the trace (%s)",
			units.Bytes(a.LiveBytes), units.Nanos(a.TimeNS), when),
	)
	p.classTable(a, placesOf(a))
	if a.UnattributedBytes != 0 {
		p.paragraph(
			"  ",
			units.Bytes(
				a.UnattributedBytes,
			)+" of live bytes belong to no known buffer: see ledger-audit.",
		)
	}
	for _, s := range m.Series {
		if s.Name == "live_bytes" {
			p.sparkline("  live over time  ", s)
		}
	}
}

// placesOf are the places that held bytes at the peak, in the order in which a partition passes
// them.
func placesOf(a *memory.Attribution) []string {
	var names []string
	for _, place := range memory.Places() {
		if a.ByPlace.Find(place.String()).Bytes != 0 {
			names = append(names, place.String())
		}
	}
	return names
}

// classTable is classes by place in one unit; where the terminal is too narrow for it, a line a
// class.
func (p *printer) classTable(a *memory.Attribution, places []string) {
	unit := unitFor(a.LiveBytes)
	g := Grid{Header: append([]string{"class", unit.name, "share"}, places...)}
	held := map[[2]string]int64{}
	for _, c := range a.ClassByPlace {
		held[[2]string{c.Class, c.Place}] = c.Bytes
	}
	for _, c := range a.ByClass {
		row := make([]string, 0, 3+len(places))
		row = append(row, c.Name, unit.text(c.Bytes), units.Percent(c.Ratio))
		for _, place := range places {
			cell := ""
			if n, ok := held[[2]string{c.Name, place}]; ok {
				cell = unit.text(n)
			}
			row = append(row, cell)
		}
		g.Rows = append(g.Rows, row)
	}
	g.Rows = append(g.Rows, placeTotals(a, places, unit), partitionRow(a, places))
	if _, dropped := g.fit(p.style.width()); dropped == 0 {
		p.grid(g)
		return
	}
	for _, row := range g.Rows {
		var parts []string
		for i, place := range places {
			if cell := row[3+i]; cell != "" {
				parts = append(parts, place+" "+cell)
			}
		}
		lead := fmt.Sprintf("  %-12s %8s  ", row[0], row[1])
		p.paragraph(lead, strings.TrimPrefix(row[2]+": ", ": ")+strings.Join(parts, ", "))
	}
}

func placeTotals(a *memory.Attribution, places []string, unit unit) []string {
	row := make([]string, 0, 3+len(places))
	row = append(row, "all", unit.text(a.LiveBytes), "")
	for _, place := range places {
		row = append(row, unit.text(a.ByPlace.Find(place).Bytes))
	}
	return row
}

func partitionRow(a *memory.Attribution, places []string) []string {
	row := make([]string, 0, 3+len(places))
	row = append(row, "partitions", "", "")
	for _, place := range places {
		i := slices.IndexFunc(a.Partitions,
			func(c memory.PlaceCount) bool { return c.Place == place })
		cell := ""
		if i >= 0 && a.Partitions[i].Partitions > 0 {
			cell = units.Count(a.Partitions[i].Partitions)
		}
		row = append(row, cell)
	}
	return row
}

// remainder is RSS against the ledger.
func (p *printer) remainder(r *memory.Remainder) {
	if r == nil {
		return
	}
	p.blank()
	p.heading("RSS against the ledger (" + r.Source + ")")
	var list []KeyValue
	if r.PeakRSSBytes != nil {
		list = append(list, KeyValue{
			"peak RSS - peak ledger", Value("_bytes", r.OfPeakBytes),
			fmt.Sprintf("%s of the peak RSS; %s (%s) - %s touched", Value("_ratio", r.OfPeakRatio),
				units.Bytes(*r.PeakRSSBytes), r.PeakRSSSource, units.Bytes(r.ResidentPeak)),
		})
	}
	list = append(list,
		KeyValue{"base", Value("_bytes", r.BaseBytes), "after loading, before the first job"},
	)
	point := func(key string, at *memory.Point, note string) {
		if at != nil {
			list = append(list, KeyValue{
				key, units.Bytes(at.RemainderBytes),
				fmt.Sprintf("%s RSS - %s touched, at %s%s", units.Bytes(at.RSSBytes),
					units.Bytes(at.ResidentBytes), units.Nanos(at.TimeNS), note),
			})
		}
	}
	if at := r.AtLivePeak; at != nil {
		point("at the live peak", at, ", the nearest sample ("+units.Nanos(at.DistanceNS)+" away)")
	}
	point("at the highest sample", r.AtRSSPeak, batched(r))
	point("largest", r.Largest, "")
	samples := fmt.Sprintf("%d of RSS", r.Samples)
	if r.SampleGapNS != nil {
		samples += ", one each " + units.Nanos(
			*r.SampleGapNS,
		) + "; what happened between two is not seen"
	}
	p.keyValues("", append(list, KeyValue{Key: "samples", Value: samples}))
}

// batched explains a sample above the kernel's own mark: samples come from /proc/PID/statm.
func batched(r *memory.Remainder) string {
	if r.AtRSSPeak == nil || r.PeakRSSBytes == nil || r.AtRSSPeak.RSSBytes <= *r.PeakRSSBytes {
		return ""
	}
	return fmt.Sprintf("; above the peak (%s) because statm batches its counts by CPU",
		r.PeakRSSSource)
}

// finding is one finding in full; its sentence is left out where it has just been said.
func (p *printer) finding(n int, f *analyze.Finding, said string) {
	id := f.ID
	if f.Check != "" {
		id += ", " + f.Check
	}
	lead := fmt.Sprintf("Finding %d  %s  ", n, f.Severity)
	p.painted(lead, p.style.bold(fmt.Sprintf("Finding %d", n))+"  "+p.severity(f.Severity)+"  ", id)
	if f.Sentence != said {
		p.paragraph("  ", f.Sentence)
	}
	p.evidence(&f.Evidence)
	p.counterfactual("  ", f.Counterfactual)
	p.paragraph("  remedy      ", f.Remedy)
	p.remedies(f.Remedies)
	p.paragraph("  refuted by  ", f.RefutedBy)
	p.paragraph("  more        ", f.Page)
}

func (p *printer) evidence(e *analyze.Evidence) {
	var parts []string
	for _, n := range e.Numbers {
		value := Value(n.Name, n.Value)
		if n.Name == analyze.TimeToLimit && math.IsNaN(n.Value) {
			value = "not reached by the jobs there were"
		}
		parts = append(parts, Label(n.Name)+" "+value)
	}
	if e.Window != nil {
		parts = append(parts,
			"from "+units.Nanos(e.Window.BeginNS)+" to "+units.Nanos(e.Window.EndNS),
		)
	}
	if len(e.Buffers) > 0 {
		parts = append(parts, "buffers "+ids(e.Buffers))
	}
	if len(e.Spans) > 0 {
		parts = append(parts, "spans "+ids(e.Spans))
	}
	if len(e.Seqs) > 0 {
		parts = append(parts, "seq "+ids(e.Seqs))
	}
	p.paragraph("  evidence    ", strings.Join(parts, "; ")+".")
	for _, t := range e.Tables {
		p.evidenceTable(t)
	}
}

func (p *printer) evidenceTable(t analyze.Table) {
	g := Grid{Header: make([]string, 0, len(t.Columns)+1)}
	for _, c := range t.Columns {
		g.Header = append(g.Header, Label(c))
	}
	for i := range t.Columns {
		if len(t.Rows) > 0 {
			if _, word := t.Rows[0][i].(string); word && i > 0 {
				g.Left = append(g.Left, i)
			}
		}
	}
	for _, r := range t.Rows {
		row := make([]string, len(r))
		for i, v := range r {
			row[i] = Value(t.Columns[i], v)
		}
		g.Rows = append(g.Rows, row)
	}
	p.grid(g)
}

func ids(list []int64) string {
	words := make([]string, len(list))
	for i, id := range list {
		words[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(words, " ")
}

func (p *printer) counterfactual(indent string, c *analyze.Counterfactual) {
	if c == nil {
		return
	}
	lead := indent + "replayed    "
	with := settingsText(c.Settings)
	if c.Error != "" {
		p.paragraph(lead, fmt.Sprintf("with %s: not possible: %s", with, c.Error))
		return
	}
	parts := []string{
		"peak live " + Value("_bytes", c.PeakLiveBytes) + between(c.PeakLiveBytesLow,
			c.PeakLiveBytesHigh),
		"peak RSS " + Value("_bytes", c.PeakRSSBytes) + between(c.PeakRSSBytesLow,
			c.PeakRSSBytesHigh),
		"proof interval " + Value("_ns", c.ProofIntervalNS),
	}
	p.paragraph(lead, fmt.Sprintf("with %s: %s.", with, strings.Join(parts, ", ")))
}

func between(low, high *int64) string {
	if low == nil || high == nil {
		return ""
	}
	return " (" + units.Bytes(*low) + " to " + units.Bytes(*high) + ")"
}

func settingsText(set map[string]string) string {
	words := make([]string, 0, len(set))
	for name, v := range set {
		words = append(words, name+"="+v)
	}
	sort.Strings(words)
	return strings.Join(words, " ")
}

// endings are what was not found, what could not be looked at, and doubts.
func (p *printer) endings(r *analyze.Report) {
	p.blank()
	var clean []string
	for _, s := range r.Analyzers {
		if s.Status == analyze.StatusClean {
			clean = append(clean, s.Analyzer)
		}
	}
	if len(clean) > 0 {
		p.paragraph("  clean           ", strings.Join(clean, ", "))
	}
	for _, s := range r.NotApplicable {
		p.paragraph("  not applicable  ", s.Analyzer+": "+s.Why)
	}
	for _, s := range r.Analyzers {
		if s.Status != analyze.StatusNotApplicable && s.Why != "" {
			p.paragraph("  not seen        ", s.Analyzer+": "+s.Why)
		}
	}
	for _, w := range r.Warnings {
		p.paragraph("  doubt           ", w)
	}
}
