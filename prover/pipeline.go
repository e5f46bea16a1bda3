package prover

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// pipeline runs the jobs of one run.
type pipeline struct {
	policy
	*resources
	rec    *tracer.Recorder
	engine engine
	report *reporter
	count  counts

	synthesis  sync.WaitGroup // partitions not yet sent or given up
	gpu        sync.WaitGroup // GPU workers
	finalisers sync.WaitGroup // partitions between the GPU worker and their end

	mu          sync.Mutex
	results     []JobResult
	firstSubmit time.Time
	lastFree    time.Time
}

// counts are Counters while they grow.
type counts struct{ synthesised, started, proved, verified, skipped atomic.Int64 }

func newPipeline(p policy, rec *tracer.Recorder, e engine, report *reporter) *pipeline {
	queue := func(r trace.Resource) queueLog { return rec.Queue(r) }
	return &pipeline{policy: p, resources: newResources(p, queue), rec: rec, engine: e,
		report: report, results: make([]JobResult, p.jobs)}
}

// run proves every job, or as many as ctx allows, and returns when nothing of the pipeline runs or
// holds anything.
func (pl *pipeline) run(ctx context.Context) {
	for id := range pl.gpuWorkers * pl.devices {
		pl.gpu.Go(func() { pl.gpuWorker(int32(id)) })
	}
	pl.dispatch(ctx)
	pl.synthesis.Wait()
	pl.channel.close()
	pl.gpu.Wait()
	pl.finalisers.Wait()
}

// giveUp ends a partition that err stopped in stage: its job fails, unless the partition was only
// told to stop.
func (pl *pipeline) giveUp(p *partition, stage string, err error) {
	if p.job.ctx.Err() == nil || !stopped(p.job.ctx, err) {
		p.job.fail(failure{partition: p.index, stage: stage, err: err})
	} else {
		pl.count.skipped.Add(1)
	}
	pl.finish(p)
	pl.settle(p, nil)
}

// stopped says whether err only tells that ctx was cancelled.
func stopped(ctx context.Context, err error) bool {
	return errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled)
}

// finish frees what p holds, bytes first, and gives back its budget and permit; after the job's
// last it gives back the job's slot. It may follow any stage.
func (pl *pipeline) finish(p *partition) {
	if err := pl.dealloc(p); err != nil {
		p.job.fail(failure{partition: p.index, stage: trace.StageDealloc, err: err})
	}
	if p.budget != nil {
		pl.budget.release(p.budget)
	}
	if p.permit != nil {
		pl.permits.release(p.permit)
	}
	last := p.job.freed()
	pl.mu.Lock()
	pl.lastFree = time.Now()
	pl.mu.Unlock()
	if last {
		pl.jobSlots.release(p.job.slot)
	}
}

// dealloc frees what p holds; one that never had a permit holds nothing, and gets no span.
func (pl *pipeline) dealloc(p *partition) error {
	if p.permit == nil {
		return p.work.free()
	}
	spec := stageSpec{name: trace.StageDealloc, worker: -1, threads: 1}
	return pl.stage(p, spec, func(context.Context, tracer.Owner) error { return p.work.free() })
}

// settle notes the end of a partition, nil proof for one without; after its last it ends the job.
func (pl *pipeline) settle(p *partition, proof []byte) {
	if last := p.job.settled(p.index, proof); last {
		pl.endJob(p.job)
	}
	if proof != nil || p.job.hasFailed() {
		pl.report.change(func(s *Progress) { s.PartitionsDone++ })
	}
}

func (pl *pipeline) endJob(j *job) {
	r := j.result()
	j.cancel(nil)
	j.end(r)
	pl.mu.Lock()
	pl.results[j.index] = r
	pl.mu.Unlock()
	if r.State == JobSkipped {
		return
	}
	pl.report.change(func(s *Progress) {
		s.JobsDone++
		if r.State == JobFailed {
			s.JobsFailed++
			s.Message = r.String()
		}
	})
}

// counters are the final counts.
func (pl *pipeline) counters() Counters {
	return Counters{
		Synthesised: pl.count.synthesised.Load(), Started: pl.count.started.Load(),
		Proved: pl.count.proved.Load(), Verified: pl.count.verified.Load(),
		Skipped: pl.count.skipped.Load(), WaitingPeak: pl.channel.waitingPeak(),
	}
}
