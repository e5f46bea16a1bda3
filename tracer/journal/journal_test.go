package journal

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"highwater/internal/leak"
)

func TestMain(m *testing.M) {
	if childMain() {
		return
	}
	leak.Main(m, nil)
}

func create(t testing.TB, opts Options) *Journal {
	t.Helper()
	if opts.Source == "" {
		opts.Source = "test"
	}
	opts.AnchorMonotonic = Monotonic()
	j, err := Create(filepath.Join(t.TempDir(), "journal", opts.Source), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// contents is all that a reader hands out, copied.
type contents struct {
	header  Header
	entries []Entry
	words   []string // of each entry's Word0
	ledger  Ledger
}

func readAll(t testing.TB, dir string) contents {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := contents{header: r.Header()}
	for r.Scan() {
		e := *r.Entry()
		e.Extension = append([]byte(nil), e.Extension...)
		c.entries = append(c.entries, e)
		c.words = append(c.words, r.Word(e.Word0))
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	c.ledger = r.Ledger()
	return c
}

func TestRoundTrip(t *testing.T) {
	// One writer: entries are in order within a writer only, and a goroutine that is moved to another
	// thread or whose stack moves goes on in another writer.
	j := create(t, Options{Base: 3, AnchorUnix: 77, Writers: 1, SegmentBytes: minSegmentBytes})
	class := j.Word("pinned_pool")
	want := Record{
		Kind: KindBuffer, Event: BufferAlloc, Space: 2, TimeNS: -5, X: 1 << 40, Y: -1 << 63, ID: 1<<32 - 1, Parent: 2, Span: 3,
		Job: -1, Partition: 1<<31 - 1, Worker: -1 << 15, Device: 1<<15 - 1, Word0: class, Word1: 65535, Word2: 1, Extra: -2,
	}
	const n = 1000 // several segments
	for i := range n {
		want.TimeNS = int64(i)
		if !j.Append(&want) {
			t.Fatalf("append %d refused", i)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	c := readAll(t, j.Dir())
	if got := j.Header(); c.header != got || got.Base != 3 || got.Source != "test" {
		t.Errorf("header %+v, journal says %+v", c.header, got)
	}
	if len(c.entries) != n || !c.ledger.Clean || c.ledger.Torn != 0 || c.ledger.MissingBlocks != 0 || len(c.ledger.Damage) != 0 {
		t.Fatalf("%d entries, ledger %+v", len(c.entries), c.ledger)
	}
	for i, e := range c.entries {
		want.TimeNS = int64(i)
		want.Check, e.Check = 0, 0
		if e.Record != want || c.words[i] != "pinned_pool" {
			t.Fatalf("entry %d: %+v %q, want %+v", i, e.Record, c.words[i], want)
		}
	}
	if j.Append(&want) {
		t.Error("append after Close was acknowledged")
	}
}

func TestExtensionsStayWhole(t *testing.T) {
	j := create(t, Options{Writers: 1})
	text := make([]byte, MaxExt)
	for i := range text {
		text[i] = byte(i) | 1
	}
	r := Record{Kind: KindSpanBegin}
	for n := range MaxExt + 1 {
		r.ID = uint32(n)
		if !j.AppendExt(&r, text[:n]) {
			t.Fatalf("extension of %d bytes refused", n)
		}
	}
	c := readAll(t, j.Dir()) // the writer lives
	if len(c.entries) != MaxExt+1 {
		t.Fatalf("%d entries, ledger %+v", len(c.entries), c.ledger)
	}
	for n, e := range c.entries {
		if int(e.ID) != n || string(e.Extension[:n]) != string(text[:n]) || len(e.Extension) >= n+RecordBytes {
			t.Fatalf("entry %d has id %d and %d bytes", n, e.ID, len(e.Extension))
		}
	}
}

func TestManyWriters(t *testing.T) {
	const writers, each = 32, 3000
	j := create(t, Options{SegmentBytes: 64 << 10})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				r := Record{Kind: KindQueue, ID: uint32(w), X: int64(i), TimeNS: j.Now(), Word0: j.Word(fmt.Sprint("word", i%100))}
				if !j.Append(&r) {
					t.Errorf("writer %d: append %d refused", w, i)
					return
				}
			}
		})
	}
	wg.Wait()
	// The background may be looking at a writer's block just now: its last events are counted later.
	eventually(t, "all events are counted", func() bool { return j.Stats().Events == writers*each })
	if st := j.Stats(); st.Lost != 0 {
		t.Errorf("stats %+v", st)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	c := readAll(t, j.Dir())
	var next [writers]int64
	pos := map[uint32]uint64{}
	seen := map[[2]int64]bool{}
	for i, e := range c.entries {
		key := [2]int64{int64(e.ID), e.X}
		if want := fmt.Sprint("word", e.X%100); seen[key] || c.words[i] != want {
			t.Fatalf("entry %d: %+v, word %q", i, e.Record, c.words[i])
		}
		seen[key] = true
		next[e.ID]++
		if p, ok := pos[e.Writer]; ok && e.Pos <= p {
			t.Fatalf("writer %d: position %d after %d", e.Writer, e.Pos, p)
		}
		pos[e.Writer] = e.Pos
	}
	for w, n := range next {
		if n != each {
			t.Errorf("writer %d: %d of %d entries", w, n, each)
		}
	}
	if l := c.ledger; l.Torn != 0 || l.MissingBlocks != 0 || len(l.Damage) != 0 || l.UnresolvedWords != 0 {
		t.Errorf("ledger %+v", l)
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	j := create(t, Options{SegmentBytes: 64 << 10}) // new blocks and new segments are part of it
	r := Record{Kind: KindQueue}
	ext := make([]byte, 100)
	for name, f := range map[string]func(){
		"append":    func() { r.TimeNS = j.Now(); j.Append(&r) },
		"extension": func() { j.AppendExt(&r, ext) },
		"word":      func() { j.Word("synthesis") },
	} {
		f()
		// A new segment costs some in the background, every 940 events: less than one an event in
		// any case.
		if n := testing.AllocsPerRun(5000, f); n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestCloseWhileAppending wants each append to be either acknowledged and found, or refused.
func TestCloseWhileAppending(t *testing.T) {
	for range 20 {
		j := create(t, Options{SegmentBytes: 64 << 10})
		var acknowledged atomic.Int64
		var wg sync.WaitGroup
		started := make(chan struct{}, 8)
		for w := range 8 {
			wg.Go(func() {
				r := Record{Kind: KindQueue, ID: uint32(w), TimeNS: 1}
				started <- struct{}{}
				for r.Word0 = j.Word("x"); j.Append(&r); {
					acknowledged.Add(1)
					j.Word(fmt.Sprint(acknowledged.Load() % 300))
				}
			})
		}
		for range 8 {
			<-started
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		c := readAll(t, j.Dir())
		if n := int64(len(c.entries)); n != acknowledged.Load() || j.Stats().Events != n || len(c.ledger.Damage) != 0 {
			t.Fatalf("%d acknowledged, %d found, stats %+v, ledger %+v", acknowledged.Load(), n, j.Stats(), c.ledger)
		}
	}
}
