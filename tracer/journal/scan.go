package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"highwater/internal/regular"
)

// readBytes is how much is read from a segment at once.
const readBytes = 64 * BlockBytes

var zeroBlock [BlockBytes]byte

// blockState is where the reader stands in a block.
type blockState struct {
	data   []byte // nil: none
	off    int64  // of the block in its segment
	at     int    // next record
	writer uint32
	number uint64 // of the block in its writer
	excuse int    // bad records up to here belong to a group already counted as torn
}

// nextSegment opens the segment after the current one.
func (r *Reader) nextSegment() bool {
	_ = r.Close() // read only: nothing to lose
	if r.seg+1 >= len(r.segments) {
		return false
	}
	r.seg++
	f, _, err := regular.Open(r.segments[r.seg].path)
	if r.live && errors.Is(err, fs.ErrNotExist) {
		return r.nextSegment() // the spare of a writer that has closed: nothing stood there
	}
	if err != nil {
		r.err = fmt.Errorf("open journal segment: %w", err)
		return false
	}
	r.file, r.off, r.buf = f, headerBytes, nil
	r.ledger.Segments++
	r.ledger.Bytes += headerBytes
	return true
}

// nextBlock goes to the next block of the open segment that anything was written to.
func (r *Reader) nextBlock() bool {
	for r.file != nil {
		if len(r.buf) == 0 && !r.fill() {
			return false
		}
		n := min(len(r.buf), BlockBytes)
		b := r.buf[:n]
		r.block = blockState{data: b, off: r.off, writer: noWriter}
		r.block.number = uint64(r.seg)<<32 | uint64(r.off)/BlockBytes
		r.buf = r.buf[n:]
		r.off += int64(n)
		if !bytes.Equal(b, zeroBlock[:n]) {
			r.ledger.Blocks++
			return true
		}
	}
	return false
}

// noWriter is the Writer of records in a block whose first record is damaged.
const noWriter = 1<<32 - 1

// fill reads the next bytes of the open segment into buf.
func (r *Reader) fill() bool {
	left := r.segments[r.seg].size - r.off
	if left <= 0 {
		return false
	}
	if r.chunk == nil {
		blocks := (r.segments[r.seg].size + BlockBytes - 1) / BlockBytes
		r.chunk = make([]byte, min(blocks*BlockBytes, readBytes))
	}
	b := r.chunk[:min(left, int64(len(r.chunk)))]
	n, err := r.file.ReadAt(b, r.off)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = fmt.Errorf("read journal segment: %w", err)
		return false
	}
	if n < len(b) && !r.live {
		r.damage(r.off+int64(n), "file became shorter while it was read")
	}
	r.buf = b[:n/RecordBytes*RecordBytes]
	r.ledger.Bytes += int64(n)
	return len(r.buf) > 0
}

// nextInBlock goes to the next whole record of the current block that the caller should see.
func (r *Reader) nextInBlock() bool {
	b := &r.block
	for b.at*RecordBytes < len(b.data) {
		rest := b.data[b.at*RecordBytes:]
		at := b.at
		n := r.decode(rest, b.off+int64(at*RecordBytes), &r.entry)
		if n == 0 && r.readAgain(rest) {
			n = r.decode(rest, b.off+int64(at*RecordBytes), &r.entry)
		}
		if n == 0 {
			if !r.reject(rest) {
				break
			}
			b.at++
			continue
		}
		b.at += n
		r.ledger.Records++
		if r.digest(at) {
			continue
		}
		r.events++
		r.entry.Writer, r.entry.Pos = b.writer, b.number*BlockRecords+uint64(at)
		return true
	}
	b.data = nil
	return false
}

// readAgain reads the rest of a living writer's block once more where its next record seems to be torn: the
// CPUs need not show the reader the stores of a record in the order in which the writer made them.
func (r *Reader) readAgain(rest []byte) bool {
	if !r.live || bytes.Equal(rest[:8], zeroBlock[:8]) {
		return false
	}
	b := &r.block
	n, err := r.file.ReadAt(rest, b.off+int64(b.at*RecordBytes))
	return err == nil && n == len(rest)
}

// decode reads the group at the head of b, which lies at off in the segment, into e. It gives the
// number of records that it spans, 0 if it is not whole.
func (r *Reader) decode(b []byte, off int64, e *Entry) int {
	var w words
	w.load(b)
	if w[0] == 0 {
		return 0
	}
	w.unpack(&e.Record)
	n := 1 + int(e.Ext)
	if e.Kind == 0 || e.Kind >= kindEnd || n*RecordBytes > len(b) {
		return 0
	}
	e.Extension = b[RecordBytes : n*RecordBytes]
	key := groupKey(placeKey(r.head.nonce, r.segments[r.seg].number, off/RecordBytes), e.Extension)
	if w.check(w[0], key) != e.Check {
		return 0
	}
	return n
}

// reject counts a record that is not whole. false: nothing was written behind it, the block is at
// its end.
func (r *Reader) reject(rest []byte) bool {
	if bytes.Equal(rest[:8], zeroBlock[:8]) {
		if !r.live && !bytes.Equal(rest, zeroBlock[:len(rest)]) {
			r.ledger.Torn++
		}
		return false
	}
	b := &r.block
	if b.at >= b.excuse {
		r.ledger.Torn++
		b.excuse = b.at + 1 + int(rest[7])
	}
	return true
}

// digest handles the records that are the journal's own; false for one that is the caller's.
func (r *Reader) digest(at int) bool {
	e := &r.entry
	switch e.Kind {
	case KindBlock:
		if at == 0 {
			r.enterBlock(e.ID, e.X)
		}
	case KindString:
		r.define(e)
	case KindLoss:
		if e.X <= 0 {
			break
		}
		r.told += e.X
		r.ledger.Losses = append(r.ledger.Losses, Loss{
			Writer: int64(e.ID), FromNS: e.Y, ToNS: e.TimeNS, Count: e.X, Reason: reason(e.Word0),
		})
	default:
		return false
	}
	return true
}

func reason(n uint16) string {
	if int(n) < len(LossReasons) {
		return LossReasons[n]
	}
	return "unknown"
}

// enterBlock notes whose block it is. A writer numbers its blocks, so that a missing one shows.
func (r *Reader) enterBlock(writer uint32, number int64) {
	const most = 1 << 40 // what a file made to confuse may claim
	if gap := number - r.next[writer]; gap > 0 && number < most && !r.live {
		// In a live journal a block passed over as empty may have been claimed since.
		r.ledger.MissingBlocks += gap
	}
	r.next[writer] = number + 1
	r.block.writer, r.block.number = writer, uint64(number)
}

func (r *Reader) define(e *Entry) {
	n := min(int(e.ID), len(e.Extension))
	r.setWord(e.Word0, strings.ToValidUTF8(string(e.Extension[:n]), string(utf8.RuneError)))
}

func (r *Reader) setWord(n uint16, text string) {
	for int(n) >= len(r.words) {
		r.words = append(r.words, word{})
	}
	r.words[n] = word{text, true}
}

// seekWord looks for a word's definition in what was not read yet: another writer's block may hold
// it.
func (r *Reader) seekWord(n uint16) {
	// One look finds what is there. A live journal may have grown since; a damaged one must not cost a
	// pass for every word.
	tries := 1
	if r.live {
		tries = 16
	}
	if r.sought < tries && r.err == nil {
		r.sought++
		r.lookAhead()
	}
	if int(n) >= len(r.words) || !r.words[n].known {
		r.ledger.UnresolvedWords++
		r.setWord(n, fmt.Sprintf("?%d", n))
	}
}

// lookAhead reads all definitions from here on with a reader of its own.
func (r *Reader) lookAhead() {
	ahead, err := OpenReader(r.dir)
	if err != nil {
		return
	}
	defer ahead.Close()
	ahead.sought = 1 << 30
	for ahead.Scan() {
		continue
	}
	for n, w := range ahead.words {
		if w.known && (n >= len(r.words) || !r.words[n].known) {
			r.setWord(uint16(n), w.text)
		}
	}
}
