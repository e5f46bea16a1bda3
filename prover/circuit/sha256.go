package circuit

import (
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/std/math/bits"
)

// word is 32 bits, the least significant first. Bits are wires of value 0 or 1, constants, or short
// sums of such wires.
type word [32]frontend.Variable

// sha256Gadget computes SHA-256 compressions bit by bit, about 27,000 constraints each, without
// lookups or commitments.
type sha256Gadget struct {
	api frontend.API
}

func constWord(v uint32) word {
	var w word
	for i := range w {
		w[i] = frontend.Variable(v >> i & 1)
	}
	return w
}

// word constrains v to 32 bits.
func (g sha256Gadget) word(v frontend.Variable) word {
	var w word
	copy(w[:], bits.ToBinary(g.api, v, bits.WithNbDigits(32)))
	return w
}

// value is the integer that w spells; it costs no constraint.
func (g sha256Gadget) value(w word) frontend.Variable {
	return bits.FromBinary(g.api, w[:], bits.WithUnconstrainedInputs())
}

// sum adds words and integers modulo 2^32. The terms must stay below 2^(32+carryBits) in total.
func (g sha256Gadget) sum(carryBits int, terms ...frontend.Variable) word {
	total := g.api.Add(0, terms[0], terms[1:]...)
	var w word
	copy(w[:], bits.ToBinary(g.api, total, bits.WithNbDigits(32+carryBits))[:32])
	return w
}

// xor is a + b - 2ab. The product is the wire, so that its value is 0 or 1: 2a·b would make it 0 or
// 2.
func (g sha256Gadget) xor(a, b frontend.Variable) frontend.Variable {
	return g.api.Sub(g.api.Add(a, b), g.api.Mul(2, g.api.Mul(a, b)))
}

// rotXor is the xor of w rotated right by r1 and r2 and, in shift, by r3 or shifted by it.
func (g sha256Gadget) rotXor(w word, r1, r2, r3 int, shift bool) word {
	var out word
	for i := range out {
		out[i] = g.xor(w[(i+r1)%32], w[(i+r2)%32])
		if !shift || i+r3 < 32 {
			out[i] = g.xor(out[i], w[(i+r3)%32])
		}
	}
	return out
}

// choose is e ? f : g, bit by bit.
func (g sha256Gadget) choose(e, f, h word) word {
	var out word
	for i := range out {
		out[i] = g.api.Add(h[i], g.api.Mul(e[i], g.api.Sub(f[i], h[i])))
	}
	return out
}

// majority is ab + c(a xor b), bit by bit.
func (g sha256Gadget) majority(a, b, c word) word {
	var out word
	for i := range out {
		ab := g.api.Mul(a[i], b[i])
		axb := g.api.Sub(g.api.Add(a[i], b[i]), g.api.Mul(2, ab))
		out[i] = g.api.Add(ab, g.api.Mul(c[i], axb))
	}
	return out
}

// schedule expands a block to the 64 words of the rounds.
func (g sha256Gadget) schedule(block [16]word) [64]word {
	var w [64]word
	copy(w[:], block[:])
	for t := 16; t < 64; t++ {
		s0 := g.rotXor(w[t-15], 7, 18, 3, true)
		s1 := g.rotXor(w[t-2], 17, 19, 10, true)
		w[t] = g.sum(2, g.value(s1), g.value(w[t-7]), g.value(s0), g.value(w[t-16]))
	}
	return w
}

// compress is one SHA-256 compression.
func (g sha256Gadget) compress(state [8]word, block [16]word) [8]word {
	w := g.schedule(block)
	s := state
	for t := range 64 {
		s = g.round(s, g.value(w[t]), sha256K[t])
	}
	for i := range s {
		s[i] = g.sum(1, g.value(state[i]), g.value(s[i]))
	}
	return s
}

func (g sha256Gadget) round(s [8]word, w frontend.Variable, k uint32) [8]word {
	s1 := g.value(g.rotXor(s[4], 6, 11, 25, false))
	ch := g.value(g.choose(s[4], s[5], s[6]))
	t1 := g.api.Add(g.value(s[7]), s1, ch, w, k)
	s0 := g.value(g.rotXor(s[0], 2, 13, 22, false))
	maj := g.value(g.majority(s[0], s[1], s[2]))
	return [8]word{g.sum(3, t1, s0, maj), s[0], s[1], s[2], g.sum(3, g.value(s[3]), t1), s[4], s[5], s[6]}
}

// sha256IV and sha256K are the constants of FIPS 180-4: the first 32 bits of the fractional parts
// of the square roots of the first 8 primes and the cube roots of the first 64.
var sha256IV = [8]uint32{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

var sha256K = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}
