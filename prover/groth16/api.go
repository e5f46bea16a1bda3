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
	// NoTables leaves out the key's NTT tables: a device has its own. A CPU backend makes them when
	// it is made.
	NoTables bool
}

// StartOptions are the settings of a start.
type StartOptions struct {
	Threads int // 0: one a CPU
	Device  int // number of the device, below Backend.Devices
	Owner   tracer.Owner
}

// Backend runs the heavy part. Its stages may run for several proofs at once.
type Backend interface {
	Name() string
	// Start runs the seven NTTs with the pointwise step, then the MSMs h, l, a and b_g1. When it
	// returns, with or without an error, a, b and c are dead. It frees none of the assignment.
	Start(ctx context.Context, env Env, a *Assignment, opts StartOptions) (*Pending, error)
	// BG2 runs the G2 MSM of the B query on threads CPU threads (0: one a CPU).
	// It may be left out where Start has done it: Pending.HasBG2.
	BG2(ctx context.Context, env Env, p *Pending, opts StartOptions) error
	// Devices is how many devices it drives; the CPUs count as one.
	Devices() int
	Close() error
}

// Stager is a Backend that can bring an assignment to where its device reads it fast, before Start
// and beside the Start of another.
type Stager interface {
	Backend
	// StageIn leaves what it made with the assignment (Assignment.SetStaged).
	StageIn(ctx context.Context, env Env, a *Assignment, opts StartOptions) error
}

// Staged is what a Stager made for one assignment. The assignment releases it before it frees any
// of its regions.
type Staged interface{ Release() error }
