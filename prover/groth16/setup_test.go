package groth16

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"testing"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	gnarkgroth16 "github.com/consensys/gnark/backend/groth16"
	bls12381 "github.com/consensys/gnark/backend/groth16/bls12-381"
	"github.com/consensys/gnark/constraint"
	cs "github.com/consensys/gnark/constraint/bls12-381"
	"pgregory.net/rapid"

	"highwater/prover/circuit"
)

// gnarkKey views a key as gnark's proving key; the points stay where they are.
func gnarkKey(k *Key) *bls12381.ProvingKey {
	pk := &bls12381.ProvingKey{Domain: *k.domain}
	pk.G1.Alpha, pk.G1.Beta, pk.G1.Delta = k.alpha, k.beta, k.delta
	pk.G1.A, pk.G1.B, pk.G1.K, pk.G1.Z = k.a, k.b, k.k, k.z
	pk.G2.Beta, pk.G2.Delta, pk.G2.B = k.beta2, k.delta2, k.b2
	pk.InfinityA, pk.InfinityB = make([]bool, k.size.wires), make([]bool, k.size.wires)
	for i := range k.size.wires {
		pk.InfinityA[i], pk.InfinityB[i] = k.infinityA.has(i), k.infinityB.has(i)
	}
	pk.NbInfinityA, pk.NbInfinityB = uint64(k.size.wires-k.size.a), uint64(k.size.wires-k.size.b)
	return pk
}

func TestGnarkProvesAndVerifiesWithOurKeys(t *testing.T) {
	for _, tc := range []struct {
		name    string
		logSize int
	}{{circuit.MiMC, 10}, {circuit.Label, 15}} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.name, tc.logSize)
			w := r.witness(t, circuit.Partition{Seed: 4})
			proof, err := gnarkgroth16.Prove(gnarkCompile(t, r.circuit.Shape()), gnarkKey(r.key), w)
			if err != nil {
				t.Fatal(err)
			}
			if err := gnarkgroth16.Verify(proof, r.key.verifying, public(t, w)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Every point of the key is what Groth16's formulas say, evaluated here term by term from gnark's
// own constraints.
func TestKeyPointsFollowTheFormulas(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	waste, err := newToxicWaste(11)
	if err != nil {
		t.Fatal(err)
	}
	compiled := gnarkCompile(t, r.circuit.Shape())
	a, b, c := naiveQueries(compiled, r.system.DomainSize(), &waste.tau)
	var k, z []fr.Element
	for i := range a {
		var v, t fr.Element
		v.Mul(&a[i], &waste.beta)
		t.Mul(&b[i], &waste.alpha)
		v.Add(&v, &t).Add(&v, &c[i])
		if i < r.system.Public() {
			k = append(k, *v.Div(&v, &waste.gamma))
		} else {
			k = append(k, *v.Div(&v, &waste.delta))
		}
	}
	for i := range r.system.DomainSize() {
		var v, power fr.Element
		v = powerMinusOne(&waste.tau, r.system.DomainSize())
		v.Mul(&v, power.Exp(waste.tau, big.NewInt(int64(i)))).Div(&v, &waste.delta)
		z = append(z, v)
	}
	fft.BitReverse(z)
	key, public := r.key, r.system.Public()
	wantG1(t, "fixed", []curve.G1Affine{key.alpha, key.beta, key.delta}, []fr.Element{waste.alpha, waste.beta, waste.delta})
	wantG1(t, "a", key.a, nonZero(a))
	wantG1(t, "b", key.b, nonZero(b))
	wantG1(t, "k", key.k, k[public:])
	wantG1(t, "vk k", key.verifying.G1.K, k[:public])
	wantG1(t, "z", key.z, z[:len(z)-1])
	wantG2(t, "b_g2", key.b2, nonZero(b))
	wantG2(t, "fixed in G2", []curve.G2Affine{key.beta2, key.delta2, key.verifying.G2.Gamma}, []fr.Element{waste.beta, waste.delta, waste.gamma})
	for i := range a {
		if key.infinityA.has(i) != a[i].IsZero() || key.infinityB.has(i) != b[i].IsZero() {
			t.Fatalf("masks of wire %d are wrong", i)
		}
	}
}

// naiveQueries evaluates every wire's polynomials at tau from the Lagrange formula.
func naiveQueries(r *cs.R1CS, n int, tau *fr.Element) (a, b, c []fr.Element) {
	domain := fft.NewDomain(uint64(n))
	wires := wiresOf(r)
	a, b, c = make([]fr.Element, wires), make([]fr.Element, wires), make([]fr.Element, wires)
	zero := powerMinusOne(tau, n)
	for i, op := range r.GetR1Cs() {
		var w, l, d fr.Element
		w.Exp(domain.Generator, big.NewInt(int64(i)))
		d.Sub(tau, &w)
		l.Mul(&zero, &w).Mul(&l, &domain.CardinalityInv).Div(&l, &d)
		for _, side := range []struct {
			to   []fr.Element
			from constraint.LinearExpression
		}{{a, op.L}, {b, op.R}, {c, op.O}} {
			for _, term := range side.from {
				var v fr.Element
				v.Mul(&l, &r.Coefficients[term.CoeffID()])
				side.to[term.WireID()].Add(&side.to[term.WireID()], &v)
			}
		}
	}
	return a, b, c
}

func nonZero(v []fr.Element) []fr.Element {
	return slices.DeleteFunc(slices.Clone(v), func(e fr.Element) bool { return e.IsZero() })
}

func wantG1(t *testing.T, name string, got []curve.G1Affine, scalars []fr.Element) {
	t.Helper()
	_, _, base, _ := curve.Generators()
	if want := curve.BatchScalarMultiplicationG1(&base, scalars); !slices.Equal(got, want) {
		t.Errorf("%s: points differ from gnark-crypto's", name)
	}
}

func wantG2(t *testing.T, name string, got []curve.G2Affine, scalars []fr.Element) {
	t.Helper()
	_, _, _, base := curve.Generators()
	if want := curve.BatchScalarMultiplicationG2(&base, scalars); !slices.Equal(got, want) {
		t.Errorf("%s: points differ from gnark-crypto's", name)
	}
}

func TestSetupDependsOnTheSeedOnly(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	var reports, last, total int64
	again, err := Setup(t.Context(), r.env, r.system, SetupOptions{Seed: 11, Threads: 1, Progress: func(d, n int64) {
		reports, last, total = reports+1, d, n
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.z, r.key.z) || !slices.Equal(again.b2, r.key.b2) || again.alpha != r.key.alpha {
		t.Error("equal seeds give different keys")
	}
	if reports < 5 || last != total {
		t.Errorf("%d reports, the last %d of %d", reports, last, total)
	}
	other, err := Setup(t.Context(), r.env, r.system, SetupOptions{Seed: 12})
	if err != nil {
		t.Fatal(err)
	}
	if other.alpha == r.key.alpha || slices.Equal(other.z, r.key.z) {
		t.Error("different seeds give the same key")
	}
	if err := errors.Join(again.Free(), other.Free()); err != nil {
		t.Error(err)
	}
}

func TestCancelledSetupLeavesNothing(t *testing.T) {
	r := newRig(t, circuit.MiMC, 10)
	before := r.env.Mem.LiveRegions()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	_, err := Setup(ctx, r.env, r.system, SetupOptions{Progress: func(done, total int64) {
		if done > total/2 {
			cancel(stop)
		}
	}})
	if !errors.Is(err, stop) {
		t.Errorf("%v, want the cause of the cancellation", err)
	}
	if got := r.env.Mem.LiveRegions(); got != before {
		t.Errorf("%d regions live, %d before", got, before)
	}
}

// Batched addition gives the sums of gnark-crypto's complete addition, whatever meets: infinity,
// equal and opposite points.
func TestBatchedAdditionIsComplete(t *testing.T) {
	_, _, g, _ := curve.Generators()
	points := []curve.G1Affine{{}}
	for i := int64(1); i <= 3; i++ {
		var p, n curve.G1Affine
		p.ScalarMultiplication(&g, big.NewInt(i))
		points = append(points, p, *n.Neg(&p))
	}
	rapid.Check(t, func(rt *rapid.T) {
		index := rapid.SliceOfN(rapid.IntRange(0, len(points)-1), 1, 20)
		x := index.Draw(rt, "sums")
		y := rapid.SliceOfN(rapid.IntRange(0, len(points)-1), len(x), len(x)).Draw(rt, "terms")
		sums, terms, want := make([]curve.G1Affine, len(x)), make([]curve.G1Affine, len(x)), make([]curve.G1Affine, len(x))
		for i := range x {
			sums[i], terms[i] = points[x[i]], points[y[i]]
			want[i].Add(&sums[i], &terms[i])
		}
		var add adder[fp.Element, *fp.Element]
		add.batch(g1Points(sums), g1Points(terms))
		if !slices.Equal(sums, want) {
			rt.Errorf("sums are %v, want %v", sums, want)
		}
	})
}

func TestSignedDigitsSpellTheScalar(t *testing.T) {
	top := fr.Modulus()
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.IntRange(4, maxWindow).Draw(rt, "window")
		v := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(rt, "scalar"))
		if rapid.Bool().Draw(rt, "near the modulus") {
			v.Sub(top, big.NewInt(int64(rapid.IntRange(1, 5).Draw(rt, "below"))))
		}
		var e fr.Element
		e.SetBigInt(v)
		windows := (scalarBits + c - 1) / c
		digits := make([]int32, windows*blockScalars)
		signedDigits(e.Bits(), c, digits)
		sum := new(big.Int)
		for w := windows - 1; w >= 0; w-- {
			d := digits[w*blockScalars]
			if d > 1<<(c-1) || d < -1<<(c-1) {
				rt.Fatalf("digit %d of window %d is out of range", d, w)
			}
			sum.Lsh(sum, uint(c)).Add(sum, big.NewInt(int64(d)))
		}
		if want := e.BigInt(new(big.Int)); sum.Cmp(want) != 0 {
			rt.Errorf("digits spell %v, want %v", sum, want)
		}
	})
}

func TestKeyOfAnotherSystemIsRefused(t *testing.T) {
	small, large := newRig(t, circuit.MiMC, 10), newRig(t, circuit.MiMC, 11)
	a, err := large.system.Synthesise(t.Context(), large.env, large.witness(t, circuit.Partition{}), SynthesisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.backend.Start(t.Context(), small.env, a, StartOptions{}); err == nil {
		t.Error("a key for 2^10 starts a proof of 2^11")
	}
	if err := a.FreeABC(); err != nil {
		t.Error(err)
	}
	if _, err := large.backend.Start(t.Context(), large.env, a, StartOptions{}); err == nil {
		t.Error("a proof starts from a freed assignment")
	}
	if err := a.Free(); err != nil {
		t.Error(err)
	}
}
