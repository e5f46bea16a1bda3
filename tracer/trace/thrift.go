package trace

import (
	"encoding/binary"
	"errors"
)

// Parquet keeps its footer and its page headers in Thrift's compact protocol. Decoders of it
// allocate what a list or a string claims to be long before they find that the bytes are not there,
// so that one flipped bit can ask for gigabytes. scanThrift walks the bytes first: after it, what
// decoding allocates is in proportion to what is really there.

var errThrift = errors.New("metadata makes no sense")

// Kinds of values in the compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI64    = 6 // 4 and 5 are i16 and i32: varints like it
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftStruct = 12 // 11, a map, is in none of Parquet's structures

	thriftMaxDepth  = 16
	thriftMinStruct = 3 // bytes of the smallest structure in a list (a column order)
	thriftPerStruct = 5 // bytes a structure takes on the average, at least
)

type thriftScanner struct {
	b       []byte
	pos     int
	structs int // elements of lists of structures
}

// scanThrift checks that b begins with one whole structure and says how long it is.
func scanThrift(b []byte) (int, error) {
	s := thriftScanner{b: b}
	if err := s.structure(0); err != nil {
		return 0, err
	}
	if s.structs*thriftPerStruct > s.pos {
		return 0, errThrift
	}
	return s.pos, nil
}

func (s *thriftScanner) structure(depth int) error {
	for {
		head, err := s.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 { // the field's number stands apart
			if _, err := s.varint(); err != nil {
				return err
			}
		}
		if kind := head & 15; kind != thriftTrue &&
			kind != thriftFalse { // a boolean field is its kind
			if err := s.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
}

func (s *thriftScanner) value(kind byte, depth int) error {
	if depth > thriftMaxDepth {
		return errThrift
	}
	switch {
	case kind >= thriftTrue && kind <= thriftByte:
		return s.skip(1)
	case kind > thriftByte && kind <= thriftI64:
		_, err := s.varint()
		return err
	case kind == thriftDouble:
		return s.skip(8)
	case kind == thriftBinary:
		n, err := s.varint()
		if err != nil {
			return err
		}
		return s.skip(n)
	case kind == thriftList || kind == thriftSet:
		return s.list(depth)
	case kind == thriftStruct:
		return s.structure(depth)
	}
	return errThrift
}

func (s *thriftScanner) list(depth int) error {
	head, err := s.byte()
	if err != nil {
		return err
	}
	n, kind := uint64(head>>4), head&15
	if n == 15 {
		if n, err = s.varint(); err != nil {
			return err
		}
	}
	least := uint64(1)
	if kind == thriftStruct {
		least = thriftMinStruct
	}
	if n > uint64(len(s.b)-s.pos)/least {
		return errThrift
	}
	if kind == thriftStruct {
		s.structs += int(n)
	}
	for range n {
		if err := s.value(kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *thriftScanner) byte() (byte, error) {
	if s.pos >= len(s.b) {
		return 0, errThrift
	}
	s.pos++
	return s.b[s.pos-1], nil
}

func (s *thriftScanner) varint() (uint64, error) {
	v, n := binary.Uvarint(s.b[s.pos:])
	if n <= 0 {
		return 0, errThrift
	}
	s.pos += n
	return v, nil
}

func (s *thriftScanner) skip(n uint64) error {
	if n > uint64(len(s.b)-s.pos) {
		return errThrift
	}
	s.pos += int(n)
	return nil
}
