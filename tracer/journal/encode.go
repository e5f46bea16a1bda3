package journal

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// RecordBytes is the size of a record, BlockBytes that of a block, which is what a writer claims at
// once.
const (
	RecordBytes  = 64
	BlockRecords = 64
	BlockBytes   = RecordBytes * BlockRecords

	// MaxExt is the longest extension of a record, in bytes: a group (record and extension) must
	// fit into a block behind its KindBlock record, and half a block is left for others.
	MaxExt = 30 * RecordBytes
)

type words [8]uint64

// wordsOf views r as its eight words: on a little-endian CPU the struct lies in memory as it does
// on disk, which Create checks.
func wordsOf(r *Record) *words { return (*words)(unsafe.Pointer(r)) }

// The struct is as large as the record on disk, or this does not compile.
var _ = [1]struct{}{}[unsafe.Sizeof(Record{})-RecordBytes]

// littleEndian tells whether wordsOf may be used to write.
func littleEndian() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// head0 is word 0 without check, with ext extension records.
func (w *words) head0(ext int) uint64 { return w[0]<<8>>40<<32 | uint64(ext)<<56 }

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

// check mixes a record's words, of which w0 stands for word 0, with key, which stands for the
// journal (its nonce) and the place in it, so that neither a torn record nor one copied from
// elsewhere passes. It is never 0: a zero word 0 means "not written yet".
func (w *words) check(w0, key uint64) uint32 {
	h := key ^ fold(w0>>32^mix0, w[1]^key^mix1) ^ fold(w[2]^mix1, w[3]^key^mix2) ^
		fold(w[4]^mix2, w[5]^key^mix3) ^ fold(w[6]^mix3, w[7]^key^mix4)
	h = fold(h^mix4, mix0^bits.RotateLeft64(key, 32))
	if c := uint32(h ^ h>>32); c != 0 {
		return c
	}
	return 1
}

// groupKey mixes an extension, a whole number of records long, into the key of its record.
func groupKey(key uint64, ext []byte) uint64 {
	for ; len(ext) >= 16; ext = ext[16:] {
		lo, hi := binary.LittleEndian.Uint64(ext), binary.LittleEndian.Uint64(ext[8:])
		key = fold(lo^key^mix0, hi^mix3) + key
	}
	return key
}

// placeKey is the key of the record number at, counted from the start of segment number seg.
func placeKey(nonce uint64, seg uint32, at int64) uint64 {
	return nonce ^ (uint64(seg)<<36|uint64(at))*mix2
}
