//go:build cgo && linux

package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"highwater/prover/circuit"
	"highwater/prover/groth16"
	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/trace"
)

// rig is a circuit with its key, and what the CPU backend proves with it.
type rig struct {
	env     groth16.Env
	circuit circuit.Circuit
	system  *groth16.System
	key     *groth16.Key
	cpu     groth16.Backend
}

func newRig(t testing.TB, name string, logSize int) *rig {
	t.Helper()
	c, err := circuit.New(name, logSize)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{env: groth16.Env{Mem: &hostmem.Allocator{}}, circuit: c}
	if r.system, err = groth16.Compile(t.Context(), r.env, c.Shape()); err != nil {
		t.Fatal(err)
	}
	opts := groth16.SetupOptions{Seed: 11}
	if r.key, err = groth16.Setup(t.Context(), r.env, r.system, opts); err != nil {
		t.Fatal(err)
	}
	r.cpu = groth16.NewCPU(r.key)
	t.Cleanup(func() {
		if err := errors.Join(r.cpu.Close(), r.key.Free(), r.system.Free()); err != nil {
			t.Error(err)
		}
		if n := r.env.Mem.LiveRegions(); n != 0 {
			t.Errorf("%d regions are still mapped", n)
		}
	})
	return r
}

// backend opens a device backend that the test's end closes.
func (r *rig) backend(t testing.TB, o Options) *Backend {
	t.Helper()
	if o.Context.ArenaBytes == 0 {
		o.Context.ArenaBytes = 256 << 20
	}
	b, err := NewBackend(library(t), r.key, r.env.Mem.Rec, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// prove proves one partition on b, verifies it, and gives its bytes.
func (r *rig) prove(b groth16.Backend, device, partition int) ([]byte, error) {
	ctx := context.Background()
	w, err := circuit.Witness(r.circuit, circuit.Partition{Seed: 3, Partition: partition})
	if err != nil {
		return nil, err
	}
	owner := tracer.NoOwner
	owner.Job, owner.Partition = 0, int32(partition)
	a, err := r.system.Synthesise(ctx, r.env, w, groth16.SynthesisOptions{Presize: true, Owner: owner})
	if err != nil {
		return nil, err
	}
	defer a.Free()
	opts := groth16.StartOptions{Device: device, Owner: owner}
	if s, ok := b.(groth16.Stager); ok {
		if err := s.StageIn(ctx, r.env, a, opts); err != nil {
			return nil, err
		}
	}
	p, err := b.Start(ctx, r.env, a, opts)
	if err != nil {
		return nil, err
	}
	defer p.Free()
	if err := a.FreeABC(); err != nil {
		return nil, err
	}
	if err := b.BG2(ctx, r.env, p, opts); err != nil {
		return nil, err
	}
	proof, err := r.key.Finalise(p, groth16.Blinding{Seed: 3, Partition: partition})
	if err != nil {
		return nil, err
	}
	public, err := w.Public()
	if err != nil {
		return nil, err
	}
	return proof.Bytes(), r.key.Verify(proof, public)
}

func (r *rig) mustProve(t testing.TB, b groth16.Backend, device, partition int) []byte {
	t.Helper()
	proof, err := r.prove(b, device, partition)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// TestProofBytes: every way to prove on a device gives the CPU's proof, byte for byte. The label
// circuit, whose scalars are mostly 0 and 1 and whose key has equal points, has no small size: it is
// proved where sizes are large.
func TestProofBytes(t *testing.T) {
	ways := []Options{
		{Devices: 2, Pinned: PinnedPool, Workers: 2, BG2: true}, {Pinned: PinnedRegister}, {BG2: true},
		{Context: Config{Lanes: 1, MSMScratchBytes: 6 << 20}}, // groups of windows at 2^10
	}
	checkProofs(t, "mimc", 10, ways)
	checkProofs(t, "mimc", min(maxLog(12), 17), ways[:1])
	if large() {
		checkProofs(t, "label", 16, ways[:2])
	}
}

// checkProofs proves in every way, on every device.
func checkProofs(t *testing.T, name string, logSize int, ways []Options) {
	t.Helper()
	infos, err := library(t).Devices()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, name, logSize)
	want := r.mustProve(t, r.cpu, 0, 1)
	for _, o := range ways {
		o.Devices = min(o.Devices, len(infos))
		o.Context.ArenaBytes = arenaFor(logSize)
		b := r.backend(t, o)
		for device := range b.Devices() {
			if got := r.mustProve(t, b, device, 1); !bytes.Equal(got, want) {
				t.Errorf("%s 2^%d, device %d, %+v: the proof differs from the CPU's", name, logSize,
					device, o)
			}
		}
		if b.Name() != "device" {
			t.Errorf("the backend is called %q", b.Name())
		}
	}
}

// TestSetupBytes: a key set up on the device is the CPU's, byte for byte, as its cache file shows.
func TestSetupBytes(t *testing.T) {
	lg := min(maxLog(10), 17)
	r := newRig(t, "mimc", lg)
	s, err := NewSetup(library(t), nil, Config{ArenaBytes: arenaFor(lg)})
	if err != nil {
		t.Fatal(err)
	}
	key, err := groth16.Setup(t.Context(), r.env, r.system, groth16.SetupOptions{Seed: 11, Device: s})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	defer key.Free()
	files := [2][]byte{}
	for i, k := range []*groth16.Key{r.key, key} {
		id := groth16.CacheID{Circuit: "mimc", LogSize: lg, Seed: 11}
		path, err := groth16.SaveCache(t.TempDir(), id, r.system, k)
		if err != nil {
			t.Fatal(err)
		}
		if files[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the device's key differs from the CPU's")
	}
}

func arenaFor(logSize int) int64 { return int64(max(256<<20, 4096<<logSize)) }

// TestFaults makes each operation of a proof fail in turn: the proof fails with an error that says
// so, holds nothing, and the next one is right. On the twin every ninth one, of 100 or more; on a
// device each, several side by side.
func TestFaults(t *testing.T) {
	library(t) // here, so that without one the whole test is skipped, and not found to have done nothing
	r := newRig(t, "mimc", 10)
	want := r.mustProve(t, r.cpu, 0, 0)
	workers, step := 1, int64(9)
	if large() {
		workers, step = 8, 1
	}
	var failures atomic.Int64
	t.Run("workers", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for n := int64(1 + w); r.survives(t, n, want, &failures); n += step * int64(workers) {
				}
			})
		}
	})
	t.Logf("%d operations of a proof failed", failures.Load())
	if failures.Load() < 3 {
		t.Error("too few operations failed to have been tried in turn")
	}
}

// survives makes operation n of a fresh backend fail, and reports whether there was one.
func (r *rig) survives(t *testing.T, n int64, want []byte, failures *atomic.Int64) bool {
	o := Options{Pinned: PinnedPool, Workers: 1, BG2: true,
		Context: Config{ArenaBytes: 64 << 20, FaultOperation: n}}
	b, err := NewBackend(library(t), r.key, nil, o)
	if err != nil { // while the key was loaded
		wantStatus(t, err, Failed)
		return true
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	before := b.Memory()[0]
	got, err := r.prove(b, 0, 0)
	if err == nil {
		if !bytes.Equal(got, want) {
			t.Errorf("no operation %d, and the proof is wrong", n)
		}
		return false
	}
	wantStatus(t, err, Failed)
	failures.Add(1)
	if now := b.Memory()[0]; now.ArenaUsed != before.ArenaUsed || now.PoolUsed != 0 {
		t.Errorf("operation %d: the failed proof holds memory: %+v, before %+v", n, now, before)
	}
	if got := r.mustProve(t, b, 0, 0); !bytes.Equal(got, want) {
		t.Errorf("operation %d: the proof after the failed one is wrong", n)
	}
	return !t.Failed()
}

func wantStatus(t testing.TB, err error, want Status) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// TestOutOfDeviceMemory: a device that has room for the key and not for a proof fails the proof, with
// sizes, and one that has no room for the key is refused.
func TestOutOfDeviceMemory(t *testing.T) {
	r := newRig(t, "mimc", 12)
	b := r.backend(t, Options{Context: Config{ArenaBytes: 2 << 20}})
	before := b.Memory()[0]
	for range 2 {
		_, err := r.prove(b, 0, 0)
		wantStatus(t, err, OutOfDeviceMemory)
		t.Log(err)
	}
	if now := b.Memory()[0]; now.ArenaUsed != before.ArenaUsed {
		t.Errorf("the failed proofs hold memory: %+v, before %+v", now, before)
	}
	_, err := NewBackend(library(t), r.key, nil, Options{Context: Config{FaultDeviceBytes: 1 << 20}})
	wantStatus(t, err, OutOfDeviceMemory)
	_, err = NewBackend(library(t), r.key, nil, Options{Devices: 1000})
	wantStatus(t, err, NoDevice)
}

// TestMisuse: a device that is not there, an assignment that is gone, a context that is done.
func TestMisuse(t *testing.T) {
	r := newRig(t, "mimc", 10)
	b := r.backend(t, Options{Pinned: PinnedPool, Workers: 1})
	if _, err := r.prove(b, 7, 0); err == nil {
		t.Error("device 7 proved")
	}
	w, err := circuit.Witness(r.circuit, circuit.Partition{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.system.Synthesise(t.Context(), r.env, w, groth16.SynthesisOptions{Owner: tracer.NoOwner})
	if err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Start(done, r.env, a, groth16.StartOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("start after the cancel: %v", err)
	}
	if err := b.StageIn(done, r.env, a, groth16.StartOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("stage-in after the cancel: %v", err)
	}
	if err := b.StageIn(t.Context(), r.env, a, groth16.StartOptions{Owner: tracer.NoOwner}); err != nil {
		t.Fatal(err)
	}
	// The pool has room for one partition: a second one fails, and leaves the first alone.
	a2, err := r.system.Synthesise(t.Context(), r.env, w, groth16.SynthesisOptions{Owner: tracer.NoOwner})
	if err != nil {
		t.Fatal(err)
	}
	defer a2.Free()
	err = b.StageIn(t.Context(), r.env, a2, groth16.StartOptions{Owner: tracer.NoOwner})
	wantStatus(t, err, OutOfPinnedMemory)
	if err := a.Free(); err != nil {
		t.Error(err)
	}
	if _, err := b.Start(t.Context(), r.env, a, groth16.StartOptions{}); err == nil {
		t.Error("a freed assignment was started")
	}
	if used := b.Memory()[0].PoolUsed; used != 0 {
		t.Errorf("%d bytes of the pool are in use", used)
	}
}

// TestTraceOfProof: the trace of a proof has the device's buffers, operations, kernels and copies,
// each under the stage it belongs to, and ends with nothing live.
func TestTraceOfProof(t *testing.T) {
	for _, pinned := range []string{PinnedPool, PinnedRegister, PinnedPageable} {
		t.Run(pinned, func(t *testing.T) { traceOfProof(t, pinned) })
	}
}

func traceOfProof(t *testing.T, pinned string) {
	l := library(t) // before the recorder: a test that is skipped leaves none behind
	r := newRig(t, "mimc", 10)
	dir := filepath.Join(t.TempDir(), "run.hw")
	rec, err := tracer.Create(dir, tracer.Options{NoOTLP: true})
	if err != nil {
		t.Fatal(err)
	}
	r.env.Mem = &hostmem.Allocator{Rec: rec}
	b, err := NewBackend(l, r.key, rec, Options{Pinned: pinned, Workers: 1, BG2: true, SampleHz: 1000,
		Context: Config{ArenaBytes: 64 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	const proofs = 3
	for i := range proofs {
		r.mustProve(t, b, 0, i)
	}
	if err := errors.Join(b.Close(), rec.Close(trace.EndFinished, "")); err != nil {
		t.Fatal(err)
	}
	data := load(t, dir)
	live := map[string]int64{}
	for _, e := range data.Buffers {
		if e.Class != trace.ClassRecorder {
			live[e.Space] += e.DeltaBytes
		}
	}
	for space, n := range live {
		if space == trace.SpaceDevice && n != 0 {
			t.Errorf("%d bytes are live in %s at the end", n, space)
		}
	}
	checkSpans(t, data, proofs)
	if len(data.Manifest.Loss) > 0 {
		t.Errorf("losses %+v", data.Manifest.Loss)
	}
}

// checkSpans checks the operations of proofs and what ran for them.
func checkSpans(t *testing.T, data *trace.Data, proofs int) {
	t.Helper()
	ops, children := map[string]int{}, map[int64]int{}
	kinds := map[int64]string{}
	for _, s := range data.Spans {
		kinds[s.SpanID] = s.Kind
		children[s.ParentID]++
		if s.Kind == trace.KindOp && s.Job == 0 {
			ops[s.Name]++
		}
	}
	for _, name := range []string{"msm h", "msm l", "msm a", "msm b_g1", "msm b_g2"} {
		if ops[name] != proofs {
			t.Errorf("%d operations %q for %d proofs", ops[name], name, proofs)
		}
	}
	for _, s := range data.Spans {
		switch {
		case s.Kind == trace.KindOp && s.Job == 0 && children[s.SpanID] == 0:
			t.Errorf("operation %q ran nothing", s.Name)
		case s.Kind == trace.KindKernel && s.Job == 0 && kinds[s.ParentID] != trace.KindOp:
			t.Errorf("kernel %q is under a %q", s.Name, kinds[s.ParentID])
		}
	}
}

// BenchmarkProve is one proof after another, small.
func BenchmarkProve(b *testing.B) {
	for _, lg := range []int{10, 12} {
		b.Run(fmt.Sprintf("log_size=%d", lg), func(b *testing.B) {
			r := newRig(b, "mimc", lg)
			backend := r.backend(b, Options{Pinned: PinnedPool, Workers: 1, BG2: true})
			for b.Loop() {
				r.mustProve(b, backend, 0, 0)
			}
		})
	}
}
