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
	// edits the model before Set, as Question.Change does; may be nil
	Change func(*pipeline.Model) error
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
	p, err := NewPredictor([]*trace.Trace{t}, PredictorOptions{Durations: opts.Durations})
	if err != nil {
		return nil, err
	}
	return p.Run(ctx, opts)
}

// Run predicts one setting with everything that a prediction can say: the replay of the recorded
// settings beside it, growth where a memory limit is asked about, and the simulated trace where
// opts.Out names a directory. opts.Durations is that of the predictor, whatever it says.
func (p *Predictor) Run(ctx context.Context, opts Options) (*Prediction, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	a, err := p.ask(ctx, Question{
		Set: opts.Set, Change: opts.Change, Draws: opts.Draws, Seed: opts.Seed,
		MemoryLimit: opts.MemoryLimit, Growth: !p.frozen, Progress: opts.Progress,
	})
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := a.identify(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if opts.Out != "" {
		if err := a.write(opts.Out); err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		a.prediction.Out = opts.Out
	}
	return a.prediction, nil
}
