package compare

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"highwater/analyze/compare/inject"
	"highwater/tracer/trace"
)

// injected is one edit and the metrics that would show it.
type injected struct {
	kind, subject string
	ratio         float64
	targets       []Metric
}

// bank is the runs as recorded, and with each effect edited into them.
type bank struct {
	opts    PowerOptions
	runs    []*Run
	effects []injected
	edited  [][]*Run // by effect, by run
}

// maxBankRows bounds a trace of a bank: it is edited in memory.
const maxBankRows = 4 << 20

func (b *bank) take(t *trace.Trace) error {
	d, err := t.LoadLimit(maxBankRows)
	if err != nil {
		return fmt.Errorf("measure power: %w", err)
	}
	r, err := ReadRun(t)
	if err != nil {
		return err
	}
	b.runs = append(b.runs, r)
	if len(b.runs) == 1 {
		b.effects = effectsFor(r, d, b.opts.Sizes)
		b.edited = make([][]*Run, len(b.effects))
	}
	for i, e := range b.effects {
		data, err := e.apply(d)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		x, err := ReadRun(trace.FromData(data))
		if err != nil {
			return err
		}
		x.Name = r.Name
		b.edited[i] = append(b.edited[i], x)
	}
	return nil
}

func (e injected) apply(d *trace.Data) (*trace.Data, error) {
	switch e.kind {
	case EffectStageTime:
		return inject.StageTime(d, e.subject, e.ratio)
	case EffectLifetime:
		return inject.Lifetime(d, e.subject, e.ratio)
	case EffectSize:
		return inject.BufferSize(d, e.subject, e.ratio)
	}
	return inject.OneMore(d, e.subject)
}

// powerClasses is how many classes effects are injected into: those with most bytes.
const powerClasses = 3

// effectsFor lists what to inject: each stage's time, and lifetime, size and one more buffer of the
// largest classes that jobs allocate and free.
func effectsFor(r *Run, d *trace.Data, sizes []float64) (list []injected) {
	for _, stage := range r.stages.names {
		for _, size := range sizes {
			list = append(list, injected{EffectStageTime, stage, size, []Metric{{StageTime, stage}}})
		}
	}
	for _, kind := range []string{EffectLifetime, EffectSize, EffectOneMore} {
		for _, class := range largestClasses(r, d, kind) {
			targets := []Metric{{ClassPeak, class}, {ClassArea, class}, {PeakLive, ""}}
			tried := sizes
			switch kind {
			case EffectLifetime:
				targets = targets[1:2]
			case EffectSize:
				targets = targets[:2]
			default:
				tried = []float64{1}
			}
			for _, size := range tried {
				list = append(list, injected{kind, class, size, targets})
			}
		}
	}
	return list
}

// largestClasses are the classes that the kind of effect can be edited into, those with most bytes.
func largestClasses(r *Run, d *trace.Data, kind string) []string {
	var classes []string
	for m := range r.Values {
		if m.Name != ClassArea {
			continue
		}
		if _, err := (injected{kind: kind, subject: m.Subject, ratio: 0.01}).apply(d); err == nil {
			classes = append(classes, m.Subject)
		}
	}
	slices.SortFunc(classes, func(x, y string) int {
		a, b := r.Values[Metric{ClassPeak, x}], r.Values[Metric{ClassPeak, y}]
		return cmp.Or(cmp.Compare(b, a), cmp.Compare(x, y))
	})
	return classes[:min(len(classes), powerClasses)]
}

func (b *bank) measure() *Power {
	p := &Power{
		Bank: len(b.runs), Side: b.opts.Side, Resamples: b.opts.Resamples, Seed: b.opts.Seed,
		Effects: []EffectPower{}, Noise: []MetricNoise{}, Curve: []NoiseCurve{},
		Comparable: differences(b.runs, b.runs, nil),
	}
	noise := map[Metric]*float64{}
	for _, m := range commonMetrics(b.runs) {
		if !m.Outcome() {
			continue
		}
		values := valuesOfRuns(b.runs, m)
		noise[m] = finite(variation(values))
		p.Noise = append(p.Noise, MetricNoise{m, median(values), noise[m]})
	}
	p.FalseRegressions = b.falseRegressions(b.opts.Side)
	p.FalseRegressionRatio = float64(p.FalseRegressions) / float64(b.opts.Resamples)
	p.SingleFalseRatio = b.singleFalse(true)
	if r := b.singleFalse(false); r != nil {
		p.SingleDefaultRatio = *r
	}
	for i, e := range b.effects {
		p.add(e, b.found(i), noise)
	}
	for i := range p.Effects {
		p.Effects[i].smallest()
	}
	for _, n := range p.Noise {
		if n.NoiseRatio != nil && *n.NoiseRatio > 0 {
			p.Tested++
		}
	}
	for _, noise := range curveNoise {
		p.Curve = append(p.Curve, b.curve(noise, Alpha/float64(max(p.Tested, 1))))
	}
	return p
}

// curveNoise is the levels of noise of the curve.
var curveNoise = []float64{0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.10, 0.20}

// curve draws normal noise and shifts one side by each effect.
func (b *bank) curve(noise, alpha float64) NoiseCurve {
	c := NoiseCurve{NoiseRatio: noise, Points: []PowerPoint{}}
	rng := b.draw("curve " + strconv.FormatFloat(noise, 'g', -1, 64))
	base, next := make([]float64, b.opts.Side), make([]float64, b.opts.Side)
	for _, size := range b.opts.Sizes {
		found := 0
		for range b.opts.Resamples {
			for i := range base {
				base[i] = 1 + noise*rng.NormFloat64()
				next[i] = (1 + size) * (1 + noise*rng.NormFloat64())
			}
			if p, _ := uTest(sample(base), sample(next)); p <= alpha && median(next) > median(base) {
				found++
			}
		}
		c.Points = append(c.Points, PowerPoint{size, float64(found) / float64(b.opts.Resamples)})
	}
	return c
}

func valuesOfRuns(runs []*Run, m Metric) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = r.Values[m]
	}
	return values
}

// draw is the generator of one series of resamples: equal series draw equal sides.
func (b *bank) draw(series string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, c := range []byte(series) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(b.opts.Seed, h))
}

// falseRegressions counts the comparisons of equal sides that are called a regression.
func (b *bank) falseRegressions(side int) (count int) {
	rng := b.draw("false")
	for range b.opts.Resamples {
		order := rng.Perm(len(b.runs))
		base, next := pickRuns(b.runs, order[:side]), pickRuns(b.runs, order[side:2*side])
		d := &Diff{}
		d.Outcomes, _ = newJudge(base, next, Options{}).rows(true)
		if d.worst(false) == Regression {
			count++
		}
	}
	return count
}

// singleFalse compares one run with one: the floor is learnt from one half of the bank, or the
// default, the runs come from the other half. It is how often that is called a regression.
func (b *bank) singleFalse(learnt bool) *float64 {
	rng := b.draw("single")
	const halves = 20
	wrong, all := 0, 0
	for range halves {
		order := rng.Perm(len(b.runs))
		half := len(order) / 2
		var floor *NoiseFloor
		if learnt {
			var err error
			if floor, err = LearnNoise(pickRuns(b.runs, order[:half]), 1, 1); err != nil {
				return nil
			}
		}
		rest := order[half:]
		for k := 0; k+1 < len(rest); k += 2 {
			d := &Diff{}
			d.Outcomes, _ = newJudge(pickRuns(b.runs, rest[k:k+1]), pickRuns(b.runs, rest[k+1:k+2]),
				Options{Noise: floor}).rows(true)
			if d.worst(false) == Regression {
				wrong++
			}
			all++
		}
	}
	ratio := float64(wrong) / float64(all)
	return &ratio
}

// found is how often the effect is called a regression of one of its metrics.
func (b *bank) found(effect int) float64 {
	e := b.effects[effect]
	rng := b.draw(e.kind + "/" + e.subject + "/" + strconv.FormatFloat(e.ratio, 'g', -1, 64))
	side, count := b.opts.Side, 0
	for range b.opts.Resamples {
		order := rng.Perm(len(b.runs))
		base := pickRuns(b.runs, order[:side])
		next := pickRuns(b.edited[effect], order[side:2*side])
		rows, _ := newJudge(base, next, Options{}).rows(true)
		if slices.ContainsFunc(rows, func(r Row) bool {
			return r.Verdict == Regression && slices.Contains(e.targets, r.Metric)
		}) {
			count++
		}
	}
	return float64(count) / float64(b.opts.Resamples)
}

func pickRuns(runs []*Run, order []int) []*Run {
	list := make([]*Run, len(order))
	for i, k := range order {
		list[i] = runs[k]
	}
	return list
}
