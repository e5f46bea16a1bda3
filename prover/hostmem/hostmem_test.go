package hostmem

import (
	"errors"
	"os"
	"strings"
	"testing"

	"highwater/tracer"
	"highwater/tracer/trace"
)

func TestGrowKeepsContentAndZeroesTheRest(t *testing.T) {
	var a Allocator
	page := int64(os.Getpagesize())
	r, err := a.Alloc(trace.ClassAux, 1, tracer.NoOwner)
	if err != nil {
		t.Fatal(err)
	}
	if r.Capacity() != page || a.LiveBytes() != page || a.LiveRegions() != 1 {
		t.Fatalf("capacity %d, live %d in %d regions, want one page", r.Capacity(), a.LiveBytes(), a.LiveRegions())
	}
	words := Of[uint64](r, int(page/8))
	for i := range words {
		words[i] = uint64(i) + 1
	}
	for _, pages := range []int64{1, 2, 1, 64} {
		if err := r.Grow(pages * page); err != nil {
			t.Fatal(err)
		}
	}
	if r.Capacity() != 64*page || a.LiveBytes() != 64*page {
		t.Errorf("capacity %d, live %d, want 64 pages", r.Capacity(), a.LiveBytes())
	}
	for i, w := range Of[uint64](r, int(64*page/8)) {
		want := uint64(0)
		if i < int(page/8) {
			want = uint64(i) + 1
		}
		if w != want {
			t.Fatalf("word %d is %d after growing, want %d", i, w, want)
		}
	}
	if err := r.Free(); err != nil || a.LiveBytes() != 0 || a.LiveRegions() != 0 {
		t.Errorf("free: %v; %d bytes in %d regions live", err, a.LiveBytes(), a.LiveRegions())
	}
}

func TestFillOnlyRaises(t *testing.T) {
	var a Allocator
	page := int64(os.Getpagesize())
	r, err := a.Alloc(trace.ClassB, 8*page, tracer.NoOwner)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	for _, tc := range []struct{ fill, want int64 }{{1, page}, {3 * page, 3 * page}, {page, 3 * page}, {100 * page, 8 * page}} {
		if r.Fill(tc.fill); r.Resident() != tc.want {
			t.Errorf("after Fill(%d) %d bytes are resident, want %d", tc.fill, r.Resident(), tc.want)
		}
	}
}

func TestUseAfterFree(t *testing.T) {
	var a Allocator
	r, err := a.Alloc(trace.ClassC, 4096, tracer.NoOwner)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Free(); err != nil {
		t.Fatal(err)
	}
	if err := r.Free(); !errors.Is(err, ErrFreed) {
		t.Errorf("second Free: %v, want ErrFreed", err)
	}
	if err := r.Grow(1 << 20); !errors.Is(err, ErrFreed) {
		t.Errorf("Grow: %v, want ErrFreed", err)
	}
	if r.Bytes() != nil || r.Capacity() != 0 {
		t.Error("a freed region still shows memory")
	}
	for name, use := range map[string]func(){
		"Fill": func() { r.Fill(1) }, "Reclass": func() { r.Reclass("x") }, "Handoff": func() { r.Handoff(tracer.NoOwner) },
		"LastUse": r.LastUse, "Of": func() { Of[byte](r, 1) },
	} {
		if !panics(use) {
			t.Errorf("%s on a freed region does not panic", name)
		}
	}
	if a.LiveRegions() != 0 || a.LiveBytes() != 0 {
		t.Errorf("%d regions of %d bytes live", a.LiveRegions(), a.LiveBytes())
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

func TestOfChecksItsBounds(t *testing.T) {
	var a Allocator
	r, err := a.Alloc(trace.ClassKey, 4096, tracer.NoOwner)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	for _, n := range []int{-1, 1 << 20} {
		if !panics(func() { Of[uint64](r, n) }) {
			t.Errorf("a view of %d words of %d bytes is given", n, r.Capacity())
		}
	}
	if got := len(Of[uint64](r, 0)); got != 0 {
		t.Errorf("an empty view has %d words", got)
	}
}

func TestAllocRefusesAndReportsSizes(t *testing.T) {
	var a Allocator
	for _, n := range []int64{0, -1, 1 << 60} {
		_, err := a.Alloc(trace.ClassA, n, tracer.NoOwner)
		if err == nil || !strings.Contains(err.Error(), "for a") {
			t.Errorf("Alloc(%d): %v, want an error that names the class", n, err)
		}
	}
	if a.LiveRegions() != 0 || a.LiveBytes() != 0 {
		t.Errorf("%d regions of %d bytes live after failures", a.LiveRegions(), a.LiveBytes())
	}
}
