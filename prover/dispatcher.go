package prover

import (
	"context"
	"fmt"
	"time"

	"highwater/internal/units"
	"highwater/tracer"
	"highwater/tracer/trace"
)

// dispatch submits every job, and admits them one after another as slots allow. It returns when the
// last is admitted or the context has ended; the partitions then run on.
func (pl *pipeline) dispatch(ctx context.Context) {
	pl.firstSubmit = time.Now()
	slots := make([]*ticket, pl.jobs)
	for i := range slots {
		owner := tracer.NoOwner
		owner.Job = int32(i)
		slots[i] = pl.jobSlots.request(owner, 1)
	}
	for i, slot := range slots {
		switch {
		case pl.jobSlots.wait(ctx, slot) != nil:
			pl.skipJob(i)
		case ctx.Err() != nil: // granted, but no more is admitted
			pl.turnAway(ctx, i, slot)
		default:
			pl.admit(ctx, i, slot)
		}
	}
}

// skipJob notes a job that was never admitted.
func (pl *pipeline) skipJob(index int) {
	pl.count.skipped.Add(int64(pl.partitions))
	pl.mu.Lock()
	defer pl.mu.Unlock()
	pl.results[index] = skippedJob(index)
}

// turnAway skips a job whose slot came with the end of the context. Its request was answered and
// cannot be cancelled any more, so its span tells that it did not run.
func (pl *pipeline) turnAway(ctx context.Context, index int, slot *ticket) {
	j := pl.newJob(ctx, index, slot)
	j.cancel(nil)
	pl.skipJob(index)
	pl.jobSlots.release(slot)
	j.end(skippedJob(index))
}

// newJob is a job with its slot, whose span begins.
func (pl *pipeline) newJob(ctx context.Context, index int, slot *ticket) *job {
	j := &job{index: index, slot: slot, live: pl.partitions, open: pl.partitions,
		proofs: make([][]byte, pl.partitions), admitted: time.Now()}
	owner := tracer.NoOwner
	owner.Job = int32(index)
	ctx, j.span = pl.rec.Start(ctx, tracer.SpanSpec{
		Kind: trace.KindJob, Name: fmt.Sprintf("job-%d", index), Track: "jobs", Owner: owner,
		Device: -1, Stream: trace.Null, Threads: trace.Null,
	})
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	return j
}

// admit starts a job: its partitions reserve their bytes in order, then each goes its own way.
func (pl *pipeline) admit(ctx context.Context, index int, slot *ticket) {
	j := pl.newJob(ctx, index, slot)
	settled, _ := pl.engine.sizes()
	if !pl.budget.fits(settled) {
		j.fail(failure{partition: -1, stage: "admission", err: fmt.Errorf(
			"a partition settles at %s (%d bytes), byte_budget is %s (%d bytes): "+
				"it could never fit; raise byte_budget",
			units.Bytes(settled), settled,
			units.Bytes(pl.byteBudget), pl.byteBudget)})
		pl.rejectJob(j)
		return
	}
	for i := range pl.partitions {
		p := &partition{job: j, index: i, work: pl.engine.partition(index, i)}
		p.budget = pl.budget.request(p.owner("", -1), settled)
		if p.budget.isGranted() {
			p.permit = pl.permits.request(p.owner("", -1), 1)
		}
		pl.synthesis.Go(func() { pl.synthesise(p) })
	}
}

// rejectJob ends a job that was admitted and cannot run.
func (pl *pipeline) rejectJob(j *job) {
	pl.count.skipped.Add(int64(pl.partitions))
	pl.jobSlots.release(j.slot)
	pl.endJob(j)
	pl.report.change(func(s *Progress) { s.PartitionsDone += pl.partitions })
}
