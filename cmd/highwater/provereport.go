package main

import (
	"fmt"
	"slices"

	"highwater/analyze"
	"highwater/prover"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// proveReport is the --json output of `highwater prove`: the summary of its trace, then what only
// the run itself knows.
type proveReport struct {
	*analyze.Summary
	End           string         `json:"end"` // finished | failed | interrupted
	Backend       string         `json:"backend"`
	BackendReason string         `json:"backend_reason"`
	JobResults    []proveJob     `json:"job_results"`
	Pipeline      pipelineCounts `json:"pipeline"`
	ProofsSHA256  string         `json:"proofs_sha256"` // over all proofs of finished jobs, in order of (job, partition)
	SetupNS       int64          `json:"setup_ns"`      // 0 when the keys came from the cache
	LoadNS        int64          `json:"load_ns"`
	Trace         *string        `json:"trace"` // null with --no-record
}

type proveJob struct {
	Job        int    `json:"job"`
	State      string `json:"state"`
	Partition  int    `json:"partition"` // that failed, -1 where none did
	Stage      string `json:"stage,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Proofs     int    `json:"proofs"`
	InFlightNS int64  `json:"in_flight_ns"`
}

type pipelineCounts struct {
	Synthesised int64 `json:"synthesised_partitions"`
	Started     int64 `json:"started_partitions"`
	Proved      int64 `json:"proved_partitions"`
	Verified    int64 `json:"verified_partitions"`
	Skipped     int64 `json:"skipped_partitions"`
	WaitingPeak int64 `json:"waiting_peak_partitions"`
}

// finished is how many jobs the run finished, whatever its trace says.
func (r *proveReport) finished() int {
	n := 0
	for _, j := range r.JobResults {
		if j.State == prover.JobFinished {
			n++
		}
	}
	return n
}

func newProveReport(r *prover.Result, values *setting.Values) (*proveReport, error) {
	summary, err := runSummary(r, values)
	if err != nil {
		return nil, err
	}
	preferRun(summary, r)
	summary.Warnings = slices.Concat(r.Warnings, undelivered(summary.Recorder), summary.Warnings)
	report := &proveReport{
		Summary: summary, End: r.End, Backend: r.Backend, BackendReason: r.BackendReason, JobResults: []proveJob{},
		Pipeline:     pipelineCounts(r.Counters),
		ProofsSHA256: r.ProofsSHA256, SetupNS: r.SetupNanos, LoadNS: r.LoadNanos,
	}
	if r.TraceDir != "" {
		report.Trace = &r.TraceDir
	}
	for _, j := range r.Jobs {
		report.JobResults = append(report.JobResults, proveJob{
			Job: j.Job, State: j.State, Partition: j.Partition, Stage: j.Stage, Reason: j.Reason,
			Proofs: len(j.Proofs), InFlightNS: j.InFlightNanos,
		})
	}
	return report, nil
}

// preferRun puts what the run itself counted into the summary of a trace that lost events.
func preferRun(s *analyze.Summary, r *prover.Result) {
	if s.LostEvents == 0 {
		return
	}
	s.Jobs = jobCounts(r)
	s.MakespanNS, s.ProofIntervalNS = r.MakespanNanos, r.ProofIntervalNanos
}

func jobCounts(r *prover.Result) analyze.Jobs {
	return analyze.Jobs{Submitted: len(r.Jobs), Finished: r.JobsFinished, Failed: r.JobsFailed,
		Cancelled: r.JobsSkipped}
}

// undelivered warns of spans that did not reach the OpenTelemetry collector. They are in the trace.
func undelivered(c *trace.RecorderCost) []string {
	if c == nil || c.OTLPDropped == 0 {
		return nil
	}
	text := fmt.Sprintf("%d of %d spans were not delivered to %s (the trace has them all)",
		c.OTLPDropped, c.OTLPSpans, c.OTLPEndpoint)
	if c.OTLPLastError != "" {
		text += ": " + c.OTLPLastError
	}
	return []string{text}
}

// runSummary is the summary of the run's trace, or what is known without one.
func runSummary(r *prover.Result, values *setting.Values) (*analyze.Summary, error) {
	if r.TraceDir == "" {
		return unrecordedSummary(r, values), nil
	}
	t, err := trace.Open(r.TraceDir)
	if err != nil {
		return nil, fmt.Errorf("read back the trace: %w", err)
	}
	defer t.Close()
	s, err := analyze.Summarise(t)
	if err != nil {
		return nil, fmt.Errorf("read back the trace: %w", err)
	}
	return s, nil
}

func unrecordedSummary(r *prover.Result, values *setting.Values) *analyze.Summary {
	s := &analyze.Summary{
		MakespanNS: r.MakespanNanos, ProofIntervalNS: r.ProofIntervalNanos, BaseBytes: r.BaseBytes,
		Jobs:   jobCounts(r),
		Origin: trace.OriginRecorded, ProcessEnd: analyze.Text(r.End), Program: "highwater",
		Commit:  analyze.Text(currentVersion().Commit),
		Circuit: &r.Circuit, Seed: values.Uint("seed"), Settings: map[string]trace.Setting{},
		Partitions:  len(r.Jobs) * int(values.Int("partitions")),
		DevicePeaks: []analyze.DevicePeak{}, Stages: []analyze.Stage{},
		Loss: []trace.Loss{}, Warnings: []string{},
	}
	if r.PeakRSS != nil {
		s.PeakRSSBytes, s.PeakRSSSource = &r.PeakRSS.Bytes, analyze.Text(r.PeakRSS.Source)
	}
	for _, name := range values.Names() {
		value := values.Text(name)
		if v, ok := r.InEffect[name]; ok {
			value = v
		}
		s.Settings[name] = trace.Setting{Value: value, Source: values.Source(name)}
	}
	return s
}
