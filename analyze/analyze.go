// Package analyze says what a trace shows: the headline figures (Summarise) and findings (Run).
//
// A finding is one detector's claim that something is wrong, with a severity, one sentence, the
// numbers behind it, what would refute it, and a remedy. A detector (Analyzer) answers for a trace
// with one of three statuses: findings, clean (it looked and found nothing), or not_applicable (the
// trace lacks what it needs, and it says what). A cause that the recorded counters do not show is
// never named.
//
// A counterfactual is what the run would have done under other settings. This package only asks for
// one (Finding.WhatIf); whoever can replay fills Finding.Counterfactual.
package analyze

import "highwater/analyze/memory"

// Severity of a finding.
type Severity string

// Severities, in rising order.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// AtLeast says whether s is as severe as least or more. The empty severity is below all others.
func (s Severity) AtLeast(least Severity) bool { return s.rank() >= least.rank() }

func (s Severity) rank() int {
	switch s {
	case Info:
		return 1
	case Warning:
		return 2
	case Error:
		return 3
	}
	return 0
}

// Finding is one claim with its evidence.
type Finding struct {
	ID         string      `json:"id"`              // the analyzer's name
	Check      string      `json:"check,omitempty"` // which of its checks, where it has several
	Severity   Severity    `json:"severity"`
	Sentence   string      `json:"sentence"` // what is wrong, with the numbers that show it
	Evidence   Evidence    `json:"evidence"`
	RefutedBy  string      `json:"refuted_by"` // what would show that this is not so
	Remedy     string      `json:"remedy"`
	Thresholds []Threshold `json:"thresholds"` // as applied
	Page       string      `json:"page"`       // docs/findings/….md

	// settings to replay, for a counterfactual
	WhatIf         map[string]string `json:"what_if,omitempty"`
	Counterfactual *Counterfactual   `json:"counterfactual,omitempty"`

	// ways out, each replayed by itself, where there is more than one to weigh
	Remedies []Remedy `json:"remedies,omitempty"`
}

// Remedy is one way out of a finding and, where a replay can say it, what it would have done.
type Remedy struct {
	Text string `json:"text"`
	// settings to replay
	WhatIf map[string]string `json:"what_if,omitempty"`
	// stages to replay at another speed: 0.5 is half the time
	Scale          map[string]float64 `json:"scale,omitempty"`
	Counterfactual *Counterfactual    `json:"counterfactual,omitempty"`
}

// Evidence is what a finding rests on. Empty parts are left out.
type Evidence struct {
	Numbers Numbers `json:"numbers"`
	Window  *Window `json:"window,omitempty"`
	Tables  []Table `json:"tables,omitempty"`
	Buffers []int64 `json:"buffer_ids,omitempty"` // examples, at most MaxExamples
	Spans   []int64 `json:"span_ids,omitempty"`   // examples, at most MaxExamples
	Seqs    []int64 `json:"seqs,omitempty"`       // examples of events, at most MaxExamples
}

// MaxExamples bounds the buffers, spans and events that a finding names.
const MaxExamples = 10

// Window is a stretch of the trace's time.
type Window struct {
	BeginNS int64 `json:"begin_ns"`
	EndNS   int64 `json:"end_ns"`
}

// Table is evidence by class, stage or job. Columns are snake_case and end in their unit, as JSON
// keys do.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"` // string, int64, float64 or nil
}

// Threshold is a limit that a detector judges by.
type Threshold struct {
	Name    string  `json:"name"` // analyzer.name, as Options.Thresholds and --threshold take it
	Value   float64 `json:"value"`
	Default float64 `json:"default"`
	Meaning string  `json:"meaning"`
	Source  string  `json:"source"` // where the default comes from
}

// Counterfactual is what a replay says the run would have done under WhatIf. Nil is not known.
type Counterfactual struct {
	Settings          map[string]string `json:"settings"`
	PeakRSSBytes      *int64            `json:"peak_rss_bytes"`
	PeakRSSBytesLow   *int64            `json:"peak_rss_bytes_low"`
	PeakRSSBytesHigh  *int64            `json:"peak_rss_bytes_high"`
	PeakLiveBytes     *int64            `json:"peak_live_bytes"`
	PeakLiveBytesLow  *int64            `json:"peak_live_bytes_low"`
	PeakLiveBytesHigh *int64            `json:"peak_live_bytes_high"`
	MakespanNS        *int64            `json:"makespan_ns"`
	ProofIntervalNS   *int64            `json:"proof_interval_ns"`
	Rho               *float64          `json:"rho"`
	Error             string            `json:"error,omitempty"` // why it could not be replayed
}

// Statuses of an analyzer on one trace.
const (
	StatusFindings      = "findings"
	StatusClean         = "clean"
	StatusNotApplicable = "not_applicable"
)

// Status is one analyzer's answer.
type Status struct {
	Analyzer string `json:"analyzer"`
	Status   string `json:"status"`
	// what a not applicable analyzer lacks; of the others, what part of their question the trace
	// does not answer
	Why string `json:"why,omitempty"`
}

// Report is everything Run found. Its JSON is the `--json` output of `highwater analyze`: the
// summary's keys at top level, then these.
type Report struct {
	*Summary
	Verdict  string    `json:"verdict"`  // one sentence
	Findings []Finding `json:"findings"` // most severe first
	// the analyzers that could not look, and why
	NotApplicable []Status `json:"not_applicable"`
	// every analyzer that ran, in the registry's order
	Analyzers   []Status       `json:"analyzers"`
	Attribution *memory.Report `json:"memory"` // what held the bytes
}

// Worst is the highest severity of the findings, "" where there are none.
func (r *Report) Worst() Severity {
	var worst Severity
	for _, f := range r.Findings {
		if !worst.AtLeast(f.Severity) {
			worst = f.Severity
		}
	}
	return worst
}

// Options choose and tune analyzers. The zero value runs them all with their defaults.
type Options struct {
	Only       []string           // analyzer names; empty means all
	Thresholds map[string]float64 // analyzer.name to value
}
