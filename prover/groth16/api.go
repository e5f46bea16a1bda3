// Package groth16 is Groth16 over BLS12-381 in stages, for a pipeline: set-up, synthesis (solve
// into a, b, c and the assignment), start (NTTs and the G1 MSMs), b_g2, finalise, verify. All large
// buffers live in traced memory outside the Go heap (prover/hostmem). Keys, proofs and verification
// are gnark's types; proofs verify with gnark's own verifier.
//
// Equal seeds give equal proof bytes whatever the backend, scheduling or recording.
package groth16

import (
	"context"

	"highwater/prover/hostmem"
	"highwater/tracer"
)

// Env is what a stage needs of its surroundings.
type Env struct {
	Mem *hostmem.Allocator // also gives the Recorder for op spans
	// AfterMSM runs after every MSM: the pipeline collects garbage there (prover.md 1.6). May be
	// nil.
	AfterMSM func()
}

// StartOptions are the settings of a start.
type StartOptions struct {
	Threads int // 0: one a CPU
	Owner   tracer.Owner
}

// Backend runs the heavy part. Its stages may run for several proofs at once.
type Backend interface {
	Name() string
	// Start runs the seven NTTs with the pointwise step, then the MSMs h, l, a and b_g1. When it
	// returns, with or without an error, a, b and c are dead. It frees none of the assignment.
	Start(ctx context.Context, env Env, a *Assignment, opts StartOptions) (*Pending, error)
	// BG2 runs the G2 MSM of the B query on threads CPU threads (0: one a CPU).
	BG2(ctx context.Context, env Env, p *Pending, opts StartOptions) error
	Close() error
}
