package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"
)

// Layout of a segment's head, one page. Everything up to headerSum is fixed at creation and under
// the checksum; the counters change while the journal is written and are only used in the first
// segment.
const (
	headerBytes   = 4096
	version       = 1
	maxSourceName = 128

	offVersion   = 8
	offSegBytes  = 16
	offSegNumber = 24
	offBase      = 28
	offPID       = 32
	offNonce     = 40
	offAnchor    = 48
	offUnix      = 56
	offNameLen   = 64
	offName      = 72
	headerSum    = 240

	offCounters = 512
)

var magic = [8]byte{'H', 'W', 'J', 'R', 'N', 'L', '\r', '\n'}

// Bounds of a segment file.
const (
	minSegmentBytes     = headerBytes + 4*BlockBytes
	maxSegmentBytes     = 1 << 30
	defaultSegmentBytes = 1 << 20
)

type segmentHeader struct {
	Header
	nonce    uint64
	number   uint32
	segBytes int64
}

// encode writes the head into page, which is 8-byte aligned. The magic comes last, in one store: whoever
// reads before that, or after a kill, finds a segment without a head and not half of one.
func (h *segmentHeader) encode(page []byte) {
	var whole [headerSum + 8]byte
	h.put(whole[:])
	copy(page[len(magic):], whole[len(magic):])
	(*atomic.Uint64)(unsafe.Pointer(&page[0])).Store(binary.NativeEndian.Uint64(whole[:]))
}

func (h *segmentHeader) put(page []byte) {
	le := binary.LittleEndian
	copy(page, magic[:])
	le.PutUint32(page[offVersion:], version)
	le.PutUint64(page[offSegBytes:], uint64(h.segBytes))
	le.PutUint32(page[offSegNumber:], h.number)
	le.PutUint32(page[offBase:], h.Base)
	le.PutUint64(page[offPID:], uint64(h.PID))
	le.PutUint64(page[offNonce:], h.nonce)
	le.PutUint64(page[offAnchor:], uint64(h.AnchorMonotonic))
	le.PutUint64(page[offUnix:], uint64(h.AnchorUnix))
	le.PutUint32(page[offNameLen:], uint32(len(h.Source)))
	copy(page[offName:offName+maxSourceName], h.Source)
	le.PutUint64(page[headerSum:], headerCheck(page))
}

func headerCheck(page []byte) uint64 {
	key := groupKey(mix1, page[:headerSum])
	return fold(key^mix2, mix3) ^ key
}

// decodeHeader reads a segment's head; the error says what is wrong with it.
func decodeHeader(page []byte) (segmentHeader, error) {
	var h segmentHeader
	le := binary.LittleEndian
	if len(page) < headerBytes {
		return h, fmt.Errorf("%d bytes, shorter than a segment's head", len(page))
	}
	if !bytes.Equal(page[:8], magic[:]) {
		return h, fmt.Errorf("not a journal segment")
	}
	if v := le.Uint32(page[offVersion:]); v != version {
		return h, fmt.Errorf("journal version %d, this program reads %d", v, version)
	}
	if le.Uint64(page[headerSum:]) != headerCheck(page) {
		return h, fmt.Errorf("head fails its checksum")
	}
	h.segBytes = int64(le.Uint64(page[offSegBytes:]))
	h.number, h.Base = le.Uint32(page[offSegNumber:]), le.Uint32(page[offBase:])
	h.PID, h.nonce = int(le.Uint64(page[offPID:])), le.Uint64(page[offNonce:])
	h.AnchorMonotonic, h.AnchorUnix = int64(le.Uint64(page[offAnchor:])), int64(le.Uint64(page[offUnix:]))
	n := le.Uint32(page[offNameLen:])
	if n == 0 || n > maxSourceName || h.segBytes < minSegmentBytes || h.segBytes > maxSegmentBytes {
		return h, fmt.Errorf("head makes no sense: name of %d bytes, segment of %d", n, h.segBytes)
	}
	h.Version, h.Source = version, string(page[offName:offName+n])
	if !utf8.ValidString(h.Source) {
		return h, fmt.Errorf("source name is not UTF-8")
	}
	return h, nil
}

// counterNames index the counters in the first segment's head: uint64 each, little-endian.
const (
	ctrLost      = iota // events lost for want of space
	ctrLostFrom         // time of the first
	ctrLostTo           // time of the last
	ctrWordsFull        // uses of a word that found no number
	ctrCut              // attributes cut
	ctrClosed           // 1: the journal was closed
	ctrEvents           // when it was closed: events in it
	ctrCount
)

type counters [ctrCount]uint64

func decodeCounters(page []byte) (c counters) {
	for i := range c {
		c[i] = binary.LittleEndian.Uint64(page[offCounters+8*i:])
	}
	return c
}
