package replay

import "highwater/tracer/trace"

// Prediction is what a replay says. Plain numbers are medians over the draws; Low and High bound
// the middle 95 % of them (of RSS, widened by what its law was off by at the recorded peak) and are
// null with frozen durations, which have no spread. A nil pointer is "not known", never 0. Its JSON
// is the `--json` output of `highwater replay`.
type Prediction struct {
	PeakRSSBytes        *int64   `json:"peak_rss_bytes"` // null where the trace has neither base nor RSS to fit a law to
	PeakRSSBytesLow     *int64   `json:"peak_rss_bytes_low"`
	PeakRSSBytesHigh    *int64   `json:"peak_rss_bytes_high"`
	PeakLiveBytes       *int64   `json:"peak_live_bytes"` // host, top level, from the first job's request on
	PeakLiveBytesLow    *int64   `json:"peak_live_bytes_low"`
	PeakLiveBytesHigh   *int64   `json:"peak_live_bytes_high"`
	MakespanNS          *int64   `json:"makespan_ns"` // first submit to last free
	MakespanNSLow       *int64   `json:"makespan_ns_low"`
	MakespanNSHigh      *int64   `json:"makespan_ns_high"`
	ProofIntervalNS     *int64   `json:"proof_interval_ns"` // makespan over jobs finished
	ProofIntervalNSLow  *int64   `json:"proof_interval_ns_low"`
	ProofIntervalNSHigh *int64   `json:"proof_interval_ns_high"`
	Rho                 *float64 `json:"rho"` // what synthesis offers over what the GPU side can take
	RhoLow              *float64 `json:"rho_low"`
	RhoHigh             *float64 `json:"rho_high"`

	// MemoryLimitBytes is the limit asked about, null where none was; PeakOverLimitRatio the share
	// of draws whose peak RSS (peak live bytes where RSS is unknown) exceeds it.
	MemoryLimitBytes   *int64   `json:"memory_limit_bytes"`
	PeakOverLimitRatio *float64 `json:"peak_over_limit_ratio"`

	GPUIdleRatio  *float64         `json:"gpu_idle_ratio"`  // share of the makespan in which GPU workers held no partition
	QueueMaxItems map[string]int64 `json:"queue_max_items"` // per resource: most items queued, permits held or waiting at once

	Settings  map[string]trace.Setting `json:"settings"`  // as replayed, each with source trace or set
	Durations string                   `json:"durations"` // recorded | fitted
	Draws     int                      `json:"draws"`
	Seed      uint64                   `json:"seed"`
	Law       Law                      `json:"law"`
	Identity  *Identity                `json:"identity"` // the recorded settings replayed the same way; null without a recorded makespan
	Warnings  []string                 `json:"warnings"`
	Out       string                   `json:"out,omitempty"` // the simulated trace, where one was asked for

	Recorded Recorded `json:"recorded"` // the source run, last
}

// Law names the laws that the prediction rests on and how well they explain the recording.
type Law struct {
	Service          string   `json:"service"`               // recorded | processor_sharing | independent
	ServiceResidual  *float64 `json:"service_residual"`      // what the law leaves unexplained: spread of a stage's solo times
	CPUs             float64  `json:"cpus"`                  // of the contention law; 0 where nothing contends
	Remainder        string   `json:"remainder"`             // scratch_high_water | proportional | none
	RemainderBytes   *int64   `json:"remainder_bytes"`       // constant part as used: the base, moved so that the recorded peak comes out
	RemainderErrorOf *float64 `json:"remainder_error_ratio"` // law over recorded peak RSS, minus 1, before the base was moved to fit
}

// Identity is the error of replaying the recorded settings: predicted over recorded, minus 1.
type Identity struct {
	MakespanErrorRatio *float64 `json:"makespan_error_ratio"`
	PeakLiveErrorRatio *float64 `json:"peak_live_error_ratio"`
	PeakRSSErrorRatio  *float64 `json:"peak_rss_error_ratio"`
}

// Recorded is the same figures of the source run, as measured.
type Recorded struct {
	PeakRSSBytes    *int64                   `json:"peak_rss_bytes"`
	PeakRSSSource   string                   `json:"peak_rss_source,omitempty"` // vmhwm | sampled | predicted
	PeakLiveBytes   *int64                   `json:"peak_live_bytes"`
	MakespanNS      *int64                   `json:"makespan_ns"`
	ProofIntervalNS *int64                   `json:"proof_interval_ns"`
	Rho             *float64                 `json:"rho"`
	Settings        map[string]trace.Setting `json:"settings"`
}
