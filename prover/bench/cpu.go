package bench

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

// CPU times gnark-crypto on all CPUs.
type CPU struct{}

// Time implements Timer.
func (CPU) Time(ctx context.Context, c Case, count int, seed uint64) (Result, error) {
	n := 1 << c.LogSize
	var work func() error
	switch {
	case c.By != "" || c.Op == OpUpload:
		return Result{}, fmt.Errorf("the CPU has no %s", c.Name())
	case c.Op == OpNTT:
		domain, v := fft.NewDomain(uint64(n)), Scalars(Uniform, n, seed)
		work = func() error { domain.FFT(v, fft.DIF); return nil }
	case c.Group == G1:
		points, scalars := pointsG1(n), Scalars(c.Profile, n, seed)
		work = func() error {
			_, err := new(curve.G1Jac).MultiExp(points, scalars, ecc.MultiExpConfig{})
			return err
		}
	default:
		points, scalars := pointsG2(n), Scalars(c.Profile, n, seed)
		work = func() error {
			_, err := new(curve.G2Jac).MultiExp(points, scalars, ecc.MultiExpConfig{})
			return err
		}
	}
	return repeat(ctx, c, count, work)
}

// repeat runs work once unmeasured, then count times.
func repeat(ctx context.Context, c Case, count int, work func() error) (Result, error) {
	r := Result{Case: c}
	for i := range count + 1 {
		if err := context.Cause(ctx); err != nil {
			return r, err
		}
		runtime.GC() // of what the repeat before left
		began := time.Now()
		if err := work(); err != nil {
			return r, err
		}
		if i > 0 {
			r.Nanos = append(r.Nanos, time.Since(began).Nanoseconds())
		}
	}
	return r, nil
}

// Scalars are n scalars of a profile.
func Scalars(profile string, n int, seed uint64) []fr.Element {
	r := rand.New(rand.NewPCG(seed, 0))
	uniform := func() (e fr.Element) {
		var b [48]byte
		for i := 0; i < len(b); i += 8 {
			x := r.Uint64()
			for j := range 8 {
				b[i+j] = byte(x >> (8 * j))
			}
		}
		e.SetBytes(b[:])
		return e
	}
	v, one := make([]fr.Element, n), uniform()
	for i := range v {
		switch profile {
		case OneValue:
			v[i] = one
		case Label:
			v[i] = labelScalar(r.Float64(), r.Uint64N(2), uniform)
		default:
			v[i] = uniform()
		}
	}
	return v
}

// labelScalar has the shares of a SHA-256 circuit's wires: 0 68.4 %, 1 17.6 %, 2 and 3 12.7 %, -1
// 1 %, full size 0.3 %.
func labelScalar(p float64, bit uint64, uniform func() fr.Element) (e fr.Element) {
	switch {
	case p < 0.684:
	case p < 0.860:
		e.SetOne()
	case p < 0.987:
		e.SetUint64(2 + bit)
	case p < 0.997:
		e.SetInt64(-1)
	default:
		e = uniform()
	}
	return e
}

// pointBlock is how many points share an offset.
const pointBlock = 1 << 12

// pointsG1 are n different points: multiples 1, 2 … of the generator, block by block.
func pointsG1(n int) []curve.G1Affine {
	g, _, _, _ := curve.Generators()
	first := make([]curve.G1Jac, min(n, pointBlock))
	sum := g
	for i := range first {
		first[i] = sum
		sum.AddAssign(&g)
	}
	affine := curve.BatchJacobianToAffineG1(first)
	step := first[len(first)-1]
	out := make([]curve.G1Affine, n)
	inBlocks(n, func(block, from, to int) {
		var offset curve.G1Jac
		offset.ScalarMultiplication(&step, bigInt(block))
		jac := make([]curve.G1Jac, to-from)
		for i := range jac {
			jac[i] = offset
			jac[i].AddMixed(&affine[i])
		}
		copy(out[from:to], curve.BatchJacobianToAffineG1(jac))
	})
	return out
}

// pointsG2 are n different points, likewise.
func pointsG2(n int) []curve.G2Affine {
	_, g, _, _ := curve.Generators()
	first := make([]curve.G2Jac, min(n, pointBlock))
	affine := make([]curve.G2Affine, len(first))
	sum := g
	for i := range first {
		first[i] = sum
		affine[i].FromJacobian(&sum)
		sum.AddAssign(&g)
	}
	step := first[len(first)-1]
	out := make([]curve.G2Affine, n)
	inBlocks(n, func(block, from, to int) {
		var offset, p curve.G2Jac
		offset.ScalarMultiplication(&step, bigInt(block))
		for i := from; i < to; i++ {
			p = offset
			p.AddMixed(&affine[i-from])
			out[i].FromJacobian(&p)
		}
	})
	return out
}

// inBlocks calls f for each block of points, several at once.
func inBlocks(n int, f func(block, from, to int)) {
	blocks := make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for b := range blocks {
				f(b, b*pointBlock, min(n, (b+1)*pointBlock))
			}
		})
	}
	for b := range (n + pointBlock - 1) / pointBlock {
		blocks <- b
	}
	close(blocks)
	wait.Wait()
}

func bigInt(n int) *big.Int { return big.NewInt(int64(n)) }
