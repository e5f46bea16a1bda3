package trace

import (
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// plainDictionary is how writers of old name dictionary indexes.
const plainDictionary = format.Encoding(2)

// values decodes a data page, of whose rows count are not null, into out.
func (r *chunkReader) values(out chunk, count int, enc format.Encoding, c *cursor) error {
	if out.texts != nil {
		return r.textValues(out.texts, count, enc, c)
	}
	dense := out.ints
	if count != len(out.ints) {
		r.dense = resized(r.dense, count)
		dense = r.dense
	}
	if err := r.intValues(dense, enc, c); err != nil {
		return err
	}
	if count != len(out.ints) {
		spread(out.ints, dense, r.level, Null)
	}
	return nil
}

func (r *chunkReader) textValues(dst []string, count int, enc format.Encoding, c *cursor) error {
	dense := dst
	if count != len(dst) {
		r.words = resized(r.words, count)
		dense = r.words
	}
	switch enc {
	case format.Plain:
		if err := c.plainText(dense); err != nil {
			return err
		}
	case format.DeltaLengthByteArray:
		r.dense = resized(r.dense, len(dense))
		if err := c.deltaText(dense, r.dense); err != nil {
			return err
		}
	case format.RLEDictionary, plainDictionary:
		if err := r.lookUp(len(dense), len(r.dict.texts), c); err != nil {
			return err
		}
		for i, x := range r.index {
			dense[i] = r.dict.texts[x]
		}
	default:
		return fmt.Errorf("encoding %s is not read for text", enc)
	}
	if count != len(dst) {
		spread(dst, dense, r.level, "")
	}
	return nil
}

func (r *chunkReader) intValues(dst []int64, enc format.Encoding, c *cursor) error {
	switch enc {
	case format.Plain:
		return r.plainInts(c, dst)
	case format.DeltaBinaryPacked:
		return c.delta(dst)
	case format.RLE: // booleans of a V2 page: length, then runs of one bit
		if _, err := c.take(4); err != nil {
			return err
		}
		r.index = resized(r.index, len(dst))
		if err := c.hybrid(r.index, 1); err != nil {
			return err
		}
		for i, x := range r.index {
			dst[i] = int64(x)
		}
		return nil
	case format.RLEDictionary, plainDictionary:
		if err := r.lookUp(len(dst), len(r.dict.ints), c); err != nil {
			return err
		}
		for i, x := range r.index {
			dst[i] = r.dict.ints[x]
		}
		return nil
	}
	return fmt.Errorf("encoding %s is not read", enc)
}

// lookUp decodes n dictionary indexes into r.index and checks them against the dictionary's size.
func (r *chunkReader) lookUp(n, size int, c *cursor) error {
	r.index = resized(r.index, n)
	if n == 0 {
		return nil
	}
	at, err := c.take(1)
	if err != nil {
		return err
	}
	if !r.hasDict {
		return errors.New("the dictionary is missing")
	}
	if err := c.hybrid(r.index, uint(c.b[at])); err != nil {
		return err
	}
	for _, x := range r.index {
		if x >= uint32(min(size, math.MaxInt32)) {
			return fmt.Errorf("index %d into a dictionary of %d", x, size)
		}
	}
	return nil
}

// plainInts decodes values without encoding.
func (r *chunkReader) plainInts(c *cursor, dst []int64) error {
	switch r.meta.Type {
	case format.Int64, format.Double:
		return c.plain64(dst)
	case format.Boolean:
		return c.plainBits(dst)
	}
	return fmt.Errorf("type %s is not read", r.meta.Type)
}

// spread moves dense values to where level is 1, and null to where it is 0.
func spread[T any](dst, dense []T, level []uint32, null T) {
	next := 0
	for i, l := range level {
		dst[i] = null
		if l&1 == 1 {
			dst[i] = dense[next]
			next++
		}
	}
}

func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
