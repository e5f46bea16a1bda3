// Package groth16 is Groth16 over BLS12-381 in stages, for a pipeline: set-up, synthesis (solve into a, b, c
// and the assignment), start (NTTs and the G1 MSMs), b_g2, finalise, verify. All large buffers live in traced memory outside
// the Go heap (prover/hostmem). Keys, proofs and verification are gnark's types; proofs verify with gnark's own verifier.
//
// Equal seeds give equal proof bytes whatever the backend, scheduling or recording.
package groth16

import (
	"context"

	"github.com/consensys/gnark/backend/witness"

	"highwater/prover/hostmem"
	"highwater/tracer"
)

// Env is what a stage needs of its surroundings.
type Env struct {
	Mem *hostmem.Allocator // also gives the Recorder for op spans
	// AfterMSM runs after every MSM: the pipeline collects garbage there (prover.md 1.6). May be nil.
	AfterMSM func()
}

// Assignment is one synthesised partition: a, b, c and the full assignment w (aux), each in its own region.
// A, B, C are dead once Backend.Start has returned: FreeABC gives them back.
type Assignment struct {
	A, B, C, W *hostmem.Region // nil once freed
	// unexported: counts, public part
}

func (a *Assignment) SettledBytes() int64     { panic("to be written") } // capacity of a, b, c and w now
func (a *Assignment) Handoff(to tracer.Owner) { panic("to be written") } // all live regions
func (a *Assignment) FreeABC() error          { panic("to be written") } // those that are left (a may live on as h until Start ends)
func (a *Assignment) Free() error             { panic("to be written") } // everything left; safe to call twice

// System is a compiled circuit in mmap memory, shared by all partitions, read-only once built.
type System struct{}

func (s *System) Constraints() int { panic("to be written") }
func (s *System) DomainSize() int  { panic("to be written") }
func (s *System) Wires() int       { panic("to be written") }

// SettledBytes is what one synthesised partition of this system occupies: a, b, c and w.
func (s *System) SettledBytes() int64 { panic("to be written") }
func (s *System) Free() error         { panic("to be written") }

// SynthesisOptions are the settings of synthesis.
type SynthesisOptions struct {
	Presize bool // reserve a, b, c, w up front; else grow by doubling
	Owner   tracer.Owner
}

// Synthesise solves the system for w on the calling goroutine, single-threaded, writing a, b, c and the assignment into fresh regions.
// A witness that does not satisfy the system is an error that names the constraint; nothing stays allocated then.
func (s *System) Synthesise(ctx context.Context, env Env, w witness.Witness, opts SynthesisOptions) (*Assignment, error) {
	panic("to be written")
}

// Key is a proving key in mmap memory with its verifying key.
type Key struct{}

func (k *Key) Bytes() int64 { panic("to be written") }
func (k *Key) Free() error  { panic("to be written") }

// StartOptions are the settings of a start.
type StartOptions struct {
	Threads int // 0: one a CPU
	Owner   tracer.Owner
}

// Pending is a started proof: it waits for b_g2 and the blinding. It keeps what b_g2 needs (class split).
type Pending struct{}

func (p *Pending) Handoff(to tracer.Owner) { panic("to be written") }
func (p *Pending) Free() error             { panic("to be written") } // safe to call twice

// Backend runs the heavy part.
type Backend interface {
	Name() string
	// Start runs the seven NTTs with the pointwise step, then the MSMs h, l, a and b_g1. When it returns, a, b and c are dead.
	Start(ctx context.Context, env Env, a *Assignment, opts StartOptions) (*Pending, error)
	// BG2 runs the G2 MSM of the B query on threads CPU threads (0: one a CPU).
	BG2(ctx context.Context, env Env, p *Pending, opts StartOptions) error
	Close() error
}

// Proof is a proof in gnark's type; Bytes is its canonical (compressed) encoding.
type Proof struct{}

func (p *Proof) Bytes() []byte { panic("to be written") }

// Blinding gives r and s of a partition's proof from the run's seed: derived by hashing (seed, job, partition).
type Blinding struct {
	Seed           uint64
	Job, Partition int
}

// Finalise blinds and assembles the proof. It frees nothing.
func (k *Key) Finalise(p *Pending, b Blinding) (*Proof, error) { panic("to be written") }

// Verify checks proof with gnark's own verifier.
func (k *Key) Verify(proof *Proof, public witness.Witness) error { panic("to be written") }
