// Package hostmem is the prover's traced allocator of large host buffers outside the Go heap: mmap is the
// allocation, munmap the free, and every step of a buffer's life is recorded. With recording off (a nil Recorder) it
// does the same to memory.
package hostmem

import "highwater/tracer"

// Allocator maps and unmaps regions and records them.
type Allocator struct {
	Rec *tracer.Recorder
}

// Region is one mapping. Its methods must not run at the same time as each other. All but Free keep the address, except Grow.
type Region struct{}

// Alloc maps capacityBytes of zeroed memory, rounded up to pages, and records it for owner with nothing resident yet.
func (a *Allocator) Alloc(class string, capacityBytes int64, owner tracer.Owner) (*Region, error) {
	panic("to be written")
}

func (r *Region) Bytes() []byte                  { panic("to be written") } // the whole capacity
func (r *Region) Capacity() int64                { panic("to be written") }
func (r *Region) Fill(residentBytes int64)       { panic("to be written") } // records; raises only
func (r *Region) Grow(capacityBytes int64) error { panic("to be written") } // mremap; may move; Bytes must be read again
func (r *Region) Reclass(class string)           { panic("to be written") }
func (r *Region) Handoff(to tracer.Owner)        { panic("to be written") }
func (r *Region) LastUse()                       { panic("to be written") }
func (r *Region) Free() error                    { panic("to be written") } // records the free, then unmaps; a second Free is an error and touches nothing

// Of views the first n elements of a region as a slice of T, which must hold no pointers.
func Of[T any](r *Region, n int) []T { panic("to be written") }
