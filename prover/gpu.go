package prover

import (
	"context"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// gpuWorker takes partitions from the channel until it is closed and empty. Worker n is of device n
// modulo their number; a partition is proved whole on the device of the worker that took it.
func (pl *pipeline) gpuWorker(id int32) {
	owner := tracer.NoOwner
	owner.Worker, owner.Stage = id, trace.StageProveStart
	for {
		p, ok := pl.channel.recv(owner)
		if !ok {
			return
		}
		pl.report.change(func(s *Progress) { s.Waiting-- })
		pl.prove(p, id)
	}
}

// prove starts p under the device's lock. With split_proving the finaliser takes it from there and
// the worker is free; without, the worker runs b_g2 under the lock too, and finalises.
func (pl *pipeline) prove(p *partition, id int32) {
	if pl.release == releaseGPUPickup {
		pl.permits.release(p.permit)
	}
	p.device = id % int32(pl.devices)
	p.work.onto(p.device)
	if err := pl.stageIn(p, id); err != nil {
		pl.giveUp(p, trace.StageStageIn, err)
		return
	}
	owner := p.owner(trace.StageProveStart, id)
	p.work.handoff(owner)
	if stage, err := pl.underLock(p, owner); err != nil {
		pl.giveUp(p, stage, err)
		return
	}
	pl.count.started.Add(1)
	if !pl.splitProving {
		pl.finalise(p, id)
		return
	}
	p.work.handoff(p.owner(trace.StageBG2, -1))
	pl.finalisers.Go(func() { pl.finalise(p, -1) })
}

// stageIn brings p within its device's reach, beside what the device does for the partition before.
func (pl *pipeline) stageIn(p *partition, id int32) error {
	if !pl.engine.staged() {
		return nil
	}
	p.work.handoff(p.owner(trace.StageStageIn, id))
	spec := stageSpec{name: trace.StageStageIn, worker: id, threads: pl.stageThreads, onDevice: true}
	return pl.stage(p, spec, p.work.stageIn)
}

// underLock is what a GPU worker does while it holds the device. It returns the stage that failed.
func (pl *pipeline) underLock(p *partition, owner tracer.Owner) (string, error) {
	lock := pl.locks[p.device]
	held, err := lock.acquire(p.job.ctx, owner, 1)
	if err != nil {
		return trace.StageProveStart, err
	}
	defer lock.release(held)
	if err := context.Cause(p.job.ctx); err != nil {
		return trace.StageProveStart, err
	}
	spec := stageSpec{name: trace.StageProveStart, worker: owner.Worker,
		threads: pl.startThreads, onDevice: true}
	if err := pl.stage(p, spec, p.work.start); err != nil {
		return trace.StageProveStart, err
	}
	if pl.earlyFree {
		if err := pl.freeEarly(p); err != nil {
			return trace.StageDealloc, err
		}
	}
	if pl.splitProving {
		return "", nil
	}
	return trace.StageBG2, pl.bG2(p, owner.Worker)
}

// freeEarly gives a, b, c and their share of the budget back: they are dead once the start has
// returned.
func (pl *pipeline) freeEarly(p *partition) error {
	err := p.work.freeABC()
	if _, abc := pl.engine.sizes(); abc > 0 {
		pl.budget.releasePart(p.budget, abc)
	}
	return err
}

func (pl *pipeline) bG2(p *partition, worker int32) error {
	if p.work.hasBG2() {
		return nil
	}
	spec := stageSpec{name: trace.StageBG2, worker: worker, threads: pl.bG2Threads}
	return pl.stage(p, spec, p.work.bG2)
}
