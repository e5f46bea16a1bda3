package prover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/trace"
)

// errFake is what a fake stage that is told to fails with.
var errFake = errors.New("constraint 7 is not satisfied")

// fakeEngine makes work of the shape of Groth16's: the same buffers, of a page each, and the same
// stages, which take a random number of turns of the scheduler.
type fakeEngine struct {
	mem    *hostmem.Allocator
	fail   map[JobPartition]string // the stage that fails
	gate   chan struct{}           // start waits until it is closed; nil for no gate
	stages bool                    // partitions are staged
	seen   func(stage string)      // called at each stage; may be nil

	mu    sync.Mutex
	rng   *rand.Rand
	calls map[JobPartition][]string
	wrong error // the first thing that the pipeline may not do

	synthesising, peakSynthesising atomic.Int64
	starting, peakStarting         atomic.Int64
}

func newFake(seed uint64, rec *tracer.Recorder) *fakeEngine {
	return &fakeEngine{mem: &hostmem.Allocator{Rec: rec}, fail: map[JobPartition]string{},
		rng: rand.New(rand.NewPCG(seed, 0)), calls: map[JobPartition][]string{}}
}

func (e *fakeEngine) sizes() (settledBytes, abcBytes int64) { return 4 * pageBytes, 3 * pageBytes }

func (e *fakeEngine) staged() bool { return e.stages }

func (e *fakeEngine) partition(job, partition int) work {
	return &fakeWork{e: e, at: JobPartition{job, partition}}
}

var pageBytes = roundToPages(1)

// fakeWork is a partition's work. Its busy flag catches two goroutines that work on it at once.
type fakeWork struct {
	e       *fakeEngine
	at      JobPartition
	busy    atomic.Bool
	device  int32
	regions []*hostmem.Region // a, b, c, w, then what is staged, then split
	done    bool
}

// enter notes a call of stage and fails if it is to.
func (w *fakeWork) enter(ctx context.Context, stage string) error {
	if !w.busy.CompareAndSwap(false, true) {
		w.e.complain(fmt.Errorf("%s of %v while another stage of it runs", stage, w.at))
	}
	defer w.busy.Store(false)
	w.e.mu.Lock()
	w.e.calls[w.at] = append(w.e.calls[w.at], stage)
	turns := w.e.rng.IntN(20)
	w.e.mu.Unlock()
	if w.e.seen != nil {
		w.e.seen(stage)
	}
	for range turns {
		runtime.Gosched()
	}
	if w.e.fail[w.at] == stage {
		return errFake
	}
	return ctx.Err()
}

func (e *fakeEngine) complain(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wrong == nil {
		e.wrong = err
	}
}

// callsOf is the stages of a partition so far.
func (e *fakeEngine) callsOf(at JobPartition) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls[at])
}

func (w *fakeWork) alloc(owner tracer.Owner, classes ...string) error {
	for _, class := range classes {
		r, err := w.e.mem.Alloc(class, pageBytes, owner)
		if err != nil {
			return err
		}
		r.Fill(pageBytes)
		w.regions = append(w.regions, r)
	}
	return nil
}

func (w *fakeWork) witness(ctx context.Context, _ tracer.Owner) error {
	return w.enter(ctx, trace.StageWitness)
}

func (w *fakeWork) synthesise(ctx context.Context, owner tracer.Owner) error {
	within(&w.e.synthesising, &w.e.peakSynthesising)
	defer w.e.synthesising.Add(-1)
	if err := w.alloc(owner, trace.ClassA, trace.ClassB, trace.ClassC, trace.ClassAux); err != nil {
		return err
	}
	return w.enter(ctx, trace.StageSynthesis)
}

func (w *fakeWork) onto(device int32) { w.device = device }

func (w *fakeWork) hasBG2() bool { return false }

func (w *fakeWork) stageIn(ctx context.Context, owner tracer.Owner) error {
	if err := w.alloc(owner, trace.ClassPinnedPool); err != nil {
		return err
	}
	return w.enter(ctx, trace.StageStageIn)
}

func (w *fakeWork) start(ctx context.Context, owner tracer.Owner) error {
	within(&w.e.starting, &w.e.peakStarting)
	defer w.e.starting.Add(-1)
	if w.e.gate != nil {
		<-w.e.gate
	}
	if err := w.alloc(owner, trace.ClassSplit); err != nil {
		return err
	}
	return w.enter(ctx, trace.StageProveStart)
}

func (w *fakeWork) freeABC() error {
	for _, r := range w.regions[:3] {
		if err := r.Free(); err != nil {
			return err
		}
	}
	w.regions = w.regions[3:]
	return w.enter(context.Background(), "free_abc")
}

func (w *fakeWork) bG2(ctx context.Context, _ tracer.Owner) error {
	return w.enter(ctx, trace.StageBG2)
}

func (w *fakeWork) finalise() error { return w.enter(context.Background(), trace.StageFinalise) }

func (w *fakeWork) free() error {
	for _, r := range w.regions {
		if err := r.Free(); err != nil {
			return err
		}
	}
	w.regions = nil
	return w.enter(context.Background(), trace.StageDealloc)
}

func (w *fakeWork) verify() error {
	w.done = true
	return w.enter(context.Background(), trace.StageVerify)
}

func (w *fakeWork) proof() []byte {
	if !w.done {
		return nil
	}
	return fmt.Appendf(nil, "proof of %d/%d", w.at.Job, w.at.Partition)
}

func (w *fakeWork) handoff(to tracer.Owner) {
	for _, r := range w.regions {
		r.Handoff(to)
	}
}

// within counts one more inside and keeps the peak.
func within(now, peak *atomic.Int64) {
	n := now.Add(1)
	for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
	}
}
