package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"highwater/tracer/trace"
)

// Kinds of injected effects.
const (
	EffectStageTime = "stage_time"
	EffectLifetime  = "lifetime"
	EffectSize      = "size"
	EffectOneMore   = "one_more_buffer"
)

// Power is what comparisons of so many runs a side can see amid the noise of a bank of equal runs:
// how often equal sides are called a regression, and how often a known effect, edited into the
// runs of one side, is found. Its JSON is `highwater diff --power --json`.
type Power struct {
	Bank      int    `json:"bank_runs"`
	Side      int    `json:"side_runs"`
	Resamples int    `json:"resamples"`
	Seed      uint64 `json:"seed"`
	// of equal sides
	FalseRegressions     int     `json:"false_regressions"`
	FalseRegressionRatio float64 `json:"false_regression_ratio"`
	// likewise one run against one, by a floor learnt from the other half of the bank; null where
	// the bank is too small for that
	SingleFalseRatio *float64 `json:"single_false_regression_ratio"`
	// likewise by the default floor
	SingleDefaultRatio float64       `json:"single_default_false_regression_ratio"`
	Effects            []EffectPower `json:"effects"`
	// Curve is the share of comparisons that find a shift amid normal noise of so much, at the
	// level that Holm leaves the smallest p-value of the bank's outcomes
	Curve      []NoiseCurve  `json:"curve"`
	Tested     int           `json:"tested"` // the bank's outcomes that vary
	Noise      []MetricNoise `json:"noise"`
	Comparable []Difference  `json:"differences"` // between runs of the bank: should be none
}

// MetricNoise is how much an outcome varies over the bank.
type MetricNoise struct {
	Metric
	Median     float64  `json:"median"`
	NoiseRatio *float64 `json:"noise_ratio"` // standard deviation over mean
}

// EffectPower is how often one kind of effect on one stage or class is found.
type EffectPower struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	// the least noise among the metrics that would show it
	NoiseRatio *float64     `json:"noise_ratio"`
	Points     []PowerPoint `json:"points"`
	// SmallestRatio is the least effect tried that is found in 95 % of comparisons, as are all
	// larger ones; null where none is.
	SmallestRatio *float64 `json:"smallest_found_ratio"`
}

// PowerPoint is one effect size.
type PowerPoint struct {
	EffectRatio float64 `json:"effect_ratio"` // of one_more_buffer: 1 buffer
	FoundRatio  float64 `json:"found_ratio"`
}

// NoiseCurve is the power against effect at one level of noise.
type NoiseCurve struct {
	NoiseRatio float64      `json:"noise_ratio"`
	Points     []PowerPoint `json:"points"`
}

// PowerOptions choose what Measure does. The zero value is 10 runs a side, 400 resamples, seed 1.
type PowerOptions struct {
	Side      int
	Resamples int
	Seed      uint64
	// Sizes are the relative effects tried; empty means 1, 2, 3, 5, 10, 20, 50 %.
	Sizes []float64
	// Progress, if not nil, hears how many of the bank's runs have been edited.
	Progress func(done, total int)
}

func (o PowerOptions) withDefaults() PowerOptions {
	o.Side = cmp.Or(o.Side, 10)
	o.Resamples = cmp.Or(o.Resamples, 400)
	o.Seed = cmp.Or(o.Seed, 1)
	if len(o.Sizes) == 0 {
		o.Sizes = []float64{0.01, 0.02, 0.03, 0.05, 0.10, 0.20, 0.50}
	}
	return o
}

// wantedPower is how often an effect must be found to count as found.
const wantedPower = 0.95

// MeasurePower resamples comparisons from a bank of traces of equal runs. open opens the i-th of n.
func MeasurePower(
	n int, open func(i int) (*trace.Trace, error), opts PowerOptions,
) (*Power, error) {
	opts = opts.withDefaults()
	if n < 2*opts.Side {
		return nil, fmt.Errorf("measure power: a bank of %d runs is too small for sides of %d: "+
			"record more, or take smaller sides", n, opts.Side)
	}
	b := &bank{opts: opts}
	for i := range n {
		if opts.Progress != nil {
			opts.Progress(i, n)
		}
		t, err := open(i)
		if err != nil {
			return nil, err
		}
		err = b.take(t)
		t.Close()
		if err != nil {
			return nil, err
		}
	}
	if opts.Progress != nil {
		opts.Progress(n, n)
	}
	return b.measure(), nil
}

// add puts one effect's result into its curve.
func (p *Power) add(e injected, found float64, noise map[Metric]*float64) {
	at := slices.IndexFunc(p.Effects, func(x EffectPower) bool {
		return x.Kind == e.kind && x.Subject == e.subject
	})
	if at < 0 {
		at = len(p.Effects)
		p.Effects = append(p.Effects, EffectPower{Kind: e.kind, Subject: e.subject})
	}
	x := &p.Effects[at]
	for _, m := range e.targets {
		if n := noise[m]; n != nil && (x.NoiseRatio == nil || *n < *x.NoiseRatio) {
			x.NoiseRatio = n
		}
	}
	x.Points = append(x.Points, PowerPoint{e.ratio, found})
}

// smallest finds the least effect from which on all are found.
func (x *EffectPower) smallest() {
	for i := len(x.Points) - 1; i >= 0 && x.Points[i].FoundRatio >= wantedPower; i-- {
		x.SmallestRatio = &x.Points[i].EffectRatio
	}
}

// Failures lists where the power falls short of what is asked of it: a false regression rate above
// 1 %, and effects of 5 % (lifetime: 10 %, one more buffer) that are found in less than 95 % of
// comparisons although the metric's noise is at most 1.5 %.
func (p *Power) Failures() []string {
	const quiet = 0.015
	list := []string{}
	if p.FalseRegressionRatio > 0.01 {
		list = append(list, fmt.Sprintf("%d of %d comparisons of equal sides are called a regression",
			p.FalseRegressions, p.Resamples))
	}
	asked := map[string]float64{
		EffectStageTime: 0.05, EffectSize: 0.05, EffectLifetime: 0.10, EffectOneMore: 1,
	}
	for _, x := range p.Effects {
		if x.NoiseRatio == nil || *x.NoiseRatio > quiet {
			continue
		}
		for _, pt := range x.Points {
			if math.Abs(pt.EffectRatio-asked[x.Kind]) < 1e-9 && pt.FoundRatio < wantedPower {
				list = append(list, fmt.Sprintf("%s of %s by %g is found in %g of comparisons",
					x.Kind, x.Subject, pt.EffectRatio, pt.FoundRatio))
			}
		}
	}
	return list
}
