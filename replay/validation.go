package replay

import "math"

// Validation is what `highwater validate` says. Its JSON is the command's --json output.
type Validation struct {
	// mean and worst errors and coverage over the runs that no model was fitted to
	HeldOut *ValidationErrors `json:"held_out"` // null where there is none
	// the same over those that one was
	Fitted *ValidationErrors `json:"fitted"`
	// verdicts over the runs held out, one row a limit
	Limits    []LimitRow        `json:"limits"`
	Groups    []ValidationGroup `json:"groups"`
	Cases     []ValidationCase  `json:"cases"`
	Durations string            `json:"durations"` // recorded | fitted
	Draws     int               `json:"draws"`
	Seed      uint64            `json:"seed"`
	Warnings  []string          `json:"warnings"`
}

// ValidationGroup is runs of the same work and the model that predicts them.
type ValidationGroup struct {
	Work       string   `json:"work"` // what they have in common
	FittedOn   []string `json:"fitted_on"`
	Partitions int64    `json:"partitions"` // in the model's pool
	// what a partition holds when it is sent
	SettledBytes    int64    `json:"settled_bytes"`
	ServiceResidual *float64 `json:"service_residual"`
	// cores that other programs used while the traces were recorded, mean; null where not sampled
	OtherCores *float64 `json:"other_cores"`
	// pace of the CPU while they were recorded, ns, mean; null where not sampled
	CPUPaceNS *float64 `json:"cpu_pace_ns"`
	Warnings  []string `json:"warnings"`
}

// ValidationCase is one run and its prediction.
type ValidationCase struct {
	Trace    string `json:"trace"`
	Group    int    `json:"group"`
	FittedOn bool   `json:"fitted_on_it"`
	// settings that differ from those of the group's first trace fitted to
	Set map[string]string `json:"set"`
	// cores that other programs used while it was recorded, mean; null where not sampled
	OtherCores *float64 `json:"other_cores"`
	// pace of the CPU while it was recorded over that of the traces fitted to: above 1 the machine
	// was slower; null where one of them was not sampled
	CPUPaceRatio  *float64       `json:"cpu_pace_ratio"`
	Support       string         `json:"support"` // inside | outside | unknown
	Rho           *float64       `json:"rho"`
	PeakLive      *Compared      `json:"peak_live_bytes"`
	PeakRSS       *Compared      `json:"peak_rss_bytes"`
	ProofInterval *Compared      `json:"proof_interval_ns"`
	Backlog       *Compared      `json:"backlog_items"`
	Verdicts      []LimitVerdict `json:"verdicts"`
	Failure       string         `json:"failure,omitempty"` // why it could not be predicted
}

// Compared is a figure as measured and as predicted, in the unit of its key.
type Compared struct {
	Measured  int64  `json:"measured"`
	Predicted int64  `json:"predicted"`
	Low       *int64 `json:"low"` // bounds of 95 %; null where there are none
	High      *int64 `json:"high"`
	// predicted over measured, minus 1; null where 0 was measured
	ErrorRatio *float64 `json:"error_ratio"`
	Within     *bool    `json:"within"` // the bounds hold what was measured
}

// compare is nil where one of the two is not known.
func compare(measured, predicted, low, high *int64) *Compared {
	if measured == nil || predicted == nil {
		return nil
	}
	c := &Compared{Measured: *measured, Predicted: *predicted, Low: low, High: high}
	if *measured != 0 {
		e := float64(*predicted)/float64(*measured) - 1
		c.ErrorRatio = &e
	}
	if low != nil && high != nil {
		in := *low <= *measured && *measured <= *high
		c.Within = &in
	}
	return c
}

// LimitVerdict is what would have been said of one limit.
type LimitVerdict struct {
	LimitRatio     float64  `json:"limit_ratio"` // of the measured peak
	OverLimitRatio *float64 `json:"peak_over_limit_ratio"`
	Unsafe         bool     `json:"unsafe"`  // in truth: the measured peak reaches the limit
	Verdict        string   `json:"verdict"` // safe | unsafe | unknown
}

// LimitRow counts the verdicts at one limit: a row of the confusion matrix for each truth.
type LimitRow struct {
	LimitRatio float64 `json:"limit_ratio"`
	Unsafe     bool    `json:"unsafe"` // in truth
	Safe       int64   `json:"called_safe_runs"`
	NotSafe    int64   `json:"called_unsafe_runs"`
	Unknown    int64   `json:"called_unknown_runs"`
}

// ValidationErrors are over several runs.
type ValidationErrors struct {
	Runs          int64       `json:"runs"`
	Inside        int64       `json:"inside_support_runs"`
	Failed        int64       `json:"failed_runs"` // that could not be predicted
	PeakLive      *ErrorStats `json:"peak_live"`
	PeakRSS       *ErrorStats `json:"peak_rss"`
	ProofInterval *ErrorStats `json:"proof_interval"`
	Backlog       *ErrorStats `json:"backlog"`
}

// ErrorStats are the errors of one figure.
type ErrorStats struct {
	Runs  int64   `json:"runs"`
	Mean  float64 `json:"mean_error_ratio"`  // of the sizes of the errors
	Worst float64 `json:"worst_error_ratio"` // the largest, with its sign
	Bias  float64 `json:"bias_ratio"`        // mean of the errors with their signs
	// share of runs whose 95 % bounds hold what was measured; null where there are no bounds
	Within *float64 `json:"within_ratio"`
	// largest difference in the figure's unit, with its sign
	WorstDifference int64 `json:"worst_difference"`
}

// sum fills in what is over all cases.
func (v *Validation) sum(limits []float64) {
	v.HeldOut, v.Fitted = v.errors(false), v.errors(true)
	for _, ratio := range limits {
		row := LimitRow{LimitRatio: ratio, Unsafe: ratio <= 1}
		for i := range v.Cases {
			row.count(&v.Cases[i])
		}
		v.Limits = append(v.Limits, row)
	}
}

func (r *LimitRow) count(c *ValidationCase) {
	for _, w := range c.Verdicts {
		switch {
		case c.FittedOn || w.LimitRatio != r.LimitRatio:
		case w.Verdict == VerdictSafe:
			r.Safe++
		case w.Verdict == VerdictUnsafe:
			r.NotSafe++
		default:
			r.Unknown++
		}
	}
}

func (v *Validation) errors(fitted bool) *ValidationErrors {
	e := &ValidationErrors{}
	var live, rss, interval, backlog []*Compared
	for i := range v.Cases {
		c := &v.Cases[i]
		if c.FittedOn != fitted {
			continue
		}
		e.Runs++
		if c.Support == SupportInside {
			e.Inside++
		}
		if c.Failure != "" {
			e.Failed++
		}
		live, rss = append(live, c.PeakLive), append(rss, c.PeakRSS)
		interval, backlog = append(interval, c.ProofInterval), append(backlog, c.Backlog)
	}
	if e.Runs == 0 {
		return nil
	}
	e.PeakLive, e.PeakRSS = errorsOf(live), errorsOf(rss)
	e.ProofInterval, e.Backlog = errorsOf(interval), errorsOf(backlog)
	return e
}

// errorsOf is nil where nothing was compared.
func errorsOf(of []*Compared) *ErrorStats {
	s, within, bounded := &ErrorStats{}, 0.0, 0.0
	for _, c := range of {
		if c == nil {
			continue
		}
		if d := c.Predicted - c.Measured; abs(d) > abs(s.WorstDifference) {
			s.WorstDifference = d
		}
		if c.Within != nil {
			bounded++
			if *c.Within {
				within++
			}
		}
		if c.ErrorRatio == nil {
			continue
		}
		s.Runs++
		s.Mean += math.Abs(*c.ErrorRatio)
		s.Bias += *c.ErrorRatio
		if math.Abs(*c.ErrorRatio) > math.Abs(s.Worst) {
			s.Worst = *c.ErrorRatio
		}
	}
	if s.Runs == 0 {
		return nil
	}
	s.Mean /= float64(s.Runs)
	s.Bias /= float64(s.Runs)
	if bounded > 0 {
		share := within / bounded
		s.Within = &share
	}
	return s
}

func abs(n int64) int64 { return max(n, -n) }
