package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"highwater/analyze/report"
	"highwater/cmd/highwater/toy"
	"highwater/internal/units"
	"highwater/replay/corpus"
	"highwater/tracer/trace"
)

type corpusCmd struct {
	Kind  []string `placeholder:"NAME,..." help:"Only these kinds."`
	Seeds int      `default:"10" help:"Simulated traces of each kind."`
	Real  int      `default:"0" help:"Recorded runs of each kind that real programs can have: of the prover, of a small program, of a C program that touches pages."`
	Out   string   `placeholder:"DIR" help:"Also keep the traces here, DIR/KIND-N.hw."`
	Toy   string   `hidden:"" placeholder:"KIND" help:"Be the small program: record one run into --out."`
}

// Help says what the exit codes mean.
func (*corpusCmd) Help() string {
	return "Makes labelled traces, faulty and clean, lets analyze judge them, and prints the confusion " +
		"matrix. Exit codes: 0 where recall is at least 95 % and false findings at most 1 % of the " +
		"pairs (clean run, analyzer that could look); 1 where not; 2 for bad usage."
}

// Examples implements exampler.
func (*corpusCmd) Examples() string {
	return "  highwater corpus --kind leak,clean-warm-up --seeds 20\n" +
		"  highwater corpus --seeds 1 --real 2 --out traces\n"
}

// Bars of the matrix.
const (
	leastRecall = 0.95
	mostFalse   = 0.01
)

// Run implements the subcommand.
func (c *corpusCmd) Run(ui *tui) error {
	if c.Toy != "" {
		if err := toy.Run(c.Out, c.Toy); err != nil {
			return fail(exitUsage, err, "")
		}
		return nil
	}
	kinds, err := c.kinds()
	if err != nil {
		return err
	}
	ctx, stop := ui.interruptible(nil)
	defer stop()
	verdicts, err := c.simulated(ctx, ui, kinds)
	if err != nil {
		return err
	}
	recorded, err := c.recorded(ctx, ui)
	if err != nil {
		return err
	}
	m := corpus.Tally(append(verdicts, recorded...))
	if ui.json {
		err = ui.printJSON(m)
	} else {
		err = printMatrix(ui, &m)
	}
	if err != nil {
		return err
	}
	if m.Faulty > 0 && m.Recall < leastRecall || m.FalseRatio > mostFalse {
		return fail(exitVerdict, nil, "")
	}
	return nil
}

// kinds are the simulated kinds asked for. A name may also be one of the recorded kinds.
func (c *corpusCmd) kinds() ([]corpus.Kind, error) {
	all := corpus.Kinds()
	names := make([]string, 0, len(all))
	for i := range all {
		names = append(names, all[i].Name)
	}
	for _, r := range realKinds {
		if !slices.Contains(names, r.name) {
			names = append(names, r.name)
		}
	}
	for _, name := range c.Kind {
		if !slices.Contains(names, name) {
			return nil, badInput("the kinds are "+strings.Join(names, ", "), "--kind %s: no such kind",
				name)
		}
	}
	if c.Seeds < 0 || c.Real < 0 {
		return nil, badInput("give a number from 0 on", "--seeds %d --real %d: below 0", c.Seeds, c.Real)
	}
	return slices.DeleteFunc(all, func(k corpus.Kind) bool { return !c.wants(k.Name) }), nil
}

func (c *corpusCmd) wants(kind string) bool {
	return len(c.Kind) == 0 || slices.Contains(c.Kind, kind)
}

// simulated makes and judges the simulated traces.
func (c *corpusCmd) simulated(ctx context.Context, ui *tui, kinds []corpus.Kind) ([]corpus.Verdict,
	error,
) {
	var verdicts []corpus.Verdict
	bar := ui.newProgress()
	defer bar.done()
	for i := range kinds {
		k := &kinds[i]
		for seed := 1; seed <= c.Seeds; seed++ {
			if ctx.Err() != nil {
				return nil, interruptedCorpus()
			}
			bar.update(step{Phase: "simulated traces", Done: i*c.Seeds + seed - 1, Total: len(kinds) * c.Seeds})
			d, err := k.Make(uint64(seed))
			if err != nil {
				return nil, fail(exitUsage, err, "")
			}
			if c.Out != "" {
				if err := c.keep(d, k.Name, seed); err != nil {
					return nil, err
				}
			}
			v, err := corpus.Judge(trace.FromData(d), k.Name, k.Analyzer)
			if err != nil {
				return nil, fail(exitUsage, err, "")
			}
			v.Origin, v.Run = corpus.Simulated, uint64(seed)
			verdicts = append(verdicts, v)
		}
	}
	return verdicts, nil
}

func interruptedCorpus() error {
	return fail(exitInterrupted, errors.New("interrupted before the corpus was done"), "")
}

func (c *corpusCmd) keep(d *trace.Data, kind string, n int) error {
	dir := filepath.Join(c.Out, kind+"-"+strconv.Itoa(n)+".hw")
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return fail(exitUsage, fmt.Errorf("keep trace: %w", err), "")
	}
	if err := trace.Write(dir, d); err != nil {
		return fail(exitUsage, fmt.Errorf("keep trace %s: %w", dir, err), "")
	}
	return nil
}

// printMatrix prints the counts by kind and what was missed or made up.
func printMatrix(ui *tui, m *corpus.Matrix) error {
	g := report.Grid{
		Title:  "labelled traces, and what analyze says of them",
		Header: []string{"kind", "origin", "runs", "found", "pairs", "false", "also found"},
		Left:   []int{1, 6},
	}
	for _, r := range m.Rows {
		found, pairs, made := strconv.Itoa(r.Found), "", ""
		if r.Analyzer == "" {
			found, pairs, made = "", strconv.Itoa(r.Pairs), strconv.Itoa(r.False)
		}
		g.Rows = append(g.Rows, []string{
			r.Kind, r.Origin, strconv.Itoa(r.Runs), found, pairs, made, strings.Join(r.Others, " "),
		})
	}
	if err := g.Write(ui.out, report.StyleOf(ui.out)); err != nil {
		return err
	}
	for _, t := range m.Origins {
		fmt.Fprintf(ui.out, "%s: %d of %d faulty runs found; %d of %d pairs (clean run, analyzer that could look) false\n",
			t.Origin, t.Found, t.Faulty, t.FalsePairs, t.CleanPairs)
	}
	fmt.Fprintf(ui.out, "all: recall %s, false findings %s\n", units.Percent(m.Recall), units.Percent(m.FalseRatio))
	for _, r := range m.Rows {
		if len(r.Missed) > 0 {
			fmt.Fprintf(ui.out, "missed: %s, %s runs %v\n", r.Kind, r.Origin, r.Missed)
		}
	}
	for _, text := range m.FalseTexts {
		fmt.Fprintf(ui.out, "false: %s\n", text)
	}
	return nil
}
