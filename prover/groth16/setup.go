package groth16

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"runtime"
	"sync"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	bls12381 "github.com/consensys/gnark/backend/groth16/bls12-381"
)

// g2Work is how many G1 products a G2 product costs, for progress.
const g2Work = 3

// SetupOptions are the settings of a set-up.
type SetupOptions struct {
	Seed     uint64                  // of the toxic waste
	Threads  int                     // 0: one a CPU
	Progress func(done, total int64) // in units of one G1 product; one caller at a time; may be nil
	Device   SetupDevice             // computes the points; nil: the CPUs do
}

// SetupDevice computes the points of a key from their logarithms: multiples of the groups'
// generators.
type SetupDevice interface {
	G1(logs []fr.Element) ([]curve.G1Affine, error)
	G2(logs []fr.Element) ([]curve.G2Affine, error)
	// Queries fills in the points, whose slices and masks are there.
	Queries(logs QueryLogs, points Queries) error
}

// QueryLogs are the logarithms of a key's points, in the order of Queries. B is of B and B2.
type QueryLogs struct{ Z, K, A, B []fr.Element }

// toxicWaste is what would let its holder forge proofs: derived from a seed here, because these
// keys protect nothing.
type toxicWaste struct {
	tau, alpha, beta, gamma, delta fr.Element
	gammaInv, deltaInv             fr.Element
}

func newToxicWaste(seed uint64) (toxicWaste, error) {
	e, err := fr.Hash(binary.LittleEndian.AppendUint64(nil, seed), []byte("highwater setup"), 5)
	if err != nil {
		return toxicWaste{}, fmt.Errorf("derive toxic waste: %w", err)
	}
	w := toxicWaste{tau: e[0], alpha: e[1], beta: e[2], gamma: e[3], delta: e[4]}
	w.gammaInv.Inverse(&w.gamma)
	w.deltaInv.Inverse(&w.delta)
	return w, nil
}

// Setup makes the keys of a system. Equal systems and seeds give equal keys. It needs, beyond the
// key, 96 bytes a wire and 32 bytes a domain point for scalars, and up to 240 MiB of tables.
func Setup(ctx context.Context, env Env, s *System, opts SetupOptions) (*Key, error) {
	waste, err := newToxicWaste(opts.Seed)
	if err != nil {
		return nil, err
	}
	scalars, err := newSetupScalars(env, s, waste)
	if err != nil {
		return nil, fmt.Errorf("set up keys: %w", errors.Join(err, scalars.free()))
	}
	key, err := newKey(env, scalars.size)
	if err != nil {
		return nil, errors.Join(err, scalars.free())
	}
	copy(key.infinityA, scalars.infinityA)
	copy(key.infinityB, scalars.infinityB)
	blocks := blockOptions{threads: threads(opts.Threads), progress: reporter(opts.Progress, scalars.size)}
	job := setupJob{env: env, key: key, scalars: scalars, waste: waste, blocks: blocks,
		device: opts.Device}
	if err := errors.Join(job.run(ctx), scalars.free()); err != nil {
		return nil, fmt.Errorf("set up keys: %w", errors.Join(err, key.Free()))
	}
	return key, nil
}

// threads is n, or one a CPU.
func threads(n int) int {
	if n <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return n
}

// reporter counts work from several goroutines and passes it on.
func reporter(report func(done, total int64), size keySize) func(n int) {
	if report == nil {
		return func(int) {}
	}
	var mu sync.Mutex
	var done int64
	total := int64(size.a+size.b+size.wires+size.domain-1) + g2Work*int64(size.b)
	return func(n int) {
		mu.Lock()
		defer mu.Unlock()
		done += int64(n)
		report(done, total)
	}
}

// setupJob computes the points of a key from its scalars.
type setupJob struct {
	env     Env
	key     *Key
	scalars *setupScalars
	waste   toxicWaste
	blocks  blockOptions
	device  SetupDevice // nil: the CPUs
}

func (j *setupJob) run(ctx context.Context) error {
	j.key.verifying = &bls12381.VerifyingKey{}
	if j.device != nil {
		return j.onDevice(ctx)
	}
	if err := j.g1(ctx); err != nil {
		return err
	}
	if err := j.g2(ctx); err != nil {
		return err
	}
	return j.key.seal()
}

// g1 computes every G1 point; the table is given back before G2 begins.
func (j *setupJob) g1(ctx context.Context) (err error) {
	_, _, base, _ := curve.Generators()
	k, s, size := j.key, j.scalars, j.key.size
	work := size.a + size.b + size.wires + size.domain
	f, err := newFixedBase[fp.Element](j.env, point[fp.Element](base), work, j.blocks.threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.free()) }()
	k.alpha = multiple(f, &j.waste.alpha)
	k.beta = multiple(f, &j.waste.beta)
	k.delta = multiple(f, &j.waste.delta)
	vkK := make([]curve.G1Affine, size.public)
	at := func(v []fr.Element) func(i int) *fr.Element { return func(i int) *fr.Element { return &v[i] } }
	lg := bits.Len(uint(size.domain)) - 1
	for _, q := range []struct {
		out    []curve.G1Affine
		scalar func(i int) *fr.Element
	}{
		{k.a, at(s.a)}, {k.b, at(s.b)}, {vkK, at(s.c)}, {k.k, at(s.c[size.public:])},
		{k.z, func(i int) *fr.Element { return &s.z[bitReverse(i, lg)] }},
	} {
		if err := f.multiples(ctx, g1Points(q.out), q.scalar, j.blocks); err != nil {
			return err
		}
	}
	k.verifying.G1.K = vkK
	return nil
}

func multiple(f *fixedBase[fp.Element, *fp.Element], scalar *fr.Element) curve.G1Affine {
	var out [1]point[fp.Element]
	newBlock(f).multiples(out[:], func(int) *fr.Element { return scalar })
	return curve.G1Affine(out[0])
}

// g2 computes every G2 point.
func (j *setupJob) g2(ctx context.Context) (err error) {
	_, _, _, base := curve.Generators()
	f, err := newFixedBase[curve.E2](j.env, point[curve.E2](base), len(j.key.b2), j.blocks.threads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.free()) }()
	fixed := make([]curve.G2Affine, 3)
	scalars := []*fr.Element{&j.waste.beta, &j.waste.delta, &j.waste.gamma}
	newBlock(f).multiples(g2Points(fixed), func(i int) *fr.Element { return scalars[i] })
	j.key.beta2, j.key.delta2 = fixed[0], fixed[1]
	j.key.verifying.G2.Gamma = fixed[2]
	blocks := j.blocks
	blocks.progress = func(n int) { j.blocks.progress(g2Work * n) }
	return f.multiples(ctx, g2Points(j.key.b2), func(i int) *fr.Element { return &j.scalars.b[i] }, blocks)
}

// seal completes the verifying key, checks the masks, and declares the key's memory touched. The
// parts of the verifying key that the proving key does not hold must be there: K and gamma.
func (k *Key) seal() error {
	if err := k.checkMasks(); err != nil {
		return err
	}
	v := k.verifying
	v.G1.Alpha, v.G1.Beta, v.G1.Delta = k.alpha, k.beta, k.delta
	v.G2.Beta, v.G2.Delta = k.beta2, k.delta2
	if err := v.Precompute(); err != nil {
		return fmt.Errorf("precompute verifying key: %w", err)
	}
	for _, r := range k.regions {
		r.Fill(r.Capacity())
	}
	return nil
}

// powerMinusOne is t^n - 1.
func powerMinusOne(t *fr.Element, n int) fr.Element {
	var p fr.Element
	one := fr.One()
	p.Exp(*t, big.NewInt(int64(n)))
	return *p.Sub(&p, &one)
}
