package sim

import (
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

func (s *Simulator) askJob(e *entity, id int32) bool {
	e.state = stateAdmission
	return s.ask(&s.jobs, resourceJob, id, 1)
}

// dispatch lets the job's partitions go. The job waits until they are over.
func (s *Simulator) dispatch(e *entity) {
	n := int32(s.policy.Partitions)
	e.live, e.open, e.unsent, e.state = n, n, n, statePartitions
	s.eachFollower(e, func(f *entity) { f.live, f.open, f.state = n, n, statePartitions })
	for p := range n {
		s.ents[e.job*n+p].mult = e.mult
		s.wake(e.job*n + p)
	}
	s.freeDispatcher(pipeline.HoldParse, e)
}

// partitionOver is past verification; after the last one the job goes on to its end.
func (s *Simulator) partitionOver(e *entity) {
	e.state = stateOver
	job := &s.ents[s.nParts+e.job]
	s.stats.Partitions += int64(max(e.mult, 1))
	if job.open--; job.open > 0 {
		return
	}
	job.state = stateRun
	s.wake(s.nParts + e.job)
	s.eachFollower(job, func(f *entity) {
		f.state = stateRun
		s.wake(s.nParts + f.job)
	})
}

func (s *Simulator) jobOver(e *entity) {
	e.state = stateOver
	s.stats.JobsDone++
	s.leaveCached(e)
	if s.tape != nil {
		s.tape.endJob(s, e)
	}
}

func (s *Simulator) askBudget(e *entity, id int32) bool {
	e.state = stateBudget
	ok := s.ask(&s.budget, resourceBudget, id, s.amount(resourceBudget, id))
	if !ok && s.evict() {
		ok = s.retryBudget(id)
	}
	s.stats.QueueMax.BudgetWaiting = int64(s.budget.maxWait)
	return ok
}

func (s *Simulator) giveBudget(e *entity, id int32, amount int64) {
	amount = min(amount, e.budget)
	if amount <= 0 {
		return
	}
	e.budget -= amount
	s.give(&s.budget, resourceBudget, id, amount)
	s.budgetFell()
}

func (s *Simulator) askPermit(e *entity, id int32) bool {
	e.state = statePermit
	ok := s.ask(&s.permits, resourcePermit, id, 1)
	s.stats.QueueMax.PermitWaiting = max(s.stats.QueueMax.PermitWaiting, int64(s.permits.wait.n))
	return ok
}

// releaseAt gives the permit back when the policy does so at this point.
func (s *Simulator) releaseAt(point string, e *entity, id int32) {
	if s.policy.PermitRelease != point || !e.permit {
		return
	}
	e.permit = false
	s.give(&s.permits, resourcePermit, id, 1)
}

// send offers the partition to the GPU workers. It returns true when one took it at once.
func (s *Simulator) send(e *entity, id int32) bool {
	e.state = stateSend
	s.senders.push(id)
	s.queue(resourceChannel, trace.EventSend, id, operation{1, int64(s.items.n), s.senders.n})
	taken := s.move(id)
	m := &s.stats.QueueMax
	m.ChannelSenders = max(m.ChannelSenders, int64(s.senders.n))
	m.ChannelItems = max(m.ChannelItems, int64(s.items.n))
	m.Backlog = max(m.Backlog, int64(s.senders.n+s.items.n))
	return taken
}

// move accepts senders while there is room and hands items to workers while there are both. It
// reports whether the entity asking was taken by a worker; others are woken.
func (s *Simulator) move(asking int32) bool {
	taken := false
	for {
		switch {
		case s.senders.n > 0 && s.room():
			s.accept()
		case s.items.n > 0 && s.receivers.n > 0:
			if id := s.deliver(); id == asking {
				taken = true
			} else {
				s.wake(id)
			}
		default:
			return taken
		}
	}
}

func (s *Simulator) room() bool {
	switch s.channelCap {
	case int64(pipeline.Unbounded):
		return true
	case 0: // a rendezvous
		return s.items.n < s.receivers.n
	}
	return int64(s.items.n) < s.channelCap
}

func (s *Simulator) accept() {
	id := s.senders.pop()
	s.items.push(id)
	e := &s.ents[id]
	e.state = stateChannel
	s.queue(resourceChannel, trace.EventSent, id, operation{1, int64(s.items.n), s.senders.n})
	s.releaseAt(pipeline.ReleaseSendAccepted, e, id)
	if s.dispatchers.capacity > 0 {
		job := &s.ents[s.nParts+e.job]
		if job.unsent--; job.unsent == 0 {
			s.freeDispatcher(pipeline.HoldSend, job)
		}
	}
}

// deliver hands the first item to the worker that has waited longest.
func (s *Simulator) deliver() int32 {
	id, worker := s.items.pop(), s.receivers.pop()
	e := &s.ents[id]
	e.worker, e.state, e.since = worker, stateRun, s.now
	s.onWorkers++
	s.stats.QueueMax.OnWorkers = max(s.stats.QueueMax.OnWorkers, s.onWorkers)
	s.queue(resourceChannel, trace.EventRecv, id, operation{1, int64(s.items.n), s.senders.n})
	s.releaseAt(pipeline.ReleaseGPUPickup, e, id)
	return id
}

// idle lets a GPU worker wait for an item.
func (s *Simulator) idle(e *entity) {
	e.state = stateItem
	s.receivers.push(e.worker)
	s.move(-1)
}

// lockStep requests the device's lock, or gives it back; without a lock it only takes the time.
func (s *Simulator) lockStep(op opcode, e *entity, id int32) bool {
	if s.prog.model.Machine.LockCapacity <= 0 {
		return true
	}
	lock := &s.locks[s.lockOf(e)]
	if op == opUnlock {
		s.stats.LockNS += s.now - e.locked
		s.give(lock, resourceLock, id, 1)
		return true
	}
	e.locked, e.state = s.now, stateLock
	got := s.ask(lock, resourceLock, id, 1)
	s.stats.QueueMax.LockWaiting = max(s.stats.QueueMax.LockWaiting, int64(lock.wait.n))
	return got
}

// workerDone lets go of the GPU worker, which turns to its next item.
func (s *Simulator) workerDone(e *entity) {
	s.stats.WorkerNS += s.now - e.since
	s.stats.GPUNS += s.now - e.since + s.prog.partitions[e.member].turn
	s.onWorkers--
	if s.pacer.on {
		s.pacer.proved(s, s.now-e.since)
	}
	id := s.nParts + s.nJobs + e.worker
	s.ents[id].pc, s.ents[id].state = s.prog.partitions[e.member].worker, stateRun
	e.worker = -1
	s.wake(id)
}

func (s *Simulator) askFinaliser(e *entity, id int32) bool {
	e.state = stateFinaliser
	return s.ask(&s.finalisers, resourceFinaliser, id, 1)
}

// freed gives back what is held until the last free; the job's last partition gives back the job's
// slot.
func (s *Simulator) freed(e *entity, id int32) {
	s.giveBudget(e, id, e.budget)
	s.releaseAt(pipeline.ReleaseFreed, e, id)
	if s.policy.SplitProving && s.prog.model.Machine.Finalisers != pipeline.Unbounded {
		s.give(&s.finalisers, resourceFinaliser, id, 1)
	}
	if s.prog.model.Admission.QueueDepth > 0 {
		s.give(&s.depth, resourceDepth, id, 1)
	}
	job := &s.ents[s.nParts+e.job]
	if job.live--; job.live > 0 {
		return
	}
	s.give(&s.jobs, resourceJob, s.nParts+e.job, 1)
	s.freeDispatcher(pipeline.HoldFreed, job)
	s.eachFollower(job, func(f *entity) { s.give(&s.jobs, resourceJob, s.nParts+f.job, 1) })
}

// lockOf is the lock of the device that the partition's GPU worker belongs to.
func (s *Simulator) lockOf(e *entity) int64 {
	if s.prog.model.Machine.OneLock {
		return 0
	}
	return int64(e.worker) / s.policy.GPUWorkers
}
