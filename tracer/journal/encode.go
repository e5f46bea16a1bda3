package journal

import (
	"encoding/binary"
	"math/bits"
)

// RecordBytes is the size of a record, BlockBytes that of a block, which is what a writer claims at once.
const (
	RecordBytes  = 64
	BlockRecords = 64
	BlockBytes   = RecordBytes * BlockRecords

	// MaxExt is the longest extension of a record, in bytes: a group (record and extension) must fit into a block
	// behind its KindBlock record, and half a block is left for others.
	MaxExt = 30 * RecordBytes
)

type words [8]uint64

// pack lays r out as its eight little-endian words; word 0 still lacks the check in its low half.
func (w *words) pack(r *Record, ext int) {
	w[0] = uint64(r.Kind)<<32 | uint64(r.Event)<<40 | uint64(r.Space)<<48 | uint64(ext)<<56
	w[1], w[2], w[3] = uint64(r.TimeNS), uint64(r.X), uint64(r.Y)
	w[4] = uint64(r.ID) | uint64(r.Parent)<<32
	w[5] = uint64(r.Span) | uint64(uint32(r.Job))<<32
	w[6] = uint64(uint32(r.Partition)) | uint64(uint16(r.Worker))<<32 | uint64(uint16(r.Device))<<48
	w[7] = uint64(r.Word0) | uint64(r.Word1)<<16 | uint64(r.Word2)<<32 | uint64(uint16(r.Extra))<<48
}

// load reads the words of a record from b.
func (w *words) load(b []byte) {
	_ = b[RecordBytes-1]
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
}

// unpack is the inverse of pack.
func (w *words) unpack(r *Record) {
	r.Check, r.Kind, r.Event = uint32(w[0]), Kind(w[0]>>32), uint8(w[0]>>40)
	r.Space, r.Ext = uint8(w[0]>>48), uint8(w[0]>>56)
	r.TimeNS, r.X, r.Y = int64(w[1]), int64(w[2]), int64(w[3])
	r.ID, r.Parent = uint32(w[4]), uint32(w[4]>>32)
	r.Span, r.Job = uint32(w[5]), int32(w[5]>>32)
	r.Partition, r.Worker, r.Device = int32(w[6]), int16(w[6]>>32), int16(w[6]>>48)
	r.Word0, r.Word1, r.Word2 = uint16(w[7]), uint16(w[7]>>16), uint16(w[7]>>32)
	r.Extra = int16(w[7] >> 48)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Odd constants with balanced bits, of the wyhash family.
const (
	mix0 = 0xa0761d6478bd642f
	mix1 = 0xe7037ed1a0b428db
	mix2 = 0x8ebc6af09c88c6e3
	mix3 = 0x589965cc75374cc3
	mix4 = 0x1d8e4e27c47d124f
)

// check mixes a record's words with key, which stands for the journal (its nonce) and the place in it, so that neither a
// torn record nor one copied from elsewhere passes. It is never 0: a zero word 0 means "not written yet".
func (w *words) check(key uint64) uint32 {
	h := key ^ w.sum(key)
	h = fold(h^mix4, mix0^bits.RotateLeft64(key, 32))
	if c := uint32(h ^ h>>32); c != 0 {
		return c
	}
	return 1
}

// sum folds all eight words but the check itself.
func (w *words) sum(key uint64) uint64 {
	return fold(w[0]>>32^mix0, w[1]^key^mix1) ^ fold(w[2]^mix1, w[3]^key^mix2) ^
		fold(w[4]^mix2, w[5]^key^mix3) ^ fold(w[6]^mix3, w[7]^key^mix4)
}

// checkGroup is check for a record whose extension is ext, a whole number of records long.
func (w *words) checkGroup(key uint64, ext []byte) uint32 {
	var e words
	for ; len(ext) >= RecordBytes; ext = ext[RecordBytes:] {
		e.load(ext)
		key = fold(key^mix0, e.sum(key)^e[0]^mix3)
	}
	return w.check(key)
}

// placeKey is the key of the record at byte offset off of segment number seg.
func placeKey(nonce uint64, seg uint32, off int64) uint64 {
	return nonce ^ (uint64(seg)<<36|uint64(off)/RecordBytes)*mix2
}
