package groth16

import (
	"errors"
	"fmt"
	"math"

	"github.com/consensys/gnark/constraint"
)

// A program is a constraint system as one stream of 32-bit words, in the order in which gnark's
// frontend made its instructions. That order is a valid order to solve in (an instruction reads
// only wires that exist before it), and constraint i is the i-th one of the stream, so that a, b
// and c are written from front to back.
//
//	constraint:  loc<<30 | len(L)  len(R)  len(O)  [cid vid of the wire to solve, if loc > 0]
//	             terms of L, R, O
//	hint:        0xffffffff  hint id  inputs  {length  terms} of each  first output  end of outputs
//	term:        coefficient id   wire
//
// loc says in which of L, R, O the one unsolved wire stands; its term is taken out of that
// expression. Constants are terms on wire 0, whose value is one.
type program struct {
	words []uint32
}

// Where a constraint's unsolved wire stands.
const (
	locNone = iota
	locL
	locR
	locO
)

const (
	locShift = 30
	lenMask  = 1<<locShift - 1
	hintMark = math.MaxUint32
)

// constraintOp is a decoded constraint; its expressions are pairs of coefficient id and wire, views
// into the stream.
type constraintOp struct {
	loc              uint32
	outCoeff, outVar uint32
	l, r, o          []uint32
}

// hintOp is a decoded hint; inputs is still packed, nbInputs of {length, terms}.
type hintOp struct {
	id               uint32
	nbInputs         int
	inputs           []uint32
	outBegin, outEnd uint32
}

// constraint decodes the constraint at pos and returns the position after it.
func (p program) constraint(pos int, c *constraintOp) int {
	head := p.words[pos]
	c.loc = head >> locShift
	nl, nr, no := 2*int(head&lenMask), 2*int(p.words[pos+1]), 2*int(p.words[pos+2])
	pos += 3
	if c.loc != locNone {
		c.outCoeff, c.outVar = p.words[pos], p.words[pos+1]
		pos += 2
	}
	c.l = p.words[pos : pos+nl]
	pos += nl
	c.r = p.words[pos : pos+nr]
	pos += nr
	c.o = p.words[pos : pos+no]
	return pos + no
}

// hint decodes the hint at pos and returns the position after it.
func (p program) hint(pos int, h *hintOp) int {
	h.id, h.nbInputs = p.words[pos+1], int(p.words[pos+2])
	pos += 3
	begin := pos
	for range h.nbInputs {
		pos += 1 + 2*int(p.words[pos])
	}
	h.inputs = p.words[begin:pos]
	h.outBegin, h.outEnd = p.words[pos], p.words[pos+1]
	return pos + 2
}

// programSize is what a stream addresses.
type programSize struct {
	inputs       int // wires known from the start: one, public, secret
	wires        int
	coefficients int
	constraints  int
}

// check walks the whole stream and proves that solving it stays inside its bounds: every length
// fits, wires are read only once solved, each wire is solved once, hints are known. The error says
// at which word it fails.
func (p program) check(size programSize, knownHint func(id uint32) bool) error {
	c := checker{program: p, size: size, solved: newBitset(size.wires), knownHint: knownHint}
	for i := range size.inputs {
		c.solved.set(i)
	}
	solved, constraints := size.inputs, 0
	for pos := 0; pos < len(p.words); {
		next, outputs, isHint, err := c.instruction(pos)
		if err != nil {
			return fmt.Errorf("word %d: %w", pos, err)
		}
		pos, solved = next, solved+outputs
		if !isHint {
			constraints++
		}
	}
	if constraints != size.constraints {
		return fmt.Errorf("%d constraints, want %d", constraints, size.constraints)
	}
	if solved != size.wires {
		return fmt.Errorf("%d wires are solved, want %d", solved, size.wires)
	}
	return nil
}

type checker struct {
	program
	size      programSize
	solved    bitset
	knownHint func(id uint32) bool
}

// instruction checks the one at pos; outputs is the number of wires it solves.
func (c *checker) instruction(pos int) (next, outputs int, isHint bool, err error) {
	if c.words[pos] == hintMark {
		next, outputs, err = c.hintAt(pos)
		return next, outputs, true, err
	}
	next, outputs, err = c.constraintAt(pos)
	return next, outputs, false, err
}

func (c *checker) constraintAt(pos int) (next, outputs int, err error) {
	if len(c.words)-pos < 3 {
		return 0, 0, errCut
	}
	terms := uint64(c.words[pos]&lenMask) + uint64(c.words[pos+1]) + uint64(c.words[pos+2])
	loc := c.words[pos] >> locShift
	pos += 3
	if loc == locNone {
		next, err = c.terms(pos, terms)
		return next, 0, err
	}
	if len(c.words)-pos < 2 {
		return 0, 0, errCut
	}
	coeff, wire := c.words[pos], c.words[pos+1]
	if coeff == constraint.CoeffIdZero || int(coeff) >= c.size.coefficients {
		return 0, 0, fmt.Errorf("solved wire has coefficient %d", coeff)
	}
	if next, err = c.terms(pos+2, terms); err == nil {
		err = c.solve(wire)
	}
	return next, 1, err
}

func (c *checker) hintAt(pos int) (next, outputs int, err error) {
	if len(c.words)-pos < 3 {
		return 0, 0, errCut
	}
	if id := c.words[pos+1]; !c.knownHint(id) {
		return 0, 0, fmt.Errorf("hint %d is unknown", id)
	}
	inputs := int(c.words[pos+2])
	pos += 3
	for range inputs {
		if pos >= len(c.words) {
			return 0, 0, errCut
		}
		if pos, err = c.terms(pos+1, uint64(c.words[pos])); err != nil {
			return 0, 0, err
		}
	}
	if len(c.words)-pos < 2 {
		return 0, 0, errCut
	}
	begin, end := c.words[pos], c.words[pos+1]
	if begin >= end || int(end) > c.size.wires {
		return 0, 0, fmt.Errorf("hint gives wires %d to %d of %d", begin, end, c.size.wires)
	}
	for w := begin; w < end; w++ {
		if err := c.solve(w); err != nil {
			return 0, 0, err
		}
	}
	return pos + 2, int(end - begin), nil
}

// terms checks n terms from pos on.
func (c *checker) terms(pos int, n uint64) (int, error) {
	if n > uint64(len(c.words)-pos)/2 {
		return 0, errCut
	}
	end := pos + 2*int(n)
	for ; pos < end; pos += 2 {
		coeff, wire := int(c.words[pos]), int(c.words[pos+1])
		if coeff >= c.size.coefficients {
			return 0, fmt.Errorf("coefficient %d of %d", coeff, c.size.coefficients)
		}
		if wire >= c.size.wires || !c.solved.has(wire) {
			return 0, fmt.Errorf("wire %d is read before it is solved", wire)
		}
	}
	return end, nil
}

func (c *checker) solve(wire uint32) error {
	if int(wire) >= c.size.wires || c.solved.has(int(wire)) {
		return fmt.Errorf("wire %d is solved twice or does not exist", wire)
	}
	c.solved.set(int(wire))
	return nil
}

var errCut = errors.New("stream ends inside an instruction")

// bitset is a set of small integers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, bitsetWords(n)) }

func bitsetWords(n int) int { return (n + 63) / 64 }

func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }
