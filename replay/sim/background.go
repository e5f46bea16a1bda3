package sim

import (
	"fmt"
	"math"

	"highwater/internal/units"
	"highwater/replay/pipeline"
)

// A background load brings a cached object that no job waits for.
//
//  1. Each job that does not find the object when it lets its partitions go starts a load of its own.
//  2. The load reserves what it needs meanwhile of the byte budget, and takes its time.
//  3. It is dropped if the object has come by another load; else it reserves the object's own bytes,
//     holding what it has, and saves the object.
//  4. If the object has come by then it is dropped, else it is the object from then on. What was
//     reserved for the load is given back.
//
// It never queues for the budget: it takes what is free, or looks again at each multiple of PollNS
// after its first look. Between two looks only a release changes what it will find, so a release sets
// the timer of its next look, and a load that never gets its bytes does not keep the run from ending.

// compileLoads lays out the ways of the background loads.
func (p *program) compileLoads() {
	for i := range p.model.Cached {
		c, arg := &p.model.Cached[i], int32(i)
		if !c.Background {
			continue
		}
		p.loads = append(p.loads, arg)
		p.cached[i].way = p.here()
		p.add(step{op: opLook, arg: arg, live: c.LoadReserveBytes})
		p.add(step{op: opLoadOwn, arg: arg})
		p.work(0, c.LoadNS)
		p.add(step{op: opLoadedOwn, arg: arg})
		p.add(step{op: opLook, arg: arg, live: p.cached[i].bytes})
		p.work(0, c.SaveNS)
		p.add(step{op: opKeep, arg: arg})
		p.add(step{op: opStop})
	}
}

// startLoads is where a job starts the loads of the background objects that it does not find.
func (p *program) startLoads() {
	for _, i := range p.loads {
		p.add(step{op: opStartLoad, arg: i})
	}
}

// load is the entity of a job's load of the k-th background object.
func (s *Simulator) load(job int32, k int) int32 {
	return s.extra(extras) + job*int32(len(s.prog.loads)) + int32(k)
}

// placeLoads puts the loads at the start of their ways.
func (s *Simulator) placeLoads() {
	s.polling = s.polling[:0]
	for j := range s.nJobs {
		for k, object := range s.prog.loads {
			s.ents[s.load(j, k)] = entity{pc: s.prog.cached[object].way, job: -1, worker: -1, scale: 1}
		}
	}
}

// loadStep does a step of a background load, or the start of it.
func (s *Simulator) loadStep(st *step, e *entity, id int32) bool {
	c, p := &s.cached[st.arg], &s.prog.cached[st.arg]
	switch st.op {
	case opStartLoad:
		s.startLoad(st.arg, e)
	case opLook:
		return s.look(st, e, id)
	case opLoadOwn:
		s.memory(&s.steps[p.load], e, id)
	case opLoadedOwn:
		s.memory(&s.steps[p.loaded], e, id)
		if c.present {
			s.dropLoad(p, e, id)
			return false
		}
	case opKeep:
		if c.present {
			s.dropLoad(p, e, id)
			return false
		}
		c.present, c.last = true, s.now
		if s.tape != nil {
			s.tape.adopt(s, st.arg, id)
		}
		if e.budget >= p.bytes {
			e.budget -= p.bytes // stays reserved, for the object
		}
		s.giveBudget(e, id, e.budget)
	}
	return true
}

// startLoad starts a job's load of a cached object that is not there.
func (s *Simulator) startLoad(object int32, job *entity) {
	c := &s.cached[object]
	switch {
	case !s.prog.model.Cached[object].NeededBy(int64(job.job)):
	case c.present:
		c.last = s.now
	default:
		for k, i := range s.prog.loads {
			if i == object {
				s.wake(s.load(job.job, k))
			}
		}
	}
}

func (s *Simulator) dropLoad(p *cachedSteps, e *entity, id int32) {
	s.memory(&s.steps[p.evict], e, id)
	s.giveBudget(e, id, e.budget)
}

// look reserves st.live bytes of the budget if they are free, else it looks again later.
func (s *Simulator) look(st *step, e *entity, id int32) bool {
	if st.live == 0 || s.budget.capacity < 0 {
		return true
	}
	if s.budget.fits(st.live) {
		s.stopPolling(id)
		s.reserveCached(st.live)
		e.budget += st.live
		e.state = stateRun
		return true
	}
	if e.state != statePoll {
		e.state, e.what, e.asked = statePoll, st.arg, s.now
		s.polling = append(s.polling, id)
	}
	e.locked, e.held = s.now, false
	e.pc--
	return false
}

func (s *Simulator) stopPolling(id int32) {
	for i, other := range s.polling {
		if other == id {
			s.polling = append(s.polling[:i], s.polling[i+1:]...)
			return
		}
	}
}

// budgetFell lets the loads that look for bytes look again when they next would.
func (s *Simulator) budgetFell() {
	for _, id := range s.polling {
		e := &s.ents[id]
		if e.held { // its timer is set
			continue
		}
		e.held = true
		every := s.prog.model.Cached[e.what].Poll()
		at := e.asked + every*math.Ceil((s.now-e.asked)/every)
		if at <= e.locked { // it has just looked
			at += every
		}
		s.timer(max(at, s.now), id)
	}
}

// wanted is how many bytes a load looks for.
func (s *Simulator) wanted(id int32) int64 { return s.steps[s.ents[id].pc].live }

// adopt makes the buffer of the load id that of the cached object, which belongs to no job.
func (t *tape) adopt(s *Simulator, object, id int32) {
	last, number := s.extra(extraLater), int32(pipeline.MaxBuffers)+object
	if t.ids[last] == nil {
		t.ids[last] = map[int32]int64{}
	}
	t.ids[last][number] = t.ids[id][number]
}

// loadName says which load id is, and what it holds.
func (s *Simulator) loadName(id int32) string {
	i, n := id-s.extra(extras), int32(len(s.prog.loads))
	text := fmt.Sprintf("the load of %s for job %d", s.prog.model.Cached[s.prog.loads[i%n]].Class, i/n)
	if bytes := s.ents[id].budget; bytes > 0 {
		text += fmt.Sprintf(" (%s reserved)", units.Bytes(bytes))
	}
	return text
}
