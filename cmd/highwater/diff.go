package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"highwater/analyze/compare"
	"highwater/tracer/trace"
)

type diffCmd struct {
	Traces    []string `arg:"" optional:"" name:"side" help:"BASE NEW, or BASE… vs NEW…: traces, or folders of traces."`
	Base      []string `sep:"none" placeholder:"PATH" help:"A trace or folder of traces of the base side. May be given several times; the arguments are then the new side."`
	New       []string `sep:"none" placeholder:"PATH" help:"A trace or folder of traces of the new side. May be given several times; the arguments are then the base side."`
	Across    []string `placeholder:"KIND" help:"Compare although the sides differ in these: settings, machine, circuit, versions, origin. The difference then heads the report."`
	Threshold []string `sep:"none" placeholder:"NAME=RATIO" help:"The least change that matters: stage_time_ns=5%, or of one stage stage_time_ns/synthesis=0.05. May be given several times."`
	Metric    []string `placeholder:"NAME" help:"Look only at these metrics, such as peak_live_bytes or stage_time_ns/synthesis."`
	History   string   `placeholder:"DIR" help:"Learn the noise floor for few runs from the largest set of equal runs below this folder."`
	Noise     string   `placeholder:"FILE" help:"Take the noise floor from a file that history --write-noise wrote."`
	Markdown  bool     `help:"Print Markdown for a pull-request comment."`
	All       bool     `help:"Also show what did not move."`
	Power     bool     `help:"Instead of comparing, say what a comparison could see: the arguments are a bank of equal runs."`
	Runs      int      `default:"10" placeholder:"N" help:"With --power: runs a side (default 10)."`
	Resamples int      `default:"400" placeholder:"N" help:"With --power: comparisons drawn (default 400)."`
}

// Help says what the exit codes mean.
func (*diffCmd) Help() string {
	return "With 8 or more runs a side the Mann-Whitney U test decides, all outcomes together held to 1 % by Holm's " +
		"correction; with fewer a noise floor, from --history or --noise or else the default, and what lies below it is " +
		"inconclusive. Exit codes: 0 for neutral or improvement; 1 for regression; 3 for inconclusive, sides that " +
		"cannot be compared included; 2 for bad usage or a trace that cannot be read. Metrics: " +
		strings.Join(compare.MetricNames(), ", ") + "."
}

// Examples implements exampler.
func (*diffCmd) Examples() string {
	return "  highwater diff main.hw pr.hw\n" +
		"  highwater diff runs/main runs/pr --markdown\n" +
		"  highwater diff main-1.hw main-2.hw vs pr-1.hw pr-2.hw --history runs/main\n" +
		"  highwater diff grown.hw presized.hw --across settings\n" +
		"  highwater diff --power runs/main --runs 10\n"
}

// Run implements the subcommand.
func (c *diffCmd) Run(ui *tui) error {
	if c.Power {
		return c.power(ui)
	}
	opts, err := c.options(ui)
	if err != nil {
		return err
	}
	base, next, err := c.sides()
	if err != nil {
		return err
	}
	runs, err := readRuns(ui, slices.Concat(base, next))
	if err != nil {
		return err
	}
	if err := c.learnNoise(ui, &opts, len(base), len(next)); err != nil {
		return err
	}
	d, err := compare.Compare(runs[:len(base)], runs[len(base):], opts)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if err := c.print(ui, d); err != nil {
		return err
	}
	switch d.Verdict {
	case compare.Regression:
		return fail(exitVerdict, nil, "")
	case compare.Inconclusive:
		return fail(exitUnsure, nil, "")
	}
	return nil
}

func (c *diffCmd) print(ui *tui, d *compare.Diff) error {
	switch {
	case ui.json:
		return ui.printJSON(d)
	case c.Markdown:
		return diffMarkdown(ui.out, d, c.All)
	}
	return diffText(ui.out, d, c.All)
}

// options checks what can be checked before anything is read.
func (c *diffCmd) options(ui *tui) (compare.Options, error) {
	opts := compare.Options{Across: c.Across, Metrics: c.Metric, Thresholds: map[string]float64{}}
	if err := checkAcross(c.Across); err != nil {
		return opts, err
	}
	if err := checkMetrics(c.Metric); err != nil {
		return opts, err
	}
	set, err := parseRatios(c.Threshold)
	if err != nil {
		return opts, err
	}
	opts.Thresholds = set
	if c.History != "" && c.Noise != "" {
		return opts, badInput("give one of them", "--history and --noise are both given")
	}
	if c.Markdown && ui.json {
		return opts, badInput("give one of them", "--markdown and --json are both given")
	}
	return opts, nil
}

func checkAcross(kinds []string) error {
	for _, k := range kinds {
		if !slices.Contains(compare.AcrossKinds(), k) {
			return badInput("the kinds are "+strings.Join(compare.AcrossKinds(), ", "),
				"--across %s: no such kind of difference", k)
		}
	}
	return nil
}

func checkMetrics(names []string) error {
	for _, name := range names {
		kind, _, _ := strings.Cut(name, "/")
		if !slices.Contains(compare.MetricNames(), kind) {
			return badInput("the metrics are "+strings.Join(compare.MetricNames(), ", "),
				"%s: no such metric", name)
		}
	}
	return nil
}

// parseRatios reads NAME=RATIO, the ratio as 0.05 or 5%.
func parseRatios(args []string) (map[string]float64, error) {
	set := map[string]float64{}
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if !ok || err != nil || v < 0 || v > 1e6 {
			return nil, badInput("write it as --threshold stage_time_ns=5%",
				"--threshold %s: no name=ratio", arg)
		}
		if percent {
			v /= 100
		}
		if err := checkMetrics([]string{name}); err != nil {
			return nil, err
		}
		set[name] = v
	}
	return set, nil
}

// sides sorts the arguments into base and new.
func (c *diffCmd) sides() (base, next []string, err error) {
	base, next = slices.Clone(c.Base), slices.Clone(c.New)
	at := slices.Index(c.Traces, "vs")
	switch {
	case at >= 0:
		base, next = append(base, c.Traces[:at]...), append(next, c.Traces[at+1:]...)
	case len(base) > 0 && len(next) == 0:
		next = c.Traces
	case len(next) > 0 && len(base) == 0:
		base = c.Traces
	case len(base) == 0 && len(next) == 0 && len(c.Traces) == 2:
		base, next = c.Traces[:1], c.Traces[1:]
	case len(c.Traces) > 0 || len(base) == 0:
		return nil, nil, badInput("write BASE NEW, or BASE… vs NEW…",
			"%d traces: which are the base, which the new side?", len(c.Traces))
	}
	if base, err = tracesIn(base); err != nil {
		return nil, nil, err
	}
	if next, err = tracesIn(next); err != nil {
		return nil, nil, err
	}
	if len(base) == 0 || len(next) == 0 {
		return nil, nil, badInput("write BASE… vs NEW…", "a side has no trace")
	}
	return base, next, nil
}

// maxTraces bounds what one command reads.
const maxTraces = 10000

// tracesIn replaces each folder of traces by the traces in it.
func tracesIn(paths []string) ([]string, error) {
	var list []string
	for _, path := range paths {
		found, err := findTraces(path)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// findTraces is path if it is a trace (or no folder: reading it then says what is wrong), else the
// traces anywhere below it, sorted.
func findTraces(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() || isTraceDir(path) {
		return []string{path}, nil
	}
	var list []string
	err = filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir() && d.Type()&os.ModeSymlink == 0 || !isTraceDir(name):
			return nil
		case len(list) >= maxTraces:
			return fmt.Errorf("%s holds more than %d traces", path, maxTraces)
		}
		list = append(list, name)
		if d.IsDir() {
			return filepath.SkipDir
		}
		return nil // a link to a trace
	})
	if err != nil {
		return nil, fmt.Errorf("look for traces: %w", err)
	}
	if len(list) == 0 {
		return nil, badInput("give a trace directory NAME.hw, or a folder that holds some",
			"%s: there is no trace in it", path)
	}
	return list, nil
}

func isTraceDir(dir string) bool {
	for _, name := range []string{"manifest.json", "journal"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// readRuns reads traces, as many at once as there are CPUs, in their order. The first error by
// order is reported.
func readRuns(ui *tui, paths []string) ([]*compare.Run, error) {
	show := ui.newProgress()
	defer show.done()
	runs, errs := make([]*compare.Run, len(paths)), make([]error, len(paths))
	var done, next atomic.Int64
	var failed atomic.Bool
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(paths)) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(paths) && !failed.Load(); i = int(next.Add(1)) - 1 {
				runs[i], errs[i] = readOneRun(paths[i])
				if errs[i] != nil {
					failed.Store(true)
				}
				show.update(step{
					Phase: "reading traces", Done: int(done.Add(1)), Total: len(paths),
					Text: filepath.Base(paths[i]),
				})
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, traceFailure(err)
		}
	}
	return runs, nil
}

func readOneRun(path string) (*compare.Run, error) {
	t, err := trace.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	defer t.Close()
	return compare.ReadRun(t) //nolint:wrapcheck // it names the trace
}
