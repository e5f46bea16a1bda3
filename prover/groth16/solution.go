package groth16

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark/constraint"
	"github.com/consensys/gnark/constraint/solver"

	"highwater/prover/hostmem"
)

// solution is a system being solved. Wires and constraints are written from front to back, so that
// vectors can grow, and be declared touched, as it goes.
type solution struct {
	*System
	target  *Assignment
	a, b, c []fr.Element // views of the regions; renewed when they grow
	w       []fr.Element
	next    int // the next constraint
	touched int // wires below are touched
	modulus *big.Int
	inputs  []*big.Int // reused by every hint, or they would be garbage
	outputs []*big.Int
}

func newSolution(s *System, target *Assignment) *solution {
	sol := &solution{System: s, target: target, modulus: fr.Modulus()}
	sol.view()
	return sol
}

// view renews the slices from the regions.
func (s *solution) view() {
	elements := func(r *hostmem.Region) []fr.Element {
		return hostmem.Of[fr.Element](r, int(r.Capacity()/scalarBytes))
	}
	s.a, s.b, s.c = elements(s.target.A), elements(s.target.B), elements(s.target.C)
	s.w = elements(s.target.W)
}

// solve writes all of w, a, b and c.
func (s *solution) solve(ctx context.Context, values fr.Vector) error {
	if err := s.start(values); err != nil {
		return err
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	s.fill()
	return nil
}

// start writes the wires that are known: one, public, secret.
func (s *solution) start(values fr.Vector) error {
	if err := s.growWires(s.size.inputs - 1); err != nil {
		return err
	}
	s.w[0].SetOne()
	copy(s.w[1:], values)
	s.touched = s.size.inputs
	return nil
}

// run executes the program. The views must not be used across an instruction that grows them.
func (s *solution) run(ctx context.Context) error {
	var c constraintOp
	var h hintOp
	words, step := s.program.words, max(1, s.size.constraints/progressSteps)
	lookUp := step
	for pos := 0; pos < len(words); {
		if words[pos] == hintMark {
			pos = s.program.hint(pos, &h)
			if err := s.hint(&h); err != nil {
				return err
			}
			continue
		}
		pos = s.program.constraint(pos, &c)
		if err := s.constraint(&c); err != nil {
			return err
		}
		if s.next == lookUp {
			lookUp += step
			s.fill()
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("stopped at constraint %d: %w", s.next, err)
			}
		}
	}
	return nil
}

// fill declares what is touched so far.
func (s *solution) fill() {
	for _, r := range []*hostmem.Region{s.target.A, s.target.B, s.target.C} {
		r.Fill(int64(s.next) * scalarBytes)
	}
	s.target.W.Fill(int64(s.touched) * scalarBytes)
}

// constraint evaluates one constraint into a, b and c, and solves its wire or checks it.
func (s *solution) constraint(op *constraintOp) error {
	i := s.next
	if i >= len(s.a) {
		if err := s.growVectors(); err != nil {
			return err
		}
	}
	s.next = i + 1
	a, b, c := &s.a[i], &s.b[i], &s.c[i]
	s.dot(op.l, a)
	s.dot(op.r, b)
	s.dot(op.o, c)
	if op.loc == locNone {
		return s.satisfied(i)
	}
	var wire fr.Element
	switch op.loc {
	case locO:
		wire.Mul(a, b).Sub(&wire, c)
		c.Add(c, &wire)
	case locL:
		if err := s.quotient(i, c, b, a, &wire); err != nil {
			return err
		}
	case locR:
		if err := s.quotient(i, c, a, b, &wire); err != nil {
			return err
		}
	}
	divideByCoefficient(&wire, op.outCoeff, s.coefficients)
	return s.set(op.outVar, &wire)
}

// quotient solves known·(value + wire) = product for wire and adds it to value. With known 0 the
// wire is free: it becomes 0, as in gnark, if the constraint holds.
func (s *solution) quotient(i int, product, known, value, wire *fr.Element) error {
	if known.IsZero() {
		return s.satisfied(i)
	}
	wire.Div(product, known).Sub(wire, value)
	value.Add(value, wire)
	return nil
}

// satisfied checks constraint i as it stands.
func (s *solution) satisfied(i int) error {
	var product fr.Element
	if product.Mul(&s.a[i], &s.b[i]).Equal(&s.c[i]) {
		return nil
	}
	return &UnsatisfiedError{
		Constraint: i, Constraints: s.size.constraints, Left: product.String(), Right: s.c[i].String(),
	}
}

// dot adds the value of an expression to sum. Most wires of a bit-sliced circuit are 0, and most
// products that are left are of coefficient one: neither is worth a multiplication.
func (s *solution) dot(terms []uint32, sum *fr.Element) {
	w := s.w
	for i := 0; i+1 < len(terms); i += 2 {
		v := &w[terms[i+1]]
		switch terms[i] {
		case constraint.CoeffIdOne:
			sum.Add(sum, v)
		case constraint.CoeffIdMinusOne:
			sum.Sub(sum, v)
		case constraint.CoeffIdTwo:
			var t fr.Element
			t.Double(v)
			sum.Add(sum, &t)
		default:
			if v.IsZero() {
				continue
			}
			if v.IsOne() {
				sum.Add(sum, &s.coefficients[terms[i]])
				continue
			}
			var t fr.Element
			t.Mul(&s.coefficients[terms[i]], v)
			sum.Add(sum, &t)
		}
	}
}

// divideByCoefficient turns coefficient·wire into wire. The frontend gives an unsolved wire 1 or
// -1.
func divideByCoefficient(v *fr.Element, id uint32, coefficients []fr.Element) {
	switch id {
	case constraint.CoeffIdOne:
	case constraint.CoeffIdMinusOne:
		v.Neg(v)
	default:
		v.Div(v, &coefficients[id])
	}
}

// set writes a solved wire.
func (s *solution) set(wire uint32, v *fr.Element) error {
	i := int(wire)
	if i >= len(s.w) {
		if err := s.growWires(i); err != nil {
			return err
		}
	}
	s.w[i] = *v
	s.touched = max(s.touched, i+1)
	return nil
}

// growVectors doubles a, b and c.
func (s *solution) growVectors() error {
	for _, r := range []*hostmem.Region{s.target.A, s.target.B, s.target.C} {
		r.Fill(r.Capacity())
		if err := r.Grow(2 * r.Capacity()); err != nil {
			return err
		}
	}
	s.view()
	return nil
}

// growWires doubles w until it holds the wire.
func (s *solution) growWires(wire int) error {
	r := s.target.W
	for int64(wire+1)*scalarBytes > r.Capacity() {
		r.Fill(int64(s.touched) * scalarBytes)
		if err := r.Grow(2 * r.Capacity()); err != nil {
			return err
		}
	}
	s.view()
	return nil
}

// hint runs a hint function on its inputs and writes its outputs.
func (s *solution) hint(h *hintOp) error {
	inputs := s.bigInts(&s.inputs, h.nbInputs)
	outputs := s.bigInts(&s.outputs, int(h.outEnd-h.outBegin))
	pos := 0
	for _, in := range inputs {
		var v fr.Element
		n := 2 * int(h.inputs[pos])
		s.dot(h.inputs[pos+1:pos+1+n], &v)
		pos += 1 + n
		v.BigInt(in)
	}
	for _, out := range outputs {
		out.SetUint64(0)
	}
	err := callHint(s.hints[h.id], s.modulus, inputs, outputs)
	for i, out := range outputs {
		var v fr.Element
		setBig(&v, out)
		err = errors.Join(err, s.set(h.outBegin+uint32(i), &v))
	}
	if err != nil {
		return fmt.Errorf("run hint before constraint %d: %w", s.next, err)
	}
	return nil
}

// callHint turns a panic of a hint function, which is a circuit's own code, into a failure of this
// partition alone.
func callHint(f solver.Hint, modulus *big.Int, inputs, outputs []*big.Int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("hint panicked: %v", p)
		}
	}()
	return f(modulus, inputs, outputs)
}

// setBig is v.SetBigInt with a short cut for bits, which most hints give.
func setBig(v *fr.Element, x *big.Int) {
	switch {
	case x.Sign() == 0:
	case x.IsUint64() && x.Uint64() == 1:
		v.SetOne()
	default:
		v.SetBigInt(x)
	}
}

// bigInts gives the first n of a pool that grows.
func (s *solution) bigInts(pool *[]*big.Int, n int) []*big.Int {
	for len(*pool) < n {
		*pool = append(*pool, new(big.Int))
	}
	return (*pool)[:n]
}
