package prover

import (
	"crypto/sha256"
	"encoding/hex"

	"highwater/tracer/trace"
)

// States of a job at the end of a run.
const (
	JobFinished = "finished"
	JobFailed   = "failed"
	JobSkipped  = "skipped" // not admitted, or given up, because the run was interrupted
)

// Result is what a run did. A run that an interrupt cut short has a result too.
type Result struct {
	End           string // trace.EndFinished; EndFailed if a job failed; EndInterrupted
	Backend       string // the backend used
	BackendReason string // why it was taken
	// InEffect is the value of each setting that the run chose by itself: backend, and
	// memory_limit_bytes where it was left unbounded.
	InEffect     map[string]string
	Jobs         []JobResult
	JobsFinished int
	JobsFailed   int
	JobsSkipped  int
	// ProofsSHA256 is over every proof of every finished job in order of (job, partition).
	ProofsSHA256 string

	SetupNanos         int64  // 0 when the keys came from the cache
	LoadNanos          int64  //
	MakespanNanos      *int64 // first job submitted to last partition freed; nil where no job ran
	ProofIntervalNanos *int64 // makespan / jobs finished; nil where none finished

	PeakRSS   *trace.PeakRSS // of the proving phase
	BaseBytes *int64         // as in the manifest
	Circuit   trace.Circuit
	Counters  Counters
	TraceDir  string             // "" where nothing was recorded
	Loss      []trace.Loss       // events that were not recorded
	Recorder  trace.RecorderCost // with OpenTelemetry spans sent and dropped
	Warnings  []string           // doubts about the result: a damaged cache, a peak that is only sampled …
}

// Counters count what the pipeline did.
type Counters struct {
	Synthesised int64 // partitions whose synthesis ended well
	Started     int64 // partitions whose prove_start ended well
	Proved      int64 // partitions with a proof
	Verified    int64 // proofs that gnark's verifier accepted
	Skipped     int64 // partitions given up because their job failed or the run was interrupted
	// WaitingPeak is the most partitions that waited between synthesis and a GPU worker, in the
	// channel and before it.
	WaitingPeak int64
}

// JobResult is the end of one job.
type JobResult struct {
	Job       int
	State     string
	Partition int    // the partition that failed, -1 where the job as a whole did
	Stage     string // the stage that failed
	Reason    string // why
	Proofs    [][]byte
	// InFlightNanos is from admission to the last free; 0 where the job was not admitted.
	InFlightNanos int64
}

// digest is the hex SHA-256 over the proofs of finished jobs.
func digest(jobs []JobResult) string {
	h := sha256.New()
	for _, j := range jobs {
		if j.State != JobFinished {
			continue
		}
		for _, p := range j.Proofs {
			h.Write(p)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
