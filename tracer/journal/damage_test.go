package journal

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// small makes a closed journal of a few segments and gives its folder and its events. It has one
// writer: with more, an event whose home is held for a moment by the background goes to another
// block, and what a damaged segment costs depends on that.
func small(t testing.TB) (dir string, events int) {
	t.Helper()
	j := create(t, Options{SegmentBytes: minSegmentBytes, Writers: 1})
	const n = 600
	for i := range n {
		r := Record{Kind: KindQueue, TimeNS: int64(i), X: int64(i), Word0: j.Word("resource")}
		ok := true
		if i%50 == 0 {
			r.Kind = KindSpanBegin
			ok = j.AppendExt(&r, AppendSpanBegin(nil, &SpanExt{Attributes: []byte(`{"a":1}`)}))
		} else {
			ok = j.Append(&r)
		}
		if !ok {
			t.Fatal("append refused")
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return j.Dir(), n
}

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDamage(t *testing.T) {
	second := func(dir string) string { return filepath.Join(dir, segmentName(1)) }
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		lost   [2]int // bounds of how many events it costs
		want   string // in a damage's text, "" for none
		torn   int64
	}{
		"a FIFO in its place": {func(t *testing.T, dir string) {
			path := second(dir)
			if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644)); err != nil {
				t.Fatal(err)
			}
		}, [2]int{240, 252}, "not a regular file", 0},
		"a flipped bit costs one event": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte { b[headerBytes+5*RecordBytes+9] ^= 4; return b })
		}, [2]int{1, 1}, "1 events are missing", 1},
		"a copied record is refused": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte {
				copy(b[headerBytes+9*RecordBytes:], b[headerBytes+3*RecordBytes:headerBytes+4*RecordBytes])
				return b
			})
		}, [2]int{1, 1}, "1 events are missing", 1},
		"a head of another file": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte { copy(b, "GIF89a"); return b })
		}, [2]int{240, 252}, "not a journal segment", 0},
		"a head without its magic": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte { clear(b[:8]); return b })
		}, [2]int{240, 252}, "not a journal segment", 0},
		"a head with a flipped bit": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte { b[offNonce] ^= 1; return b })
		}, [2]int{240, 252}, "head fails its checksum", 0},
		"a head of a later version": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte { b[offVersion] = 9; return b })
		}, [2]int{240, 252}, "journal version 9", 0},
		"cut in the middle of a record": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte { return b[:headerBytes+10*RecordBytes+3] })
		}, [2]int{150, 252}, "file ends early", 0},
		"the last one cut": {func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, segmentName(2)), func(b []byte) []byte { return b[:headerBytes+BlockBytes] })
		}, [2]int{10, 120}, "events are missing", 0},
		"cut inside its head": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte { return b[:100] })
		}, [2]int{240, 252}, "shorter than a segment's head", 0},
		"gone": {func(t *testing.T, dir string) {
			if err := os.Remove(second(dir)); err != nil {
				t.Fatal(err)
			}
		}, [2]int{240, 252}, "segments before it are missing", 0},
		"a block of zeros": {func(t *testing.T, dir string) {
			edit(t, second(dir), func(b []byte) []byte { clear(b[headerBytes : headerBytes+BlockBytes]); return b })
		}, [2]int{60, 63}, "1 blocks of 4096 bytes are missing", 0},
		"a file of another journal": {func(t *testing.T, dir string) {
			other, _ := small(t)
			edit(t, second(dir), func([]byte) []byte {
				b, err := os.ReadFile(second(other))
				if err != nil {
					t.Fatal(err)
				}
				return b
			})
		}, [2]int{240, 252}, "segment of another journal", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir, events := small(t)
			c.damage(t, dir)
			var got contents
			within(t, func() { got = readAll(t, dir) })
			if lost := events - len(got.entries); lost < c.lost[0] || lost > c.lost[1] || got.ledger.Torn != c.torn {
				t.Errorf("%d of %d events lost, ledger %+v", lost, events, got.ledger)
			}
			counted := int64(0)
			for _, l := range got.ledger.Losses {
				if l.Reason == MissingEvents {
					counted += l.Count
				}
			}
			if missing := int64(events - len(got.entries)); counted != missing {
				t.Errorf("%d events are missing, %d counted as loss", missing, counted)
			}
			text := ""
			for _, d := range got.ledger.Damage {
				text += d.Error() + "\n"
			}
			if !strings.Contains(text, c.want) || c.want == "" && text != "" || c.want != "" && !strings.Contains(text, dir) {
				t.Errorf("damage %q, want %q with the file", text, c.want)
			}
		})
	}
}

// within ends the test where f hangs.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("reading it hangs")
	}
}

// TestUnknownLoss: where nobody counted the events, the bytes and segments that are missing are.
func TestUnknownLoss(t *testing.T) {
	dir, _ := small(t)
	segment := func(n uint32) string { return filepath.Join(dir, segmentName(n)) }
	edit(t, segment(0), func(b []byte) []byte { clear(b[offCounters : offCounters+8*ctrCount]); return b })
	edit(t, segment(1), func(b []byte) []byte { return b[:len(b)-BlockBytes] })
	l := readAll(t, dir).ledger
	if l.MissingBytes < BlockBytes || len(l.Losses) != 0 {
		t.Errorf("a segment is cut by %d bytes: %+v", BlockBytes, l)
	}
	if err := os.Remove(segment(1)); err != nil {
		t.Fatal(err)
	}
	if l := readAll(t, dir).ledger; l.MissingSegments != 1 {
		t.Errorf("a segment is gone: %+v", l)
	}
}

// TestLockNotAFile: a FIFO in the lock's place does not hang the readers.
func TestLockNotAFile(t *testing.T) {
	dir, _ := small(t)
	path := filepath.Join(dir, lockName)
	if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644)); err != nil {
		t.Fatal(err)
	}
	within(t, func() {
		if _, err := OpenReader(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("lock is a FIFO: %v", err)
		}
	})
}

func TestNothingUsable(t *testing.T) {
	dir := t.TempDir()
	var bad *DamageError
	if _, err := OpenReader(dir); !errors.As(err, &bad) {
		t.Errorf("empty folder: %v", err)
	}
	if _, err := OpenReader(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, segmentName(0)), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(dir); !errors.As(err, &bad) || bad.File != filepath.Join(dir, segmentName(0)) ||
		bad.Bytes != 5 {
		t.Errorf("foreign file: %v", err)
	}
}

func TestSources(t *testing.T) {
	root := filepath.Join(t.TempDir(), "journal")
	if _, _, err := Sources(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	for i, name := range []string{"zeta", "alpha"} {
		base, err := ClaimBase(root)
		if err != nil || base != uint32(i) {
			t.Fatalf("base %d, %v", base, err)
		}
		j, err := Create(filepath.Join(root, name), Options{Source: name, Base: base})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
	}
	if err := os.Mkdir(filepath.Join(root, "broken"), 0o755); err != nil {
		t.Fatal(err)
	}
	dirs, damaged, err := Sources(root)
	if err != nil || len(dirs) != 2 || filepath.Base(dirs[0]) != "zeta" || filepath.Base(dirs[1]) != "alpha" {
		t.Errorf("sources %v, %v", dirs, err)
	}
	if len(damaged) != 1 || !strings.Contains(damaged[0].File, "broken") {
		t.Errorf("damaged %v", damaged)
	}
}

// TestRandomFlips flips bits anywhere: no panic, and no event that was not written.
func TestRandomFlips(t *testing.T) {
	dir, _ := small(t)
	path := filepath.Join(dir, segmentName(1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := append([]byte(nil), whole...)
		for range 1 + rng.IntN(20) {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, e := range readAll(t, dir).entries {
			if e.X < 0 || e.X >= 600 || e.TimeNS != e.X {
				t.Fatalf("seed %d: event %+v was never written", seed, e.Record)
			}
		}
	}
}

// FuzzScan reads a segment made of an arbitrary head and arbitrary records, alone and behind a good
// one. Inputs are short, zeros fill the head up: the fuzzer spends its time on bytes that matter.
func FuzzScan(f *testing.F) {
	dir, _ := small(f)
	first, err := os.ReadFile(filepath.Join(dir, segmentName(0)))
	if err != nil {
		f.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	if err != nil {
		f.Fatal(err)
	}
	const head, records = offCounters + 8*ctrCount, 8 * RecordBytes
	for _, b := range [][]byte{first, second, hostile(first)} {
		f.Add(b[:head], b[headerBytes:headerBytes+records])
	}
	f.Add(second[:head], second[headerBytes+3:headerBytes+300])
	f.Add([]byte{}, []byte{})
	f.Add(first[:90], first[headerBytes:headerBytes+RecordBytes])
	f.Fuzz(func(t *testing.T, head, records []byte) {
		b := append(append(head, zeroBlock[:max(0, headerBytes-len(head))]...), records...)
		for _, lead := range [][]byte{nil, first} {
			dir := t.TempDir()
			if lead != nil {
				write(t, filepath.Join(dir, segmentName(0)), lead)
			}
			write(t, filepath.Join(dir, segmentName(1)), b)
			scanAll(t, dir, len(b)+len(lead))
		}
	})
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func scanAll(t *testing.T, dir string, size int) {
	r, err := OpenReader(dir)
	var bad *DamageError
	if errors.As(err, &bad) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for r.Scan() {
		e := r.Entry()
		n++
		_, _ = DecodeSpan(e)
		_ = r.Word(e.Word0) + r.Word(e.Word1)
	}
	if l := r.Ledger(); n > size/RecordBytes || l.Losses != nil && len(l.Losses) > size/RecordBytes+3 || l.Records > int64(size/RecordBytes) || r.Err() != nil || len(l.Damage) > maxDamage+1 {
		t.Fatalf("%d records in %d bytes, error %v, ledger %+v", n, size, r.Err(), l)
	}
}

// hostile is a segment whose checks are right and whose contents are not: extreme numbers
// everywhere.
func hostile(good []byte) []byte {
	b := append([]byte(nil), good...)
	h, err := decodeHeader(b)
	if err != nil {
		panic(err)
	}
	h.number = 1
	h.encode(b)
	for off := int64(headerBytes); off+RecordBytes <= int64(len(b)); off += RecordBytes {
		kind := Kind(1 + (off/RecordBytes)%int64(kindEnd-1))
		r := Record{Kind: kind, TimeNS: -1 << 63, X: 1<<63 - 1, Y: -1 << 63, ID: 1<<32 - 1, Word0: uint16(off), Word1: 65535}
		w := wordsOf(&r)
		w[0] = w.head0(0)
		w[0] |= uint64(w.check(w[0], placeKey(h.nonce, h.number, off/RecordBytes)))
		for i := range w {
			binary.LittleEndian.PutUint64(b[off+int64(8*i):], w[i])
		}
	}
	return b
}

func TestDecodeSpanRefusesNonsense(t *testing.T) {
	whole := AppendSpanBegin(nil, &SpanExt{SpanID: [8]byte{7}, Attributes: []byte(`{"k":"v"}`), Cut: 2})
	x, ok := DecodeSpan(&Entry{Record: Record{Kind: KindSpanBegin}, Extension: whole})
	if !ok || x.SpanID[0] != 7 || string(x.Attributes) != `{"k":"v"}` || x.Cut != 2 {
		t.Errorf("round trip: %+v %v", x, ok)
	}
	for n := 1; n < len(whole); n++ {
		if _, ok := DecodeSpan(&Entry{Record: Record{Kind: KindSpanBegin}, Extension: whole[:n]}); ok {
			t.Errorf("%d of %d bytes accepted", n, len(whole))
		}
	}
}
