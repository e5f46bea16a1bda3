package trace

import (
	"encoding/binary"
	"errors"
)

// Decoders of the Parquet encodings that traces use. They write into a slice of the length that the
// page header gave and that was checked against the row group, so that no run length in the data
// can make them allocate; data that ends early or says more is errPage. Buffers end in decodePad
// spare bytes, so that 64 bits can be loaded at any byte.

var errPage = errors.New("page makes no sense")

const decodePad = 16

// bitsAt reads width <= 64 bits from bit position pos of b, whose padding makes the loads safe.
func bitsAt(b []byte, pos int, width uint) uint64 {
	i, shift := pos>>3, uint(pos&7)
	v := binary.LittleEndian.Uint64(b[i:]) >> shift
	if shift+width > 64 {
		v |= uint64(b[i+8]) << (64 - shift)
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// cursor reads the whole-byte parts of a page. end is where the data end and the padding begins.
type cursor struct {
	b        []byte
	pos, end int
}

func newCursor(padded []byte) cursor { return cursor{b: padded, end: len(padded) - decodePad} }

func (c *cursor) uvarint() (uint64, error) {
	v, n := binary.Uvarint(c.b[c.pos:c.end])
	if n <= 0 {
		return 0, errPage
	}
	c.pos += n
	return v, nil
}

func (c *cursor) zigzag() (int64, error) {
	v, err := c.uvarint()
	return int64(v>>1) ^ -int64(v&1), err
}

// take moves n bytes on and says where they began.
func (c *cursor) take(n uint64) (int, error) {
	if n > uint64(c.end-c.pos) {
		return 0, errPage
	}
	at := c.pos
	c.pos += int(n)
	return at, nil
}

// hybrid fills dst from runs and bit-packed groups of values of width bits (Parquet's RLE
// encoding).
func (c *cursor) hybrid(dst []uint32, width uint) error {
	if width > 32 {
		return errPage
	}
	for len(dst) > 0 {
		head, err := c.uvarint()
		if err != nil {
			return err
		}
		n := head >> 1
		if n == 0 {
			return errPage
		}
		if head&1 == 0 {
			at, err := c.take(uint64(width+7) / 8)
			if err != nil {
				return err
			}
			v, n := uint32(bitsAt(c.b, at*8, width)), min(n, uint64(len(dst)))
			for i := range dst[:n] {
				dst[i] = v
			}
			dst = dst[n:]
			continue
		}
		if dst, err = c.packed(dst, n, width); err != nil {
			return err
		}
	}
	return nil
}

// packed reads groups of eight values; the last group may hold more than dst wants.
func (c *cursor) packed(dst []uint32, groups uint64, width uint) ([]uint32, error) {
	if groups > uint64(c.end)+1<<20 { // far beyond any page; keeps the products below in range
		return nil, errPage
	}
	count := int(min(groups*8, uint64(len(dst))))
	at, err := c.take(min(groups*uint64(width), uint64(c.end-c.pos)))
	if err != nil || (count*int(width)+7)/8 > c.pos-at {
		return nil, errPage
	}
	pos := at * 8
	for i := range dst[:count] {
		dst[i] = uint32(bitsAt(c.b, pos, width))
		pos += int(width)
	}
	return dst[count:], nil
}

// delta fills dst from Parquet's DELTA_BINARY_PACKED encoding.
func (c *cursor) delta(dst []int64) error {
	blockSize, err1 := c.uvarint()
	minis, err2 := c.uvarint()
	total, err3 := c.uvarint()
	first, err4 := c.zigzag()
	if errors.Join(err1, err2, err3, err4) != nil || total != uint64(len(dst)) {
		return errPage
	}
	if len(dst) == 0 {
		return nil
	}
	if minis == 0 || minis > 1024 || blockSize > 1<<20 || blockSize%minis != 0 ||
		blockSize/minis%8 != 0 {
		return errPage
	}
	dst[0] = first
	for last, rest := first, dst[1:]; len(rest) > 0; {
		var err error
		if rest, last, err = c.deltaBlock(rest, last, int(minis),
			int(blockSize/minis)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cursor) deltaBlock(dst []int64, last int64, minis, perMini int) ([]int64, int64, error) {
	least, err := c.zigzag()
	if err != nil {
		return nil, 0, err
	}
	widths, err := c.take(uint64(minis))
	if err != nil {
		return nil, 0, err
	}
	for m := 0; m < minis && len(dst) > 0; m++ {
		width := uint(c.b[widths+m])
		if width > 64 {
			return nil, 0, errPage
		}
		at, err := c.take(uint64(perMini) * uint64(width) / 8)
		if err != nil {
			return nil, 0, err
		}
		pos, n := at*8, min(perMini, len(dst))
		for i := range dst[:n] {
			last += least + int64(bitsAt(c.b, pos, width))
			dst[i] = last
			pos += int(width)
		}
		dst = dst[n:]
	}
	return dst, last, nil
}

// plain64 fills dst with 64-bit values.
func (c *cursor) plain64(dst []int64) error {
	at, err := c.take(uint64(len(dst)) * 8)
	for i := range dst {
		if err == nil {
			dst[i] = int64(binary.LittleEndian.Uint64(c.b[at+8*i:]))
		}
	}
	return err
}

// plainBits fills dst with booleans.
func (c *cursor) plainBits(dst []int64) error {
	at, err := c.take(uint64(len(dst)+7) / 8)
	for i := range dst {
		if err == nil {
			dst[i] = int64(bitsAt(c.b, at*8+i, 1))
		}
	}
	return err
}

// plainText fills dst with strings that share one copy of the data.
func (c *cursor) plainText(dst []string) error {
	base, all := c.pos, string(c.b[c.pos:c.end])
	for i := range dst {
		head, err := c.take(4)
		if err != nil {
			return err
		}
		at, err := c.take(uint64(binary.LittleEndian.Uint32(c.b[head:])))
		if err != nil {
			return err
		}
		dst[i] = all[at-base : c.pos-base]
	}
	return nil
}

// deltaText fills dst from lengths followed by all the bytes (DELTA_LENGTH_BYTE_ARRAY).
func (c *cursor) deltaText(dst []string, lengths []int64) error {
	if err := c.delta(lengths); err != nil {
		return err
	}
	all := string(c.b[c.pos:c.end])
	for i, n := range lengths {
		if n < 0 || n > int64(len(all)) {
			return errPage
		}
		dst[i], all = all[:n], all[n:]
	}
	return nil
}
