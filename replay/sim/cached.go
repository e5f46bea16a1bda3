package sim

import (
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// cachedSteps is a cached object as the engine needs it.
type cachedSteps struct {
	bytes                int64 // reserved of the budget; 0 where it is not budgeted
	load, loaded, evict  int32 // memory steps, by index
	way                  int32 // of its loads in the background
	idle                 float64
	evictable, preloaded bool
}

// cachedState is a cached object in one run.
type cachedState struct {
	present, loading bool
	users            int32
	last             float64 // when its last user left
	wait             waitQueue
}

// poolState is a pool in one run.
type poolState struct {
	used, size int64
}

// compileCached lays out the memory steps of the cached objects. Their buffers belong to no job.
func (p *program) compileCached() {
	for i := range p.model.Pools {
		for _, class := range p.model.Pools[i].Classes {
			p.poolOf[class] = uint8(i + 1)
		}
	}
	for i := range p.model.Cached {
		c := &p.model.Cached[i]
		out := cachedSteps{idle: c.IdleNS, evictable: c.Evictable, preloaded: c.Preloaded}
		if c.Budgeted {
			out.bytes = c.Bytes
		}
		held := p.ledger()
		change := func(event string, bytes int64) int32 {
			at := p.here()
			ch := pipeline.Change{
				Event: event, Buffer: pipeline.MaxBuffers + i, Class: c.Class, Space: c.Space,
				Capacity: bytes, Resident: bytes,
			}
			st := held.apply(ch)
			st.op = opLater
			p.change(st, ch)
			return at
		}
		out.load = change(trace.EventAlloc, c.Bytes+c.LoadBytes)
		out.loaded = change(trace.EventResize, c.Bytes)
		out.evict = change(trace.EventFree, 0)
		p.cached = append(p.cached, out)
		if c.Preloaded {
			s := &p.steps[out.load]
			p.start.live += s.live - c.LoadBytes
			p.start.resident += s.resident - c.LoadBytes
		}
	}
}

// needCached makes a job wait until each cached object that it needs is there, but for those that are
// loaded in the background.
func (p *program) needCached() {
	for i := range p.model.Cached {
		if p.model.Cached[i].Background {
			continue
		}
		arg := int32(i)
		p.add(step{op: opNeed, arg: arg})
		p.add(step{op: opReserve, arg: arg})
		p.add(step{op: opLoad, arg: arg})
		p.add(step{op: opWork, work: p.model.Cached[i].LoadNS})
		p.add(step{op: opLoaded, arg: arg})
	}
}

// afterNeed is how many steps lie between opNeed and what follows the load.
const afterNeed = 4

func (s *Simulator) cachedStep(st *step, e *entity, id int32) bool {
	c := &s.cached[st.arg]
	switch st.op {
	case opNeed:
		if !e.uses {
			e.uses = true
			s.eachNeeded(e.job, func(c *cachedState) { c.users++ })
		}
		switch {
		case c.present || !s.prog.model.Cached[st.arg].NeededBy(int64(e.job)):
			e.pc += afterNeed
			return true
		case c.loading:
			e.state = stateCached
			c.wait.push(id)
			e.pc += afterNeed
			return false
		}
		c.loading = true
	case opReserve:
		e.what = st.arg
		if s.prog.cached[st.arg].bytes > 0 && s.budget.capacity >= 0 {
			return s.askBudget(e, id)
		}
	case opLoad:
		s.cachedMemory(s.prog.cached[st.arg].load)
	case opLoaded:
		s.cachedMemory(s.prog.cached[st.arg].loaded)
		s.handOver(e, id)
		c.present, c.loading = true, false
		for c.wait.n > 0 {
			waiter := c.wait.pop()
			s.ents[waiter].state = stateRun
			s.wake(waiter)
		}
	}
	return true
}

// handOver makes what a job reserved for a cached object that object's own.
func (s *Simulator) handOver(e *entity, id int32) {
	bytes := e.budget
	if e.budget = 0; bytes == 0 {
		return
	}
	s.budget.level -= bytes
	s.queue(resourceBudget, trace.EventRelease, id, operation{bytes, s.budget.level, s.budget.wait.n})
	s.reserveCached(bytes)
}

// reserveCached takes bytes of the byte budget for a cached object.
func (s *Simulator) reserveCached(bytes int64) {
	s.budgetEvent(trace.EventRequest, bytes)
	s.budget.level += bytes
	s.budgetEvent(trace.EventAcquire, bytes)
}

// cachedMemory applies a memory step of a cached object.
func (s *Simulator) cachedMemory(index int32) {
	last := s.extra(extraLater)
	s.memory(&s.prog.steps[index], &s.ents[last], last)
}

// leaveCached is the end of a job: it uses the cached objects no more, so that those that wait for
// the byte budget may get it.
func (s *Simulator) leaveCached(e *entity) {
	if !e.uses {
		return
	}
	s.eachNeeded(e.job, func(c *cachedState) {
		c.users--
		c.last = s.now
	})
	switch {
	case s.budget.wait.n == 0 || !s.evictCached():
	case s.budget.race:
		s.race(&s.budget, resourceBudget)
	default:
		s.grant(&s.budget, resourceBudget, -1)
	}
}

// eachNeeded calls f for the cached objects that a job waits for and uses.
func (s *Simulator) eachNeeded(job int32, f func(*cachedState)) {
	for i := range s.cached {
		if c := &s.prog.model.Cached[i]; !c.Background && c.NeededBy(int64(job)) {
			f(&s.cached[i])
		}
	}
}

// resetCached puts the cached objects as they are before the first job.
func (s *Simulator) resetCached() {
	for i := range s.cached {
		c := &s.cached[i]
		c.present, c.loading, c.users, c.last = s.prog.cached[i].preloaded, false, 0, 0
		c.wait.reset()
		if bytes := s.prog.cached[i].bytes; c.present && bytes > 0 && s.budget.capacity >= 0 {
			s.reserveCached(bytes)
		}
	}
}

// evict gives back what pools keep free, and the cached objects that nobody has used for their idle
// time, because the byte budget is short. It reports whether budget came free: a pool's bytes are
// none of it.
func (s *Simulator) evict() bool {
	for i := range s.pools {
		if s.prog.model.Pools[i].Evictable {
			s.shrink(i)
		}
	}
	return s.evictCached()
}

// evictCached gives back the cached objects that nobody has used for their idle time.
func (s *Simulator) evictCached() bool {
	freed := false
	for i := range s.cached {
		c, p := &s.cached[i], &s.prog.cached[i]
		if !c.present || !p.evictable || c.users > 0 || s.now-c.last < p.idle {
			continue
		}
		c.present = false
		s.budget.level -= p.bytes
		if p.bytes > 0 {
			s.budgetEvent(trace.EventRelease, p.bytes)
		}
		s.cachedMemory(p.evict)
		freed = freed || p.bytes > 0
		s.stats.Evictions++
	}
	if freed {
		s.budgetFell()
	}
	return freed
}

// retryBudget serves those who wait for the budget after an eviction; true when id was among them.
func (s *Simulator) retryBudget(id int32) bool {
	if !s.budget.race {
		return s.grant(&s.budget, resourceBudget, id)
	}
	amount := s.amount(resourceBudget, id)
	if !s.budget.fits(amount) {
		return false
	}
	s.budget.wait.remove(id)
	s.serve(&s.budget, resourceBudget, id, amount)
	return true
}

// poolChange applies a buffer event of a buffer that is cut from a pool, which grows when what it
// keeps free does not suffice.
func (s *Simulator) poolChange(st *step, e *entity, id int32) {
	p := &s.pools[st.class]
	times := int64(1)
	if id < s.nParts {
		times = int64(max(e.mult, 1))
	}
	p.used += st.live * times
	if p.used > p.size {
		s.levels.live += p.used - p.size
		s.levels.resident += p.used - p.size
		p.size = p.used
		if s.tape != nil {
			s.tape.resizePool(s, int(st.class))
		}
	}
	if st.live < 0 {
		s.stats.MakespanNS = s.now
	}
	if s.tape != nil {
		s.tape.change(s, st, e, id)
	}
	s.peaks()
}

// shrink gives back what pool i keeps free.
func (s *Simulator) shrink(i int) {
	p := &s.pools[i]
	if p.size == p.used {
		return
	}
	s.levels.live -= p.size - p.used
	s.levels.resident -= p.size - p.used
	p.size = p.used
	if s.tape != nil {
		s.tape.resizePool(s, i)
	}
}

// memoryTimes is memory for a partition that stands for the jobs of a merged batch.
func (s *Simulator) memoryTimes(st *step, e *entity, id int32) {
	times, n := *st, int64(e.mult)
	times.live, times.resident, times.scratch = n*st.live, n*st.resident, n*st.scratch
	s.memory(&times, e, id)
}

// budgetEvent records what the cached objects do to the byte budget.
func (s *Simulator) budgetEvent(event string, bytes int64) {
	s.queue(resourceBudget, event, s.extra(extraLater),
		operation{bytes, s.budget.level, s.budget.wait.n})
}
