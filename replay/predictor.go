package replay

import (
	"context"
	"errors"
	"fmt"

	"highwater/replay/fit"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// Predictor is a model fitted to one or several traces of a program, ready to be asked about many
// settings. What it says never changes after NewPredictor, and goroutines may share it.
type Predictor struct {
	traces   []*trace.Trace
	recorded []Recorded
	fit      *fit.Result // nil for a predictor made of a model
	// variants are the model under laws refitted to resampled services; the first is the fit itself
	variants []*pipeline.Model
	frozen   bool
	programs *sim.Programs // that the variants compile to
}

// PredictorOptions say how a predictor is made. The zero value fits the contention law.
type PredictorOptions struct {
	Durations string // recorded | fitted; "" is fitted; recorded takes one trace
}

// Question is one setting to be predicted. The zero value asks about the settings of the first
// trace.
type Question struct {
	Set map[string]string // settings that differ from those of the first trace
	// Change edits a copy of the model, before Set: what-if questions. It must give every copy the
	// same change: a question simulates several. Slices of the model are shared: replace, never
	// write into them. May be nil.
	Change func(*pipeline.Model) error
	Draws  int    // 0 means DefaultDraws; frozen durations are drawn once
	Seed   uint64 // same seed, same prediction
	// bytes; 0 asks no question
	MemoryLimit int64
	// Growth also says how the peak depends on the run's length; it costs some further draws
	Growth  bool
	Workers int // goroutines; 0 means one a CPU. Sweeps that run questions in parallel say 1
	// called after some draws, never at the same time as itself; may be nil
	Progress func(done, total int)
}

// NewPredictor fits a model to traces of one program on one machine, recorded under the same or
// under different settings. The error says what they lack.
func NewPredictor(traces []*trace.Trace, opts PredictorOptions) (*Predictor, error) {
	if len(traces) == 0 {
		return nil, errors.New("replay: no trace to fit a model to")
	}
	if err := (&Options{Durations: opts.Durations}).Validate(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	p := &Predictor{
		traces: traces, frozen: opts.Durations == DurationsRecorded, programs: new(sim.Programs),
	}
	if p.frozen && len(traces) > 1 {
		return nil, fmt.Errorf("replay: durations %s keep each partition's own times: "+
			"give one trace, not %d", DurationsRecorded, len(traces))
	}
	var all []*trace.Data
	for _, t := range traces {
		data, err := t.Load()
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		all = append(all, data)
	}
	var err error
	if p.fit, err = fit.Fit(all...); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	switch {
	case p.frozen:
		p.variants = []*pipeline.Model{p.fit.Frozen}
	case p.fit.Fitted == nil:
		return nil, fmt.Errorf("replay: %w", p.fit.Report.TooFew)
	default:
		p.variants = append([]*pipeline.Model{p.fit.Fitted}, p.fit.Variants...)
	}
	for _, t := range traces {
		rec, err := recordedOf(t)
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		p.recorded = append(p.recorded, rec)
	}
	return p, nil
}

// FromModel is a predictor of a model that no trace was fitted for, such as a named one. Nothing is
// known of its support.
func FromModel(m *pipeline.Model) *Predictor {
	return &Predictor{variants: []*pipeline.Model{m}, programs: new(sim.Programs)}
}

// Changed is the predictor of the program after a change, such as an optimisation: what
// Question.Change does, once for many questions. The error is the change's.
func (p *Predictor) Changed(change func(*pipeline.Model) error) (*Predictor, error) {
	out := *p
	out.variants, out.programs = nil, new(sim.Programs)
	for _, v := range p.variants {
		m := *v
		if err := change(&m); err != nil {
			return nil, err
		}
		out.variants = append(out.variants, &m)
	}
	return &out, nil
}

// Model is a copy of the model under the recorded settings of the first trace: the fit itself.
// Slices are shared with the predictor and must not be written into.
func (p *Predictor) Model() *pipeline.Model {
	m := *p.variants[0]
	return &m
}

// Recorded is the runs that the model was fitted to, as measured, in the order of the traces.
func (p *Predictor) Recorded() []Recorded { return p.recorded }

// Predict simulates a question's settings. The error says which setting cannot be replayed; it is a
// *sim.DeadlockError where the settings stop the pipeline.
func (p *Predictor) Predict(ctx context.Context, q Question) (*Prediction, error) {
	a, err := p.ask(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return a.prediction, nil
}

// Record simulates the draw of a question that attains the median peak, as a trace.
func (p *Predictor) Record(ctx context.Context, q Question) (*trace.Data, error) {
	a, err := p.ask(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	data, err := a.simulated()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return data, nil
}
