// Package hostmem is the prover's traced allocator of large host buffers outside the Go heap: mmap
// is the allocation, munmap the free, and every step of a buffer's life is recorded. With recording
// off (a nil Recorder) it does the same to memory.
package hostmem

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// ErrFreed is returned for a region that was given back before.
var ErrFreed = errors.New("region is already freed")

// Allocator maps and unmaps regions and records them. The zero value works and records nothing. It
// may be used by several goroutines at once, and must not be copied.
type Allocator struct {
	Rec *tracer.Recorder

	regions atomic.Int64
	bytes   atomic.Int64
}

// LiveRegions is the number of regions that are mapped now.
func (a *Allocator) LiveRegions() int64 { return a.regions.Load() }

// LiveBytes is the capacity of all regions that are mapped now.
func (a *Allocator) LiveBytes() int64 { return a.bytes.Load() }

// Region is one mapping. Its methods must not run at the same time as each other. All but Free keep
// the address, except Grow. After Free, Bytes is nil and Capacity 0; recording a further step of
// its life is a programmer's mistake and panics.
type Region struct {
	alloc    *Allocator
	mem      []byte
	class    string
	resident int64
	freed    bool
	buf      tracer.Buffer
}

// Alloc maps capacityBytes of zeroed memory, rounded up to pages, and records it for owner with
// nothing resident yet.
func (a *Allocator) Alloc(class string, capacityBytes int64, owner tracer.Owner) (*Region, error) {
	if capacityBytes <= 0 {
		return nil, fmt.Errorf("map %d bytes for %s: size must be above 0", capacityBytes, class)
	}
	capacity := roundToPages(capacityBytes)
	mem, err := unix.Mmap(-1, 0, int(capacity), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for %s: %w", capacity, class, err)
	}
	r := &Region{alloc: a, mem: mem, class: class}
	a.regions.Add(1)
	a.bytes.Add(capacity)
	r.buf = a.Rec.Alloc(tracer.BufferSpec{
		Class: class, Space: trace.SpaceHost, Device: -1, CapacityBytes: capacity, Owner: owner,
	})
	return r, nil
}

// Bytes is the whole capacity; nil once freed.
func (r *Region) Bytes() []byte { return r.mem }

// Capacity is the mapped size in bytes, a multiple of the page size.
func (r *Region) Capacity() int64 { return int64(len(r.mem)) }

// Resident is the number of bytes that Fill has declared touched.
func (r *Region) Resident() int64 { return r.resident }

// Class is the region's present class.
func (r *Region) Class() string { return r.class }

// Fill records that the first residentBytes have been touched, rounded up to pages. It only ever
// raises; it touches nothing itself.
func (r *Region) Fill(residentBytes int64) {
	r.mustLive("fill")
	residentBytes = min(roundToPages(residentBytes), r.Capacity())
	if residentBytes <= r.resident {
		return
	}
	r.resident = residentBytes
	r.buf.Fill(residentBytes)
}

// Grow extends the mapping to capacityBytes (mremap: no copy, new pages are zero) and records it.
// The address may change: Bytes and Of must be read again. Growing to less than the capacity
// changes nothing.
func (r *Region) Grow(capacityBytes int64) error {
	if r.freed {
		return fmt.Errorf("grow %s: %w", r.class, ErrFreed)
	}
	capacity := roundToPages(capacityBytes)
	before := r.Capacity()
	if capacity <= before {
		return nil
	}
	mem, err := remap(r.mem, int(capacity))
	if err != nil {
		return fmt.Errorf("grow %s from %d to %d bytes: %w", r.class, before, capacity, err)
	}
	r.mem = mem
	r.alloc.bytes.Add(capacity - before)
	r.buf.Resize(capacity, r.resident)
	return nil
}

// Reclass records that the same bytes now serve as class.
func (r *Region) Reclass(class string) {
	r.mustLive("reclass")
	r.class = class
	r.buf.Reclass(class)
}

// Handoff records the new owner.
func (r *Region) Handoff(to tracer.Owner) {
	r.mustLive("hand off")
	r.buf.Handoff(to)
}

// Pin records that somebody has page-locked the region; Unpin must follow before Free.
func (r *Region) Pin() {
	r.mustLive("pin")
	r.buf.Pin()
}

// Unpin records that the page lock was given back.
func (r *Region) Unpin() {
	r.mustLive("unpin")
	r.buf.Unpin()
}

// LastUse records that nothing reads the region any more.
func (r *Region) LastUse() {
	r.mustLive("mark last use of")
	r.buf.LastUse()
}

// Free records the free, then unmaps; a second Free is ErrFreed and touches nothing.
func (r *Region) Free() error {
	if r.freed {
		return fmt.Errorf("free %s: %w", r.class, ErrFreed)
	}
	r.freed = true
	r.buf.Free()
	mem := r.mem
	r.mem = nil
	r.alloc.regions.Add(-1)
	r.alloc.bytes.Add(-int64(len(mem)))
	if err := unix.Munmap(mem); err != nil {
		return fmt.Errorf("unmap %s of %d bytes: %w", r.class, len(mem), err)
	}
	return nil
}

func (r *Region) mustLive(verb string) {
	if r.freed {
		panic(fmt.Sprintf("hostmem: %s %s: %v", verb, r.class, ErrFreed))
	}
}

// Of views the first n elements of a region as a slice of T, which must hold no pointers. It panics
// when the region is freed or too small. The slice is dead after Grow and Free.
func Of[T any](r *Region, n int) []T {
	var zero T
	if need := int64(n) * int64(unsafe.Sizeof(zero)); n < 0 || need > r.Capacity() {
		panic(fmt.Sprintf("hostmem: view %d bytes of %s, which has %d", need, r.class, r.Capacity()))
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(r.mem))), n)
}

func roundToPages(n int64) int64 {
	page := int64(os.Getpagesize())
	return (n + page - 1) / page * page
}
