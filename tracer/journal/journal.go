package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Options configure a journal.
type Options struct {
	Source          string // name of the source, 1..128 bytes of UTF-8
	Base            uint32 // number of the source in its trace: see ClaimBase
	AnchorMonotonic int64  // CLOCK_MONOTONIC ns of time 0
	AnchorUnix      int64  // unix ns of time 0
	SegmentBytes    int64  // 0: 1 MiB. Rounded up to whole blocks
	Writers         int    // 0: by the number of CPUs. Rounded up to a power of two
	Space           Space  // nil: the disk
	// OnMapped is told how many bytes of segments are mapped, whenever that changes, by a goroutine
	// of the journal or the one that calls Create or Close. It may append.
	OnMapped func(bytes int64)
}

// Journal appends records of one source to its folder. All methods may be called from any
// goroutine.
type Journal struct {
	clock  Clock
	dir    string
	opts   Options
	head   segmentHeader
	lock   *os.File
	page   []byte // head of the first segment, always mapped: the counters that survive a kill
	shards []shard
	shift  uint
	words  interner

	current atomic.Pointer[segment]
	failing atomic.Bool // no segment could be had: lose at once until the background gets one
	closed  atomic.Bool

	mu      sync.Mutex // guards what follows, and the making of segments
	spare   *segment
	mapped  []*segment // all that are mapped, the current one and the spare included
	number  uint32     // of the next segment
	final   Stats      // after Close
	lastErr error      // why the last segment could not be had

	wake chan struct{}
	done chan struct{}
}

// Create makes the journal folder dir, which must not exist, and its first segment.
func Create(dir string, opts Options) (*Journal, error) {
	if err := opts.fill(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	j := &Journal{
		clock: NewClock(opts.AnchorMonotonic), dir: dir, opts: opts,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	j.head = segmentHeader{Header: Header{
		Source: opts.Source, PID: os.Getpid(), Base: opts.Base,
		AnchorMonotonic: opts.AnchorMonotonic, AnchorUnix: opts.AnchorUnix,
	}, nonce: nonce(), segBytes: opts.SegmentBytes}
	j.shards = make([]shard, opts.Writers)
	j.shift = uint(64 - bits.Len(uint(opts.Writers-1)))
	for i := range j.shards {
		j.shards[i].id = uint32(i)
		j.shards[i].at = BlockRecords
	}
	j.words.init()
	if err := j.open(); err != nil {
		return nil, err
	}
	go j.background()
	j.poke()
	return j, nil
}

func (o *Options) fill() error {
	if n := len(o.Source); n == 0 || n > maxSourceName || !utf8.ValidString(o.Source) {
		return fmt.Errorf("create journal: source name %q is not 1 to %d bytes of UTF-8",
			o.Source, maxSourceName)
	}
	if !littleEndian() {
		return fmt.Errorf("create journal: recording needs a little-endian CPU; reading works on this one")
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	o.SegmentBytes = headerBytes + (o.SegmentBytes-headerBytes+BlockBytes-1)/BlockBytes*BlockBytes
	if o.SegmentBytes < minSegmentBytes || o.SegmentBytes > maxSegmentBytes {
		return fmt.Errorf("create journal: segments of %d bytes are outside %d..%d",
			o.SegmentBytes, minSegmentBytes, maxSegmentBytes)
	}
	if o.Writers <= 0 {
		// So many that two running goroutines seldom share one.
		o.Writers = max(32, 4*runtime.GOMAXPROCS(0))
	}
	o.Writers = 1 << bits.Len(uint(min(o.Writers, 1<<12)-1))
	if o.Space == nil {
		o.Space = diskSpace{}
	}
	if o.OnMapped == nil {
		o.OnMapped = func(int64) {}
	}
	return nil
}

// open takes the folder's lock and makes the first segment.
func (j *Journal) open() (err error) {
	if j.lock, err = lockFolder(j.dir); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s, err := j.makeSegment()
	if err == nil {
		j.page, err = mapHead(s.path)
	}
	if err != nil {
		_ = unlock(j.lock)
		return fmt.Errorf("create journal %s: %w", j.dir, err)
	}
	prefault(s.data)
	j.current.Store(s)
	return nil
}

func mapHead(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return unix.Mmap(int(f.Fd()), 0, headerBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func nonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Now is the journal's clock: nanoseconds since the anchor.
func (j *Journal) Now() int64 { return j.clock.Now() }

// Dir is the journal's folder.
func (j *Journal) Dir() string { return j.dir }

// Header says what readers will find at the head of the segments.
func (j *Journal) Header() Header { h := j.head.Header; h.Version = version; return h }

// Stats are the journal's counts up to now.
type Stats struct {
	Events      int64 // acknowledged records: buffers, queues, samples, spans' begins and ends
	Lost        int64 // events that found no space
	WordsFull   int64 // uses of a word that found no number
	Cut         int64 // attributes that did not fit
	Segments    int64 // made so far
	MappedBytes int64
	LastError   error // why the last segment could not be had; nil when it could
}

// Stats counts, also after Close. Of a writer that is busy just now, with an append or with the
// background's look at its block, Events lacks what stands in its last block.
func (j *Journal) Stats() Stats {
	events := int64(0)
	for i := range j.shards { // before mu, which the holder of a shard may wait for
		events += j.shards[i].count()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.page == nil {
		return j.final
	}
	count := func(i int) int64 { return int64(j.counter(i).Load()) }
	return Stats{
		Events: events, Lost: count(ctrLost), WordsFull: count(ctrWordsFull), Cut: count(ctrCut),
		Segments: int64(j.number), LastError: j.lastErr,
		MappedBytes: int64(len(j.mapped)) * j.opts.SegmentBytes,
	}
}

// count reads a shard's events, also when it is closed. Where somebody appends just now it does not
// wait, which could be for long, but takes the count as of the last block.
func (s *shard) count() int64 {
	if s.state.CompareAndSwap(shardFree, shardHeld) {
		defer s.state.Store(shardFree)
		return s.events
	}
	return s.told.Load()
}

// ClaimBase takes a free number for a further source of the trace whose journal folder
// (DIR.hw/journal) is journalDir, making the folder if need be. No two callers on a host get the
// same one.
func ClaimBase(journalDir string) (uint32, error) {
	if err := os.MkdirAll(journalDir, 0o755); err != nil {
		return 0, fmt.Errorf("claim source number: %w", err)
	}
	for n := range uint32(1 << 16) {
		name := filepath.Join(journalDir, fmt.Sprintf("BASE.%d", n))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			return n, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return 0, fmt.Errorf("claim source number: %w", err)
		}
	}
	return 0, fmt.Errorf("claim source number: %s has 65536 sources", journalDir)
}
