package sim

import (
	"math"

	"highwater/replay/pipeline"
)

// collector is the batch in front of the dispatcher.
type collector struct {
	size     int
	wait     float64
	merge    bool
	ids      []int32 // jobs in the batch
	deadline float64
}

// arriveStep does a job's steps up to its dispatch, and the batch's timer.
func (s *Simulator) arriveStep(op opcode, e *entity, id int32) bool {
	switch op {
	case opArrive:
		e.state = stateArrival
		at := s.arrivals[e.job]
		if at <= s.now {
			e.state = stateRun
			return true
		}
		s.timer(at, id)
		return false
	case opCollect:
		return s.collect(e, id)
	case opFlush:
		e.pc = s.prog.flush
		if len(s.batch.ids) > 0 && s.now >= s.batch.deadline {
			s.flush()
		}
		return false
	}
	e.state = stateDispatcher
	e.held = true
	return s.ask(&s.dispatchers, resourceDispatcher, id, 1)
}

// timer continues id at the time at.
func (s *Simulator) timer(at float64, id int32) {
	s.seq++
	s.timers.push(newTimer(at, s.seq, id))
}

// collect puts a job into the batch. The job that fills it goes on with the others.
func (s *Simulator) collect(e *entity, id int32) bool {
	b := &s.batch
	e.state = stateBatch
	b.ids = append(b.ids, id)
	if len(b.ids) >= b.size {
		s.flush()
		return false
	}
	if len(b.ids) == 1 && b.wait > 0 {
		b.deadline = s.now + b.wait
		s.timer(b.deadline, s.extra(extraBatch))
	}
	return false
}

// flush lets the batch go: all its jobs, or the first of them for all.
func (s *Simulator) flush() {
	b := &s.batch
	first := &s.ents[b.ids[0]]
	for i, id := range b.ids {
		e := &s.ents[id]
		if b.merge && i > 0 {
			e.state = statePartitions
			e.next, first.next = first.next, id-s.nParts
			continue
		}
		e.state = stateRun
		s.wake(id)
	}
	if b.merge {
		first.mult = int32(len(b.ids))
		s.skipToPartitions(first)
	}
	b.ids = b.ids[:0]
}

// skipToPartitions puts the followers of a merged batch behind their dispatch: they await the ends
// of the first job's partitions. What they hold in memory until then, they hold from now on.
func (s *Simulator) skipToPartitions(first *entity) {
	s.eachFollower(first, func(f *entity) {
		for {
			st := &s.steps[f.pc]
			f.pc++
			switch st.op {
			case opMemory, opFree:
				s.memory(st, f, s.nParts+f.job)
			case opPool:
				s.poolChange(st, f, s.nParts+f.job)
			case opDispatch:
				return
			}
		}
	})
}

// eachFollower calls f for the other jobs of the batch that job leads.
func (s *Simulator) eachFollower(job *entity, f func(*entity)) {
	for i := job.next; i >= 0 && job.mult > 1; {
		e := &s.ents[s.nParts+i]
		i = e.next
		f(e)
	}
}

// freeDispatcher gives the job's dispatcher back when the model does so at this point.
func (s *Simulator) freeDispatcher(point string, job *entity) {
	if !job.held || s.prog.model.Dispatch.Hold != point {
		return
	}
	job.held = false
	s.give(&s.dispatchers, resourceDispatcher, s.nParts+job.job, 1)
}

// fillArrivals sets when each job comes.
func (s *Simulator) fillArrivals() {
	a := &s.prog.model.Arrivals
	at := 0.0
	for j := range s.arrivals {
		switch a.Kind {
		case pipeline.ArriveEvery:
			at = float64(j) * a.IntervalNS
		case pipeline.ArrivePoisson:
			if j > 0 {
				at += a.IntervalNS * s.random.ExpFloat64()
			}
		case pipeline.ArriveTimes:
			at = a.AtNS[min(j, len(a.AtNS)-1)]
		}
		s.arrivals[j] = at
	}
}

// drawFactors draws what is not known of the model: the stages' means and the law of RSS. Without
// bootstrap all are as the model says.
func (s *Simulator) drawFactors(bootstrap bool) {
	m := s.prog.model
	for i := range s.scales {
		s.scales[i] = 1
		if u := m.Stages[i].Uncertainty; bootstrap && u > 0 {
			s.scales[i] = s.logNormal(u)
		}
	}
	factor := 1.0
	s.stats.RSSErrorBytes = 0
	if bootstrap && m.Memory.Uncertainty > 0 {
		factor = s.logNormal(m.Memory.Uncertainty)
	}
	if bootstrap && m.Memory.UncertaintyBytes > 0 {
		z := s.random.NormFloat64() * float64(m.Memory.UncertaintyBytes)
		s.stats.RSSErrorBytes = int64(math.Round(z))
	}
	s.stats.RSSFactor, s.stats.StartupBytes = factor, m.Memory.StartupBytes
	if spread := m.Memory.StartupBytesHigh - m.Memory.StartupBytes; spread > 0 {
		share := 0.5
		if bootstrap {
			share = s.random.Float64()
		}
		s.stats.StartupBytes += int64(share * float64(spread))
	}
}
