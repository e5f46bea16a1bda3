package circuit

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// stream is the seeded source of a partition's secrets: ChaCha8, keyed by a hash of the partition's
// name.
type stream struct {
	src *rand.ChaCha8
}

func newStream(circuit string, p Partition) *stream {
	msg := append([]byte("highwater witness "), circuit...)
	for _, v := range []uint64{p.Seed, uint64(p.Job), uint64(p.Partition)} {
		msg = binary.LittleEndian.AppendUint64(msg, v)
	}
	return &stream{src: rand.NewChaCha8(sha256.Sum256(msg))}
}

func (s *stream) word() uint32 { return uint32(s.src.Uint64()) }

func (s *stream) bit() uint64 { return s.src.Uint64() & 1 }

// element is uniform up to a bias below 2^-128: 48 bytes reduced.
func (s *stream) element() fr.Element {
	var b [48]byte
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], s.src.Uint64())
	}
	var e fr.Element
	e.SetBytes(b[:])
	return e
}

// spoil is root, or another element where bad is set.
func spoil(root fr.Element, bad bool) fr.Element {
	if bad {
		one := fr.One()
		root.Add(&root, &one)
	}
	return root
}
