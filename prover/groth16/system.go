package groth16

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	cs "github.com/consensys/gnark/constraint/bls12-381"
	"github.com/consensys/gnark/constraint/solver"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"

	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/trace"
)

const (
	scalarBytes = 32
	wordBytes   = 4
)

// System is a compiled circuit in mmap memory, shared by all partitions, read-only once built.
type System struct {
	size         programSize
	public       int // public wires, the constant one included
	program      program
	coefficients []fr.Element
	hints        map[uint32]solver.Hint
	regions      []*hostmem.Region // program, coefficients
}

// Constraints is the number of constraints.
func (s *System) Constraints() int { return s.size.constraints }

// DomainSize is the smallest power of two that holds the constraints.
func (s *System) DomainSize() int {
	return 1 << bits.Len(uint(s.size.constraints-1))
}

// Wires is the number of wires: the constant one, public, secret and internal.
func (s *System) Wires() int { return s.size.wires }

// Public is the number of public wires, the constant one included.
func (s *System) Public() int { return s.public }

// Bytes is the memory that the compiled system occupies.
func (s *System) Bytes() int64 { return capacityOf(s.regions) }

// SettledBytes is what one synthesised partition of this system occupies: a, b, c and w, reserved
// up front. One that grew by doubling occupies up to twice as much for w: GrownBytes.
func (s *System) SettledBytes() int64 {
	return 3*s.vectorBytes() + pages(int64(s.size.wires)*scalarBytes)
}

// GrownBytes is what one synthesised partition occupies whose vectors grew by doubling.
func (s *System) GrownBytes() int64 {
	return 3*s.vectorBytes() + doubled(s.vectorBytes(), int64(s.size.wires)*scalarBytes)
}

// vectorBytes is the size of each of a, b and c: a whole domain, for the NTTs run in place.
func (s *System) vectorBytes() int64 { return pages(int64(s.DomainSize()) * scalarBytes) }

// Free gives the memory back. It is safe to call twice.
func (s *System) Free() error {
	regions := s.regions
	s.regions, s.program, s.coefficients = nil, program{}, nil
	return freeAll(regions...)
}

// Compile compiles shape with gnark's frontend and moves the result into mmap memory (class
// system). It leaves garbage on the Go heap: compile in the set-up process, and load the system
// from the cache where memory is watched.
func Compile(ctx context.Context, env Env, shape frontend.Circuit) (*System, error) {
	compiled, err := frontend.Compile(ecc.BLS12_381.ScalarField(), r1cs.NewBuilder, shape)
	if err != nil {
		return nil, fmt.Errorf("compile circuit: %w", err)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("compile circuit: %w", err)
	}
	return fromGnark(env, compiled.(*cs.R1CS))
}

// fromGnark copies a gnark system into mmap memory.
func fromGnark(env Env, r *cs.R1CS) (*System, error) {
	if err := supported(r); err != nil {
		return nil, fmt.Errorf("convert circuit: %w", err)
	}
	if r.GetNbConstraints() == 0 {
		return nil, errors.New("convert circuit: it has no constraints")
	}
	conv := converter{system: r}
	if err := conv.run(nil); err != nil {
		return nil, fmt.Errorf("convert circuit: %w", err)
	}
	size := programSize{
		inputs: conv.inputs, wires: wiresOf(r), coefficients: len(r.Coefficients),
		constraints: r.GetNbConstraints(),
	}
	s, err := newSystem(env, size, conv.n)
	if err != nil {
		return nil, err
	}
	s.public = r.GetNbPublicVariables()
	copy(s.coefficients, r.Coefficients)
	if err := errors.Join(conv.run(s.program.words), s.seal()); err != nil {
		return nil, errors.Join(fmt.Errorf("convert circuit: %w", err), s.Free())
	}
	return s, nil
}

// newSystem maps a system of the given size, its content still zero.
func newSystem(env Env, size programSize, words int) (*System, error) {
	s := &System{size: size}
	stream, err := s.region(env, words*wordBytes)
	if err != nil {
		return nil, err
	}
	coefficients, err := s.region(env, size.coefficients*scalarBytes)
	if err != nil {
		return nil, errors.Join(err, s.Free())
	}
	s.program = program{words: hostmem.Of[uint32](stream, words)}
	s.coefficients = hostmem.Of[fr.Element](coefficients, size.coefficients)
	return s, nil
}

func (s *System) region(env Env, size int) (*hostmem.Region, error) {
	r, err := env.Mem.Alloc(trace.ClassSystem, int64(size), tracer.NoOwner)
	if err == nil {
		s.regions = append(s.regions, r)
	}
	return r, err
}

// seal checks the content once it is written, and collects the hint functions.
func (s *System) seal() error {
	s.hints = map[uint32]solver.Hint{}
	known := func(id uint32) bool {
		if s.hints[id] == nil {
			s.hints[id] = solver.GetRegisteredHint(solver.HintID(id))
		}
		return s.hints[id] != nil
	}
	if s.public < 1 || s.public > s.size.inputs || s.size.inputs > s.size.wires {
		return fmt.Errorf("%d public of %d known of %d wires", s.public, s.size.inputs, s.size.wires)
	}
	if err := s.program.check(s.size, known); err != nil {
		return fmt.Errorf("check instructions: %w", err)
	}
	for _, r := range s.regions {
		r.Fill(r.Capacity())
	}
	return nil
}
