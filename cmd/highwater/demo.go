package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"highwater/analyze"
	"highwater/analyze/report"
	"highwater/replay"
)

type demoCmd struct {
	Dir              string `default:"demo-out" placeholder:"DIR" help:"Folder for the demo's traces (default demo-out); those of an earlier demo are replaced."`
	CacheDir         string `placeholder:"DIR" env:"HIGHWATER_CACHE_DIR" help:"Where keys are kept (default: highwater in the user's cache directory)."`
	LogSize          int    `default:"18" placeholder:"N" help:"Base-two logarithm of the circuit's domain (default 18)."`
	Jobs             int    `default:"4" placeholder:"N" help:"Jobs, all in flight (default 4)."`
	Partitions       int    `default:"4" placeholder:"N" help:"Partitions a job (default 4)."`
	PartitionWorkers int    `default:"2" placeholder:"N" help:"Synthesis permits (default 2)."`
	Seed             uint64 `default:"1" placeholder:"N" help:"Seed of keys, witnesses, blinding and draws (default 1)."`
}

// Help says what the demo does and what its exit codes mean.
func (*demoCmd) Help() string {
	return "Proves for real with the incident's policy (permit released when synthesis ends, " +
		"channel of one slot), says what held the memory, predicts the run with the permit held " +
		"until the send is accepted, then proves with that setting to check the prediction. " +
		"Exit codes: 1 if the prediction misses its bars, 2 if a run fails, 130 after Ctrl-C."
}

// Examples implements exampler.
func (*demoCmd) Examples() string {
	return "  highwater demo\n  highwater demo --log-size 16 --dir /tmp/demo --json\n"
}

// The incident's policy and its remedy, as prove and replay take them.
const (
	demoSetting     = "permit_release"
	incidentRelease = "synth_end"
	remedyRelease   = "send_accepted"
)

// demoReport is the --json output of `highwater demo`.
type demoReport struct {
	Pileup     *proveReport       `json:"pileup"`     // the incident's policy, for real
	Analysis   *analyze.Report    `json:"analysis"`   // what held its memory, and why
	Prediction *replay.Prediction `json:"prediction"` // the remedy, replayed from that trace
	Held       *proveReport       `json:"held"`       // the remedy, for real
	Comparison *comparison        `json:"comparison"` // predicted against measured
}

// demo is a demo under way.
type demo struct {
	*demoCmd
	ui     *tui
	report demoReport
	text   bool // tell the story on stdout
}

// Run implements the subcommand.
func (c *demoCmd) Run(ui *tui) error {
	d := &demo{demoCmd: c, ui: ui, text: !ui.json}
	if err := d.prepare(); err != nil {
		return err
	}
	for _, part := range []func() error{d.proveIncident, d.explain, d.predict, d.proveRemedy, d.compare} {
		if err := part(); err != nil {
			return err
		}
	}
	return d.finish()
}

func (d *demo) traceDir(name string) string { return filepath.Join(d.Dir, name+".hw") }

// prepare makes room for the demo's traces. Of what is there it removes only traces of the names
// that a demo makes.
func (d *demo) prepare() error {
	if err := os.MkdirAll(d.Dir, 0o777); err != nil {
		return fail(exitUsage, fmt.Errorf("make the demo's folder: %w", err), "give another --dir")
	}
	for _, name := range []string{"pileup", "predicted", "held"} {
		dir := d.traceDir(name)
		if err := removeTrace(dir); err != nil {
			return fail(exitUsage, fmt.Errorf("remove the earlier demo's trace: %w", err), "give another --dir")
		}
	}
	return nil
}

// removeTrace removes the trace dir, and refuses to remove anything else.
func removeTrace(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
			return fmt.Errorf("%s holds something that is no trace", dir)
		}
	}
	return os.RemoveAll(dir)
}

func (d *demo) proveIncident() (err error) {
	d.say("1. The incident's policy, for real: %d jobs of %d partitions in flight, %d synthesis workers, 1 GPU worker,\n"+
		"   circuit label at 2^%d; the permit is given back when synthesis ends, the channel has one slot\n",
		d.Jobs, d.Partitions, d.PartitionWorkers, d.LogSize)
	d.report.Pileup, err = d.prove(incidentRelease, "pileup")
	return err
}

func (d *demo) proveRemedy() (err error) {
	d.say("\n4. The remedy, for real: the same jobs, the permit held until the send is accepted\n")
	d.report.Held, err = d.prove(remedyRelease, "held")
	return err
}

// prove records a run in a fresh process.
func (d *demo) prove(release, name string) (*proveReport, error) {
	args := []string{"prove", "--json", "--circuit", "label", "--permit-release", release, "--channel-capacity", "1",
		"--gpu-workers", "1", "--log-size", strconv.Itoa(d.LogSize), "--jobs", strconv.Itoa(d.Jobs),
		"--partitions", strconv.Itoa(d.Partitions), "--partition-workers", strconv.Itoa(d.PartitionWorkers),
		"--seed", strconv.FormatUint(d.Seed, 10), "--out", d.traceDir(name)}
	if d.CacheDir != "" {
		args = append(args, "--cache-dir", d.CacheDir)
	}
	if d.ui.quiet {
		args = append(args, "--quiet")
	}
	out, err := runSelf(d.ui, args)
	if err != nil {
		return nil, err
	}
	run := &proveReport{}
	if err := json.Unmarshal(out, run); err != nil {
		return nil, fmt.Errorf("read what highwater prove printed: %w", err)
	}
	if !d.text {
		return run, nil
	}
	list := append(figures(run.Summary), report.KeyValue{
		Key: "proofs", Value: fmt.Sprint(run.Pipeline.Verified), Note: "each accepted by gnark's verifier",
	})
	return run, report.KeyValues(d.ui.out, "", list, report.StyleOf(d.ui.out))
}

func (d *demo) explain() (err error) {
	d.say("\n2. The diagnosis, from the trace alone\n")
	if d.report.Analysis, err = d.analyze("pileup"); err != nil || !d.text {
		return err
	}
	return report.Explanation(d.ui.out, d.report.Analysis, report.StyleOf(d.ui.out))
}

// analyze analyzes one of the demo's traces. The counterfactual of its finding is step 3, replayed
// in full.
func (d *demo) analyze(name string) (*analyze.Report, error) {
	t, err := openTrace(d.ui, d.traceDir(name))
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return analyzeTrace(d.ui, t, analyze.Options{}, false)
}

func (d *demo) predict() error {
	t, err := openTrace(d.ui, d.traceDir("pileup"))
	if err != nil {
		return err
	}
	defer t.Close()
	d.say("\n3. The remedy, predicted from the same trace: %s=%s\n", demoSetting, remedyRelease)
	set := map[string]string{demoSetting: remedyRelease}
	opts := replay.Options{Set: set, Seed: d.Seed, Out: d.traceDir("predicted")}
	if d.report.Prediction, err = replayWithProgress(d.ui, t, opts); err != nil {
		return err
	}
	if d.text {
		return printPredictionTable(d.ui.out, d.report.Prediction)
	}
	return nil
}

func (d *demo) compare() error {
	held, err := d.analyze("held")
	if err != nil {
		return err
	}
	d.report.Comparison = compareRuns(&d.report, held, d.LogSize)
	return nil
}

func (d *demo) finish() error {
	var err error
	if d.text {
		err = d.printComparison()
	} else {
		err = d.ui.printJSON(d.report)
	}
	if misses := d.report.Comparison.Misses; err == nil && len(misses) > 0 {
		return fail(exitVerdict, errors.New(strings.Join(misses, "\n")),
			"other programs on this machine disturb it: run the demo again with the machine idle")
	}
	return err
}

func (d *demo) say(format string, args ...any) {
	if d.text {
		fmt.Fprintf(d.ui.out, format, args...)
	}
}
