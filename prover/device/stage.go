//go:build cgo && linux

package device

import (
	"errors"
	"sync"

	"highwater/prover/groth16"
	"highwater/prover/hostmem"
)

const (
	scalarBytes = 32
	poolPage    = 4096
	stageChunk  = 1 << 20
)

// vectorSizes are the bytes of a, b, c, w that a device reads.
func vectorSizes(constraints, wires int) [4]int64 {
	n := int64(constraints) * scalarBytes
	return [4]int64{n, n, n, int64(wires) * scalarBytes}
}

// slot is what a staged partition takes of the pool: sizes of a, b, c, w at their largest. The pool
// has room for a slot a worker and no more, so its holes must stay slots: every partition takes the
// same four sizes, all at once, and gives them back at once.
type slot struct {
	sizes [4]int64
	lock  *sync.Mutex
}

func slotOf(q groth16.Queries) slot {
	s := slot{sizes: vectorSizes(q.Domain, q.Wires), lock: new(sync.Mutex)}
	for i, n := range s.sizes {
		s.sizes[i] = (n + poolPage - 1) / poolPage * poolPage
	}
	return s
}

func (s slot) bytes() int64 { return s.sizes[0] + s.sizes[1] + s.sizes[2] + s.sizes[3] }

// hostVectors are an assignment's vectors where synthesis left them.
func hostVectors(a *groth16.Assignment) vectors {
	n := vectorSizes(a.System().Constraints(), a.System().Wires())
	return vectors{a.A.Bytes()[:n[0]], a.B.Bytes()[:n[1]], a.C.Bytes()[:n[2]], a.W.Bytes()[:n[3]]}
}

func (v *vectors) all() [4]*[]byte { return [4]*[]byte{&v.a, &v.b, &v.c, &v.w} }

// staged is an assignment within a device's reach: copied to the pool, or page-locked in its place.
type staged struct {
	vectors
	lock *sync.Mutex    // of the slot
	undo []func() error // last made, first undone
}

// Release implements groth16.Staged.
func (s *staged) Release() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	s.undo = nil
	return errors.Join(errs...)
}

// copyToPool copies the vectors to page-locked memory.
func (p *proving) copyToPool(a *groth16.Assignment, opts groth16.StartOptions) error {
	s := &staged{lock: p.slot.lock}
	a.SetStaged(s)
	from, to := hostVectors(a), s.all()
	if err := p.takeSlot(s, opts); err != nil {
		return err
	}
	for i, v := range from.all() {
		*to[i] = (*to[i])[:len(*v)]
		copyParallel(*to[i], *v)
	}
	return nil
}

// takeSlot cuts a partition's blocks from the pool.
func (p *proving) takeSlot(s *staged, opts groth16.StartOptions) error {
	p.slot.lock.Lock()
	defer p.slot.lock.Unlock()
	for i, to := range s.all() {
		mem, err := p.context.HostAlloc(p.slot.sizes[i], stagedClasses[i], opts.Owner.Job,
			opts.Owner.Partition)
		if err != nil {
			return err
		}
		s.undo = append(s.undo, func() error { return p.context.HostFree(mem) })
		*to = mem
	}
	return nil
}

// copyParallel copies with several threads.
func copyParallel(to, from []byte) {
	threads := min(StageThreads(PinnedPool), len(from)/stageChunk+1)
	var wait sync.WaitGroup
	for t := range threads {
		lo, hi := len(from)*t/threads, len(from)*(t+1)/threads
		wait.Go(func() { copy(to[lo:hi], from[lo:hi]) })
	}
	wait.Wait()
}

// register page-locks the vectors where they are.
func (p *proving) register(a *groth16.Assignment, opts groth16.StartOptions) error {
	s := &staged{vectors: hostVectors(a), lock: p.slot.lock}
	a.SetStaged(s)
	for i, r := range []*hostmem.Region{a.A, a.B, a.C, a.W} {
		mem := r.Bytes()
		err := p.context.Register(mem, stagedClasses[i], opts.Owner.Job, opts.Owner.Partition)
		if err != nil {
			return err
		}
		r.Pin()
		s.undo = append(s.undo, func() error {
			r.Unpin()
			return p.context.Unregister(mem)
		})
	}
	return nil
}
