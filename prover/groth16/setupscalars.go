package groth16

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark/constraint"

	"highwater/prover/hostmem"
	"highwater/tracer"
)

// setupScalars are the discrete logarithms of a key's points. a and b hold only the wires that
// occur, as the key does.
type setupScalars struct {
	size                 keySize
	a, b, c, z           []fr.Element // c: of the wires' K query, public ones over gamma, others over delta
	infinityA, infinityB bitset
	regions              []*hostmem.Region
}

// newSetupScalars evaluates the system's polynomials at tau.
func newSetupScalars(env Env, s *System, w toxicWaste) (*setupScalars, error) {
	t := &setupScalars{size: keySize{domain: s.DomainSize(), wires: s.size.wires, public: s.public}}
	for _, v := range []struct {
		slice *[]fr.Element
		n     int
	}{{&t.a, t.size.wires}, {&t.b, t.size.wires}, {&t.c, t.size.wires}, {&t.z, t.size.domain}} {
		r, err := env.Mem.Alloc(classSetup, int64(v.n)*scalarBytes, tracer.NoOwner)
		if err != nil {
			return t, err
		}
		t.regions = append(t.regions, r)
		*v.slice = hostmem.Of[fr.Element](r, v.n)
	}
	t.accumulate(s, &w.tau)
	t.combine(w)
	t.powers(w)
	t.a, t.infinityA = compact(t.a)
	t.b, t.infinityB = compact(t.b)
	t.size.a, t.size.b = len(t.a), len(t.b)
	for _, r := range t.regions {
		r.Fill(r.Capacity())
	}
	return t, nil
}

func (t *setupScalars) free() error {
	regions := t.regions
	t.regions, t.a, t.b, t.c, t.z = nil, nil, nil, nil, nil
	return freeAll(regions...)
}

// accumulate adds coefficient · Lᵢ(tau) of every term of constraint i to its wire in a, b or c.
func (t *setupScalars) accumulate(s *System, tau *fr.Element) {
	lagrange := newLagrange(s.DomainSize(), tau)
	var op constraintOp
	var h hintOp
	for pos := 0; pos < len(s.program.words); {
		if s.program.words[pos] == hintMark {
			pos = s.program.hint(pos, &h)
			continue
		}
		pos = s.program.constraint(pos, &op)
		l := lagrange.next()
		for side, v := range [][]fr.Element{t.a, t.b, t.c} {
			terms := [][]uint32{op.l, op.r, op.o}[side]
			for i := 0; i+1 < len(terms); i += 2 {
				addTerm(&v[terms[i+1]], terms[i], l, s.coefficients)
			}
			if int(op.loc) == side+1 {
				addTerm(&v[op.outVar], op.outCoeff, l, s.coefficients)
			}
		}
	}
}

func addTerm(sum *fr.Element, coefficient uint32, l *fr.Element, coefficients []fr.Element) {
	switch coefficient {
	case constraint.CoeffIdOne:
		sum.Add(sum, l)
	case constraint.CoeffIdMinusOne:
		sum.Sub(sum, l)
	default:
		var v fr.Element
		v.Mul(&coefficients[coefficient], l)
		sum.Add(sum, &v)
	}
}

// combine turns c into the K query: (beta·a + alpha·b + c) over gamma for public wires, over delta
// for the others.
func (t *setupScalars) combine(w toxicWaste) {
	for i := range t.c {
		over := &w.deltaInv
		if i < t.size.public {
			over = &w.gammaInv
		}
		var x, y fr.Element
		x.Mul(&t.a[i], &w.beta)
		y.Mul(&t.b[i], &w.alpha)
		x.Add(&x, &y).Add(&x, &t.c[i])
		t.c[i].Mul(&x, over)
	}
}

// powers sets z[i] to tauⁱ·(tauⁿ - 1)/delta.
func (t *setupScalars) powers(w toxicWaste) {
	v := powerMinusOne(&w.tau, t.size.domain)
	v.Mul(&v, &w.deltaInv)
	for i := range t.z {
		t.z[i] = v
		v.Mul(&v, &w.tau)
	}
}

// compact moves the non-zero scalars to the front and says which were zero.
func compact(v []fr.Element) ([]fr.Element, bitset) {
	zero := newBitset(len(v))
	n := 0
	for i := range v {
		if v[i].IsZero() {
			zero.set(i)
			continue
		}
		v[n] = v[i]
		n++
	}
	return v[:n], zero
}

// lagrange yields L₀(tau), L₁(tau) … over the domain of n-th roots of unity, Lᵢ(tau) = ωⁱ(tauⁿ -
// 1)/(n(tau - ωⁱ)). It inverts a block of denominators at a time.
type lagrange struct {
	tau, root, power, scale fr.Element // root ω, power ωⁱ, scale (tauⁿ - 1)/n
	block                   []fr.Element
	used                    int
}

func newLagrange(n int, tau *fr.Element) *lagrange {
	domain := fft.NewDomain(uint64(n), fft.WithoutPrecompute())
	l := &lagrange{tau: *tau, root: domain.Generator, power: fr.One(), scale: powerMinusOne(tau, n)}
	l.scale.Mul(&l.scale, &domain.CardinalityInv)
	return l
}

func (l *lagrange) next() *fr.Element {
	if l.used == len(l.block) {
		l.fill()
	}
	l.used++
	return &l.block[l.used-1]
}

func (l *lagrange) fill() {
	if l.block == nil {
		l.block = make([]fr.Element, 1024)
	}
	numerators := make([]fr.Element, len(l.block))
	for i := range l.block {
		l.block[i].Sub(&l.tau, &l.power)
		numerators[i].Mul(&l.power, &l.scale)
		l.power.Mul(&l.power, &l.root)
	}
	for i, inverse := range fr.BatchInvert(l.block) {
		l.block[i].Mul(&inverse, &numerators[i])
	}
	l.used = 0
}
