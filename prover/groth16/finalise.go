package groth16

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"highwater/prover/hostmem"
	"highwater/tracer"
)

// Pending is a started proof: it waits for b_g2 and the blinding. It keeps what b_g2 needs (class
// split). Its methods must not run at the same time.
type Pending struct {
	scalarsB    *hostmem.Region // nil before they are gathered and once freed
	wires       *hostmem.Region // of the assignment, from which BG2 gathers; nil where it need not
	h, l, a, b1 curve.G1Jac     // the sums of the four G1 MSMs
	b2          curve.G2Jac
	b2Done      bool
	onDevice    bool // made of a device's sums
}

// OnDevice says whether a device has started the proof.
func (p *Pending) OnDevice() bool { return p.onDevice }

// Parts are the sums of a start, as a device computes them.
type Parts struct {
	H, L, A, B1 curve.G1Affine
	B2          *curve.G2Affine // nil: BG2 has to run
}

// NewPending is a started proof. Where b_g2 is still to be run, on the CPU, it gathers its scalars
// from the assignment's wires, which must live until then.
func NewPending(parts Parts, a *Assignment) *Pending {
	p := &Pending{onDevice: true}
	p.h.FromAffine(&parts.H)
	p.l.FromAffine(&parts.L)
	p.a.FromAffine(&parts.A)
	p.b1.FromAffine(&parts.B1)
	if parts.B2 != nil {
		p.b2.FromAffine(parts.B2)
		p.b2Done = true
		return p
	}
	p.wires = a.W
	return p
}

// HasBG2 says whether the sum of b_g2 is there.
func (p *Pending) HasBG2() bool { return p.b2Done }

// Handoff records the new owner.
func (p *Pending) Handoff(to tracer.Owner) {
	if p.scalarsB != nil {
		p.scalarsB.Handoff(to)
	}
}

// Free gives the memory back. It is safe to call twice. Finalise works after it.
func (p *Pending) Free() error {
	r := p.scalarsB
	p.scalarsB, p.wires = nil, nil
	return freeAll(r)
}

// Blinding gives r and s of a partition's proof from the run's seed: derived by hashing (seed, job,
// partition).
type Blinding struct {
	Seed           uint64
	Job, Partition int
}

// scalars derives r and s.
func (b Blinding) scalars() (r, s fr.Element, err error) {
	var msg []byte
	for _, v := range []uint64{b.Seed, uint64(b.Job), uint64(b.Partition)} {
		msg = binary.LittleEndian.AppendUint64(msg, v)
	}
	e, err := fr.Hash(msg, []byte("highwater blinding"), 2)
	if err != nil {
		return r, s, fmt.Errorf("derive blinding: %w", err)
	}
	return e[0], e[1], nil
}

// Finalise blinds and assembles the proof. It frees nothing.
func (k *Key) Finalise(p *Pending, b Blinding) (*Proof, error) {
	if !p.b2Done {
		return nil, errors.New("finalise proof: b_g2 has not run")
	}
	r, s, err := b.scalars()
	if err != nil {
		return nil, err
	}
	return k.assemble(p, &r, &s)
}

// assemble computes
//
//	Ar  = A + alpha + r·delta
//	Bs  = B + beta + s·delta               in G2; B1 is the same in G1
//	Krs = L + H + s·Ar + r·B1 - r·s·delta
func (k *Key) assemble(p *Pending, r, s *fr.Element) (*Proof, error) {
	var rs fr.Element
	rs.Mul(r, s).Neg(&rs)
	var proof Proof
	ar, b1 := p.a, p.b1
	addScaled(&ar, &k.alpha, &k.delta, r)
	addScaled(&b1, &k.beta, &k.delta, s)

	krs, zero := p.l, curve.G1Affine{}
	krs.AddAssign(&p.h)
	addScaled(&krs, &zero, &k.delta, &rs)
	var n big.Int
	var t curve.G1Jac
	krs.AddAssign(t.ScalarMultiplication(&ar, s.BigInt(&n)))
	krs.AddAssign(t.ScalarMultiplication(&b1, r.BigInt(&n)))

	var b2 curve.G2Jac
	b2.FromAffine(&k.delta2)
	b2.ScalarMultiplication(&b2, s.BigInt(&n))
	b2.AddAssign(&p.b2)
	b2.AddMixed(&k.beta2)

	proof.Ar.FromJacobian(&ar)
	proof.Krs.FromJacobian(&krs)
	proof.Bs.FromJacobian(&b2)
	return proof.encode()
}

// addScaled adds fixed + scalar·base to sum.
func addScaled(sum *curve.G1Jac, fixed, base *curve.G1Affine, scalar *fr.Element) {
	var n big.Int
	var t curve.G1Jac
	t.FromAffine(base)
	t.ScalarMultiplication(&t, scalar.BigInt(&n))
	sum.AddAssign(&t)
	sum.AddMixed(fixed)
}

// encode keeps the canonical encoding with the proof.
func (p *Proof) encode() (*Proof, error) {
	var out bytes.Buffer
	if _, err := p.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("encode proof: %w", err)
	}
	p.encoded = out.Bytes()
	return p, nil
}
