package fit

import (
	"math"

	"highwater/replay/pipeline"
)

// What is not known from one recording: by how much the means of another differ. Recordings of one
// setting of our prover on one quiet machine lie 2 % apart (docs/validation.md). That counts as
// much as priorRuns recordings more, which is also the degrees of freedom of the tails.
const (
	priorDrift = 0.02
	priorRSS   = 0.03 // of peak RSS, less its law
	priorRuns  = 3
)

// drifts is, by stage, the mean solo time of each recording, in logarithms, and the stage's share
// of the work.
type drifts map[string]*drift

type drift struct {
	means moments
	total float64
}

// add takes a recording's partitions in.
func (d drifts) add(pool []pipeline.Partition) {
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
			d[stage] = &drift{}
		}
		d[stage].means.add(math.Log(total / n[stage]))
		d[stage].total += total
	}
}

// into sets the stages' uncertainty. That of a stage that is a small part of the work is left out.
func (d drifts) into(stages []pipeline.Stage) {
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
		stages[i].Uncertainty = math.Sqrt((priorRuns*priorDrift*priorDrift + squares) /
			(priorRuns + x.means.n - 1))
	}
}
