package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"highwater/cmd/highwater/toy"
	"highwater/replay/corpus"
	"highwater/tracer/trace"
)

// realKind is a kind that a real run can have.
type realKind struct {
	name     string
	analyzer string   // "" for a clean kind
	prove    []string // flags of highwater prove; else
	toy      string   // a kind of the small program; else the C program that touches pages
	unsure   []string // analyzers of whose answer the label says nothing
}

// proveBase keeps the runs of the prover short: a run takes one to three seconds of two CPUs.
var proveBase = []string{"--circuit", "label", "--log-size", "15", "--backend", "cpu", "--sample-hz", "50"}

var realKinds = []realKind{
	{
		name: "queue-pileup", analyzer: "queue-pileup",
		prove: []string{"--jobs", "3", "--partitions", "4", "--partition-workers", "3", "--permit-release", "synth_end"},
	},
	{
		name: "late-free", analyzer: "late-free",
		prove: []string{"--jobs", "3", "--partitions", "3", "--early-free=false"},
	},
	{
		name: "lock-convoy", analyzer: "lock-convoy",
		prove: []string{"--jobs", "3", "--partitions", "6", "--partition-workers", "3", "--gpu-workers", "4"},
	},
	{
		name: "oversubscription", analyzer: "oversubscription",
		prove: []string{"--jobs", "8", "--partitions", "4", "--partition-workers", "4", "--gpu-workers", "2", "--jobs-in-flight", "2"},
	},
	{
		name: "budget-not-a-bound", analyzer: "budget-not-a-bound",
		prove: []string{"--jobs", "3", "--partitions", "4", "--partition-workers", "4", "--byte-budget", "6MiB"},
	},
	{name: "leak", analyzer: "leak", toy: "leak"},
	{name: "ledger-audit", analyzer: "ledger-audit", toy: "ledger-audit"},
	{name: "allocator-retention", analyzer: "allocator-retention", toy: "allocator-retention"},
	{name: "measurement-artefact", analyzer: "measurement-artefact", toy: "measurement-artefact"},
	{name: "gpu-starvation", analyzer: "gpu-starvation", toy: "gpu-starvation"},
	{name: "thundering-herd", analyzer: "thundering-herd", toy: "thundering-herd"},
	{name: "page-fault-storm", analyzer: "page-fault-storm"},

	// Whether stages of a prover that uses both CPUs stretch is this machine's matter.
	{
		name: "clean-prover-serial", unsure: []string{"oversubscription"},
		prove: []string{"--jobs", "10", "--partitions", "1", "--jobs-in-flight", "1", "--partition-workers", "1"},
	},
	{
		name: "clean-prover", unsure: []string{"oversubscription"},
		prove: []string{"--jobs", "10", "--partitions", "2", "--partition-workers", "2", "--jobs-in-flight", "2"},
	},
	{name: "clean-program", toy: "clean"},
}

// recorded runs and judges the real kinds.
func (c *corpusCmd) recorded(ctx context.Context, ui *tui) ([]corpus.Verdict, error) {
	if c.Real == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "highwater-corpus-")
	if err != nil {
		return nil, fail(exitUsage, fmt.Errorf("make a place for traces: %w", err), "")
	}
	defer os.RemoveAll(dir)
	var verdicts []corpus.Verdict
	bar := ui.newProgress()
	defer bar.done()
	for i := range realKinds {
		k := &realKinds[i]
		if !c.wants(k.name) {
			continue
		}
		for n := 1; n <= c.Real; n++ {
			if ctx.Err() != nil {
				return nil, interruptedCorpus()
			}
			bar.update(step{Phase: "recorded runs", Done: i*c.Real + n - 1, Total: len(realKinds) * c.Real})
			v, err := c.oneReal(ctx, ui, k, dir, n)
			if err != nil {
				return nil, err
			}
			verdicts = append(verdicts, v)
		}
	}
	return verdicts, nil
}

// oneReal records one run and judges it.
func (c *corpusCmd) oneReal(ctx context.Context, ui *tui, k *realKind, dir string, n int) (
	v corpus.Verdict, err error,
) {
	t, err := k.record(ctx, ui, dir, n)
	if err != nil {
		return v, err
	}
	defer t.Close()
	if c.Out != "" {
		d, err := t.Load()
		if err != nil {
			return v, traceFailure(err)
		}
		if err := c.keep(d, "recorded-"+k.name, n); err != nil {
			return v, err
		}
	}
	v, err = corpus.Judge(t, k.name, k.analyzer, k.unsure...)
	if err != nil {
		return v, fail(exitUsage, err, "")
	}
	v.Origin, v.Run = corpus.Recorded, uint64(n)
	return v, nil
}

// record makes one run's trace, in a process of its own.
func (k *realKind) record(ctx context.Context, ui *tui, dir string, n int) (*trace.Trace, error) {
	out := filepath.Join(dir, fmt.Sprintf("%s-%d.hw", k.name, n))
	var args []string
	switch {
	case k.prove != nil:
		args = append(append([]string{"prove", "-q", "--json", "--out", out, "--seed", fmt.Sprint(n)},
			proveBase...), k.prove...)
	case k.toy != "":
		args = []string{"corpus", "--toy", k.toy, "--out", out}
	default:
		return pageFaults(ctx, dir)
	}
	if _, err := runSelf(ui, args); err != nil {
		return nil, err
	}
	return openTrace(ui, out)
}

// pageFaults runs the C program, all threads on fresh small pages.
func pageFaults(ctx context.Context, dir string) (*trace.Trace, error) {
	program, err := toy.BuildFaults(ctx, dir)
	if err != nil {
		return nil, fail(exitUsage, err, "it is built with gcc: apt-get install -y gcc")
	}
	d, err := toy.Faults(ctx, program, toy.FaultsSmall, 192, 6, 40)
	if err != nil {
		return nil, fail(exitUsage, err, "")
	}
	return trace.FromData(d), nil
}
