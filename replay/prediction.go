package replay

import "highwater/tracer/trace"

// Prediction is what a replay says. Plain numbers are medians over the draws of the fit; Low and High
// bound the middle 95 % of all draws, Low80 and High80 the middle 80 % (of RSS with the error of its
// law, Law.RemainderErrorBytes), and are null with frozen durations, which have no spread. A nil
// pointer is "not known", never 0. Its JSON is the `--json` output of `highwater replay`.
type Prediction struct {
	// null where the trace has neither base nor RSS to fit a law to
	PeakRSSBytes       *int64 `json:"peak_rss_bytes"`
	PeakRSSBytesLow    *int64 `json:"peak_rss_bytes_low"`
	PeakRSSBytesHigh   *int64 `json:"peak_rss_bytes_high"`
	PeakRSSBytesLow80  *int64 `json:"peak_rss_bytes_low80"`
	PeakRSSBytesHigh80 *int64 `json:"peak_rss_bytes_high80"`
	// host, top level, from the first job's request on
	PeakLiveBytes         *int64 `json:"peak_live_bytes"`
	PeakLiveBytesLow      *int64 `json:"peak_live_bytes_low"`
	PeakLiveBytesHigh     *int64 `json:"peak_live_bytes_high"`
	PeakLiveBytesLow80    *int64 `json:"peak_live_bytes_low80"`
	PeakLiveBytesHigh80   *int64 `json:"peak_live_bytes_high80"`
	MakespanNS            *int64 `json:"makespan_ns"` // first submit to last free
	MakespanNSLow         *int64 `json:"makespan_ns_low"`
	MakespanNSHigh        *int64 `json:"makespan_ns_high"`
	MakespanNSLow80       *int64 `json:"makespan_ns_low80"`
	MakespanNSHigh80      *int64 `json:"makespan_ns_high80"`
	ProofIntervalNS       *int64 `json:"proof_interval_ns"` // makespan over jobs finished
	ProofIntervalNSLow    *int64 `json:"proof_interval_ns_low"`
	ProofIntervalNSHigh   *int64 `json:"proof_interval_ns_high"`
	ProofIntervalNSLow80  *int64 `json:"proof_interval_ns_low80"`
	ProofIntervalNSHigh80 *int64 `json:"proof_interval_ns_high80"`
	// what synthesis offers over what the GPU side can take
	Rho       *float64 `json:"rho"`
	RhoLow    *float64 `json:"rho_low"`
	RhoHigh   *float64 `json:"rho_high"`
	RhoLow80  *float64 `json:"rho_low80"`
	RhoHigh80 *float64 `json:"rho_high80"`

	// MemoryLimitBytes is the limit asked about, null where none was; PeakOverLimitRatio the share
	// of draws whose peak RSS (peak live bytes where RSS is unknown) exceeds it, the error of the
	// law of RSS included.
	MemoryLimitBytes   *int64   `json:"memory_limit_bytes"`
	PeakOverLimitRatio *float64 `json:"peak_over_limit_ratio"`

	// share of the makespan in which GPU workers held no partition
	GPUIdleRatio *float64 `json:"gpu_idle_ratio"`
	// per resource: most items queued, permits held or waiting at once
	QueueMaxItems map[string]int64 `json:"queue_max_items"`

	// Support says whether the traces show what the prediction rests on
	Support Support `json:"support"`
	// Growth says how the peak depends on the run's length; null where that was not asked
	Growth *Growth `json:"growth"`

	// as replayed, each with source trace or set
	Settings  map[string]trace.Setting `json:"settings"`
	Durations string                   `json:"durations"` // recorded | fitted
	Draws     int                      `json:"draws"`
	Seed      uint64                   `json:"seed"`
	Law       Law                      `json:"law"`
	// the recorded settings replayed the same way; null without a recorded makespan
	Identity *Identity `json:"identity"`
	Warnings []string  `json:"warnings"`
	// the simulated trace, where one was asked for
	Out string `json:"out,omitempty"`

	Recorded Recorded `json:"recorded"` // the source run, last
}

// Support says whether the traces support a prediction: each stage runs at a concurrency that at
// least MinServices recorded services saw, between two such, or at most MaxBeyond times beyond.
type Support struct {
	// inside | outside | unknown (a model without traces)
	Verdict string `json:"verdict"`
	// why not inside, and what to record
	Reasons []string       `json:"reasons"`
	Stages  []StageSupport `json:"stages"`
}

// Words of Support.Verdict.
const (
	SupportInside  = "inside"
	SupportOutside = "outside"
	SupportUnknown = "unknown"
)

// StageSupport is one stage's: concurrency is services of the stage at once, as a service sees it
// on average over its time.
type StageSupport struct {
	Stage string `json:"stage"`
	// most that the prediction has
	Concurrency float64 `json:"concurrency_services"`
	// least and most that MinServices recorded services saw, the middle where there are fewer than twice
	// as many; null where there are fewer services
	SeenLow  *float64 `json:"seen_low_services"`
	SeenHigh *float64 `json:"seen_high_services"`
	Seen     int64    `json:"seen_services"` // recorded services of the stage
}

// Growth is how the peak depends on how long the run goes on: that of a run of as many jobs as were
// asked about against longer runs under the same settings.
type Growth struct {
	// rise of the peak (RSS, live bytes where RSS is unknown) per second of run; 0 where it settles
	BytesPerS     float64 `json:"bytes_per_s"`
	BytesPerSLow  float64 `json:"bytes_per_s_low"`
	BytesPerSHigh float64 `json:"bytes_per_s_high"`
	// Jobs of the run asked about, and of the longest that was tried
	Jobs     int64 `json:"jobs"`
	MostJobs int64 `json:"most_jobs"`
	// JobsToLimit is about how many jobs a run must have for its median peak to reach the memory
	// limit: more than Jobs where the run asked about stays below it. Null without a limit, and where
	// no run tried passes it.
	JobsToLimit *int64 `json:"jobs_to_limit"`
	// few and many: where the upper and the lower bound of 95 % reach it
	JobsToLimitLow  *int64 `json:"jobs_to_limit_low"`
	JobsToLimitHigh *int64 `json:"jobs_to_limit_high"`
	// time from the first submit of such a run to there; a shorter run never gets there
	TimeToLimitNS     *int64 `json:"time_to_limit_ns"`
	TimeToLimitNSLow  *int64 `json:"time_to_limit_ns_low"`
	TimeToLimitNSHigh *int64 `json:"time_to_limit_ns_high"`
	// all of this in a sentence
	Text string `json:"text"`

	material bool // see Matters
}

// Law names the laws that the prediction rests on and how well they explain the recording.
type Law struct {
	// recorded | processor_sharing | independent
	Service string `json:"service"`
	// what the law leaves unexplained: spread of a stage's solo times, and where it was measured the
	// error of the CPU time; and the same if nothing contended
	ServiceResidual     *float64 `json:"service_residual"`
	ResidualIndependent *float64 `json:"service_residual_independent"`
	// of the contention law; 0 where nothing contends
	CPUs   float64    `json:"cpus"`
	Stages []LawStage `json:"stages"`
	// how many starts a device's lock lets run at once; 0 without a lock
	LockCapacity int64 `json:"lock_capacity"`
	// cores that other programs used while the traces were recorded; null where not sampled
	OtherCores  *float64 `json:"other_cores"`
	ServiceText string   `json:"service_text"` // the contention law in a sentence
	// scratch_high_water | proportional | none
	Remainder string `json:"remainder"`
	// constant part as used: the base, moved so that the recorded peak comes out
	RemainderBytes *int64 `json:"remainder_bytes"`
	// law over recorded peak RSS, minus 1, before the base was moved to fit
	RemainderErrorOf *float64 `json:"remainder_error_ratio"`
	// by how much RSS may lie above or below the law at the recorded peak, standard deviation: what
	// samples lay above it while jobs held buffers, and no less than remainder_error_ratio of the
	// recorded peak, nor than what recordings are known to differ by
	RemainderErrorBytes *int64 `json:"remainder_error_bytes"`
	// the law of RSS and its error in a sentence
	Text string `json:"text"`
}

// LawStage is one stage's part of the contention law.
type LawStage struct {
	Stage       string  `json:"stage"`
	Services    int64   `json:"services"`
	Parallelism float64 `json:"parallelism_cores"` // that a service uses alone; 0: none
	Weight      float64 `json:"weight_cores"`      // share where cores are short
	// slow-down in memory by one core's worth of other services
	Sensitivity float64 `json:"sensitivity_ratio"`
	CPUMeasured bool    `json:"cpu_measured"` // its CPU time was, and is its work
	// what the law leaves unexplained of it; null where there is nothing to go by
	Residual *float64 `json:"residual"`
}

// Identity is the error of replaying the recorded settings: predicted over recorded, minus 1.
type Identity struct {
	MakespanErrorRatio *float64 `json:"makespan_error_ratio"`
	PeakLiveErrorRatio *float64 `json:"peak_live_error_ratio"`
	PeakRSSErrorRatio  *float64 `json:"peak_rss_error_ratio"`
	// PeakRSSCalibrated says that the law of RSS was moved to give the recorded peak: its error is
	// then that of the peak of the ledger, and no check of the law.
	PeakRSSCalibrated bool `json:"peak_rss_calibrated"`
}

// Recorded is the same figures of the source run, as measured.
type Recorded struct {
	PeakRSSBytes *int64 `json:"peak_rss_bytes"`
	// vmhwm | sampled | predicted
	PeakRSSSource   string                   `json:"peak_rss_source,omitempty"`
	PeakLiveBytes   *int64                   `json:"peak_live_bytes"`
	MakespanNS      *int64                   `json:"makespan_ns"`
	ProofIntervalNS *int64                   `json:"proof_interval_ns"`
	Rho             *float64                 `json:"rho"`
	Settings        map[string]trace.Setting `json:"settings"`
}
