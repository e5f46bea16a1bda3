package groth16

import (
	"context"
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark/backend/witness"

	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/trace"
)

// progressSteps is how often synthesis looks up: it records what it has touched and honours its
// context.
const progressSteps = 32

// SynthesisOptions are the settings of synthesis.
type SynthesisOptions struct {
	Presize bool // reserve a, b, c, w up front; else grow by doubling
	Owner   tracer.Owner
}

// UnsatisfiedError says which constraint a witness does not satisfy.
type UnsatisfiedError struct {
	Constraint, Constraints int
	Left, Right             string // a·b and c there
}

// Error implements error.
func (e *UnsatisfiedError) Error() string {
	return fmt.Sprintf("witness does not satisfy constraint %d of %d: a·b is %s, c is %s",
		e.Constraint, e.Constraints, e.Left, e.Right)
}

// Synthesise solves the system for w on the calling goroutine, single-threaded, writing a, b, c and
// the assignment into fresh regions. A witness that does not satisfy the system is an
// *UnsatisfiedError that names the constraint; nothing stays allocated then.
func (s *System) Synthesise(
	ctx context.Context, env Env, w witness.Witness, opts SynthesisOptions,
) (*Assignment, error) {
	values, ok := w.Vector().(fr.Vector)
	if !ok || len(values) != s.size.inputs-1 {
		return nil, fmt.Errorf("synthesise: witness is a %T of %d values, want an fr.Vector of %d",
			w.Vector(), len(values), s.size.inputs-1)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("synthesise: %w", err)
	}
	a, err := s.allocate(env, opts)
	if err != nil {
		return nil, fmt.Errorf("synthesise: %w", errors.Join(err, a.Free()))
	}
	if err := newSolution(s, a).solve(ctx, values); err != nil {
		return nil, fmt.Errorf("synthesise: %w", errors.Join(err, a.Free()))
	}
	return a, nil
}

// allocate maps the four vectors, whole or at their first size.
func (s *System) allocate(env Env, opts SynthesisOptions) (*Assignment, error) {
	a := &Assignment{system: s}
	vector, wires := s.vectorBytes(), pages(int64(s.size.wires)*scalarBytes)
	if !opts.Presize {
		vector, wires = min(vector, firstGrownBytes), min(vector, firstGrownBytes)
	}
	for _, v := range []struct {
		region **hostmem.Region
		class  string
		size   int64
	}{
		{&a.A, trace.ClassA, vector}, {&a.B, trace.ClassB, vector}, {&a.C, trace.ClassC, vector},
		{&a.W, trace.ClassAux, wires},
	} {
		r, err := env.Mem.Alloc(v.class, v.size, opts.Owner)
		if err != nil {
			return a, err
		}
		*v.region = r
	}
	return a, nil
}
