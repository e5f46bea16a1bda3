package sim

import (
	"maps"
	"slices"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// compilePartition lays out one pool member's way under the policy.
func (p *program) compilePartition(t *pipeline.Partition) way {
	w := way{start: p.here()}
	w.settled, w.early = t.Reserves()
	c := &partCompiler{program: p, part: t, held: p.ledger(), early: w.early}
	policy := &p.model.Policy
	w.synthGap = gaps(t, pipeline.SegmentSynthesis)
	c.segment(pipeline.SegmentDispatch)
	p.admission()
	c.segment(pipeline.SegmentSynthesis)
	p.add(step{op: opSynthEnd})
	p.add(step{op: opSend})
	c.onWorker(policy)
	c.offWorker(policy)
	return w
}

// gaps is the time in a segment that no stage uses.
func gaps(t *pipeline.Partition, segment string) float64 {
	sum := 0.0
	for i := range t.Pieces {
		if t.Pieces[i].Segment == segment && t.Pieces[i].Stage == "" {
			sum += t.Pieces[i].SoloNS
		}
	}
	return sum
}

// budgeted says whether reservations are followed: where they are bounded, and in a trace.
func (p *program) budgeted() bool {
	return p.detail == withEvents || p.model.Policy.ByteBudget != pipeline.Unbounded
}

// admission is how a partition comes to its synthesis.
func (p *program) admission() {
	a := &p.model.Admission
	if a.PermitFirst && !a.NoPermit {
		p.add(step{op: opPermit})
	}
	if a.Serial {
		p.add(step{op: opHand})
	}
	if a.QueueDepth > 0 {
		p.add(step{op: opDepth})
	}
	if p.model.Pacer.Target > 0 {
		p.add(step{op: opPace})
	}
	if p.budgeted() {
		p.add(step{op: opBudget})
	}
	if a.Serial {
		p.add(step{op: opHandoff})
	}
	switch {
	case a.NoPermit || a.PermitFirst:
		p.add(step{op: opSynthBegin})
	default:
		p.add(step{op: opPermit})
	}
}

// partCompiler walks one partition's pieces.
type partCompiler struct {
	*program
	part  *pipeline.Partition
	held  ledger
	early int64 // given back of the byte budget after the gpu segment
}

// onWorker is from the receive to the end of the lock. With split_proving the GPU worker turns to
// its next item there.
func (c *partCompiler) onWorker(policy *pipeline.Policy) {
	whole := c.model.Machine.LockScope == pipeline.LockWorker
	if whole {
		c.add(step{op: opLock})
	}
	c.segment(pipeline.SegmentPickup)
	if !whole {
		c.add(step{op: opLock})
	}
	c.segment(pipeline.SegmentGPU)
	if policy.EarlyFree {
		c.freeEarly()
		if c.budgeted() && c.early > 0 {
			c.add(step{op: opBudgetPart})
		}
	}
	narrow := c.model.Machine.LockScope == pipeline.LockKernels
	if !policy.SplitProving && !narrow {
		c.segment(pipeline.SegmentSplit)
	}
	c.add(step{op: opUnlock})
	if !policy.SplitProving && narrow {
		c.segment(pipeline.SegmentSplit)
	}
	if !policy.SplitProving && c.model.Machine.FreeOffWorker {
		c.add(step{op: opWorkerDone})
	}
}

// offWorker is from there to the partition's end. Without split_proving the worker stays to the
// last free.
func (c *partCompiler) offWorker(policy *pipeline.Policy) {
	if policy.SplitProving {
		c.add(step{op: opWorkerDone})
		if c.model.Machine.Finalisers != pipeline.Unbounded {
			c.add(step{op: opFinaliser})
		}
		c.segment(pipeline.SegmentSplit)
	}
	c.segment(pipeline.SegmentFinalise)
	if !policy.EarlyFree {
		c.freeEarly()
	}
	c.freeRest()
	c.add(step{op: opFreed})
	if !policy.SplitProving && !c.model.Machine.FreeOffWorker {
		c.add(step{op: opWorkerDone})
	}
	c.segment(pipeline.SegmentAfter)
	c.freeRest()
	c.add(step{op: opPartEnd})
}

func (c *partCompiler) segment(name string) {
	for i := range c.part.Pieces {
		if c.part.Pieces[i].Segment == name {
			c.piece(&c.part.Pieces[i], c.held, c.part.EarlyFree)
		}
	}
}

// freeEarly frees the buffers that early_free places.
func (c *partCompiler) freeEarly() {
	for _, b := range c.part.EarlyFree {
		c.free(b, c.held)
	}
}

// freeRest frees what the pieces forgot, so that at the end only resident buffers live.
func (c *partCompiler) freeRest() {
	for _, b := range slices.Sorted(maps.Keys(c.held.held)) {
		c.free(b, c.held)
	}
}

func (p *program) free(buffer int, held ledger) {
	old, ok := held.held[buffer]
	if !ok {
		return
	}
	old.Event, old.Capacity, old.Resident = trace.EventFree, 0, 0
	p.change(held.apply(old), old)
}

// piece compiles one piece. Frees of the buffers in placed are left to the policy.
func (p *program) piece(piece *pipeline.Piece, held ledger, placed []int) {
	stage, named := p.stageOf[piece.Stage]
	spans := named && (p.detail >= withStages || p.scaled(stage))
	if named {
		p.lockSteps(opAskLock, piece.Stage, func(l *pipeline.Lock) string { return l.From })
	}
	if spans {
		p.add(step{op: opBegin, arg: stage})
	}
	class, done := p.classOf[piece.Stage], 0.0
	for _, c := range piece.Buffers {
		if _, ok := held.held[c.Buffer]; !ok && c.Event != trace.EventAlloc {
			continue
		}
		if c.Event == trace.EventFree && slices.Contains(placed, c.Buffer) {
			continue
		}
		s := held.apply(c)
		if p.detail < withEvents && s.live == 0 && s.resident == 0 && s.scratch == 0 {
			continue // nothing that statistics count: no event of its own
		}
		p.work(class, (c.At-done)*piece.SoloNS)
		done = c.At
		p.change(s, c)
	}
	p.work(class, (1-done)*piece.SoloNS)
	if spans {
		p.add(step{op: opEnd, arg: stage})
	}
	if named {
		p.lockSteps(opGiveLock, piece.Stage, func(l *pipeline.Lock) string { return l.To })
	}
}

// scaled says whether a stage's services are not all as long as their pieces say.
func (p *program) scaled(stage int32) bool {
	s := &p.model.Stages[stage]
	return s.CV > 0 || s.Uncertainty > 0 || s.BatchShare > 0 && p.model.Batch.Merge
}

// lockSteps adds a step for each lock that stage begins or ends.
func (p *program) lockSteps(op opcode, stage string, end func(*pipeline.Lock) string) {
	for i := range p.locks {
		if end(&p.locks[i]) == stage {
			p.add(step{op: op, arg: int32(i)})
		}
	}
}

// compileLocks lists the model's locks and one for each stage whose workers are bounded.
func (p *program) compileLocks() {
	p.locks = append(p.locks, p.model.Locks...)
	for i := range p.model.Stages {
		if s := &p.model.Stages[i]; s.Workers > 0 {
			p.locks = append(p.locks, pipeline.Lock{
				Name: s.Name + " workers", Capacity: s.Workers, From: s.Name, To: s.Name,
			})
		}
	}
}

// compileJob lays out a job's way.
func (p *program) compileJob(j *pipeline.Job) way {
	w := way{start: p.here()}
	held := p.ledger()
	p.work(0, j.SubmitNS)
	if p.model.Arrivals.Kind != pipeline.ArriveAtOnce {
		p.add(step{op: opArrive})
	}
	p.add(step{op: opSubmit})
	if p.model.Batch.Size > 1 {
		p.add(step{op: opCollect})
	}
	if p.model.Dispatch.Workers > 0 {
		p.add(step{op: opDispatcher})
	}
	p.needCached()
	for i := range j.Before {
		p.piece(&j.Before[i], held, nil)
	}
	p.startLoads()
	p.add(step{op: opDispatch})
	for i := range j.After {
		p.piece(&j.After[i], held, nil)
	}
	for _, b := range slices.Sorted(maps.Keys(held.held)) {
		p.free(b, held)
	}
	p.add(step{op: opJobEnd})
	return w
}
