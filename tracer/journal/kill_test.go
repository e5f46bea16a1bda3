package journal

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	childEnv     = "HIGHWATER_JOURNAL_CHILD" // folder for the child to write to
	childWriters = 8
)

// childMain is the process that TestKill kills: goroutines append as fast as they can and raise
// their counter in the shared file only after Append has returned.
func childMain() bool {
	dir := os.Getenv(childEnv)
	if dir == "" {
		return false
	}
	if err := child(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func child(dir string) error {
	witness, err := mapWitness(filepath.Join(dir, "witness"))
	if err != nil {
		return err
	}
	j, err := Create(filepath.Join(dir, "journal", "child"), Options{Source: "child", AnchorMonotonic: Monotonic(), SegmentBytes: 256 << 10})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	var wg sync.WaitGroup
	for w := range childWriters {
		wg.Go(func() { childWrite(j, w, &witness[w]) })
	}
	wg.Wait()
	for { // for the kill
		_ = unix.Pause()
	}
}

// childEvents is how many events a writer makes: a parent that gets no CPU for seconds finds no full disk.
const childEvents = 50_000

func childWrite(j *Journal, w int, acknowledged *atomic.Uint64) {
	ext := make([]byte, 200)
	for i := range uint64(childEvents) {
		r := Record{Kind: KindQueue, TimeNS: j.Now(), ID: uint32(w), X: int64(i), Word0: j.Word(fmt.Sprint("word", i%500))}
		ok := false
		if i%4 == 0 {
			r.Kind = KindSpanBegin
			ok = j.AppendExt(&r, ext[:i%200])
		} else {
			ok = j.Append(&r)
		}
		if ok {
			acknowledged.Add(1)
		}
	}
}

func mapWitness(path string) (*[childWriters]atomic.Uint64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(8 * childWriters); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 8*childWriters, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*[childWriters]atomic.Uint64)(unsafe.Pointer(&b[0])), nil
}

// TestKill kills a writing process at random moments: whatever it had been told is recorded must be
// there.
func TestKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	torn, events := int64(0), 0
	for round := range 12 {
		dir := t.TempDir()
		killChild(t, dir, rng.Uint64N(childWriters*childEvents/4))
		c := readAll(t, filepath.Join(dir, "journal", "child"))
		checkKilled(t, round, dir, c)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		torn += c.ledger.Torn
		events += len(c.entries)
	}
	t.Logf("%d events recovered, %d torn records rejected, no acknowledged one lost", events, torn)
	if events == 0 {
		t.Error("the children wrote nothing")
	}
}

// killChild starts a writing child and kills it once it has had so many events acknowledged.
func killChild(t *testing.T, dir string, events uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test ends early
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("child says %q, %v", line, err)
	}
	if locked, err := Locked(filepath.Join(dir, "journal", "child")); !locked || err != nil {
		t.Errorf("a living writer: locked %v, %v", locked, err)
	}
	eventually(t, "the child writes", func() bool {
		sum := uint64(0)
		for _, n := range acknowledged(t, dir) {
			sum += n
		}
		return sum >= events
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil {
		t.Fatal("child ended by itself")
	}
}

// acknowledged reads the child's counters from outside.
func acknowledged(t *testing.T, dir string) (counts [childWriters]uint64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "witness"))
	if err != nil || len(b) != 8*childWriters {
		t.Fatalf("witness of %d bytes, %v", len(b), err)
	}
	for w := range counts {
		counts[w] = binary.LittleEndian.Uint64(b[8*w:])
	}
	return counts
}

func checkKilled(t *testing.T, round int, dir string, c contents) {
	t.Helper()
	if locked, err := Locked(filepath.Join(dir, "journal", "child")); locked || err != nil {
		t.Errorf("round %d: a dead writer: locked %v, %v", round, locked, err)
	}
	witness := acknowledged(t, dir)
	next := [childWriters]int64{}
	found := [childWriters]map[int64]bool{}
	for w := range found {
		found[w] = map[int64]bool{}
	}
	for i, e := range c.entries {
		if want := fmt.Sprint("word", e.X%500); c.words[i] != want {
			t.Fatalf("round %d: entry %d: word %q, want %q", round, i, c.words[i], want)
		}
		found[e.ID][e.X] = true
		next[e.ID] = max(next[e.ID], e.X+1)
	}
	for w := range next {
		told := int64(witness[w])
		// Nothing was refused, so the acknowledged ones are 0..told-1; one more may have been
		// written and not yet counted.
		if n := int64(len(found[w])); n < told || n > told+1 || next[w] != n {
			t.Errorf("round %d: writer %d: %d events acknowledged, %d found, the last is %d", round, w, told, n, next[w]-1)
		}
	}
	l := c.ledger
	if l.Clean || l.MissingBlocks != 0 || len(l.Damage) != 0 || l.UnresolvedWords != 0 || len(l.Losses) != 0 || l.Torn > childWriters {
		t.Errorf("round %d: ledger %+v", round, l)
	}
}
