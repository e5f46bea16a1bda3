package hostmem

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// pages is a range of the address space, which need not be mapped.
type pages struct {
	address uintptr
	bytes   int64
}

func pagesOf(mem []byte) pages {
	return pages{uintptr(unsafe.Pointer(unsafe.SliceData(mem))), int64(len(mem))}
}

// resident is how many bytes of the range are in memory, or swapped out, by the page tables. The
// resident set of the process would not do: its heap and its program come and go beside it.
func (p pages) resident(t *testing.T) (bytes int64) {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := int64(os.Getpagesize())
	entries := make([]byte, p.bytes/page*8)
	if _, err := f.ReadAt(entries, int64(p.address)/page*8); err != nil {
		t.Fatal(err)
	}
	for ; len(entries) > 0; entries = entries[8:] {
		if binary.NativeEndian.Uint64(entries)>>62 != 0 { // bit 63: present, 62: swapped
			bytes += page
		}
	}
	return bytes
}

// RSS follows what Fill declares: mapping costs nothing, touching costs pages, Free gives them
// back.
func TestRSSFollowsTheLedger(t *testing.T) {
	const size = 64 << 20
	var a Allocator
	r, err := a.Alloc(trace.ClassA, size, tracer.NoOwner)
	if err != nil {
		t.Fatal(err)
	}
	want := func(step string, bytes int64) {
		t.Helper()
		if got := pagesOf(r.Bytes()).resident(t); got != bytes || r.Resident() != bytes {
			t.Errorf("%s: %d bytes resident, %d in the ledger, want %d", step, got, r.Resident(), bytes)
		}
	}
	if err := unix.Madvise(r.Bytes(), unix.MADV_NOHUGEPAGE); err != nil {
		t.Fatal(err)
	}
	want("mapped", 0)
	touch(r.Bytes()[:size/2])
	r.Fill(size / 2)
	want("half touched", size/2)
	if err := r.Grow(2 * size); err != nil {
		t.Fatal(err)
	}
	want("grown", size/2)
	touch(r.Bytes())
	r.Fill(r.Capacity())
	want("all touched", 2*size)
	was := pagesOf(r.Bytes())
	if err := r.Free(); err != nil {
		t.Fatal(err)
	}
	// The runtime may have mapped something small there since.
	if got := was.resident(t); got > size/4 {
		t.Errorf("freed: %d bytes are still resident", got)
	}
}

func touch(b []byte) {
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
}
