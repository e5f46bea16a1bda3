package groth16

import (
	"errors"
	"os"
	"strconv"
	"testing"

	gnarkgroth16 "github.com/consensys/gnark/backend/groth16"
	"github.com/consensys/gnark/constraint/solver"
	"golang.org/x/sys/unix"

	"highwater/prover/circuit"
	"highwater/tracer"
)

// benchLogSize is the size of the benchmarks: HIGHWATER_BENCH_LOG_SIZE, or 16.
func benchLogSize(b *testing.B) int {
	text, ok := os.LookupEnv("HIGHWATER_BENCH_LOG_SIZE")
	if !ok {
		return 16
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkProve compares whole proofs, witness to proof: own is all stages one after another,
// gnark is groth16.Prove with the same key. Run it with -count: the two alternate, so that pairs of
// lines meet the same machine.
func BenchmarkProve(b *testing.B) {
	for _, name := range []string{circuit.Label, circuit.MiMC} {
		r := newRig(b, name, benchLogSize(b))
		w := r.witness(b, circuit.Partition{})
		compiled, pk := gnarkCompile(b, r.circuit.Shape()), gnarkKey(r.key)
		for range 3 {
			b.Run(name+"/impl=own", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					r.prove(b, circuit.Partition{}, true, 0)
				}
			})
			b.Run(name+"/impl=gnark", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					if _, err := gnarkgroth16.Prove(compiled, pk, w); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// reportCPU adds the process's CPU time an operation, which a busy machine blurs less than the
// wall's.
func reportCPU(b *testing.B) func() {
	cpu := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := cpu()
	return func() { b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkSolve compares synthesis with gnark's solver on one task, its fastest here.
func BenchmarkSolve(b *testing.B) {
	for _, name := range []string{circuit.Label, circuit.MiMC} {
		r := newRig(b, name, benchLogSize(b))
		w := r.witness(b, circuit.Partition{})
		compiled := gnarkCompile(b, r.circuit.Shape())
		for _, presize := range []bool{true, false} {
			b.Run(name+"/impl=own/presize="+strconv.FormatBool(presize), func(b *testing.B) {
				for b.Loop() {
					a, err := r.system.Synthesise(b.Context(), r.env, w, SynthesisOptions{Presize: presize, Owner: tracer.NoOwner})
					if err != nil {
						b.Fatal(err)
					}
					if err := a.Free(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(name+"/impl=gnark", func(b *testing.B) {
			for b.Loop() {
				if _, err := compiled.Solve(w, solver.WithNbTasks(1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkStages times each stage of one proof.
func BenchmarkStages(b *testing.B) {
	for _, name := range []string{circuit.Label, circuit.MiMC} {
		r := newRig(b, name, benchLogSize(b))
		w := r.witness(b, circuit.Partition{})
		opts := StartOptions{Owner: tracer.NoOwner}
		b.Run(name+"/start", func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				a, err := r.system.Synthesise(b.Context(), r.env, w, SynthesisOptions{Presize: true, Owner: tracer.NoOwner})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				p, err := r.backend.Start(b.Context(), r.env, a, opts)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := freeBoth(a, p); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
		b.Run(name+"/b_g2", func(b *testing.B) {
			a, err := r.system.Synthesise(b.Context(), r.env, w, SynthesisOptions{Presize: true, Owner: tracer.NoOwner})
			if err != nil {
				b.Fatal(err)
			}
			p, err := r.backend.Start(b.Context(), r.env, a, opts)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := r.backend.BG2(b.Context(), r.env, p, opts); err != nil {
					b.Fatal(err)
				}
			}
			if err := freeBoth(a, p); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func freeBoth(a *Assignment, p *Pending) error { return errors.Join(a.Free(), p.Free()) }
