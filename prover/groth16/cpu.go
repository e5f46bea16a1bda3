package groth16

import (
	"context"
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"go.opentelemetry.io/otel/attribute"

	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/trace"
)

// maxMSMTasks is gnark-crypto's limit.
const maxMSMTasks = 1024

// cpu is the backend on gnark-crypto. It may run several proofs at once.
type cpu struct {
	key     *Key
	scratch scratchPool
}

// NewCPU is the backend on the machine's CPUs by gnark-crypto. The key must outlive it.
func NewCPU(k *Key) Backend {
	k.makeTables()
	return &cpu{key: k}
}

// NewCPUBG2 is NewCPU for a backend that leaves only b_g2 to the CPU: Start must not be called.
func NewCPUBG2(k *Key) Backend { return &cpu{key: k} }

// Name implements Backend.
func (b *cpu) Name() string { return "cpu" }

// Devices implements Backend.
func (b *cpu) Devices() int { return 1 }

// Close implements Backend.
func (b *cpu) Close() error {
	b.scratch.close()
	return nil
}

// Start implements Backend.
func (b *cpu) Start(ctx context.Context, env Env, a *Assignment, opts StartOptions) (*Pending, error) {
	if err := b.key.CheckStart(a); err != nil {
		return nil, err
	}
	p := &Pending{}
	run := b.run(env, trace.StageProveStart, opts)
	if err := run.start(ctx, a, p); err != nil {
		return nil, fmt.Errorf("start proof: %w", errors.Join(err, p.Free()))
	}
	return p, nil
}

// BG2 implements Backend.
func (b *cpu) BG2(ctx context.Context, env Env, p *Pending, opts StartOptions) error {
	run := b.run(env, trace.StageBG2, opts)
	if err := run.gatherB(ctx, p); err != nil {
		return err
	}
	scalars := hostmem.Of[fr.Element](p.scalarsB, b.key.size.b)
	op := msmOp{name: "msm b_g2", points: len(b.key.b2), pointBytes: g2Bytes}
	err := run.msm(ctx, op, func(c ecc.MultiExpConfig) error {
		_, err := p.b2.MultiExp(b.key.b2, scalars, c)
		return err
	})
	if err != nil {
		return err
	}
	p.b2Done = true
	p.scalarsB.LastUse()
	return nil
}

// gatherB gathers the scalars of the B query where a device's start has not left them.
func (r *cpuRun) gatherB(ctx context.Context, p *Pending) (err error) {
	switch {
	case p.scalarsB != nil:
		return nil
	case p.wires == nil:
		return errors.New("run b_g2: pending proof is freed")
	}
	k := r.key
	w := hostmem.Of[fr.Element](p.wires, k.size.wires)
	if p.scalarsB, err = r.gather(ctx, "gather b", w, k.infinityB, k.size.b); err == nil {
		p.wires.LastUse()
		p.wires = nil
	}
	return err
}

// cpuRun is one Start or BG2.
type cpuRun struct {
	*cpu
	env     Env
	opts    StartOptions
	stage   string
	threads int
}

func (b *cpu) run(env Env, stage string, opts StartOptions) *cpuRun {
	return &cpuRun{cpu: b, env: env, opts: opts, stage: stage, threads: threads(opts.Threads)}
}

func (r *cpuRun) start(ctx context.Context, a *Assignment, p *Pending) error {
	if err := r.quotient(ctx, a); err != nil {
		return err
	}
	k := r.key
	h := hostmem.Of[fr.Element](a.A, k.size.domain)[:k.size.domain-1]
	if err := r.msmG1(ctx, "msm h", k.z, h, &p.h); err != nil {
		return err
	}
	a.A.LastUse()
	w := hostmem.Of[fr.Element](a.W, k.size.wires)
	if err := r.msmG1(ctx, "msm l", k.k, w[k.size.public:], &p.l); err != nil {
		return err
	}
	if err := r.msmA(ctx, w, p); err != nil {
		return err
	}
	var err error
	if p.scalarsB, err = r.gather(ctx, "gather b", w, k.infinityB, k.size.b); err != nil {
		return err
	}
	a.W.LastUse()
	return r.msmG1(ctx, "msm b_g1", k.b, hostmem.Of[fr.Element](p.scalarsB, k.size.b), &p.b1)
}

// msmA gathers the scalars of the A query, and gives them back once the sum is known.
func (r *cpuRun) msmA(ctx context.Context, w []fr.Element, p *Pending) error {
	k := r.key
	scalars, err := r.gather(ctx, "gather a", w, k.infinityA, k.size.a)
	if err != nil {
		return err
	}
	err = r.msmG1(ctx, "msm a", k.a, hostmem.Of[fr.Element](scalars, k.size.a), &p.a)
	if err == nil {
		scalars.LastUse()
	}
	return errors.Join(err, scalars.Free())
}

// quotient turns a into h = (a·b - c)/Z: three inverse NTTs, three on the coset, the pointwise step
// and one inverse on the coset. The coefficients of h come out in bit-reversed order, which is the
// order of the key's Z query.
func (r *cpuRun) quotient(ctx context.Context, asg *Assignment) error {
	n, domain, tasks := r.key.size.domain, r.key.domain, fft.WithNbTasks(r.threads)
	abc := []*hostmem.Region{asg.A, asg.B, asg.C}
	for _, v := range abc {
		v.Fill(int64(n) * scalarBytes) // the padding, too
	}
	vector := func(i int) []fr.Element { return hostmem.Of[fr.Element](abc[i], n) }
	steps := []struct {
		name       string
		transforms int
		run        func()
	}{
		{"intt a b c", 3, func() {
			for i := range abc {
				domain.FFTInverse(vector(i), fft.DIF, tasks)
			}
		}},
		{"coset ntt a b c", 3, func() {
			for i := range abc {
				domain.FFT(vector(i), fft.DIT, fft.OnCoset(), tasks)
			}
		}},
		{"pointwise", 0, func() {
			pointwise(vector(0), vector(1), vector(2), r.key, r.threads)
			asg.B.LastUse()
			asg.C.LastUse()
			asg.A.Reclass(trace.ClassH)
		}},
		{"coset intt h", 1, func() { domain.FFTInverse(vector(0), fft.DIF, fft.OnCoset(), tasks) }},
	}
	for _, s := range steps {
		attrs := []attribute.KeyValue{
			attribute.Int("prover.ntt.size", n), attribute.Int("prover.ntt.transforms", s.transforms),
		}
		err := r.op(ctx, s.name, attrs, func() error { s.run(); return nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// pointwise sets a to (a·b - c)/Z, where Z is the same everywhere on the coset.
func pointwise(a, b, c []fr.Element, k *Key, threads int) {
	z := powerMinusOne(&k.domain.FrMultiplicativeGen, k.size.domain)
	z.Inverse(&z)
	const chunk = 4096
	parallel(threads, (len(a)+chunk-1)/chunk, func(part int) {
		for i := part * chunk; i < min((part+1)*chunk, len(a)); i++ {
			a[i].Mul(&a[i], &b[i]).Sub(&a[i], &c[i]).Mul(&a[i], &z)
		}
	})
}

// gather copies the wires that a query holds into a region of class split.
func (r *cpuRun) gather(
	ctx context.Context, name string, w []fr.Element, absent bitset, n int,
) (*hostmem.Region, error) {
	region, err := r.env.Mem.Alloc(trace.ClassSplit, max(int64(n)*scalarBytes, 1), r.opts.Owner)
	if err != nil {
		return nil, err
	}
	err = r.op(ctx, name, []attribute.KeyValue{attribute.Int("prover.gather.scalars", n)}, func() error {
		out := hostmem.Of[fr.Element](region, n)
		j := 0
		for i := range w {
			if !absent.has(i) {
				out[j] = w[i]
				j++
			}
		}
		region.Fill(int64(n) * scalarBytes)
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, region.Free())
	}
	return region, nil
}

func (r *cpuRun) msmG1(
	ctx context.Context, name string, points []curve.G1Affine, scalars []fr.Element, sum *curve.G1Jac,
) error {
	op := msmOp{name: name, points: len(points), pointBytes: g1Bytes}
	return r.msm(ctx, op, func(c ecc.MultiExpConfig) error {
		_, err := sum.MultiExp(points, scalars, c)
		return err
	})
}

// msmOp describes an MSM.
type msmOp struct {
	name       string
	points     int
	pointBytes int64
}

// msm runs one MSM: its scratch in the ledger, its span around it, the pipeline's collection after
// it.
func (r *cpuRun) msm(ctx context.Context, m msmOp, multiply func(ecc.MultiExpConfig) error) error {
	tasks := min(r.threads, maxMSMTasks)
	c := msmWindow(m.points)
	attrs := []attribute.KeyValue{
		attribute.Int("prover.msm.points", m.points),
		attribute.Int("prover.msm.window_bits", c), attribute.Int("prover.msm.rounds", msmChunks(c)),
	}
	give := r.scratch.take(r.env.Mem.Rec, msmScratchBytes(m.points, tasks, m.pointBytes), r.opts.Owner)
	err := r.op(ctx, m.name, attrs, func() error { return multiply(ecc.MultiExpConfig{NbTasks: tasks}) })
	give()
	if err != nil {
		return err
	}
	if r.env.AfterMSM != nil {
		r.env.AfterMSM()
	}
	return nil
}

// op runs one operation in a span of kind op, unless the context is done.
func (r *cpuRun) op(ctx context.Context, name string, attrs []attribute.KeyValue, run func() error) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, span := r.env.Mem.Rec.Start(ctx, tracer.SpanSpec{
		Kind: trace.KindOp, Stage: r.stage, Name: name, Owner: r.opts.Owner,
		Device: -1, Stream: trace.Null, Threads: int64(r.threads),
	}, attrs...)
	err := run()
	span.End(err)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
