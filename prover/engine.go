package prover

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark/backend/witness"

	"highwater/prover/circuit"
	"highwater/prover/device"
	"highwater/prover/groth16"
	"highwater/tracer"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// grothEngine makes Groth16 proofs of one circuit.
type grothEngine struct {
	circuit        circuit.Circuit
	system         *groth16.System
	key            *groth16.Key
	backend        groth16.Backend
	stager         groth16.Stager // the backend, where it stages
	env            groth16.Env
	seed           uint64
	bad            map[JobPartition]bool
	presize        bool
	backendThreads int
	gpuThreads     int
}

// engineSpec is what a grothEngine is made of besides the settings.
type engineSpec struct {
	circuit circuit.Circuit
	system  *groth16.System
	key     *groth16.Key
	backend groth16.Backend
	env     groth16.Env
	bad     []JobPartition
}

func newEngine(s engineSpec, v *setting.Values) *grothEngine {
	e := &grothEngine{circuit: s.circuit, system: s.system, key: s.key, env: s.env,
		backend: s.backend, seed: v.Uint("seed"), bad: map[JobPartition]bool{},
		presize:        v.Bool("presize"),
		backendThreads: int(v.Int("backend_threads")), gpuThreads: int(v.Int("gpu_threads"))}
	if st, ok := s.backend.(groth16.Stager); ok && v.Text("pinned") != device.PinnedPageable {
		e.stager = st
	}
	for _, jp := range s.bad {
		e.bad[jp] = true
	}
	return e
}

// close frees backend, key and system.
func (e *grothEngine) close() error {
	for _, free := range []func() error{e.backend.Close, e.key.Free, e.system.Free} {
		if err := free(); err != nil {
			return fmt.Errorf("free keys: %w", err)
		}
	}
	return nil
}

func (e *grothEngine) sizes() (settledBytes, abcBytes int64) {
	abc := 3 * roundToPages(int64(e.system.DomainSize())*fr.Bytes)
	if e.presize {
		return e.system.SettledBytes(), abc
	}
	return e.system.GrownBytes(), abc
}

func (e *grothEngine) staged() bool { return e.stager != nil }

func (e *grothEngine) partition(job, partition int) work {
	return &grothWork{e: e, at: JobPartition{job, partition}}
}

// grothWork is the Groth16 proof of one partition.
type grothWork struct {
	e          *grothEngine
	at         JobPartition
	device     int
	full       witness.Witness // on the Go heap, from witness to synthesise
	public     witness.Witness
	fullBuffer tracer.Buffer
	assignment *groth16.Assignment
	pending    *groth16.Pending
	made       *groth16.Proof
}

// witness computes the partition's witness. It lives on the Go heap, so its size in the ledger is
// by formula.
func (w *grothWork) witness(_ context.Context, owner tracer.Owner) (err error) {
	w.full, err = circuit.Witness(w.e.circuit, circuit.Partition{
		Seed: w.e.seed, Job: w.at.Job, Partition: w.at.Partition, Bad: w.e.bad[w.at]})
	if err != nil {
		return err
	}
	if w.public, err = w.full.Public(); err != nil {
		return fmt.Errorf("take public part of witness: %w", err)
	}
	bytes := witnessBytes(w.full)
	w.fullBuffer = w.e.env.Mem.Rec.Alloc(tracer.BufferSpec{
		Class: trace.ClassWitness, Space: trace.SpaceHost, Device: -1,
		CapacityBytes: bytes, ResidentBytes: bytes, Estimated: true, Owner: owner,
	})
	return nil
}

func witnessBytes(w witness.Witness) int64 {
	if v, ok := w.Vector().(fr.Vector); ok {
		return int64(len(v)) * fr.Bytes
	}
	return 0
}

func (w *grothWork) synthesise(ctx context.Context, owner tracer.Owner) (err error) {
	w.fullBuffer.Handoff(owner)
	w.assignment, err = w.e.system.Synthesise(ctx, w.e.env, w.full,
		groth16.SynthesisOptions{Presize: w.e.presize, Owner: owner})
	w.dropWitness()
	return err
}

// dropWitness ends the witness: its bytes are in the assignment now.
func (w *grothWork) dropWitness() {
	if w.full != nil {
		w.fullBuffer.Free()
		w.full = nil
	}
}

func (w *grothWork) onto(device int32) { w.device = int(device) }

func (w *grothWork) stageIn(ctx context.Context, owner tracer.Owner) error {
	return w.e.stager.StageIn(ctx, w.e.env, w.assignment, w.startOptions(owner))
}

func (w *grothWork) startOptions(owner tracer.Owner) groth16.StartOptions {
	return groth16.StartOptions{Threads: w.e.backendThreads, Device: w.device, Owner: owner}
}

func (w *grothWork) start(ctx context.Context, owner tracer.Owner) (err error) {
	w.pending, err = w.e.backend.Start(ctx, w.e.env, w.assignment, w.startOptions(owner))
	return err
}

func (w *grothWork) hasBG2() bool { return w.pending.HasBG2() }

func (w *grothWork) freeABC() error { return w.assignment.FreeABC() }

func (w *grothWork) bG2(ctx context.Context, owner tracer.Owner) error {
	return w.e.backend.BG2(ctx, w.e.env, w.pending,
		groth16.StartOptions{Threads: w.e.gpuThreads, Owner: owner})
}

func (w *grothWork) finalise() (err error) {
	w.made, err = w.e.key.Finalise(w.pending,
		groth16.Blinding{Seed: w.e.seed, Job: w.at.Job, Partition: w.at.Partition})
	if w.pending.OnDevice() && w.e.env.AfterMSM != nil {
		w.e.env.AfterMSM() // no MSM of the CPU may have collected: here nobody waits for it
	}
	return err
}

func (w *grothWork) free() error {
	w.dropWitness()
	var first error
	if w.pending != nil {
		first = w.pending.Free()
		w.pending = nil
	}
	if w.assignment != nil {
		if err := w.assignment.Free(); first == nil {
			first = err
		}
		w.assignment = nil
	}
	return first
}

func (w *grothWork) verify() error { return w.e.key.Verify(w.made, w.public) }

func (w *grothWork) proof() []byte {
	if w.made == nil {
		return nil
	}
	return w.made.Bytes()
}

func (w *grothWork) handoff(to tracer.Owner) {
	if w.assignment != nil {
		w.assignment.Handoff(to)
	}
	if w.pending != nil {
		w.pending.Handoff(to)
	}
}
