package analyze

import (
	"encoding/json"

	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

// Summary is what a trace says in figures: the five of the design first, then what they rest on. A
// nil pointer is "not known", never 0. Its JSON is the `--json` output of `highwater info`, and the
// head of `analyze`'s and `prove`'s.
type Summary struct {
	PeakRSSBytes *int64 `json:"peak_rss_bytes"` // of the proving phase; see PeakRSSSource
	// host, top level, from the first job's request on
	PeakLiveBytes *int64 `json:"peak_live_bytes"`
	// first submit to last free of a job; null while a job is open
	MakespanNS      *int64 `json:"makespan_ns"`
	ProofIntervalNS *int64 `json:"proof_interval_ns"` // makespan over jobs finished
	// what synthesis offers over what the GPU side can take
	Rho *float64 `json:"rho"`

	PeakRSSSource Text       `json:"peak_rss_source"` // vmhwm | sampled | predicted
	RhoInputs     *RhoInputs `json:"rho_inputs"`      // null where rho is
	// one a device, from the first job's request on
	DevicePeaks []DevicePeak `json:"device_peaks"`
	Setup       SetupPeaks   `json:"setup"` // before the first job's request
	// RSS - ledger after loading, as measured at the time
	BaseBytes *int64 `json:"base_bytes"`

	Jobs       Jobs `json:"jobs"`
	Partitions int  `json:"partitions"` // distinct (job, partition) seen

	Origin string `json:"origin"`
	// still being written, or killed and not yet recovered
	Live       bool                     `json:"live"`
	SealedBy   Text                     `json:"sealed_by"`
	ProcessEnd Text                     `json:"process_end"`
	EndReason  Text                     `json:"end_reason"`
	Program    Text                     `json:"program"`
	Commit     Text                     `json:"commit"`
	Host       *trace.Host              `json:"host"`         // null without a trace
	Memory     *trace.MemoryLimit       `json:"memory_limit"` // null without a trace
	Circuit    *trace.Circuit           `json:"circuit"`
	Settings   map[string]trace.Setting `json:"settings"`
	Seed       uint64                   `json:"seed"`

	ObservedNS *int64       `json:"observed_ns"` // first event to last
	Events     *EventCounts `json:"events"`      // null without a trace
	Stages     []Stage      `json:"stages"`      // in order of first begin
	OpenSpans  int          `json:"open_spans"`
	Loss       []trace.Loss `json:"loss"`
	LostEvents int64        `json:"lost_events"`
	Warnings   []string     `json:"warnings"` // doubts about the figures above

	Recorder *trace.RecorderCost `json:"recorder"` // null without a trace
}

// Text is a word or a sentence; an empty one is not known, and null in JSON.
type Text string

// MarshalJSON writes the text, null where it is empty.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t)) //nolint:wrapcheck // a string always has a JSON form
}

// RhoInputs are the terms of rho = (pw/S) · max(g/(gw·D), l/D).
type RhoInputs struct {
	// S: a synthesis worker's own time a partition, waiting excluded
	SynthesisNS int64 `json:"synthesis_ns"`
	// g: a GPU worker's own time a partition, waiting excluded
	GPUNS int64 `json:"gpu_ns"`
	// l: time a partition holds the device's lock; null without a lock
	LockNS           *int64 `json:"lock_ns"`
	PartitionWorkers int64  `json:"partition_workers"` // pw
	GPUWorkers       int64  `json:"gpu_workers"`       // gw, a device
	Devices          int64  `json:"devices"`           // D
}

// Jobs counts jobs by their end.
type Jobs struct {
	Submitted int `json:"submitted"`
	Finished  int `json:"finished"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"` // given up because the run was interrupted
	Open      int `json:"open"`      // neither finished, failed nor cancelled when the trace ends
}

// DevicePeak is the peak of live bytes on one device.
type DevicePeak struct {
	Device        int64 `json:"device"`
	PeakLiveBytes int64 `json:"peak_live_bytes"`
}

// SetupPeaks are the peaks before the first job's request; without a job, of the whole trace.
type SetupPeaks struct {
	PeakRSSBytes  *int64 `json:"peak_rss_bytes"` // highest of any one process; always sampled
	PeakLiveBytes *int64 `json:"peak_live_bytes"`
	DurationNS    *int64 `json:"duration_ns"` // first event to the first job's request
}

// EventCounts are rows by table.
type EventCounts struct {
	Spans   int64 `json:"spans"`
	Buffers int64 `json:"buffers"`
	Queues  int64 `json:"queues"`
	Samples int64 `json:"samples"`
}

// Stage is the durations of one stage's spans. Open ones are counted apart and are in no duration.
type Stage struct {
	Name    string `json:"name"`
	Count   int    `json:"count"`
	Open    int    `json:"open"`
	Failed  int    `json:"failed"`
	MeanNS  *int64 `json:"mean_ns"`
	P50NS   *int64 `json:"p50_ns"`
	P95NS   *int64 `json:"p95_ns"`
	MaxNS   *int64 `json:"max_ns"`
	TotalNS int64  `json:"total_ns"`
	CPUNS   *int64 `json:"cpu_ns"` // sum over the spans that measured it; null where none did
}

// Summarise reads t once, in bounded memory, and computes its figures. A live or killed trace is
// summarised as far as it goes.
func Summarise(t *trace.Trace) (*Summary, error) {
	b := memory.NewBuilder(&t.Manifest, false)
	f := newFigures(t, b)
	if err := memory.Walk(t, b, f); err != nil {
		return nil, err
	}
	return f.summary(), nil
}
