package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fullDisk refuses space while it is full: the same interface as the real disk.
type fullDisk struct {
	full  atomic.Bool
	asked atomic.Int64
}

func (d *fullDisk) Reserve(f *os.File, size int64) error {
	d.asked.Add(1)
	if d.full.Load() {
		return fmt.Errorf("reserve %s: %w", f.Name(), syscall.ENOSPC)
	}
	return reserve(f, size)
}

// patience is for machines that stand still for a while: only what hangs waits so long.
const patience = 3 * time.Minute

// eventually polls with a deadline.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func TestFullDiskIsCountedLoss(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprintf("space comes back %v", back), func(t *testing.T) { testFullDisk(t, back) })
	}
}

func testFullDisk(t *testing.T, back bool) {
	disk := &fullDisk{}
	j := create(t, Options{Space: disk, SegmentBytes: minSegmentBytes, Writers: 4})
	disk.full.Store(true)
	var written, lost int64
	appendSome := func(n int) {
		for range n {
			if j.Append(&Record{Kind: KindQueue, TimeNS: j.Now(), X: written}) {
				written++
			} else {
				lost++
			}
		}
	}
	appendSome(5000)
	if lost == 0 || j.Stats().LastError == nil {
		t.Fatalf("%d lost on a full disk, error %v", lost, j.Stats().LastError)
	}
	if back {
		disk.full.Store(false)
		eventually(t, "space is used again", func() bool { return !j.failing.Load() })
		before := written
		appendSome(500)
		if written-before != 500 {
			t.Errorf("%d of 500 events written after space came back", written-before)
		}
	}
	checkLoss(t, "before Close", readAll(t, j.Dir()), written, lost)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if st := j.Stats(); st.Events != written || st.Lost != lost {
		t.Errorf("stats %+v, want %d events and %d lost", st, written, lost)
	}
	checkLoss(t, "after Close", readAll(t, j.Dir()), written, lost)
}

// checkLoss wants each event either found or in a loss.
func checkLoss(t *testing.T, when string, c contents, written, lost int64) {
	t.Helper()
	var counted int64
	for _, l := range c.ledger.Losses {
		if l.Reason != "no_space" || l.FromNS > l.ToNS || l.FromNS == 0 {
			t.Errorf("%s: loss %+v", when, l)
		}
		counted += l.Count
	}
	if int64(len(c.entries)) != written || counted != lost {
		t.Errorf("%s: %d entries, %d counted lost; want %d and %d", when, len(c.entries), counted, written, lost)
	}
}

// TestRefusedAtStart wants an error and no segment left over.
func TestRefusedAtStart(t *testing.T) {
	disk := &fullDisk{}
	disk.full.Store(true)
	dir := filepath.Join(t.TempDir(), "journal", "x")
	if _, err := Create(dir, Options{Source: "x", Space: disk}); err == nil {
		t.Fatal("no error on a full disk")
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// TestSegmentsAreReserved wants the whole file on disk before the first record: a full disk can
// then never be a SIGBUS.
func TestSegmentsAreReserved(t *testing.T) {
	j := create(t, Options{SegmentBytes: 1 << 20})
	st, err := os.Stat(filepath.Join(j.Dir(), segmentName(0)))
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Sys().(*syscall.Stat_t).Blocks * 512; st.Size() != 1<<20 || got < 1<<20 {
		t.Errorf("segment of %d bytes has %d reserved on disk", st.Size(), got)
	}
}

func TestWordsFull(t *testing.T) {
	j := create(t, Options{})
	const extra = 10
	other := j.Word(OtherWord)
	for i := range MaxWords - 1 {
		if n := j.Word(fmt.Sprint(i)); n == 0 || n == other {
			t.Fatalf("word %d has number %d", i, n)
		}
	}
	for i := range extra {
		if n := j.Word(fmt.Sprint("late", i)); n != other {
			t.Fatalf("late word has number %d, want that of %q, %d", n, OtherWord, other)
		}
	}
	if n := j.Word("17"); n == other || n == 0 {
		t.Errorf("an early word lost its number: %d", n)
	}
	j.Append(&Record{Kind: KindQueue, TimeNS: j.Now(), Word0: j.Word("late0")})
	c := readAll(t, j.Dir())
	if len(c.entries) != 1 || c.words[0] != OtherWord {
		t.Errorf("entries %+v, words %q", c.entries, c.words)
	}
	want := Loss{Writer: -1, Count: extra + 1, Reason: "words_full"}
	if len(c.ledger.Losses) != 1 || c.ledger.Losses[0] != want {
		t.Errorf("losses %+v, want %+v", c.ledger.Losses, want)
	}
}

func TestIdleWritersLetGoOfOldSegments(t *testing.T) {
	j := create(t, Options{SegmentBytes: minSegmentBytes, Writers: 8})
	for i := range j.shards { // each writer holds a block
		s := &j.shards[i]
		for !s.state.CompareAndSwap(shardFree, shardHeld) { // the background may have it for a moment
			runtime.Gosched()
		}
		if !j.nextBlock(s, 1) {
			t.Fatal("no block")
		}
		j.write(s, &Record{Kind: KindQueue, TimeNS: 1}, nil, 0)
		s.state.Store(shardFree)
	}
	for range 2000 {
		if !j.Append(&Record{Kind: KindQueue, TimeNS: 2}) {
			t.Fatal("append refused")
		}
	}
	eventually(t, "only the current segment and the spare are mapped", func() bool {
		j.poke()
		return j.Stats().MappedBytes <= 2*j.opts.SegmentBytes
	})
	if c := readAll(t, j.Dir()); len(c.entries) != 2008 {
		t.Errorf("%d entries", len(c.entries))
	}
}
