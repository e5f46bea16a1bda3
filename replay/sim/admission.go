package sim

import (
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// makeFlow makes what stands between a job's arrival and its partitions' synthesis.
func (s *Simulator) makeFlow(m *pipeline.Model) {
	n, jobs := int(s.nParts), int(s.nJobs)
	priority := m.Policy.QueueOrder == pipeline.OrderPriority
	s.dispatchers = gate{capacity: m.Dispatch.Workers, wait: newWaitQueue(false, jobs)}
	s.hand = gate{capacity: 1, wait: newWaitQueue(priority, n), unfair: priority}
	s.handoff = gate{capacity: m.Admission.Handoff, wait: newWaitQueue(false, n)}
	if m.Admission.NoPermit || m.Admission.PermitFirst {
		s.handoff.capacity = -1 // nobody takes from it but synthesis, at once
	}
	s.depth = gate{capacity: m.Admission.QueueDepth, wait: newWaitQueue(priority, n)}
	for i := range s.prog.locks {
		l := &s.prog.locks[i]
		s.modelLocks = append(s.modelLocks, gate{
			capacity: l.Capacity,
			wait:     newWaitQueue(false, n),
		})
	}
	s.batch = collector{
		size: int(m.Batch.Size), wait: m.Batch.WaitNS, merge: m.Batch.Merge,
		ids: make([]int32, 0, jobs),
	}
	s.pacer = newPacer(m, n)
	s.cached = make([]cachedState, len(s.prog.cached))
	for i := range s.cached {
		s.cached[i].wait = newWaitQueue(false, jobs)
	}
	s.pools = make([]poolState, len(m.Pools))
	s.scales = make([]float64, len(m.Stages))
	s.arrivals = make([]float64, jobs)
	s.raceOrder = make([]int32, 0, n+jobs)
}

func (s *Simulator) resetFlow() {
	for _, g := range []*gate{&s.dispatchers, &s.hand, &s.handoff, &s.depth} {
		g.reset()
	}
	for i := range s.modelLocks {
		s.modelLocks[i].reset()
	}
	s.batch.ids = s.batch.ids[:0]
	s.pacer.reset()
	for i := range s.pools {
		s.pools[i] = poolState{}
	}
}

// admissionStep does a partition's steps before its synthesis, and those of the model's locks.
func (s *Simulator) admissionStep(st *step, e *entity, id int32) bool {
	switch st.op {
	case opHand:
		e.state = stateHand
		return s.ask(&s.hand, resourceHand, id, 1)
	case opDepth:
		e.state = stateDepth
		return s.ask(&s.depth, resourceDepth, id, 1)
	case opPace:
		e.state = statePacer
		return s.pacer.ask(s, id)
	case opPaced:
		e.pc = s.prog.paced
		s.pacer.due(s)
		return false
	case opHandoff:
		e.state = stateHandoff
		return s.ask(&s.handoff, resourceHandoff, id, 1)
	case opSynthBegin:
		s.beginSynthesis(e, id)
		return true
	case opAskLock:
		e.state, e.what = stateModelLock, st.arg
		return s.ask(&s.modelLocks[st.arg], resourceLocks+resource(st.arg), id, 1)
	}
	s.give(&s.modelLocks[st.arg], resourceLocks+resource(st.arg), id, 1)
	return true
}

// beginSynthesis is where a partition has all that its synthesis needs. What it held on the way to
// it is free.
func (s *Simulator) beginSynthesis(e *entity, id int32) {
	e.since = s.now
	s.working++
	s.stats.QueueMax.Synthesising = max(s.stats.QueueMax.Synthesising, s.working)
	if s.prog.model.Admission.Serial {
		s.give(&s.handoff, resourceHandoff, id, 1)
	}
}

// raceFor serves id at once if its request fits, whoever waits.
func (s *Simulator) raceFor(g *gate, r resource, id int32) bool {
	amount := s.amount(r, id)
	if !g.fits(amount) {
		return false
	}
	g.wait.dropLast()
	s.serve(g, r, id, amount)
	return true
}

// race serves those who wait for g and fit, in random order.
func (s *Simulator) race(g *gate, r resource) {
	order := s.raceOrder[:0]
	for i := range g.wait.n {
		order = append(order, g.wait.at(i))
	}
	for i := len(order) - 1; i > 0; i-- {
		j := int(s.random.Uint64N(uint64(i + 1)))
		order[i], order[j] = order[j], order[i]
	}
	for _, id := range order {
		if amount := s.amount(r, id); g.fits(amount) {
			g.wait.remove(id)
			s.serve(g, r, id, amount)
			s.wake(id)
		}
	}
}

func (s *Simulator) serve(g *gate, r resource, id int32, amount int64) {
	g.level += amount
	s.granted(g, r, id)
	s.queue(r, trace.EventAcquire, id, operation{amount, g.level, g.wait.n})
}

// noteOvertaken keeps the request that most later ones were served before.
func (s *Simulator) noteOvertaken(g *gate, r resource, e *entity, id int32) {
	over := g.turn - e.turn
	g.turn++
	if w := &s.stats.Starved; over > w.Overtaken {
		*w = Starved{Overtaken: over, WaitNS: s.now - e.asked, id: id, resource: r}
	}
}

// nameStarved says whom Starved is about.
func (s *Simulator) nameStarved() {
	if w := &s.stats.Starved; w.Overtaken > 0 {
		w.Who = s.whoIs(w.id)
		w.For = waitNames[statePermit]
		if w.resource == resourceBudget {
			w.For = waitNames[stateBudget]
		} else if w.resource == resourceHand {
			w.For = waitNames[stateHand]
		}
	}
}
