package journal

import (
	"fmt"
	"os"
)

// Header says whose journal it is. It stands at the head of every segment.
type Header struct {
	Version         int
	Source          string // the source's name, such as "prove"
	PID             int
	Base            uint32 // the source's number in its trace, from 0: see GlobalID
	AnchorMonotonic int64  // CLOCK_MONOTONIC ns of time 0
	AnchorUnix      int64  // unix ns of time 0
}

// GlobalID makes an id of a record (buffer, span) unique over the trace: the source's Base in the
// upper 32 bits. 0 stays 0.
func (h *Header) GlobalID(local uint32) int64 {
	if local == 0 {
		return 0
	}
	return int64(h.Base)<<32 | int64(local)
}

// Entry is one record as a reader hands it out.
type Entry struct {
	Record
	Writer    uint32 // which writer of the journal wrote it
	Pos       uint64 // position in that writer; rises in the order of its calls, with gaps
	Extension []byte // Ext*64 bytes, valid until the next Scan
}

// Ledger is what reading a journal found and missed. It is complete once Scan has returned false.
type Ledger struct {
	Segments        int
	Blocks          int
	Records         int64 // whole records handed out, or kept by the reader (words, blocks)
	Torn            int64 // records whose check is wrong: half written at a kill, or damaged
	Bytes           int64 // bytes of segment files read
	DamagedBytes    int64 // of these, in segments or blocks that could not be used at all
	MissingBlocks   int64 // blocks that a writer numbered and that are not there
	MissingBytes    int64 // by which segments are shorter than they were made
	MissingSegments int64 // segments that were numbered and that are not there
	UnresolvedWords int64 // words used whose definition is missing
	Clean           bool  // the writer closed the journal
	Damage          []*DamageError
	Losses          []Loss // what the writer itself counted as lost, or as written and is not there
}

// Loss is a counted loss: Count events of Writer between FromNS and ToNS.
type Loss struct {
	Writer       int64 // -1 where it is the sum over all writers
	FromNS, ToNS int64
	Count        int64
	Reason       string // one of LossReasons, or MissingEvents
}

// MissingEvents is the reason of events that a journal was closed with and that were not read: those
// in damaged records, blocks and segments, all together.
const MissingEvents = "missing_events"

// DamageError is a journal file that cannot be used, or not whole, and where.
type DamageError struct {
	File   string
	Offset int64
	What   string
	Bytes  int64 // of a source of which nothing could be read: how many there were
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", e.File, e.Offset, e.What)
}

// Reader reads one source's journal, also while its writer lives: it sees what was acknowledged
// when it got there.
//
//	r, err := journal.OpenReader(dir)
//	defer r.Close()
//	for r.Scan() {
//		e := r.Entry()
//	}
//	err = r.Err()
//	ledger := r.Ledger()
//
// Entries come in the order of the file: the entries of one writer by rising Pos, those of
// different writers block by block. To get the order of the trace, sort by (TimeNS, Writer, Pos).
// KindBlock, KindString and KindLoss are digested by the reader (Word, Ledger) and not handed out.
type Reader struct {
	dir      string
	head     segmentHeader
	segments []segmentFile
	live     bool // a writer holds the lock: a record without check is being written, not torn
	ledger   Ledger
	words    []word // by number, as far as known
	sought   int    // how often a missing word was looked for in what is still to be read

	file   *os.File
	seg    int    // index of the open segment; -1 before the first
	chunk  []byte // what is read into
	buf    []byte // what is left of it, from off on
	off    int64
	block  blockState
	next   map[uint32]int64 // per writer, the number of the block to come
	events int64            // handed out
	told   int64            // losses told by KindLoss records
	entry  Entry
	err    error

	counted  counters // of the first segment's head
	finished bool
}

type word struct {
	text  string
	known bool
}

type segmentFile struct {
	path   string
	number uint32
	size   int64
}

// OpenReader opens the journal folder DIR.hw/journal/SOURCE. It fails when no segment in it can be
// used; where its writer lives and has made none yet, errors.Is(err, fs.ErrNotExist).
func OpenReader(dir string) (*Reader, error) {
	closed := false // known before the segments were listed: the list has all of them then
	for try := 0; ; try++ {
		r, err := openOnce(dir)
		if r == nil {
			return nil, err
		}
		// Under a living writer a list may be half old and half new: look again. Damage stays.
		again := err != nil || len(r.ledger.Damage) > 0
		if r.live && (again && try < 3 || r.ledger.Clean && !closed) {
			closed = r.ledger.Clean
			continue
		}
		if err != nil {
			return nil, err
		}
		return r, nil
	}
}

// openOnce lists the segments. The reader is nil where nothing is known of the folder.
func openOnce(dir string) (*Reader, error) {
	live, err := Locked(dir)
	if err != nil {
		return nil, err
	}
	r := &Reader{
		dir: dir, live: live, seg: -1, next: map[uint32]int64{},
		words: []word{{known: true}},
	}
	return r, r.findSegments()
}

// Header says whose journal it is.
func (r *Reader) Header() Header { return r.head.Header }

// Live tells whether a process was still writing to the journal when it was opened.
func (r *Reader) Live() bool { return r.live }

// Scan goes to the next record; false at the end or on an error of the operating system (Err).
// Damage is counted in the Ledger and skipped.
func (r *Reader) Scan() bool {
	for r.err == nil {
		if r.nextInBlock() {
			return true
		}
		if !r.nextBlock() && !r.nextSegment() {
			break
		}
	}
	r.finish()
	return false
}

// Entry is the record Scan went to. It and its Extension are valid until the next Scan.
func (r *Reader) Entry() *Entry { return &r.entry }

// Err is the first read error, nil at a regular end.
func (r *Reader) Err() error { return r.err }

// Word is the text of a word's number. 0 is "". A number without definition is "?" and its number,
// and counted.
func (r *Reader) Word(n uint16) string {
	if int(n) >= len(r.words) || !r.words[n].known {
		r.seekWord(n)
	}
	return r.words[n].text
}

// Ledger is what was found and missed so far; complete after Scan returned false.
func (r *Reader) Ledger() Ledger { return r.ledger }

// Close releases the files.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}
