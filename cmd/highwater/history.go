package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"highwater/analyze/compare"
	"highwater/analyze/report"
	"highwater/analyze/report/plot"
	"highwater/internal/units"
)

type historyCmd struct {
	Dir        []string `arg:"" name:"dir" help:"Folders of traces, or traces."`
	Metric     []string `placeholder:"NAME" help:"Follow only these metrics, such as peak_live_bytes or stage_time_ns/synthesis (default: all outcomes)."`
	Across     []string `placeholder:"KIND" help:"Put runs into one series although they differ in these: settings, machine, circuit, versions, origin."`
	Threshold  []string `sep:"none" placeholder:"NAME=RATIO" help:"The least change that matters: stage_time_ns=5%. May be given several times."`
	Chart      []string `sep:"none" placeholder:"FILE" help:"Also draw the series, as FILE.html (all metrics) or FILE.png or FILE.svg (the metric that changed most). May be given several times."`
	Seed       uint64   `default:"1" placeholder:"N" help:"Seed of the permutations: same seed, same change points (default 1)."`
	WriteNoise string   `placeholder:"FILE" help:"Also learn the noise floor of one run against one from the largest set of equal runs, for diff --noise."`
}

// Help says what the exit codes mean.
func (*historyCmd) Help() string {
	return "Runs are ordered by the start of their commit's first run. Change points are found by E-divisive " +
		"with permutations, between commits only, all metrics together held to 5 %. " +
		"Exit codes: 0 whatever it finds (`highwater diff` is the gate); 2 for bad usage or a trace that cannot be read. " +
		"Metrics: " + strings.Join(compare.MetricNames(), ", ") + "."
}

// Examples implements exampler.
func (*historyCmd) Examples() string {
	return "  highwater history runs/\n" +
		"  highwater history runs/ --metric peak_live_bytes --chart history.html --chart history.png\n" +
		"  highwater history runs/main --write-noise noise.json\n"
}

// historyReport is the history with the files that were written.
type historyReport struct {
	*compare.History

	Charts []string `json:"charts"`
	Noise  *string  `json:"noise_file"`
}

// Run implements the subcommand.
func (c *historyCmd) Run(ui *tui) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	paths, err := tracesIn(c.Dir)
	if err != nil {
		return err
	}
	runs, err := readRuns(ui, paths)
	if err != nil {
		return err
	}
	h, err := compare.BuildHistory(runs, opts)
	if err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	r := &historyReport{History: h, Charts: []string{}}
	if err := c.write(r, runs); err != nil {
		return err
	}
	if ui.json {
		return ui.printJSON(r)
	}
	return r.print(ui)
}

func (c *historyCmd) options() (compare.HistoryOptions, error) {
	opts := compare.HistoryOptions{Metrics: c.Metric, Across: c.Across, Seed: c.Seed}
	if err := checkAcross(c.Across); err != nil {
		return opts, err
	}
	if err := checkMetrics(c.Metric); err != nil {
		return opts, err
	}
	for _, path := range c.Chart {
		if err := checkChart(path); err != nil {
			return opts, err
		}
	}
	set, err := parseRatios(c.Threshold)
	opts.Thresholds = set
	return opts, err
}

// write writes the charts and the noise floor that were asked for.
func (c *historyCmd) write(r *historyReport, runs []*compare.Run) error {
	for _, path := range c.Chart {
		if err := drawHistory(path, r.History); err != nil {
			return err
		}
		r.Charts = append(r.Charts, path)
	}
	if c.WriteNoise == "" {
		return nil
	}
	groups := compare.EqualGroups(runs)
	if len(groups) == 0 {
		return badInput("record some runs of one commit with equal settings",
			"--write-noise: no run finished")
	}
	floor, err := compare.LearnNoise(groups[0], 1, 1)
	if err != nil {
		return fail(exitUsage, fmt.Errorf("--write-noise: %w", err),
			"record more runs of one commit with equal settings")
	}
	r.Noise = &c.WriteNoise
	return writeNoise(c.WriteNoise, floor)
}

func drawHistory(path string, h *compare.History) error {
	charts := historyCharts(h)
	if len(charts) == 0 {
		return badInput("name another with --metric", "--chart %s: no metric is known of any run", path)
	}
	f, err := os.Create(path)
	if err != nil {
		return fail(exitUsage, fmt.Errorf("write chart: %w", err), "")
	}
	switch filepath.Ext(path) {
	case ".html":
		err = plot.Page(f, "History", historySentences(h), charts...)
	case ".png":
		err = charts[0].PNG(f)
	default:
		err = charts[0].SVG(f)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("draw history: %w", err)
	}
	return nil
}

// changeText is a change point in one line.
func changeText(c *compare.Change) string {
	change := "from nothing"
	if c.DeltaRatio != nil {
		change = units.SignedPercent(*c.DeltaRatio)
	}
	return fmt.Sprintf("%s: %s %s (%s -> %s) between %s and %s", c.Verdict, c.Label(), change,
		report.Value(c.Name, c.Before), report.Value(c.Name, c.After), c.LastBefore, c.FirstAfter)
}

func historySentences(h *compare.History) []string {
	list := []string{fmt.Sprintf("%s over %s; change points by E-divisive with %d permutations, "+
		"all metrics together held to %s.", plural(h.Runs, "run"), plural(len(h.Commits), "commit"),
		h.Rounds, units.Percent(h.Alpha))}
	for i := range h.Changes {
		list = append(list, upperFirst(changeText(&h.Changes[i]))+".")
	}
	if len(h.Changes) == 0 {
		list = append(list, "No change point found.")
	}
	return append(list, h.Warnings...)
}

func upperFirst(t string) string {
	if t == "" {
		return t
	}
	return strings.ToUpper(t[:1]) + t[1:]
}

// print prints the change points, then each headline metric's range.
func (r *historyReport) print(ui *tui) error {
	w := &lineWriter{out: ui.out, style: report.StyleOf(ui.out)}
	for _, s := range historySentences(r.History) {
		w.paragraph("%s", s)
	}
	w.grid(historyGrid(r.History))
	const listed = 20
	for i, x := range r.LeftOut[:min(len(r.LeftOut), listed)] {
		if i == 0 {
			w.blank()
		}
		w.paragraph("  left out: %s (%s)", x.Trace, x.Why)
	}
	if n := len(r.LeftOut) - listed; n > 0 {
		w.paragraph("  left out: %d more; --json names them", n)
	}
	for _, path := range r.Charts {
		ui.note("drew %s", path)
	}
	if r.Noise != nil {
		ui.note("wrote %s", *r.Noise)
	}
	return w.err
}

// historyGrid is a line a commit, its headline figures beside each other.
func historyGrid(h *compare.History) report.Grid {
	g := report.Grid{Title: "by commit", Header: []string{"commit", "runs"}}
	var shown []*compare.MetricHistory
	for i := range h.Metrics {
		if m := &h.Metrics[i]; len(shown) < 4 && (m.Headline() || len(h.Metrics) <= 4) {
			shown = append(shown, m)
			g.Header = append(g.Header, m.Label())
		}
	}
	for i, c := range h.Commits {
		row := []string{c.Label, fmt.Sprint(len(c.Traces))}
		for _, m := range shown {
			row = append(row, report.Value(m.Name, m.Points[i].Median))
		}
		for k := range h.Changes {
			if x := &h.Changes[k]; x.Index == i {
				row[0] = c.Label + " *"
			}
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}
