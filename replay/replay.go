// Package replay says what a recorded run would have done under other settings: it fits a pipeline model to a trace
// (replay/fit), simulates it in virtual time (replay/sim) and reports peak memory and throughput with intervals.
//
// A setting is what tracer/setting names. A draw is one simulation with service times of its own; with durations `recorded`
// every partition keeps the times it was recorded with, with `fitted` they are drawn from the fitted law.
package replay

import (
	"context"
	"errors"

	"highwater/tracer/trace"
)

// Words of Options.Durations.
const (
	DurationsRecorded = "recorded" // frozen: checks engine and policy, right only near the recorded settings
	DurationsFitted   = "fitted"   // the contention law; the default
)

// DefaultDraws is how many draws a prediction takes where Options says none.
const DefaultDraws = 200

// Options are what to replay. The zero value replays the recorded settings with the fitted law.
type Options struct {
	Set         map[string]string     // settings that differ from the trace's
	Durations   string                // recorded | fitted; "" is fitted
	Draws       int                   // 0 means DefaultDraws
	Seed        uint64                // same seed, same prediction, same bytes
	Out         string                // directory of the simulated trace, "" for none
	MemoryLimit int64                 // bytes; 0 asks no question
	Progress    func(done, total int) // called after each draw; may be nil
}

// Run replays t. The error says which setting cannot be replayed, or what the trace lacks.
func Run(ctx context.Context, t *trace.Trace, opts Options) (*Prediction, error) {
	return nil, errors.New("replay: to be written")
}
