package memory

// Report explains the bytes of a trace. Its JSON stands under `memory` in `highwater analyze
// --json`.
type Report struct {
	// jobs: from the first job's request on; whole: the trace has no job
	Phase     string       `json:"phase"`
	Peak      *Attribution `json:"peak"` // of live host bytes; null where nothing was ever alive
	Devices   []DevicePeak `json:"devices"`
	Remainder *Remainder   `json:"remainder"` // null where no RSS was sampled
	AtEnd     Shares       `json:"at_end"`    // live host bytes when the trace ends, by class
	Series    []*Series    `json:"-"`         // down-sampled; `highwater export --csv` writes them
}

// Phases of a Report.
const (
	PhaseJobs  = "jobs"
	PhaseWhole = "whole"
)

// Attribution is what held the live bytes at their peak.
type Attribution struct {
	LiveBytes     int64 `json:"live_bytes"`
	ResidentBytes int64 `json:"resident_bytes"`
	Seq           int64 `json:"seq"`
	TimeNS        int64 `json:"time_ns"`

	ByClass Shares `json:"by_class"`
	ByPlace Shares `json:"by_place"`
	// the stage that allocated the bytes or was handed them
	ByStage      Shares       `json:"by_stage"`
	ByJob        Shares       `json:"by_job"`
	ByPartition  []Held       `json:"by_partition"` // most bytes first, at most MaxPartitions
	ClassByPlace []ClassPlace `json:"class_by_place"`
	Partitions   []PlaceCount `json:"partitions"` // at each place that has any

	// UnpermittedPartitions finished synthesis and wait without a permit; UnpermittedBytes is what
	// they own.
	UnpermittedPartitions int64 `json:"unpermitted_partitions"`
	UnpermittedBytes      int64 `json:"unpermitted_bytes"`
	// DeadBytes are past their last use.
	DeadBytes int64 `json:"dead_bytes"`
	// UnattributedBytes are live bytes that no known buffer explains: not 0 only in a damaged
	// ledger.
	UnattributedBytes int64 `json:"unattributed_bytes"`
}

// MaxPartitions bounds Attribution.ByPartition.
const MaxPartitions = 64

// Share is one part of a sum.
type Share struct {
	Name          string  `json:"name"`
	Bytes         int64   `json:"bytes"`
	ResidentBytes int64   `json:"resident_bytes"`
	DeadBytes     int64   `json:"dead_bytes"` // of these, past their last use
	Buffers       int64   `json:"buffers"`
	Ratio         float64 `json:"ratio"` // of the whole; 0 where the whole is 0
}

// Shares are parts of one sum, the largest first.
type Shares []Share

// Find is the share of that name, the zero Share where there is none.
func (s Shares) Find(name string) Share {
	for _, x := range s {
		if x.Name == name {
			return x
		}
	}
	return Share{Name: name}
}

// Held is what one partition owned.
type Held struct {
	Job       int64  `json:"job"`
	Partition int64  `json:"partition"`
	Place     string `json:"place"`
	Bytes     int64  `json:"bytes"`
	Buffers   int64  `json:"buffers"`
}

// ClassPlace is the bytes of one class at one place.
type ClassPlace struct {
	Class   string `json:"class"`
	Place   string `json:"place"`
	Bytes   int64  `json:"bytes"`
	Buffers int64  `json:"buffers"`
}

// PlaceCount is how many partitions are at a place, and what they and the buffers there hold.
type PlaceCount struct {
	Place      string `json:"place"`
	Partitions int64  `json:"partitions"`
	Bytes      int64  `json:"bytes"`
}

// DevicePeak is the peak of one device's live bytes.
type DevicePeak struct {
	Device int64       `json:"device"`
	Peak   Attribution `json:"peak"`
}

// Remainder is RSS minus the resident ledger of the process that ran the jobs (without jobs: of the
// first process sampled). It is known only where RSS was sampled.
type Remainder struct {
	Source        string `json:"source"`
	Samples       int64  `json:"samples"`
	SampleGapNS   *int64 `json:"sample_gap_ns"`   // mean time between samples
	BaseBytes     *int64 `json:"base_bytes"`      // RSS - ledger after loading, from the manifest
	PeakRSSBytes  *int64 `json:"peak_rss_bytes"`  // the trace's peak RSS
	PeakRSSSource string `json:"peak_rss_source"` //
	// peak RSS minus the peak of resident bytes, each at its own moment
	OfPeakBytes  *int64   `json:"of_peak_bytes"`
	ResidentPeak int64    `json:"resident_peak_bytes"`
	OfPeakRatio  *float64 `json:"of_peak_ratio"` // of the peak RSS
	AtLivePeak   *Point   `json:"at_live_peak"`  // the sample nearest to the peak of live bytes
	AtRSSPeak    *Point   `json:"at_rss_peak"`   // the highest sample
	// the sample with the largest remainder while jobs held buffers
	Largest *Point `json:"largest"`
	// likewise where RSS was lowest against the buffers that were measured, not estimated
	Smallest *Point `json:"smallest"`
}
