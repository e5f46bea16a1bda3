package main

import (
	"fmt"
	"strconv"

	"highwater/analyze/compare"
	"highwater/analyze/report"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// power measures what comparisons could see amid the noise of a bank of equal runs.
func (c *diffCmd) power(ui *tui) error {
	paths, err := tracesIn(c.Traces)
	if err != nil {
		return err
	}
	if c.Runs < compare.MinTestRuns {
		return badInput(fmt.Sprintf("the test needs %d", compare.MinTestRuns),
			"--runs %d: too few runs a side", c.Runs)
	}
	show := ui.newProgress()
	p, err := compare.MeasurePower(len(paths), func(i int) (*trace.Trace, error) {
		t, err := trace.Open(paths[i])
		return t, traceFailure(err)
	}, compare.PowerOptions{
		Side: c.Runs, Resamples: c.Resamples,
		Progress: func(done, total int) {
			show.update(step{Phase: "editing effects into the bank", Done: done, Total: total})
		},
	})
	show.done()
	if err != nil {
		return fmt.Errorf("measure power: %w", err)
	}
	if ui.json {
		return ui.printJSON(p)
	}
	return printPower(ui, p)
}

func printPower(ui *tui, p *compare.Power) error {
	w := &lineWriter{out: ui.out, style: report.StyleOf(ui.out)}
	w.paragraph("%d of %d comparisons of equal sides, %d runs each from a bank of %d, are called a "+
		"regression (%s).", p.FalseRegressions, p.Resamples, p.Side, p.Bank,
		units.Percent(p.FalseRegressionRatio))
	if r := p.SingleFalseRatio; r != nil {
		w.paragraph("One run against one, by a floor learnt from the other half of the bank: %s.",
			units.Percent(*r))
	}
	w.paragraph("One run against one, by the default floor: %s.", units.Percent(p.SingleDefaultRatio))
	for _, x := range p.Comparable {
		w.paragraph("The bank is not of equal runs: %s.", x)
	}
	w.grid(noiseGrid(p))
	w.grid(powerGrid(p))
	w.grid(curveGrid(p))
	failures := p.Failures()
	for _, f := range failures {
		w.paragraph("short of what is asked: %s", f)
	}
	return w.err
}

func noiseGrid(p *compare.Power) report.Grid {
	g := report.Grid{
		Title:  "noise over the bank",
		Header: []string{"", "median", "deviation"},
	}
	for _, n := range p.Noise {
		noise := report.Unknown
		if n.NoiseRatio != nil {
			noise = percentOf(*n.NoiseRatio)
		}
		g.Rows = append(g.Rows, []string{n.Label(), report.Value(n.Name, n.Median), noise})
	}
	return g
}

// powerGrid is the power curve: share of comparisons that find an effect, by its size.
func powerGrid(p *compare.Power) report.Grid {
	g := report.Grid{
		Title:  "share of comparisons that find an injected effect, by its size",
		Header: []string{"", "noise", "found from"},
	}
	for _, x := range p.Effects {
		if x.Kind == compare.EffectOneMore {
			continue
		}
		for _, pt := range x.Points {
			g.Header = append(g.Header, percentOf(pt.EffectRatio))
		}
		break
	}
	for _, x := range p.Effects {
		row := []string{x.Kind + " " + x.Subject, report.Unknown, "none tried"}
		if x.NoiseRatio != nil {
			row[1] = percentOf(*x.NoiseRatio)
		}
		if s := x.SmallestRatio; s != nil {
			row[2] = percentOf(*s)
			if x.Kind == compare.EffectOneMore {
				row[2] = "1 buffer"
			}
		}
		for _, pt := range x.Points {
			row = append(row, strconv.FormatFloat(pt.FoundRatio, 'f', 2, 64))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// curveGrid is power against effect and noise, for normal noise.
func curveGrid(p *compare.Power) report.Grid {
	g := report.Grid{
		Title: fmt.Sprintf("the same for normal noise, %d runs a side, %d outcomes tested", p.Side,
			p.Tested),
		Header: []string{"noise"},
	}
	for i, c := range p.Curve {
		row := []string{percentOf(c.NoiseRatio)}
		for _, pt := range c.Points {
			if i == 0 {
				g.Header = append(g.Header, percentOf(pt.EffectRatio))
			}
			row = append(row, strconv.FormatFloat(pt.FoundRatio, 'f', 2, 64))
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// percentOf is a percentage with as many digits as it needs: 5 %, 7.5 %, 0.3 %.
func percentOf(r float64) string {
	return strconv.FormatFloat(100*r, 'g', 3, 64) + " %"
}
