package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// lockConvoy finds a lock behind which workers queue up, each with its partition's memory in hand.
//
//  1. Waiters are requests without an acquire or cancel yet, from the lock's own events.
//  2. The mean number of waiters is taken over the time in which the lock was held.
//  3. A finding needs min_waiting of them, min_holds holds, and waiting that takes min_wait_ratio
//     times as long as holding.
//
// One worker that waits behind the holder is what a second GPU worker is for.
type lockConvoy struct{}

const convoyName = "lock-convoy"

// Doc implements Analyzer.
func (lockConvoy) Doc() Doc {
	return Doc{
		Name: convoyName,
		Summary: "Several workers wait for the same lock most of the time: they add memory in " +
			"flight, not throughput.",
		RefutedBy: "Fewer workers at the lock lowering the throughput; then they hid something " +
			"that the lock's holder waits for.",
		Remedy: "Two GPU workers a device (one works, one is ready); and hold the lock for the " +
			"device's work only (split_proving=true keeps b_g2 out of it).",
		Thresholds: []Threshold{
			{
				Name: convoyName + ".min_waiting", Default: 1.5,
				Meaning: "waiters while the lock is held, in the mean",
				Source:  "one is by design; three workers and more regress (cuzk, pathology 6)",
			},
			{
				Name: convoyName + ".min_wait_ratio", Default: 1.5,
				Meaning: "mean wait over mean hold",
				Source:  "with one waiter in line it is at most 1",
			},
			{
				Name: convoyName + ".min_holds", Default: 8,
				Meaning: "times the lock was held",
				Source:  "fewer are start-up",
			},
		},
	}
}

// Start implements Analyzer.
func (lockConvoy) Start(in *Input) Pass { return &convoyPass{in: in, locks: map[string]*lockUse{}} }

type convoyPass struct {
	in    *Input
	locks map[string]*lockUse
}

// lockUse follows one lock.
type lockUse struct {
	name            string
	lastNS, firstNS int64
	held, waiting   int64
	maxWaiting      int64
	maxNS           int64
	holds, waits    int64
	heldNS          float64 // times holders
	busyNS          float64 // with at least one
	waitNS          float64 // times waiters
	waitNSWhileHeld float64
}

func (*convoyPass) wants() memory.Kinds { return memory.KindsOf(memory.StepQueue) }

// Observe implements memory.Observer.
func (p *convoyPass) Observe(s *memory.Step) {
	e := s.Queue
	if p.in.Memory.Ledger.KindOf(e.Resource) != trace.ResourceLock {
		return
	}
	u := p.locks[e.Resource]
	if u == nil {
		u = &lockUse{
			name: strings.Clone(e.Resource), firstNS: e.TimeNS, lastNS: e.TimeNS,
		}
		p.locks[u.name] = u
	}
	u.observe(e)
}

func (u *lockUse) observe(e *trace.QueueEvent) {
	dt := float64(e.TimeNS - u.lastNS)
	u.waitNS += dt * float64(u.waiting)
	if u.held > 0 {
		u.busyNS += dt
		u.heldNS += dt * float64(u.held)
		u.waitNSWhileHeld += dt * float64(u.waiting)
	}
	u.lastNS = e.TimeNS
	switch e.Event {
	case trace.EventRequest:
		u.waiting++
		if u.waiting > u.maxWaiting {
			u.maxWaiting, u.maxNS = u.waiting, e.TimeNS
		}
	case trace.EventAcquire:
		u.waiting = max(0, u.waiting-1)
		u.held++
		u.holds++
	case trace.EventCancel:
		u.waiting = max(0, u.waiting-1)
	case trace.EventRelease:
		u.held = max(0, u.held-1)
	}
}

// Finish implements Pass.
func (p *convoyPass) Finish(s *Summary, _ *memory.Report) Outcome {
	if len(p.locks) == 0 {
		return Outcome{NotApplicable: "the trace has no events of a lock"}
	}
	limit := func(name string) float64 { return p.in.Threshold(convoyName, name) }
	var found []Finding
	for _, u := range p.sorted() {
		mean := ratio(u.waitNSWhileHeld, u.busyNS)
		if float64(u.holds) < limit("min_holds") || mean < limit("min_waiting") ||
			ratio(u.waitNS, u.heldNS) < limit("min_wait_ratio") {
			continue
		}
		found = append(found, p.finding(s, u, mean))
	}
	return Outcome{Findings: found}
}

func (p *convoyPass) sorted() []*lockUse {
	all := make([]*lockUse, 0, len(p.locks))
	for _, u := range p.locks {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *lockUse) int { return cmp.Compare(a.name, b.name) })
	return all
}

func (p *convoyPass) finding(s *Summary, u *lockUse, mean float64) Finding {
	holds := float64(max(1, u.holds))
	f := Finding{
		Severity: Warning,
		Sentence: fmt.Sprintf(
			"%s was held %s, %s each, and each waited %s for it: %s workers stood in line in the "+
				"mean, %d at most; the lock was held %.0f %% of the time.",
			u.name, times(u.holds), units.Nanos(int64(u.heldNS/holds)),
			units.Nanos(int64(u.waitNS/holds)), Plain(mean), u.maxWaiting,
			100*ratio(u.busyNS, float64(u.lastNS-u.firstNS))),
		Evidence: Evidence{Numbers: Numbers{
			{"mean_waiting_workers", mean},
			{"max_waiting_workers", float64(u.maxWaiting)},
			{"holds", float64(u.holds)},
			{"mean_hold_ns", u.heldNS / holds},
			{"mean_wait_ns", u.waitNS / holds},
			{"held_ratio", ratio(u.busyNS, float64(u.lastNS-u.firstNS))},
		}, Window: &Window{BeginNS: u.firstNS, EndNS: u.lastNS}},
	}
	gpu := p.in.facts.setting("gpu_workers")
	switch {
	case gpu > 2:
		f.WhatIf = map[string]string{"gpu_workers": strconv.Itoa(2)}
	case s.Settings["split_proving"].Value == "false":
		f.WhatIf = map[string]string{"split_proving": "true"}
	}
	return f
}
