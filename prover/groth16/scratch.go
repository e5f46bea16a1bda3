package groth16

import (
	"math"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// msmScratchBytes is what one gnark-crypto MultiExp of n points allocates on the Go heap, within 6
// % of what its RSS shows from 2^15 points up (sparse scalars need a third less). It follows that
// function's choices: it may split the points in two and run the halves at the same time, and picks
// the window that needs the fewest additions.
func msmScratchBytes(n, tasks int, pointBytes int64) int64 {
	if n == 0 {
		return 0
	}
	c := msmWindow(n)
	half := n / 2
	cHalf := msmWindow(half)
	whole := msmCost(msmChunks(c), tasks, n+1<<c)
	split := msmCost(2*msmChunks(cHalf), tasks, half+1<<cHalf)
	if split < whole && half > 0 {
		tasks = (tasks + 1) / 2
		return msmScratchBytes(half, tasks, pointBytes) + msmScratchBytes(n-half, tasks, pointBytes)
	}
	k := msmChunks(c)
	lastC := c + 1 - (k*c - fr.Bits)
	return 2*int64(n)*int64(k) + int64(k-1)*msmBucketBytes(c, pointBytes) + msmBucketBytes(lastC, pointBytes)
}

// msmBucketBytes is the stack of one chunk's goroutine: 2^(c-1) buckets, from 10 bits on with the
// batch of pending affine additions.
func msmBucketBytes(c int, pointBytes int64) int64 {
	buckets := int64(1) << (c - 1)
	batch, ok := map[int]int64{10: 80, 11: 150, 12: 200, 13: 350, 14: 400, 15: 500, 16: 640}[c]
	if !ok {
		return buckets * 2 * pointBytes
	}
	return buckets*(3*pointBytes+1) + batch*(5*pointBytes/2+16)
}

func msmChunks(c int) int { return (fr.Bits + c - 1) / c }

func msmWindow(n int) int {
	best, least := 0, math.MaxFloat64
	for c := 4; c <= 16; c++ {
		if cost := float64((fr.Bits+1)*(n+1<<c)) / float64(c); cost < least {
			best, least = c, cost
		}
	}
	return best
}

func msmCost(chunks, tasks, perChunk int) int {
	return chunks + (chunks+tasks-1)/tasks*perChunk
}

// scratchPool is the CPU backend's MSM scratch in the trace. The Go runtime keeps what MSMs once
// needed at the same time, so the pool is one estimated buffer of class cpu_scratch that belongs to
// no job and only grows, to the largest sum so far; each MSM is a buffer cut from it for as long as
// it runs.
type scratchPool struct {
	mu       sync.Mutex
	pool     tracer.Buffer
	inUse    int64
	capacity int64
}

// take records scratch of an MSM that is about to run, and returns how to give it back.
func (s *scratchPool) take(rec *tracer.Recorder, bytes int64, owner tracer.Owner) (give func()) {
	if bytes == 0 {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse += bytes
	s.grow(rec)
	child := rec.Alloc(tracer.BufferSpec{
		Class: trace.ClassCPUScratch, Space: trace.SpaceHost, Device: -1, Estimated: true, Parent: s.pool.ID(),
		CapacityBytes: bytes, ResidentBytes: bytes, Owner: owner,
	})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inUse -= bytes
		child.Free()
	}
}

// grow raises the pool to what is in use.
func (s *scratchPool) grow(rec *tracer.Recorder) {
	switch {
	case s.capacity == 0:
		s.capacity = s.inUse
		s.pool = rec.Alloc(tracer.BufferSpec{
			Class: trace.ClassCPUScratch, Space: trace.SpaceHost, Device: -1, Estimated: true,
			CapacityBytes: s.capacity, ResidentBytes: s.capacity, Owner: tracer.NoOwner,
		})
	case s.inUse > s.capacity:
		s.capacity = s.inUse
		s.pool.Resize(s.capacity, s.capacity)
	}
}

// close records the end of the pool.
func (s *scratchPool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capacity > 0 {
		s.pool.Free()
	}
	s.capacity = 0
}
