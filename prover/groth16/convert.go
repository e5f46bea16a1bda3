package groth16

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark/constraint"
	cs "github.com/consensys/gnark/constraint/bls12-381"
)

// converter turns gnark's instructions into a program. With emit unset it only measures it.
type converter struct {
	system *cs.R1CS
	inputs int
	solved bitset
	words  []uint32
	n      int // words so far
	emit   bool
}

func wiresOf(r *cs.R1CS) int {
	return r.GetNbPublicVariables() + r.GetNbSecretVariables() + r.NbInternalVariables
}

// supported refuses what this prover does not know.
func supported(r *cs.R1CS) error {
	if n := len(r.CommitmentInfo.(constraint.Groth16Commitments)); n != 0 {
		return fmt.Errorf("circuit has %d commitments (lookups and range checks make them), "+
			"which this prover does not support", n)
	}
	if r.GkrInfo.Is() {
		return errors.New("circuit has a GKR part, which this prover does not support")
	}
	for _, b := range r.Blueprints {
		_, isR1C := b.(constraint.BlueprintR1C)
		_, isHint := b.(constraint.BlueprintHint)
		if !isR1C && !isHint {
			return fmt.Errorf("circuit has instructions of kind %T, which this prover does not support", b)
		}
	}
	return nil
}

// run converts everything: a first run with words nil measures, a second writes into words of that
// size.
func (c *converter) run(words []uint32) error {
	c.words, c.n, c.emit = words, 0, words != nil
	c.inputs = c.system.GetNbPublicVariables() + c.system.GetNbSecretVariables()
	c.solved = newBitset(wiresOf(c.system))
	for i := range c.inputs {
		c.solved.set(i)
	}
	var r1c constraint.R1C
	var hint constraint.HintMapping
	constraints := 0
	for i, packed := range c.system.Instructions {
		inst := packed.Unpack(&c.system.System)
		if b, ok := c.system.Blueprints[packed.BlueprintID].(constraint.BlueprintR1C); ok {
			if int(inst.ConstraintOffset) != constraints {
				return fmt.Errorf("instruction %d: constraint %d is out of order, want %d",
					i, inst.ConstraintOffset, constraints)
			}
			constraints++
			b.DecompressR1C(&r1c, inst)
			if err := c.constraint(&r1c); err != nil {
				return fmt.Errorf("constraint %d: %w", inst.ConstraintOffset, err)
			}
			continue
		}
		c.system.Blueprints[packed.BlueprintID].(constraint.BlueprintHint).DecompressHint(&hint, inst)
		c.hint(&hint)
	}
	return nil
}

func (c *converter) put(words ...uint32) {
	if c.emit {
		copy(c.words[c.n:], words)
	}
	c.n += len(words)
}

// constraint writes one R1C, with the term of its unsolved wire taken out.
func (c *converter) constraint(r *constraint.R1C) error {
	sides := [3]constraint.LinearExpression{r.L, r.R, r.O}
	var lens [3]uint32
	var loc uint32
	var out constraint.Term
	for s, side := range sides {
		for _, t := range side {
			switch {
			case t.CoeffID() == constraint.CoeffIdZero:
			case t.IsConstant() || c.solved.has(t.WireID()):
				lens[s]++
			case loc != locNone:
				return fmt.Errorf("wires %d and %d are both unsolved", out.WireID(), t.WireID())
			default:
				loc, out = uint32(s+1), t
			}
		}
	}
	if lens[0] >= lenMask {
		return fmt.Errorf("%d terms are too many", lens[0])
	}
	c.put(loc<<locShift|lens[0], lens[1], lens[2])
	if loc != locNone {
		c.put(out.CID, out.VID)
	}
	for _, side := range sides {
		c.terms(side)
	}
	if loc != locNone {
		c.solved.set(out.WireID())
	}
	return nil
}

// terms writes the terms whose wires are solved; a constant is a term on wire 0.
func (c *converter) terms(expr constraint.LinearExpression) {
	for _, t := range expr {
		switch {
		case t.CoeffID() == constraint.CoeffIdZero:
		case t.IsConstant():
			c.put(t.CID, 0)
		case c.solved.has(t.WireID()):
			c.put(t.CID, t.VID)
		}
	}
}

func (c *converter) hint(h *constraint.HintMapping) {
	c.put(hintMark, uint32(h.HintID), uint32(len(h.Inputs)))
	for _, input := range h.Inputs {
		n := uint32(0)
		for _, t := range input {
			if t.CoeffID() != constraint.CoeffIdZero {
				n++
			}
		}
		c.put(n)
		c.terms(input)
	}
	c.put(h.OutputRange.Start, h.OutputRange.End)
	for w := h.OutputRange.Start; w < h.OutputRange.End; w++ {
		c.solved.set(int(w))
	}
}
