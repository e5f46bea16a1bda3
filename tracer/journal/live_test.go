package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// appendQueue appends n events and wants them acknowledged.
func appendQueue(t *testing.T, j *Journal, n int) {
	t.Helper()
	for i := range n {
		if !j.Append(&Record{Kind: KindQueue, TimeNS: 1, X: int64(i)}) {
			t.Fatalf("append %d refused", i)
		}
	}
}

// whole wants n events and nothing amiss.
func whole(t *testing.T, c contents, n int) {
	t.Helper()
	l := c.ledger
	if len(c.entries) != n || l.Torn != 0 || l.DamagedBytes != 0 || len(l.Damage) != 0 || len(l.Losses) != 0 {
		t.Errorf("%d of %d events, ledger %+v", len(c.entries), n, l)
	}
}

// TestCloseWhileReading: who began to read under a living writer gets all that was there, although Close
// removes the spare segment and makes the last one shorter meanwhile.
func TestCloseWhileReading(t *testing.T) {
	j := create(t, Options{Writers: 1})
	appendQueue(t, j, 100)
	eventually(t, "a spare segment is there", func() bool {
		_, err := os.Stat(filepath.Join(j.Dir(), segmentName(1)))
		return err == nil && j.Stats().Segments == 2
	})
	r, err := OpenReader(j.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for r.Scan() {
		n++
	}
	if l := r.Ledger(); n != 100 || r.Err() != nil || !r.Live() || len(l.Damage) != 0 || l.Torn != 0 {
		t.Errorf("%d events, error %v, live %v, ledger %+v", n, r.Err(), r.Live(), l)
	}
	whole(t, readAll(t, j.Dir()), 100)
}

// TestClosedButLocked: between the last store of Close and the release of the lock a journal is closed, and its
// writer lives.
func TestClosedButLocked(t *testing.T) {
	dir, events := small(t)
	lock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, readAll(t, dir), events)
	if err := unlock(lock); err != nil {
		t.Fatal(err)
	}
	whole(t, readAll(t, dir), events)
}

// TestVanished: a segment file may go between the listing of the folder and the look into it, as one does for
// which the disk had no room. (A link to nowhere is such a name.) In a closed journal nothing goes.
func TestVanished(t *testing.T) {
	j := create(t, Options{Writers: 1})
	appendQueue(t, j, 10)
	if err := os.Symlink("nowhere", filepath.Join(j.Dir(), segmentName(7))); err != nil {
		t.Fatal(err)
	}
	whole(t, readAll(t, j.Dir()), 10)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(j.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of a closed journal is gone: %v", err)
	}
}

// TestNoSegmentYet: a writer that lives and has made no segment is no damaged source, and none yet.
func TestNoSegmentYet(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "source")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(lock)
	write(t, filepath.Join(dir, segmentName(0)), make([]byte, minSegmentBytes))
	if _, err := OpenReader(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if dirs, damaged, err := Sources(root); len(dirs) > 0 || len(damaged) > 0 || err != nil {
		t.Errorf("sources %v, damaged %v, %v", dirs, damaged, err)
	}
}

// TestBegunHead: a kill amid the writing of a segment's head damages nothing, since its magic comes last.
func TestBegunHead(t *testing.T) {
	dir, events := small(t)
	b, err := os.ReadFile(filepath.Join(dir, segmentName(0)))
	if err != nil {
		t.Fatal(err)
	}
	h, err := decodeHeader(b)
	if err != nil {
		t.Fatal(err)
	}
	last := uint32(0)
	for ; ; last++ {
		if _, err := os.Stat(filepath.Join(dir, segmentName(last))); err != nil {
			break
		}
	}
	h.number = last
	next := make([]byte, minSegmentBytes)
	h.encode(next)
	clear(next[:len(magic)])
	for _, n := range []int{headerSum + 8, offUnix, offVersion + 4} {
		clear(next[n:])
		write(t, filepath.Join(dir, segmentName(last)), next)
		whole(t, readAll(t, dir), events)
	}
}

// TestReadAgain: a record of a living writer that a reader sees half written is read once more.
func TestReadAgain(t *testing.T) {
	j := create(t, Options{Writers: 1})
	appendQueue(t, j, 3)
	f, err := os.OpenFile(filepath.Join(j.Dir(), segmentName(0)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const at = headerBytes + 2*RecordBytes + 16 // X of the second event, 1, behind the block's record
	put := func(v byte) {
		if _, err := f.WriteAt([]byte{v}, at); err != nil {
			t.Fatal(err)
		}
	}
	put(9)
	r, err := OpenReader(j.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !r.Scan() { // all of the segment that it reads at once, the second event not yet as it will be
		t.Fatal("no event")
	}
	put(1)
	n := 1
	for ; r.Scan(); n++ {
		if r.Entry().X != int64(n) {
			t.Errorf("event %d is %+v", n, r.Entry())
		}
	}
	if n != 3 || r.Ledger().Torn != 0 {
		t.Errorf("%d events, ledger %+v", n, r.Ledger())
	}
	put(9)
	if l := readAll(t, j.Dir()).ledger; l.Torn != 1 {
		t.Errorf("a damaged record stays damaged: %+v", l)
	}
}

// TestLockEndsWithClose: a child that was being started while the journal was closed, and has the lock's file
// until it calls exec, does not keep the lock.
func TestLockEndsWithClose(t *testing.T) {
	j := create(t, Options{})
	child, err := unix.Dup(int(j.lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if locked, err := Locked(j.Dir()); !locked || err != nil {
		t.Errorf("open: locked %v, %v", locked, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if locked, err := Locked(j.Dir()); locked || err != nil {
		t.Errorf("closed: locked %v, %v", locked, err)
	}
}

// TestLockWaitsForAsker: somebody who asks whether the journal is locked, and loses its CPU while it does, keeps
// no writer from it.
func TestLockWaitsForAsker(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, lockName), nil)
	asker, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	if err := unix.Flock(int(asker.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		lock, err := lockFolder(dir)
		if err == nil {
			err = unlock(lock)
		}
		got <- err
	}()
	eventually(t, "the writer opens the lock", func() bool {
		return opened(asker.Name()) == 2 || len(got) > 0
	})
	if err := unlock(asker); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// opened is how often this process has a file open.
func opened(path string) (n int) {
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == path {
			n++
		}
	}
	return n
}
