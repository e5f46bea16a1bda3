package groth16

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark/backend/witness"
	cs "github.com/consensys/gnark/constraint/bls12-381"
	"github.com/consensys/gnark/constraint/solver"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/consensys/gnark/logger"
	"github.com/consensys/gnark/std/math/bits"
	"github.com/consensys/gnark/std/rangecheck"
	"pgregory.net/rapid"

	"highwater/prover/circuit"
	"highwater/prover/hostmem"
	"highwater/tracer"
)

func init() { logger.Disable() }

func gnarkCompile(t testing.TB, shape frontend.Circuit) *cs.R1CS {
	t.Helper()
	compiled, err := frontend.Compile(ecc.BLS12_381.ScalarField(), r1cs.NewBuilder, shape)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.(*cs.R1CS)
}

// compareSolvers solves by gnark and by both ways of allocating here: same vectors bit for bit, or
// an error from all.
func compareSolvers(t testing.TB, r *cs.R1CS, w witness.Witness) {
	t.Helper()
	env := Env{Mem: &hostmem.Allocator{}}
	s, err := fromGnark(env, r)
	if err != nil {
		t.Fatal(err)
	}
	want, wantErr := r.Solve(w, solver.WithNbTasks(1))
	for _, presize := range []bool{true, false} {
		a, err := s.Synthesise(context.Background(), env, w, SynthesisOptions{Presize: presize, Owner: tracer.NoOwner})
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("presize %v: %v, gnark says %v", presize, err, wantErr)
		}
		if err != nil {
			continue
		}
		sol := want.(*cs.R1CSSolution)
		for _, v := range []struct {
			name   string
			region *hostmem.Region
			want   fr.Vector
		}{{"a", a.A, sol.A}, {"b", a.B, sol.B}, {"c", a.C, sol.C}, {"w", a.W, sol.W}} {
			if got := hostmem.Of[fr.Element](v.region, len(v.want)); !slices.Equal(got, v.want) {
				t.Errorf("presize %v: %s differs from gnark's", presize, v.name)
			}
			for i, e := range hostmem.Of[fr.Element](v.region, int(v.region.Capacity()/scalarBytes))[len(v.want):] {
				if !e.IsZero() {
					t.Errorf("presize %v: %s is not zero %d elements beyond its end", presize, v.name, i)
				}
			}
		}
		wantBytes := s.SettledBytes()
		if !presize {
			wantBytes = s.GrownBytes()
		}
		if got := a.SettledBytes(); got != wantBytes {
			t.Errorf("presize %v: %d bytes settled, want %d", presize, got, wantBytes)
		}
		if err := errors.Join(a.Free(), a.Free()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Free(); err != nil {
		t.Error(err)
	}
	wantNothingMapped(t, env)
}

func TestSolverEqualsGnark(t *testing.T) {
	for _, tc := range []struct {
		name    string
		logSize int
	}{{circuit.Label, 15}, {circuit.MiMC, 10}, {circuit.MiMC, 13}} {
		t.Run(fmt.Sprintf("%s-%d", tc.name, tc.logSize), func(t *testing.T) {
			c, err := circuit.New(tc.name, tc.logSize)
			if err != nil {
				t.Fatal(err)
			}
			r := gnarkCompile(t, c.Shape())
			for _, bad := range []bool{false, true} {
				w, err := circuit.Witness(c, circuit.Partition{Seed: 1, Bad: bad})
				if err != nil {
					t.Fatal(err)
				}
				compareSolvers(t, r, w)
			}
		})
	}
}

// step is one operation of a random circuit on values made before.
type step struct {
	op   int
	x, y int
}

// stepNames are the operations; the constraints they make cover every place an unsolved wire can
// stand in, and hints.
var stepNames = []string{"add", "sub", "mul", "const", "div", "inverse", "iszero", "bits", "select", "square", "equal", "scale"}

// randomCircuit runs steps over public and secret inputs.
type randomCircuit struct {
	Public []frontend.Variable `gnark:",public"`
	Secret []frontend.Variable
	steps  []step
}

// Define implements frontend.Circuit.
func (c *randomCircuit) Define(api frontend.API) error {
	values := append(slices.Clone(c.Public), c.Secret...)
	for i, s := range c.steps {
		values = append(values, apply(api, s, i, values[s.x%len(values)], values[s.y%len(values)]))
	}
	api.Mul(c.Secret[0], c.Secret[1]) // so that no circuit is empty
	return nil
}

func apply(api frontend.API, s step, i int, x, y frontend.Variable) frontend.Variable {
	switch stepNames[s.op] {
	case "add":
		return api.Add(x, y)
	case "sub":
		return api.Sub(x, y)
	case "mul":
		return api.Mul(x, y)
	case "const":
		return api.Add(x, new(big.Int).Lsh(big.NewInt(int64(i+3)), uint(s.y%200)))
	case "scale":
		return api.Mul(x, -2-s.y%7)
	case "div":
		return api.DivUnchecked(x, y)
	case "inverse":
		return api.Inverse(x)
	case "iszero":
		return api.IsZero(x)
	case "bits":
		return api.Add(bits.ToBinary(api, x)[s.y%200], y)
	case "select":
		return api.Select(api.IsZero(x), x, y)
	case "square":
		return api.Mul(x, x)
	}
	api.AssertIsEqual(api.Mul(x, y), api.Mul(y, x))
	return x
}

func TestSolverEqualsGnarkOnRandomCircuits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				op: rapid.IntRange(0, len(stepNames)-1).Draw(t, "op"),
				x:  rapid.IntRange(0, 1000).Draw(t, "x"), y: rapid.IntRange(0, 1000).Draw(t, "y"),
			}
		}), 1, 25).Draw(rt, "steps")
		inputs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *big.Int {
			v := big.NewInt(rapid.Int64Range(-2, 3).Draw(t, "small"))
			if rapid.Bool().Draw(t, "large") {
				v.SetBytes(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes"))
			}
			return v
		}), 4, 4).Draw(rt, "inputs")
		shape := &randomCircuit{Public: make([]frontend.Variable, 2), Secret: make([]frontend.Variable, 2), steps: steps}
		r, err := frontend.Compile(ecc.BLS12_381.ScalarField(), r1cs.NewBuilder, shape, frontend.IgnoreUnconstrainedInputs())
		if err != nil {
			rt.Skip("the frontend folds this circuit into a contradiction: ", err)
		}
		assigned := &randomCircuit{
			Public: []frontend.Variable{inputs[0], inputs[1]}, Secret: []frontend.Variable{inputs[2], inputs[3]}, steps: steps,
		}
		w, err := frontend.NewWitness(assigned, ecc.BLS12_381.ScalarField())
		if err != nil {
			rt.Fatal(err)
		}
		compareSolvers(t, r.(*cs.R1CS), w)
	})
}

func TestUnsatisfiedWitnessNamesTheConstraint(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	before := r.env.Mem.LiveRegions()
	_, err := r.system.Synthesise(t.Context(), r.env, r.witness(t, circuit.Partition{Bad: true}), SynthesisOptions{})
	var unsatisfied *UnsatisfiedError
	if !errors.As(err, &unsatisfied) || unsatisfied.Constraint != r.system.Constraints()-1 {
		t.Errorf("%v, want the last of %d constraints named", err, r.system.Constraints())
	}
	if !strings.Contains(err.Error(), fmt.Sprintf("constraint %d of %d", unsatisfied.Constraint, r.system.Constraints())) {
		t.Errorf("%v does not name the constraint", err)
	}
	if got := r.env.Mem.LiveRegions(); got != before {
		t.Errorf("%d regions live after the failure, %d before", got, before)
	}
}

func TestSynthesiseRefusesAWitnessOfAnotherCircuit(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	other, err := circuit.New(circuit.MiMC, 11)
	if err != nil {
		t.Fatal(err)
	}
	w, err := circuit.Witness(other, circuit.Partition{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.system.Synthesise(t.Context(), r.env, w, SynthesisOptions{}); err == nil {
		t.Error("a witness of the wrong length is accepted")
	}
}

// countdown is a context that is cancelled at its n-th look.
type countdown struct {
	context.Context
	cancel context.CancelFunc
	left   int
}

func newCountdown(t testing.TB, n int) *countdown {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return &countdown{Context: ctx, cancel: cancel, left: n}
}

// Err is what context.Cause asks first.
func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

func TestCancelledStagesLeaveNothing(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	w := r.witness(t, circuit.Partition{})
	before := r.env.Mem.LiveRegions()
	for looks := 0; ; looks++ {
		done := cancelAfter(t, r, w, newCountdown(t, looks))
		if got := r.env.Mem.LiveRegions(); got != before {
			t.Fatalf("cancelled at look %d: %d regions live, %d before", looks, got, before)
		}
		if done {
			if looks < 40 {
				t.Errorf("the stages looked at their context %d times only", looks)
			}
			return
		}
	}
}

// cancelAfter runs all stages; done when the context outlived them.
func cancelAfter(t *testing.T, r *rig, w witness.Witness, ctx context.Context) (done bool) {
	a, err := r.system.Synthesise(ctx, r.env, w, SynthesisOptions{Owner: tracer.NoOwner})
	if err != nil {
		wantCancelled(t, err)
		return false
	}
	pending, err := r.backend.Start(ctx, r.env, a, StartOptions{Owner: tracer.NoOwner})
	if err != nil {
		wantCancelled(t, err)
		if err := a.Free(); err != nil {
			t.Error(err)
		}
		return false
	}
	err = r.backend.BG2(ctx, r.env, pending, StartOptions{Owner: tracer.NoOwner})
	if err != nil {
		wantCancelled(t, err)
	}
	if err := errors.Join(pending.Free(), pending.Free(), a.FreeABC(), a.FreeABC(), a.Free(), a.Free()); err != nil {
		t.Error(err)
	}
	return err == nil
}

func wantCancelled(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want context.Canceled", err)
	}
}

// rangeCircuit needs a commitment.
type rangeCircuit struct{ X frontend.Variable }

// Define implements frontend.Circuit.
func (c *rangeCircuit) Define(api frontend.API) error {
	rangecheck.New(api).Check(c.X, 16)
	return nil
}

func TestCompileRefusesWhatItCannotProve(t *testing.T) {
	env := Env{Mem: &hostmem.Allocator{}}
	_, err := Compile(t.Context(), env, &rangeCircuit{})
	if err == nil || !strings.Contains(err.Error(), "commitment") {
		t.Errorf("%v, want a refusal of commitments", err)
	}
	wantNothingMapped(t, env)
}
