package sim

import (
	"math"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// run continues an entity until it spends time or waits.
func (s *Simulator) run(id int32) {
	e := &s.ents[id]
	for {
		st := &s.steps[e.pc]
		e.pc++
		if st.op != opWork {
			if s.control(st, e, id) {
				continue
			}
			return
		}
		s.free(st) // mostly of nothing: adding that costs less than asking
		if st.gains {
			s.peaks()
		}
		if st.class == 0 && s.alone() && s.ahead(s.now+st.work*e.scale) {
			continue
		}
		s.seq++
		t := newTimer(st.work*e.scale, s.seq, id)
		switch {
		case st.class == 0:
			s.pass(t.after(s.now))
		case s.ended == int(st.class):
			s.ended = nothing
			s.shares.replace(st.class-1, t, s.now)
		default:
			s.shares.begin(st.class-1, t, s.now)
		}
		return
	}
}

// alone says that nobody else has anything to do at this instant.
func (s *Simulator) alone() bool { return s.open && s.head == len(s.ready) }

// ahead lets plain time pass at once, where nothing else happens before key: most gaps are so short.
// It spares them the heap. Equal times are left to the heap, which keeps their order.
func (s *Simulator) ahead(key float64) bool {
	if s.ended > 0 {
		s.finish()
	}
	horizon := s.timers.second()
	if s.ended != 0 {
		horizon = s.timers.first()
	}
	if key >= horizon {
		return false
	}
	if s.shares.stale {
		s.shares.settle(s.now)
	}
	if _, which := s.shares.next(key); which >= 0 {
		return false
	}
	s.stats.Events++
	s.now = key
	return true
}

// pass lets plain time pass for an entity. Often it just ended a step of the same kind: then the new
// one takes the old one's place in the heap.
func (s *Simulator) pass(t timer) {
	if s.ended != 0 {
		s.timers.push(t)
		return
	}
	s.ended = nothing
	s.timers.replace(t)
}

// nothing is Simulator.ended between events.
const nothing = -1

// finish removes the step that ended, unless another took its place.
func (s *Simulator) finish() {
	switch {
	case s.ended == nothing:
		return
	case s.ended == 0:
		s.timers.pop()
	default:
		s.shares.end(s.ended - 1)
	}
	s.ended = nothing
}

// change applies a buffer event, for each of the jobs that a partition stands for.
func (s *Simulator) change(st *step, e *entity, id int32) {
	switch {
	case e.mult > 1 && id < s.nParts:
		s.memoryTimes(st, e, id)
	case st.op == opFree:
		s.free(st)
	default:
		s.memory(st, e, id)
	}
}

// memory applies a buffer event to the sums and their peaks.
func (s *Simulator) memory(st *step, e *entity, id int32) {
	s.levels.live += st.live
	s.levels.resident += st.resident
	s.levels.scratch += st.scratch
	if st.live < 0 && st.op != opLater {
		s.stats.MakespanNS = s.now
	}
	if s.tape != nil && s.pooled {
		s.tape.growPool(s)
	}
	if s.tape != nil {
		s.tape.change(s, st, e, id)
	}
	s.peaks()
}

// free is memory for a step that only takes away: no peak can be there.
func (s *Simulator) free(st *step) {
	s.levels.live += st.live
	s.levels.resident += st.resident
	s.levels.scratch += st.scratch
	if st.live < 0 {
		s.stats.MakespanNS = s.now
	}
}

func (s *Simulator) peaks() {
	l := &s.levels
	s.scratchHigh = max(s.scratchHigh, l.scratch)
	live, resident := l.live, l.resident+l.scratch
	if s.pooled {
		live, resident = l.live+s.scratchHigh, l.resident+s.scratchHigh
	}
	if live > s.stats.PeakLiveBytes {
		s.stats.PeakLiveBytes, s.stats.PeakLiveNS = live, s.now
	}
	s.stats.PeakResidentBytes = max(s.stats.PeakResidentBytes, resident)
	if r := l.resident + s.scratchHigh; r > s.stats.PeakScratchLawBytes {
		s.stats.PeakScratchLawBytes = r
	}
	if s.limit > 0 {
		s.checkLimit()
	}
	if s.tape != nil {
		s.tape.sample(s)
	}
}

// checkLimit notes when RSS first lies above the limit.
func (s *Simulator) checkLimit() {
	if rss := s.stats.PeakRSSBytes(&s.prog.model.Memory); rss != trace.Null && rss > s.limit {
		s.stats.OverLimitNS, s.limit = s.now, 0
	}
}

// control does the steps that neither spend time nor move bytes. It returns false when the entity
// must wait or is over.
func (s *Simulator) control(st *step, e *entity, id int32) bool {
	switch st.op {
	case opMemory, opFree:
		s.change(st, e, id)
	case opBegin:
		s.beginStage(st, e, id)
	case opPool:
		s.poolChange(st, e, id)
	case opEnd:
		e.scale = 1
		if s.tape != nil {
			s.tape.endSpan(s, id)
		}
		if s.stages != nil {
			s.stages.end(s, id)
		}
	case opBudget:
		return s.askBudget(e, id)
	case opPermit:
		return s.askPermit(e, id)
	case opSynthEnd:
		s.working--
		s.stats.SynthesisNS += s.now - e.since - s.prog.partitions[e.member].synthGap
		s.releaseAt(pipeline.ReleaseSynthEnd, e, id)
	case opSend:
		return s.send(e, id)
	case opLock, opUnlock:
		return s.lockStep(st.op, e, id)
	case opBudgetPart:
		s.giveBudget(e, id, s.prog.partitions[e.member].early*int64(max(e.mult, 1)))
	case opWorkerDone:
		s.workerDone(e)
	case opFinaliser:
		return s.askFinaliser(e, id)
	case opFreed:
		s.freed(e, id)
	case opPartEnd:
		s.partitionOver(e)
		return false
	case opIdle:
		s.idle(e)
		return false
	default:
		return s.lifeStep(st, e, id)
	}
	return true
}

// lifeStep does the steps of jobs and workers, and ends.
func (s *Simulator) lifeStep(st *step, e *entity, id int32) bool {
	switch st.op {
	case opSubmit:
		return s.askJob(e, id)
	case opDispatch:
		s.dispatch(e)
	case opJobEnd:
		s.jobOver(e)
	case opLater:
		s.memory(st, e, id)
		return true
	case opArrive, opCollect, opFlush, opDispatcher:
		return s.arriveStep(st.op, e, id)
	case opHand, opDepth, opPace, opPaced, opHandoff, opSynthBegin, opAskLock, opGiveLock:
		return s.admissionStep(st, e, id)
	case opNeed, opReserve, opLoad, opLoaded:
		return s.cachedStep(st, e, id)
	case opStartLoad, opLook, opLoadOwn, opLoadedOwn, opKeep:
		return s.loadStep(st, e, id)
	}
	return false
}

func (s *Simulator) beginStage(st *step, e *entity, id int32) {
	law := &s.prog.model.Stages[st.arg]
	e.scale = s.scales[st.arg]
	if law.CV > 0 {
		e.scale *= s.logNormal(law.CV)
	}
	if e.mult > 1 {
		e.scale *= 1 + float64(e.mult-1)*law.BatchShare
	}
	if s.tape != nil {
		s.tape.beginSpan(s, st.arg, e, id)
	}
	if s.stages != nil {
		s.stages.begin(s, st.arg, id)
	}
}

// logNormal draws a factor of mean 1 whose standard deviation is cv.
func (s *Simulator) logNormal(cv float64) float64 {
	sigma2 := math.Log1p(cv * cv)
	return math.Exp(s.random.NormFloat64()*math.Sqrt(sigma2) - sigma2/2)
}

// ask requests amount from g. It returns false when id has to wait: it is woken when granted.
func (s *Simulator) ask(g *gate, r resource, id int32, amount int64) bool {
	g.wait.push(id)
	g.maxWait = max(g.maxWait, g.wait.n)
	if g.unfair {
		s.ents[id].asked, s.ents[id].turn = s.now, g.turn+int64(g.wait.n)-1
	}
	s.queue(r, trace.EventRequest, id, operation{amount, g.level, g.wait.n})
	if g.race {
		return s.raceFor(g, r, id)
	}
	return s.grant(g, r, id)
}

// grant serves those who wait for g, in order, while they fit. It reports whether asking was
// served; others are woken.
func (s *Simulator) grant(g *gate, r resource, asking int32) bool {
	served := false
	for g.wait.n > 0 {
		id := g.wait.first()
		amount := s.amount(r, id)
		if !g.fits(amount) {
			break
		}
		g.wait.pop()
		g.level += amount
		s.granted(g, r, id)
		s.queue(r, trace.EventAcquire, id, operation{amount, g.level, g.wait.n})
		if id == asking {
			served = true
		} else {
			s.wake(id)
		}
	}
	return served
}

func (s *Simulator) give(g *gate, r resource, id int32, amount int64) {
	g.level -= amount
	s.queue(r, trace.EventRelease, id, operation{amount, g.level, g.wait.n})
	if g.race {
		s.race(g, r)
		return
	}
	s.grant(g, r, -1)
}

func (s *Simulator) amount(r resource, id int32) int64 {
	if r != resourceBudget {
		return 1
	}
	e := &s.ents[id]
	if id >= s.nParts {
		return s.prog.cached[e.what].bytes
	}
	return s.prog.partitions[e.member].settled * int64(max(e.mult, 1))
}

// granted notes what an entity now holds.
func (s *Simulator) granted(g *gate, r resource, id int32) {
	e := &s.ents[id]
	e.state = stateRun
	if g.unfair {
		s.noteOvertaken(g, r, e, id)
	}
	m := &s.stats.QueueMax
	switch r {
	case resourcePermit:
		e.permit = true
		m.PermitsHeld = max(m.PermitsHeld, s.permits.level)
		if !s.prog.model.Admission.PermitFirst {
			s.beginSynthesis(e, id)
		}
	case resourceBudget:
		e.budget = s.amount(r, id)
		m.BudgetBytes = max(m.BudgetBytes, s.budget.level)
	case resourceLock:
		s.stats.GPUNS -= s.now - e.locked // it has waited since
		e.locked = s.now
	case resourceHandoff:
		s.give(&s.hand, resourceHand, id, 1)
	case resourceJob:
		m.JobsInFlight = max(m.JobsInFlight, s.jobs.level)
	}
}

// operation is the numbers of a queue event.
type operation struct {
	amount, level int64
	waiting       int
}

func (s *Simulator) queue(r resource, event string, id int32, op operation) {
	if s.tape != nil {
		s.tape.queue(s, r, event, id, op)
	}
}

// resource names what a queue event is about.
type resource uint8

const (
	resourceJob resource = iota
	resourcePermit
	resourceBudget
	resourceChannel
	resourceLock
	// a model's own, not recorded
	resourceFinaliser
	resourceDispatcher
	resourceHand
	resourceHandoff
	resourceDepth
	resourceLocks // and those after it: the model's locks
)
