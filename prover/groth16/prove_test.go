package groth16

import (
	"bytes"
	"errors"
	"testing"

	"github.com/consensys/gnark/backend/witness"

	"highwater/prover/circuit"
	"highwater/prover/hostmem"
	"highwater/tracer"
)

// rig is a compiled circuit with its key and a backend.
type rig struct {
	env     Env
	circuit circuit.Circuit
	system  *System
	key     *Key
	backend Backend
}

// newRig compiles and sets up; at the end of the test it asserts that nothing stays mapped.
func newRig(t testing.TB, name string, logSize int) *rig {
	t.Helper()
	c, err := circuit.New(name, logSize)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{env: Env{Mem: &hostmem.Allocator{}}, circuit: c}
	if r.system, err = Compile(t.Context(), r.env, c.Shape()); err != nil {
		t.Fatal(err)
	}
	if r.key, err = Setup(t.Context(), r.env, r.system, SetupOptions{Seed: 11}); err != nil {
		t.Fatal(err)
	}
	r.backend = NewCPU(r.key)
	t.Cleanup(func() {
		if err := errors.Join(r.backend.Close(), r.key.Free(), r.system.Free()); err != nil {
			t.Error(err)
		}
		wantNothingMapped(t, r.env)
	})
	return r
}

func wantNothingMapped(t testing.TB, env Env) {
	t.Helper()
	if n, b := env.Mem.LiveRegions(), env.Mem.LiveBytes(); n != 0 || b != 0 {
		t.Errorf("%d regions of %d bytes are still mapped", n, b)
	}
}

func (r *rig) witness(t testing.TB, p circuit.Partition) witness.Witness {
	t.Helper()
	w, err := circuit.Witness(r.circuit, p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func public(t testing.TB, w witness.Witness) witness.Witness {
	t.Helper()
	p, err := w.Public()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// prove runs every stage and gives all memory of the proof back.
func (r *rig) prove(t testing.TB, p circuit.Partition, presize bool, threads int) *Proof {
	t.Helper()
	a, err := r.system.Synthesise(t.Context(), r.env, r.witness(t, p), SynthesisOptions{Presize: presize, Owner: tracer.NoOwner})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Free(); err != nil {
			t.Error(err)
		}
	}()
	opts := StartOptions{Threads: threads, Owner: tracer.NoOwner}
	pending, err := r.backend.Start(t.Context(), r.env, a, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pending.Free(); err != nil {
			t.Error(err)
		}
	}()
	if err := a.FreeABC(); err != nil {
		t.Fatal(err)
	}
	if err := r.backend.BG2(t.Context(), r.env, pending, opts); err != nil {
		t.Fatal(err)
	}
	proof, err := r.key.Finalise(pending, Blinding{Seed: p.Seed, Job: p.Job, Partition: p.Partition})
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func TestProofsVerifyAndDependOnSeedsOnly(t *testing.T) {
	for _, tc := range []struct {
		name    string
		logSize int
	}{{circuit.MiMC, 10}, {circuit.MiMC, 12}, {circuit.Label, 15}} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.name, tc.logSize)
			p := circuit.Partition{Seed: 5, Job: 1, Partition: 2}
			first := r.prove(t, p, true, 0)
			if err := r.key.Verify(first, public(t, r.witness(t, p))); err != nil {
				t.Error(err)
			}
			if second := r.prove(t, p, false, 1); !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("a proof's bytes depend on presize or threads")
			}
			other := circuit.Partition{Seed: 5, Job: 1, Partition: 3}
			proof := r.prove(t, other, true, 3)
			if err := r.key.Verify(proof, public(t, r.witness(t, other))); err != nil {
				t.Error(err)
			}
			if err := r.key.Verify(first, public(t, r.witness(t, other))); err == nil {
				t.Error("a proof verifies for another partition's root")
			}
		})
	}
}
