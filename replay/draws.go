package replay

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sort"
	"sync"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
)

// drawPlan is a number of simulations of a model and its variants. Every second draw is of the model
// itself, the others of the variants in turn.
type drawPlan struct {
	models    []*pipeline.Model
	programs  *sim.Programs
	workers   int // goroutines, 0 for one a CPU
	n         int
	seed      uint64
	bootstrap bool
	progress  func(done, total int)
}

// draw is the i-th draw of a plan: the same whatever ran before it.
func (p *drawPlan) draw(i int) sim.Draw {
	return sim.Draw{Seed: mix(p.seed + uint64(i)*0x9e3779b97f4a7c15), Bootstrap: p.bootstrap}
}

// modelOf is the number of the model that draw i of n models is of.
func modelOf(i, n int) int {
	if i%2 == 0 || n == 1 {
		return 0
	}
	return 1 + (i/2)%(n-1)
}

// mix is the finaliser of splitmix64: neighbouring seeds give unrelated draws.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// run simulates all draws on all cores and returns their statistics in the order of the draws.
func (p *drawPlan) run(ctx context.Context) ([]sim.Stats, error) {
	out := make([]sim.Stats, p.n)
	w := &drawWork{plan: p, out: out}
	workers := p.workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(p.n, workers)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { w.work(ctx) })
	}
	group.Wait()
	if w.err != nil {
		return nil, w.err
	}
	return out, ctx.Err()
}

// drawWork is what the workers of a plan share.
type drawWork struct {
	plan *drawPlan
	out  []sim.Stats

	mu    sync.Mutex
	next  int // draws given out
	model int // of which draws are given out now
	draw  int // the next of them
	done  int
	err   error
}

func (w *drawWork) work(ctx context.Context) {
	var s *sim.Simulator
	var err error
	compiled := -1 // the model that s is of
	for err == nil && ctx.Err() == nil {
		i, ok := w.take()
		if !ok {
			return
		}
		if model := modelOf(i, len(w.plan.models)); model != compiled {
			compiled = model
			if s, err = w.plan.programs.New(w.plan.models[model]); err != nil {
				break
			}
		}
		if w.out[i], err = s.Run(w.plan.draw(i)); err == nil {
			w.finish()
		}
	}
	w.fail(err)
}

// take gives out the draws of one model after those of another, so that few compile the same.
func (w *drawWork) take() (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next >= w.plan.n || w.err != nil {
		return 0, false
	}
	for modelOf(w.draw, len(w.plan.models)) != w.model || w.draw >= w.plan.n {
		if w.draw++; w.draw >= w.plan.n {
			w.model, w.draw = w.model+1, 0
		}
	}
	w.next++
	w.draw++
	return w.draw - 1, true
}

func (w *drawWork) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
	if w.plan.progress != nil {
		w.plan.progress(w.done, w.plan.n)
	}
}

func (w *drawWork) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// spread is a figure over the draws: the median (the lower of two) of those of the model itself,
// which a draw attains, and bounds of the middle 95 % of all.
type spread struct {
	median, low, high float64
	low80, high80     float64 // of the middle 80 %
	index             int     // the draw that attains the median
}

// spreadOf sorts value(i) over the draws; ok is false where a draw has no value (NaN) or there is
// none.
func spreadOf(n int, value func(i int) float64) (s spread, ok bool) {
	order, x := make([]int, n), make([]float64, n)
	for i := range order {
		order[i], x[i] = i, value(i)
		if math.IsNaN(x[i]) {
			return spread{}, false
		}
	}
	if n == 0 {
		return spread{}, false
	}
	sort.SliceStable(order, func(a, b int) bool { return x[order[a]] < x[order[b]] })
	at := func(q float64) float64 { return x[order[int(math.Round(q*float64(n-1)))]] }
	own := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i%2 != 0 })
	mid := own[(len(own)-1)/2]
	return spread{
		median: x[mid], low: min(x[mid], at(0.025)), high: max(x[mid], at(0.975)),
		low80: min(x[mid], at(0.1)), high80: max(x[mid], at(0.9)), index: mid,
	}, true
}
