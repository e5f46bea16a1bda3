package hostmem

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// residentBytes reads RSS from the kernel, exact: smaps_rollup walks the page tables.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Rss:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no Rss in %q", text)
	return 0
}

// RSS follows what Fill declares: mapping costs nothing, touching costs pages, Free gives them
// back.
func TestRSSFollowsTheLedger(t *testing.T) {
	const size, slack = 64 << 20, 2 << 20
	var a Allocator
	base := residentBytes(t)
	want := func(step string, bytes int64) {
		t.Helper()
		if got := residentBytes(t) - base; got < bytes-slack || got > bytes+slack {
			t.Errorf("%s: RSS rose by %d bytes, want %d", step, got, bytes)
		}
	}
	r, err := a.Alloc(trace.ClassA, size, tracer.NoOwner)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Madvise(r.Bytes(), unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	want("mapped", 0)
	touch(r.Bytes()[:size/2])
	r.Fill(size / 2)
	want("half touched", r.Resident())
	if err := r.Grow(2 * size); err != nil {
		t.Fatal(err)
	}
	want("grown", r.Resident())
	touch(r.Bytes())
	r.Fill(r.Capacity())
	want("all touched", 2*size)
	if err := r.Free(); err != nil {
		t.Fatal(err)
	}
	want("freed", 0)
}

func touch(b []byte) {
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
}
