package prover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"highwater/tracer"
	"highwater/tracer/trace"
)

// errJobFailed is the cause by which the partitions of a failed job learn that they are given up.
var errJobFailed = errors.New("another partition of the job failed")

// job is a proof of P partitions under way.
type job struct {
	index  int
	ctx    context.Context
	cancel context.CancelCauseFunc
	span   *tracer.Span
	slot   *ticket // in the job resource

	mu       sync.Mutex
	live     int // partitions not yet freed
	open     int // partitions not yet verified or given up
	skipped  int
	failure  *failure
	proofs   [][]byte
	admitted time.Time
	inFlight time.Duration
}

// failure is why a job failed.
type failure struct {
	partition int
	stage     string
	err       error
}

// partition is one partition on its way through the pipeline. One goroutine owns it at a time.
type partition struct {
	job    *job
	index  int
	work   work
	device int32   // from the pickup on
	budget *ticket // nil until requested, as below
	permit *ticket
}

// owner is the partition as the owner of what happens in stage at worker (-1 for none).
func (p *partition) owner(stage string, worker int32) tracer.Owner {
	return tracer.Owner{Job: int32(p.job.index), Partition: int32(p.index), Worker: worker,
		Stage: stage, Span: p.job.span.ID()}
}

// fail notes why the job failed, the first reason only, and has its other partitions given up.
func (j *job) fail(f failure) {
	j.mu.Lock()
	if j.failure == nil {
		j.failure = &f
	}
	j.mu.Unlock()
	j.cancel(errJobFailed)
}

// freed notes that a partition holds nothing any more; it returns true for the job's last.
func (j *job) freed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.live--
	if j.live == 0 {
		j.inFlight = time.Since(j.admitted)
	}
	return j.live == 0
}

// settled notes that a partition is verified or given up; it returns true for the job's last.
func (j *job) settled(partition int, proof []byte) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.proofs[partition] = proof
	if proof == nil {
		j.skipped++
	}
	j.open--
	return j.open == 0
}

// result is the job's end, once all its partitions are settled.
func (j *job) result() JobResult {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := JobResult{Job: j.index, Partition: -1, InFlightNanos: j.inFlight.Nanoseconds()}
	switch {
	case j.failure != nil:
		r.State, r.Partition, r.Stage = JobFailed, j.failure.partition, j.failure.stage
		r.Reason = j.failure.err.Error()
	case j.skipped > 0:
		r.State, r.Reason = JobSkipped, interruptedReason
	default:
		r.State, r.Proofs = JobFinished, j.proofs
	}
	return r
}

// hasFailed says whether the job failed; one that only an interrupt stopped has not.
func (j *job) hasFailed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.failure != nil
}

// end ends the job's root span as r says. A job that was admitted and then given up holds a slot
// like any other until its release, so the trace has no cancel of it: the span says it.
func (j *job) end(r JobResult) {
	switch r.State {
	case JobFinished:
		j.span.End(nil)
		return
	case JobSkipped:
		j.span.SetAttributes(attribute.Bool(trace.AttrJobCancelled, true))
	}
	j.span.End(errors.New(r.String()))
}

// String says in one line how the job ended: what, where and why.
func (r JobResult) String() string {
	switch {
	case r.State == JobFinished:
		return fmt.Sprintf("job %d finished", r.Job)
	case r.State == JobSkipped:
		return fmt.Sprintf("job %d skipped: %s", r.Job, r.Reason)
	case r.Partition < 0:
		return fmt.Sprintf("job %d failed: %s: %s", r.Job, r.Stage, r.Reason)
	}
	return fmt.Sprintf("job %d failed: partition %d: %s: %s", r.Job, r.Partition, r.Stage, r.Reason)
}

// interruptedReason is why a job was skipped.
const interruptedReason = "the run was interrupted"

// skippedJob is the end of a job that was never admitted.
func skippedJob(index int) JobResult {
	return JobResult{Job: index, State: JobSkipped, Partition: -1, Reason: interruptedReason}
}
