package replay

import (
	"context"
	"fmt"
	"maps"

	"highwater/replay/pipeline"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// answer is one question under way.
type answer struct {
	*Predictor
	ctx        context.Context
	question   Question
	models     []*pipeline.Model // the variants under the settings asked for
	figures    *figures
	prediction *Prediction
}

// ask simulates a question and fills in its prediction.
func (p *Predictor) ask(ctx context.Context, q Question) (*answer, error) {
	a := &answer{Predictor: p, ctx: ctx, question: q}
	var err error
	if a.models, err = p.under(&q); err != nil {
		return nil, err
	}
	if a.figures, err = a.draw(a.models, a.draws(), q.Progress); err != nil {
		return nil, err
	}
	return a, a.predict()
}

// under is the variants under a question's settings.
func (p *Predictor) under(q *Question) ([]*pipeline.Model, error) {
	var out []*pipeline.Model
	for _, v := range p.variants {
		m := *v
		if q.Change != nil {
			if err := q.Change(&m); err != nil {
				return nil, err
			}
		}
		set, err := m.Apply(q.Set)
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	return out, nil
}

func (a *answer) draws() int {
	switch {
	case a.frozen:
		return 1
	case a.question.Draws == 0:
		return DefaultDraws
	}
	return a.question.Draws
}

func (a *answer) draw(ms []*pipeline.Model, n int, progress func(int, int)) (*figures, error) {
	plan := &drawPlan{
		models: ms, programs: a.programs, n: n, seed: a.question.Seed, bootstrap: !a.frozen, progress: progress,
		workers: a.question.Workers,
	}
	stats, err := plan.run(a.ctx)
	f := &figures{models: ms, stats: stats}
	if a.fit != nil {
		if r := &a.fit.Report.Remainder; r.ErrorBytes != nil && r.PeakBytes > 0 {
			f.off, f.freely = float64(*r.ErrorBytes)/float64(r.PeakBytes), float64(r.Freedom)
		}
	}
	return f, err
}

// predict fills in the prediction from the figures.
func (a *answer) predict() error {
	q := &a.question
	p := &Prediction{
		Durations: DurationsFitted, Draws: a.draws(), Seed: q.Seed, Settings: a.settings(),
		Warnings: []string{}, Law: a.law(),
	}
	if a.frozen {
		p.Durations = DurationsRecorded
	}
	if len(a.recorded) > 0 {
		p.Recorded = a.recorded[0]
	}
	p.fill(a.figures, a.frozen)
	p.limit(a.figures, q.MemoryLimit)
	var err error
	if p.Support, err = a.support(); err != nil {
		return err
	}
	if q.Growth {
		if p.Growth, err = a.growth(); err != nil {
			return err
		}
	}
	p.Warnings = append(p.Warnings, a.warnings(p)...)
	if q.MemoryLimit > 0 && !a.frozen && a.draws() < ManyDraws {
		p.Warnings = append(p.Warnings, FewDraws(a.draws()))
	}
	a.prediction = p
	return nil
}

// settings are the first trace's with those that were set; of a model without a trace its own.
func (a *answer) settings() map[string]trace.Setting {
	out := map[string]trace.Setting{}
	if len(a.traces) > 0 {
		maps.Copy(out, a.traces[0].Manifest.Settings)
		for name, s := range out {
			out[name] = trace.Setting{Value: s.Value, Source: "trace"}
		}
	} else {
		for _, s := range setting.Table() {
			if text, ok := a.models[0].Policy.Text(s.Name); ok {
				out[s.Name] = trace.Setting{Value: text, Source: "model"}
			}
		}
	}
	for name := range a.question.Set {
		text, _ := a.models[0].Text(name)
		out[name] = trace.Setting{Value: text, Source: "set"}
	}
	return out
}

// ManyDraws is how many draws it takes to see a probability of 1 %.
const ManyDraws = 100

// FewDraws is the warning that n draws are too few for a verdict.
func FewDraws(n int) string {
	return fmt.Sprintf("%d draws are few to tell a probability of 1 %% by: take %d or more", n, ManyDraws)
}
