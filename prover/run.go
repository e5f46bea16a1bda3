package prover

import "context"

// Run sets up keys where the cache has none, proves the jobs and seals the trace. An error means that the run as a
// whole could not be done; a job that fails, and a cancelled context, are in the result instead.
func Run(ctx context.Context, cfg Config) (*Result, error) { panic("to be written") }
