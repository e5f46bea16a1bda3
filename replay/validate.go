package replay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"highwater/replay/fit"
	"highwater/replay/pipeline"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// DefaultLimits are the limits at which a validation asks for verdicts: times the measured peak.
var DefaultLimits = []float64{0.8, 0.9, 1, 1.1, 1.25}

// ValidateOptions say how runs are to predict each other. The zero value works.
type ValidateOptions struct {
	// FitOn are patterns (path.Match) of the traces to fit to, by their path or its last element;
	// none leaves the choice to automatic
	FitOn     []string
	Durations string    // as in Options; recorded also fits to one trace only
	Limits    []float64 // nil means DefaultLimits
	Draws     int       // a prediction; 0 means DefaultDraws
	Seed      uint64
	// called after each prediction; may be nil
	Progress func(done, total int)
}

// Validate reports what is wrong with the options.
func (o *ValidateOptions) Validate() error {
	for _, p := range o.FitOn {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("fit on %q: %w", p, err)
		}
	}
	for _, l := range o.Limits {
		if !(l > 0) || math.IsInf(l, 0) {
			return fmt.Errorf("limit %g is not a number above 0", l)
		}
	}
	return (&Options{Durations: o.Durations, Draws: o.Draws}).Validate()
}

// NamedTrace is a trace and what it is called.
type NamedTrace struct {
	Name  string
	Trace *trace.Trace
}

// Validate fits models to some runs of a program and predicts the others, and those it fitted to,
// from nothing but their settings and how much of the machine other programs used meanwhile. Runs
// whose work differs (size, circuit, threads …) fall into groups that do not predict each other. The
// error says why nothing could be predicted.
func Validate(ctx context.Context, runs []NamedTrace, opts ValidateOptions) (*Validation, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	v := &validator{ctx: ctx, opts: opts, runs: runs, out: &Validation{
		Durations: opts.Durations, Seed: opts.Seed, Draws: opts.Draws, Warnings: []string{},
	}}
	if v.out.Durations == "" {
		v.out.Durations = DurationsFitted
	}
	switch {
	case v.out.Durations == DurationsRecorded:
		v.out.Draws = 1
	case v.out.Draws == 0:
		v.out.Draws = DefaultDraws
	}
	if len(opts.Limits) == 0 {
		v.opts.Limits = DefaultLimits
	}
	if err := v.all(); err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	v.out.sum(v.opts.Limits)
	if v.out.HeldOut == nil {
		v.out.Warnings = append(v.out.Warnings,
			"a model was fitted to every run: none is held out, so this says nothing of predictions")
	}
	return v.out, nil
}

// validator is one validation under way.
type validator struct {
	ctx  context.Context
	opts ValidateOptions
	runs []NamedTrace
	out  *Validation
}

func (v *validator) all() error {
	if err := v.matched(); err != nil {
		return err
	}
	for _, group := range v.groups() {
		if err := v.group(group); err != nil {
			return err
		}
	}
	if len(v.out.Cases) == 0 {
		return fmt.Errorf("nothing to predict: %s", strings.Join(v.out.Warnings, "; "))
	}
	return nil
}

// matched complains of patterns that name no trace.
func (v *validator) matched() error {
	for _, p := range v.opts.FitOn {
		hits := func(r NamedTrace) bool { return named(r.Name, p) }
		if !slices.ContainsFunc(v.runs, hits) {
			return fmt.Errorf("fit on %q: none of the %d traces is called so", p, len(v.runs))
		}
	}
	return nil
}

func named(name, pattern string) bool {
	for _, text := range []string{name, filepath.Base(name),
		strings.TrimSuffix(filepath.Base(name), ".hw")} {
		if ok, _ := path.Match(pattern, text); ok {
			return true
		}
	}
	return false
}

// groups sorts the runs by their work, in order of appearance.
func (v *validator) groups() [][]NamedTrace {
	var out [][]NamedTrace
	place := map[string]int{}
	for _, r := range v.runs {
		work := workOf(r.Trace)
		i, ok := place[work]
		if !ok {
			i = len(out)
			place[work] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	return out
}

// workOf is what must agree for runs to predict each other.
func workOf(t *trace.Trace) string {
	m := &t.Manifest
	var b strings.Builder
	fmt.Fprintf(&b, "%d CPUs", m.Host.CPUs)
	for _, s := range setting.Table() {
		if value, ok := m.Settings[s.Name]; ok && !s.Replay && !fit.MayDiffer(s.Name) {
			fmt.Fprintf(&b, " %s=%s", s.Name, value.Value)
		}
	}
	return b.String()
}

// group fits a model to some runs of a group and predicts all.
func (v *validator) group(runs []NamedTrace) error {
	g := ValidationGroup{Work: workOf(runs[0].Trace), FittedOn: []string{}, Warnings: []string{}}
	on, err := v.fitOn(runs)
	if err != nil {
		return err
	}
	if len(on) == 0 {
		v.out.Warnings = append(v.out.Warnings, fmt.Sprintf("no trace of %s is to be fitted to; "+
			"runs of it that are not predicted: %d", g.Work, len(runs)))
		return nil
	}
	var traces []*trace.Trace
	for _, r := range on {
		traces = append(traces, r.Trace)
		g.FittedOn = append(g.FittedOn, r.Name)
	}
	p, err := NewPredictor(traces, PredictorOptions{Durations: v.opts.Durations})
	if few := (*fit.TooFewError)(nil); errors.As(err, &few) {
		v.out.Warnings = append(v.out.Warnings, fmt.Sprintf("%s: %v; runs of %s that are not predicted: %d",
			strings.Join(g.FittedOn, ", "), few, g.Work, len(runs)))
		return nil
	}
	if err != nil {
		return fmt.Errorf("fit to %s: %w", strings.Join(g.FittedOn, ", "), err)
	}
	g.describe(p)
	v.out.Groups = append(v.out.Groups, g)
	for _, r := range runs {
		c, err := v.predict(p, r)
		if err != nil {
			return err
		}
		c.Group = len(v.out.Groups) - 1
		c.FittedOn = slices.Contains(g.FittedOn, r.Name)
		v.out.Cases = append(v.out.Cases, *c)
		if v.opts.Progress != nil {
			v.opts.Progress(len(v.out.Cases), len(v.runs))
		}
	}
	return nil
}

// fitOn are the runs of a group to fit to.
func (v *validator) fitOn(runs []NamedTrace) (on []NamedTrace, err error) {
	if len(v.opts.FitOn) == 0 {
		on, err = automatic(runs)
	} else {
		for _, r := range runs {
			hit := func(p string) bool { return named(r.Name, p) }
			if slices.ContainsFunc(v.opts.FitOn, hit) {
				on = append(on, r)
			}
		}
	}
	if v.opts.Durations == DurationsRecorded && len(on) > 1 {
		on = on[:1]
	}
	return on, err
}

// automatic is the run whose stages ran the most at once and the one whose stages ran the least,
// by what MinServices of their services saw: between them they support the most settings. What
// the runs came to (peaks, times) does not count.
func automatic(runs []NamedTrace) ([]NamedTrace, error) {
	most, least := -1, -1
	var high, low float64
	for i, r := range runs {
		data, err := r.Trace.Load()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		top, bottom := 0.0, 0.0
		seen := fit.Concurrency(data.Spans)
		for _, stage := range slices.Sorted(maps.Keys(seen)) { // one sum, whatever the map's order
			x := seen[stage]
			if n := len(x); n >= MinServices {
				top += math.Log(x[n-MinServices])
				bottom += math.Log(x[MinServices-1])
			}
		}
		if most < 0 || top > high {
			most, high = i, top
		}
		if least < 0 || bottom < low {
			least, low = i, bottom
		}
	}
	if most == least {
		return runs[most : most+1], nil
	}
	return []NamedTrace{runs[min(most, least)], runs[max(most, least)]}, nil
}

// describe is how the group's model explains what it was fitted to.
func (g *ValidationGroup) describe(p *Predictor) {
	rep := &p.fit.Report
	g.Partitions = int64(rep.Partitions)
	g.OtherCores, g.CPUPaceNS = rep.OtherCores, rep.Pace
	g.Warnings = append(g.Warnings, rep.Warnings...)
	if !p.frozen {
		g.ServiceResidual = &rep.Misfit
	}
	settled := int64(0)
	for i := range p.variants[0].Partitions {
		settled = max(settled, p.variants[0].Partitions[i].SettledBytes)
	}
	g.SettledBytes = settled
}

// predict asks for one run's settings and sets what it was beside what was predicted.
func (v *validator) predict(p *Predictor, r NamedTrace) (*ValidationCase, error) {
	data, err := r.Trace.Load()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	rec, err := recordedOf(r.Trace)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Name, err)
	}
	c := &ValidationCase{Trace: r.Name, Set: differing(p, r.Trace)}
	c.OtherCores, c.CPUPaceRatio = fit.OtherCores(data), paceRatio(p, data)
	a, err := p.ask(v.ctx, Question{
		Set: c.Set, Draws: v.opts.Draws, Seed: v.opts.Seed, Change: asThere(p, c),
	})
	if err != nil {
		if v.ctx.Err() != nil {
			return nil, v.ctx.Err()
		}
		c.Failure = err.Error()
		return c, nil
	}
	q := a.prediction
	c.Support = q.Support.Verdict
	c.Rho = q.Rho
	c.PeakLive = compare(rec.PeakLiveBytes, q.PeakLiveBytes, q.PeakLiveBytesLow, q.PeakLiveBytesHigh)
	c.PeakRSS = compare(rec.PeakRSSBytes, q.PeakRSSBytes, q.PeakRSSBytesLow, q.PeakRSSBytesHigh)
	c.ProofInterval = compare(rec.ProofIntervalNS, q.ProofIntervalNS, q.ProofIntervalNSLow,
		q.ProofIntervalNSHigh)
	backlog, predicted := fit.Backlog(data), q.QueueMaxItems["backlog"]
	c.Backlog = compare(&backlog, &predicted, nil, nil)
	v.verdicts(c, a, &rec)
	return c, nil
}

// paceRatio is how much slower the CPU was in a run than in those fitted to; nil where it is not
// known.
func paceRatio(p *Predictor, d *trace.Data) *float64 {
	was, fitted := fit.Pace(d), p.fit.Report.Pace
	if was == nil || fitted == nil {
		return nil
	}
	ratio := *was / *fitted
	return &ratio
}

// asThere asks for a machine as busy and as slow as it was while a run was recorded: what other
// programs and the host did to it is no property of its settings.
func asThere(p *Predictor, c *ValidationCase) func(*pipeline.Model) error {
	if p.frozen {
		return nil
	}
	cpus := p.fit.Report.CPUs
	return func(m *pipeline.Model) error {
		if c.OtherCores != nil && cpus > 0 {
			m.Machine.CPUs = fit.Cores(cpus, *c.OtherCores)
		}
		if c.CPUPaceRatio != nil {
			m.Partitions, m.Jobs = slices.Clone(m.Partitions), slices.Clone(m.Jobs)
			fit.Slow(m.Stages, m.Partitions, m.Jobs, *c.CPUPaceRatio)
		}
		return nil
	}
}

// verdicts are what would have been said of limits around the measured peak.
func (v *validator) verdicts(c *ValidationCase, a *answer, rec *Recorded) {
	peak := rec.PeakRSSBytes
	if peak == nil || a.prediction.PeakRSSBytes == nil {
		peak = rec.PeakLiveBytes
	}
	if peak == nil {
		return
	}
	for _, ratio := range v.opts.Limits {
		a.prediction.limit(a.figures, max(1, int64(ratio*float64(*peak))))
		c.Verdicts = append(c.Verdicts, LimitVerdict{
			LimitRatio: ratio, OverLimitRatio: a.prediction.PeakOverLimitRatio,
			Unsafe: ratio <= 1, Verdict: a.prediction.Verdict(),
		})
	}
}

// differing are a run's settings where they are not those of the first trace fitted to.
func differing(p *Predictor, t *trace.Trace) map[string]string {
	out := map[string]string{}
	for _, s := range setting.Table() {
		value, ok := t.Manifest.Settings[s.Name]
		if !s.Replay || !ok {
			continue
		}
		if text, known := p.variants[0].Policy.Text(s.Name); known && text != value.Value {
			out[s.Name] = value.Value
		}
	}
	return out
}
