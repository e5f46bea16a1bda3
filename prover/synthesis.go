package prover

import (
	"context"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// synthesise takes p from admission to the channel: budget, permit, witness, solve, send. It runs
// once a partition, on a goroutine of its own, because a partition may wait for the channel without
// a permit (permit_release synth_end).
func (pl *pipeline) synthesise(p *partition) {
	if err := pl.enter(p); err != nil {
		pl.giveUp(p, "admission", err)
		return
	}
	if stage, err := pl.solve(p); err != nil {
		pl.giveUp(p, stage, err)
		return
	}
	pl.count.synthesised.Add(1)
	permit := p.permit // p belongs to its receiver once it is sent
	if pl.release == releaseSynthEnd {
		pl.permits.release(permit)
	}
	pl.report.change(func(s *Progress) { s.Waiting++ })
	p.work.handoff(p.owner("", -1))
	sender := p.owner(trace.StageSynthesis, permit.slot)
	if err := pl.channel.send(p.job.ctx, sender, p); err != nil {
		pl.report.change(func(s *Progress) { s.Waiting-- })
		pl.giveUp(p, "send", err)
		return
	}
	if pl.release == releaseSendAccepted {
		pl.permits.release(permit)
	}
}

// enter waits for the partition's bytes, then for its permit.
func (pl *pipeline) enter(p *partition) error {
	if err := pl.budget.wait(p.job.ctx, p.budget); err != nil {
		p.budget = nil
		return err
	}
	if p.permit == nil {
		p.permit = pl.permits.request(p.owner("", -1), 1)
	}
	if err := pl.permits.wait(p.job.ctx, p.permit); err != nil {
		p.permit = nil
		return err
	}
	return context.Cause(p.job.ctx)
}

// solve makes the witness and solves for it, on one OS thread, so that its CPU time can be told. It
// returns the stage that failed.
func (pl *pipeline) solve(p *partition) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	worker := p.permit.slot
	spec := stageSpec{name: trace.StageWitness, worker: worker, threads: trace.Null}
	if err := pl.stage(p, spec, p.work.witness); err != nil {
		return trace.StageWitness, err
	}
	spec = stageSpec{name: trace.StageSynthesis, worker: worker, threads: 1, ownsThread: true}
	return trace.StageSynthesis, pl.stage(p, spec, p.work.synthesise)
}

// stageSpec describes a stage's span.
type stageSpec struct {
	name       string
	worker     int32 // -1 for none
	threads    int64 // trace.Null where unknown
	onDevice   bool  // the partition's device, for which the CPU backend stands in
	ownsThread bool  // the stage runs on the calling thread alone: its CPU time is recorded
}

// stage runs one stage of p inside its span.
func (pl *pipeline) stage(p *partition, s stageSpec,
	run func(context.Context, tracer.Owner) error,
) error {
	owner := p.owner(s.name, s.worker)
	spec := tracer.SpanSpec{Kind: trace.KindStage, Stage: s.name, Name: s.name, Track: track(s),
		Owner: owner, Device: -1, Stream: trace.Null, Threads: s.threads}
	if s.onDevice {
		spec.Device = p.device
	}
	ctx, span := pl.rec.Start(p.job.ctx, spec)
	owner.Span = span.ID()
	began, ok := threadCPUNanos()
	err := run(ctx, owner)
	if ended, stillOK := threadCPUNanos(); s.ownsThread && ok && stillOK {
		span.SetCPUNanos(ended - began)
	}
	span.End(err)
	return err
}

// threadCPUNanos is the calling thread's CPU time; false where the kernel does not tell it.
func threadCPUNanos() (int64, bool) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return ts.Nano(), err == nil
}

// track names the row on which a timeline shows a stage: one a worker.
func track(s stageSpec) string {
	if s.name == trace.StageWitness || s.name == trace.StageSynthesis {
		return "synthesis/" + strconv.Itoa(int(s.worker))
	}
	if s.worker >= 0 {
		return "gpu/" + strconv.Itoa(int(s.worker))
	}
	return "finalise"
}
