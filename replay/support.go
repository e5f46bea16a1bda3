package replay

import (
	"fmt"
	"math"
)

// Bounds of the identity, beyond which a prediction carries a warning.
const (
	makespanBound = 0.05
	peakBound     = 0.03
	maxStretch    = 1.5 // times the recorded concurrency that the trace supports
)

// warnings are the doubts about a prediction.
func (r *run) warnings(f, same *figures, p *Prediction) []string {
	w := append([]string(nil), r.fit.Report.Warnings...)
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if r.frozen() && len(r.opts.Set) > 0 {
		add("durations are frozen as recorded: " +
			"under other settings stages run in other company and take other times")
	}
	if id := p.Identity; id != nil {
		settled := 0.0
		for i := range r.base.Partitions {
			settled = max(settled, float64(r.base.Partitions[i].SettledBytes))
		}
		if e := id.MakespanErrorRatio; e != nil && math.Abs(*e) > makespanBound {
			add("replaying the recorded settings gives a makespan %+.1f %% off the recorded one",
				100**e)
		}
		live := p.Recorded.PeakLiveBytes
		if e := id.PeakLiveErrorRatio; e != nil && math.Abs(*e) > peakBound &&
			math.Abs(*e)*float64(*live) > settled {
			add("replaying the recorded settings gives a peak %+.1f %% off the recorded one",
				100**e)
		}
	}
	w = append(w, support(f, same)...)
	if p.Rho != nil && math.Abs(*p.Rho-1) < 0.1 {
		add("rho is %.2f, near 1: a few per cent in a stage's time decide whether partitions "+
			"pile up, and the peak depends on the run's length", *p.Rho)
	}
	return w
}

// support compares how many worked at once with what the recording showed.
func support(f, same *figures) []string {
	var w []string
	check := func(what string, now, then int64) {
		if then > 0 && float64(now) > maxStretch*float64(then) {
			w = append(w, fmt.Sprintf("outside what the trace supports: up to %d partitions in %s "+
				"at once, the recording had %d; a recording with at least %d would support it",
				now, what, then, int64(math.Ceil(float64(now)/maxStretch))))
		}
	}
	now, then := &f.stats[0].QueueMax, &same.stats[0].QueueMax
	check("synthesis", now.Synthesising, then.Synthesising)
	check("the GPU workers' hands", now.OnWorkers, then.OnWorkers)
	return w
}
