package prover

import (
	"sync"
	"time"
)

// reporter keeps a run's progress and passes every change on, one at a time.
type reporter struct {
	mu    sync.Mutex
	began time.Time
	state Progress
	tell  func(Progress) // may be nil
}

func newReporter(tell func(Progress), p policy) *reporter {
	return &reporter{began: time.Now(), tell: tell,
		state: Progress{Jobs: p.jobs, Partitions: p.jobs * p.partitions}}
}

// change alters the progress and tells it. A message lasts until the next change.
func (r *reporter) change(alter func(*Progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Message = ""
	alter(&r.state)
	r.state.Elapsed = time.Since(r.began)
	if r.tell != nil {
		r.tell(r.state)
	}
}

// phase starts a phase.
func (r *reporter) phase(name, message string) {
	r.change(func(p *Progress) { p.Phase, p.Message = name, message })
}
