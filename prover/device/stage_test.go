//go:build cgo && linux

package device

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"highwater/prover/groth16"
	"highwater/tracer"
)

// TestPoolHoldsASlotAWorker: a pool of one slot a worker always has a slot for a worker that holds
// none, in whatever order workers take and give back. (Blocks taken one by one met holes that were a
// page too short for w.)
func TestPoolHoldsASlotAWorker(t *testing.T) {
	const workers, rounds = 8, 5000
	s := slot{lock: new(sync.Mutex)}
	s.sizes = [4]int64{8 * poolPage, 8 * poolPage, 8 * poolPage, 9 * poolPage}
	p := &proving{context: newContext(t, Config{PoolBytes: workers * s.bytes()}), slot: s}
	errs := make([]error, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for range rounds {
				held := &staged{lock: s.lock}
				err := p.takeSlot(held, groth16.StartOptions{Owner: tracer.NoOwner})
				runtime.Gosched()
				if errs[w] = errors.Join(err, held.Release()); errs[w] != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
