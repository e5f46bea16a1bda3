package fit

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"highwater/replay/pipeline"
)

// What is not known from one recording: by how much the means of another differ. Recordings of one
// setting on one quiet machine lie 2 % apart, minutes after each other. Half an hour later the CPU
// of a shared host may be slower by itself: 60 runs over 33 minutes lay 9 % apart (standard
// deviation, bench/validation.md), of which half is taken where the CPU's pace was not sampled: it
// then is not known how far the recordings themselves lie apart. What is known beforehand counts as
// much as priorRuns recordings more, which is also the degrees of freedom of the tails.
const (
	priorDrift = 0.02
	priorPace  = 0.045 // besides, of stages on cores
	priorRSS   = 0.03  // of peak RSS, less its law
	priorRuns  = 3
)

// drifts is, by stage, the mean solo time of each recording, in logarithms, and the stage's share
// of the work.
type drifts map[string]*drift

type drift struct {
	means    moments
	of       map[int]float64 // by recording
	total    float64
	services float64
}

// add takes the partitions of a recording in.
func (d drifts) add(run int, pool []pipeline.Partition) {
	sum, n := map[string]float64{}, map[string]float64{}
	for i := range pool {
		for _, p := range pool[i].Pieces {
			if p.Stage != "" && p.SoloNS > 0 {
				sum[p.Stage] += p.SoloNS
				n[p.Stage]++
			}
		}
	}
	for stage, total := range sum {
		if d[stage] == nil {
			d[stage] = &drift{of: map[int]float64{}}
		}
		mean := math.Log(total / n[stage])
		d[stage].of[run] = mean
		d[stage].means.add(mean)
		d[stage].total += total
		d[stage].services += n[stage]
	}
}

// level brings the stages of a recording's partitions to the mean of all recordings. What recordings
// differ by is a draw's luck as a whole (see into): left in the pool it would make every draw a
// mixture of services that never ran beside each other.
func (d drifts) level(run int, pool []pipeline.Partition) {
	for i := range pool {
		for k := range pool[i].Pieces {
			p := &pool[i].Pieces[k]
			if x := d[p.Stage]; x != nil && p.SoloNS > 0 {
				p.SoloNS *= math.Exp(x.means.sum/x.means.n - x.of[run])
			}
		}
	}
}

// into sets the stages' uncertainty: what recordings differ by, and what is left of the moments' common
// part (see together.go) in the mean over a recording's services. That of a stage that is a small
// part of the work is left out. paced says that the CPU's pace was sampled.
func (d drifts) into(stages []pipeline.Stage, common float64, paced bool) {
	all := 0.0
	for _, x := range d {
		all = max(all, x.total)
	}
	for i := range stages {
		x := d[stages[i].Name]
		if x == nil || x.total < 0.01*all {
			continue
		}
		squares := max(0, x.means.squares-x.means.sum*x.means.sum/x.means.n)
		freedom := priorRuns + x.means.n - 1
		before := priorDrift * priorDrift
		if !paced && stages[i].Parallelism > 0 {
			before += priorPace * priorPace
		}
		between := (priorRuns*before + squares) / freedom
		stages[i].Uncertainty = stretch(freedom) * math.Sqrt(between+common*x.means.n/x.services)
	}
}

// stretch makes a normal distribution's 95 % bounds those of Student's t: how far recordings lie apart
// is itself known from a few of them.
func stretch(freedom float64) float64 {
	t := distuv.StudentsT{Sigma: 1, Nu: freedom}
	return t.Quantile(0.975) / distuv.UnitNormal.Quantile(0.975)
}
