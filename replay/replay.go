// Package replay says what a recorded run would have done under other settings: it fits a pipeline
// model to a trace (replay/fit), simulates it in virtual time (replay/sim) and reports peak memory
// and throughput with intervals.
//
// A setting is what tracer/setting names. A draw is one simulation with service times of its own;
// with durations `recorded` every partition keeps the times it was recorded with, with `fitted`
// they are drawn from the fitted law.
package replay

import (
	"context"
	"fmt"

	"highwater/replay/fit"
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// Words of Options.Durations.
const (
	// frozen: checks engine and policy, right only near the recorded settings
	DurationsRecorded = "recorded"
	DurationsFitted   = "fitted" // the contention law; the default
)

// DefaultDraws is how many draws a prediction takes where Options says none.
const DefaultDraws = 200

// MaxDraws bounds Options.Draws.
const MaxDraws = 1 << 20

// Options are what to replay. The zero value replays the recorded settings with the fitted law.
type Options struct {
	Set         map[string]string // settings that differ from the trace's
	Durations   string            // recorded | fitted; "" is fitted
	Draws       int               // 0 means DefaultDraws; durations recorded are drawn once
	Seed        uint64            // same seed, same prediction, same bytes
	Out         string            // directory of the simulated trace, "" for none
	MemoryLimit int64             // bytes; 0 asks no question
	// called after each draw, never at the same time as itself; may be nil
	Progress func(done, total int)
}

// Validate reports what is wrong with the options.
func (o *Options) Validate() error {
	switch {
	case o.Durations != "" && o.Durations != DurationsRecorded && o.Durations != DurationsFitted:
		return fmt.Errorf("durations: %q is neither %s nor %s", o.Durations, DurationsRecorded,
			DurationsFitted)
	case o.Draws < 0 || o.Draws > MaxDraws:
		return fmt.Errorf("draws: %d is outside 0..%d", o.Draws, MaxDraws)
	case o.MemoryLimit < 0:
		return fmt.Errorf("memory limit: %d bytes is below 0", o.MemoryLimit)
	}
	return nil
}

// Run replays t. The error says which setting cannot be replayed, or what the trace lacks; it is a
// *sim.DeadlockError where the settings stop the pipeline.
func Run(ctx context.Context, t *trace.Trace, opts Options) (*Prediction, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	data, err := t.Load()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	fitted, err := fit.Fit(data)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &run{ctx: ctx, trace: t, opts: opts, fit: fitted}
	if err := r.choose(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	p, err := r.predict()
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return p, nil
}

// run is one replay under way.
type run struct {
	ctx   context.Context
	trace *trace.Trace
	opts  Options
	fit   *fit.Result
	base  *pipeline.Model // recorded settings
	model *pipeline.Model // settings asked for
	draws int
}

// choose takes the model that the durations ask for and applies the settings.
func (r *run) choose() error {
	r.base, r.draws = r.fit.Fitted, r.opts.Draws
	if r.draws == 0 {
		r.draws = DefaultDraws
	}
	if r.frozen() {
		r.base, r.draws = r.fit.Frozen, 1
	} else if r.base == nil {
		return r.fit.Report.TooFew
	}
	var err error
	r.model, err = r.base.Apply(r.opts.Set)
	return err
}

func (r *run) frozen() bool { return r.opts.Durations == DurationsRecorded }
