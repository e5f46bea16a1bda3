package main

import (
	"fmt"
	"math"

	"highwater/analyze"
	"highwater/analyze/report"
	"highwater/tracer/trace"
)

// The bars of the demo.
const (
	liveBarRatio      = 0.03 // or one partition's settled bytes, whichever is more
	rssBarRatio       = 0.05
	remainderBarRatio = 0.15 // RSS - ledger, of the peak RSS
	remainderBarLog   = 18   // from this size on: below it the program itself outweighs the buffers
)

// comparison is what was predicted against what was then measured, and the bars that it is held to.
type comparison struct {
	PeakLive      comparedBytes `json:"peak_live"`
	PeakRSS       comparedBytes `json:"peak_rss"`
	ProofInterval comparedNanos `json:"proof_interval"`

	PartitionSettledBytes *int64    `json:"partition_settled_bytes"` // a, b, c and the assignment of one partition
	PileupRemainder       remainder `json:"pileup_remainder"`
	HeldRemainder         remainder `json:"held_remainder"`
	Rho                   *float64  `json:"rho"` // of the run with the incident's policy

	Passed bool     `json:"passed"`
	Misses []string `json:"misses"` // one sentence for each bar that was missed
}

// comparedBytes is one figure three times: under the incident's policy, predicted for the remedy,
// measured with it.
type comparedBytes struct {
	PileupBytes     *int64   `json:"pileup_bytes"`
	PredictedBytes  *int64   `json:"predicted_bytes"`
	MeasuredBytes   *int64   `json:"measured_bytes"`
	ErrorRatio      *float64 `json:"error_ratio"`      // predicted over measured, minus 1
	ErrorPartitions *float64 `json:"error_partitions"` // predicted minus measured, in settled partitions
}

type comparedNanos struct {
	PileupNS    *int64   `json:"pileup_ns"`
	PredictedNS *int64   `json:"predicted_ns"`
	MeasuredNS  *int64   `json:"measured_ns"`
	ErrorRatio  *float64 `json:"error_ratio"`
}

// remainder is RSS - ledger: peak RSS less the peak of the ledger's resident bytes, as analyze
// reports it.
type remainder struct {
	Bytes *int64   `json:"bytes"`
	Ratio *float64 `json:"ratio"` // of the peak RSS
}

// compareRuns sets the demo's figures side by side and judges them. held is the analysis of the
// remedy's run.
func compareRuns(r *demoReport, held *analyze.Report, logSize int) *comparison {
	settled := settledBytes(r.Held.Circuit)
	c := &comparison{
		PartitionSettledBytes: settled,
		PeakLive: compareBytes(settled,
			r.Pileup.PeakLiveBytes, r.Prediction.PeakLiveBytes, r.Held.PeakLiveBytes),
		PeakRSS: compareBytes(settled,
			r.Pileup.PeakRSSBytes, r.Prediction.PeakRSSBytes, r.Held.PeakRSSBytes),
		ProofInterval: comparedNanos{
			r.Pileup.ProofIntervalNS, r.Prediction.ProofIntervalNS, r.Held.ProofIntervalNS,
			errorRatio(r.Prediction.ProofIntervalNS, r.Held.ProofIntervalNS),
		},
		PileupRemainder: remainderOf(r.Analysis),
		HeldRemainder:   remainderOf(held),
		Rho:             r.Pileup.Rho,
		Misses:          []string{},
	}
	c.judge(logSize)
	return c
}

func compareBytes(settled, pileup, predicted, measured *int64) comparedBytes {
	c := comparedBytes{
		PileupBytes: pileup, PredictedBytes: predicted, MeasuredBytes: measured,
		ErrorRatio: errorRatio(predicted, measured),
	}
	if predicted != nil && measured != nil && settled != nil && *settled > 0 {
		parts := float64(*predicted-*measured) / float64(*settled)
		c.ErrorPartitions = &parts
	}
	return c
}

// errorRatio is predicted over measured, minus 1; nil where either is not known.
func errorRatio(predicted, measured *int64) *float64 {
	if predicted == nil || measured == nil || *measured == 0 {
		return nil
	}
	r := float64(*predicted)/float64(*measured) - 1
	return &r
}

func remainderOf(r *analyze.Report) remainder {
	if r.Attribution == nil || r.Attribution.Remainder == nil {
		return remainder{}
	}
	return remainder{r.Attribution.Remainder.OfPeakBytes, r.Attribution.Remainder.OfPeakRatio}
}

func (c *comparison) judge(logSize int) {
	e := c.PeakLive.ErrorRatio
	if e == nil || math.Abs(*e) > liveBarRatio && !withinOnePartition(c.PeakLive.ErrorPartitions) {
		c.miss("peak live bytes are predicted %s off, more than 3 %% and more than one partition", deviation(e))
	}
	if e := c.PeakRSS.ErrorRatio; e == nil || math.Abs(*e) > rssBarRatio {
		c.miss("peak RSS is predicted %s off, more than 5 %%", deviation(e))
	}
	if logSize >= remainderBarLog {
		c.judgeRemainders()
	}
	c.Passed = len(c.Misses) == 0
}

func (c *comparison) judgeRemainders() {
	for _, run := range []struct {
		name string
		remainder
	}{{"pile-up", c.PileupRemainder}, {"held", c.HeldRemainder}} {
		if run.Ratio == nil || *run.Ratio >= remainderBarRatio {
			c.miss("RSS - ledger of the %s run is %s of the peak, not under 15 %%",
				run.name, report.Value(inRatio, run.Ratio))
		}
	}
}

func withinOnePartition(partitions *float64) bool {
	return partitions != nil && math.Abs(*partitions) <= 1
}

func (c *comparison) miss(format string, args ...any) {
	c.Misses = append(c.Misses, fmt.Sprintf(format, args...))
}

// settledBytes is what one synthesised partition occupies: a, b and c over the domain, and the
// assignment.
func settledBytes(c *trace.Circuit) *int64 {
	if c == nil || c.Wires == 0 {
		return nil
	}
	const scalarBytes = 32
	n := scalarBytes * (3*c.DomainSize + c.Wires)
	return &n
}
