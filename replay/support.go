package replay

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"highwater/replay/fit"
)

// Bounds of the identity, beyond which a prediction carries a warning.
const (
	makespanBound = 0.05
	peakBound     = 0.03
)

// identityWarnings are the doubts that the replay of the recorded settings raises.
func (a *answer) identityWarnings(p *Prediction) (w []string) {
	id := p.Identity
	if id == nil {
		return nil
	}
	settled := 0.0
	for i := range a.variants[0].Partitions {
		settled = max(settled, float64(a.variants[0].Partitions[i].SettledBytes))
	}
	if e := id.MakespanErrorRatio; e != nil && math.Abs(*e) > makespanBound {
		w = append(w, fmt.Sprintf(
			"replaying the recorded settings gives a makespan %+.1f %% off the recorded one", 100**e))
	}
	live := p.Recorded.PeakLiveBytes
	if e := id.PeakLiveErrorRatio; e != nil && math.Abs(*e) > peakBound &&
		math.Abs(*e)*float64(*live) > settled {
		w = append(w, fmt.Sprintf(
			"replaying the recorded settings gives a peak %+.1f %% off the recorded one", 100**e))
	}
	return w
}

// warnings are the doubts about a prediction.
func (a *answer) warnings(p *Prediction) (w []string) {
	if a.fit != nil {
		w = append(w, a.fit.Report.Warnings...)
	}
	if a.frozen && (len(a.question.Set) > 0 || a.question.Change != nil) {
		w = append(w, "durations are frozen as recorded: "+
			"under other settings stages run in other company and take other times")
	}
	w = append(w, p.Support.Reasons...)
	w = append(w, a.figures.starved()...)
	if p.Rho != nil && math.Abs(*p.Rho-1) < nearOne {
		w = append(w, fmt.Sprintf("rho is %.2f, near 1: a few per cent in a stage's time decide "+
			"whether partitions pile up, and the peak depends on the run's length", *p.Rho))
	}
	return w
}

// nearOne is how far from 1 rho is near it.
const nearOne = 0.1

// A setting is inside the traces' support where each stage runs at a concurrency that MinServices
// recorded services saw, between two such, or at most MaxBeyond times beyond.
const (
	MinServices = 20
	MaxBeyond   = 1.5
)

// busy is the share of a stage's services that may see more than the concurrency that counts as the
// stage's: those that crowd together at the start of a run say little about the rest.
const busy = 0.25

// support compares the concurrency of each stage, in the draw of the median peak, with what the
// traces showed.
func (a *answer) support() (Support, error) {
	out := Support{Verdict: SupportUnknown, Reasons: []string{}, Stages: []StageSupport{}}
	if a.fit == nil || a.frozen {
		return out, nil
	}
	spans, err := a.programs.Stages(a.middle())
	if err != nil {
		return out, err
	}
	out.Verdict = SupportInside
	now, seen := fit.Concurrency(spans), a.fit.Report.Concurrency
	for _, stage := range slices.Sorted(maps.Keys(now)) {
		s := StageSupport{Stage: stage, Concurrency: atMost(now[stage], busy)}
		s.Seen = int64(len(seen[stage]))
		s.SeenLow, s.SeenHigh = seenBy(seen[stage])
		out.Stages = append(out.Stages, s)
		if why := s.outside(); why != "" {
			out.Reasons = append(out.Reasons, why)
		}
	}
	if why := tooFew(out.Stages); why != "" {
		out.Reasons = append(out.Reasons, why)
	}
	if len(out.Reasons) > 0 {
		out.Verdict = SupportOutside
	}
	return out, nil
}

// seenBy is between which concurrencies a stage is supported by what its services saw, ascending:
// MinServices of them saw at most low, as many at least high. Fewer than twice as many cannot lie on
// both sides; then it is their middle that all of them bracket. Both are nil where there are fewer
// than MinServices.
func seenBy(services []float64) (low, high *float64) {
	n := len(services)
	if n < MinServices {
		return nil, nil
	}
	least := services[min(MinServices-1, (n-1)/2)]
	most := services[max(n-MinServices, n/2)]
	return &least, &most
}

// tooFew says which stages have too few recorded services, "" where none has.
func tooFew(stages []StageSupport) string {
	var names []string
	least := int64(MinServices)
	for _, s := range stages {
		if s.SeenHigh == nil {
			names = append(names, fmt.Sprintf("%d of %s", s.Seen, s.Stage))
			least = min(least, s.Seen)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("outside what the traces support: %d services of a stage are needed, they "+
		"have %s: record %d more partitions", MinServices, strings.Join(names, ", "),
		MinServices-least)
}

// atMost is the value that share of the ascending x exceed.
func atMost(x []float64, share float64) float64 {
	return x[int(math.Ceil(float64(len(x))*(1-share)))-1]
}

// outside says why a stage's concurrency is not supported, "" where it is.
func (s *StageSupport) outside() string {
	switch {
	case s.SeenHigh == nil: // see tooFew
	case s.Concurrency > MaxBeyond**s.SeenHigh:
		return fmt.Sprintf("outside what the traces support: %.1f partitions in %s at once, %d "+
			"recorded services saw at most %.1f; a recording with at least %.0f would support it",
			s.Concurrency, s.Stage, s.witnesses(), *s.SeenHigh, math.Ceil(s.Concurrency/MaxBeyond))
	case s.Concurrency < *s.SeenLow/MaxBeyond:
		return fmt.Sprintf("outside what the traces support: %.1f partitions in %s at once, %d "+
			"recorded services saw at least %.1f; a recording with at most %.0f would support it",
			s.Concurrency, s.Stage, s.witnesses(), *s.SeenLow, math.Floor(s.Concurrency*MaxBeyond))
	}
	return ""
}

// witnesses is how many services saw at most SeenLow, and as many at least SeenHigh.
func (s *StageSupport) witnesses() int64 { return min(MinServices, (s.Seen+1)/2) }

// Words of Prediction.Verdict.
const (
	VerdictSafe    = "safe"
	VerdictUnsafe  = "unsafe"
	VerdictUnknown = "unknown"
)

// UnsafeRatio is the share of peaks above the limit from which a setting is unsafe.
const UnsafeRatio = 0.01

// Verdict is what may be said of the memory limit that was asked about: unknown outside the traces'
// support, or without a limit or a peak.
func (p *Prediction) Verdict() string {
	switch {
	case p.Support.Verdict != SupportInside || p.PeakOverLimitRatio == nil:
		return VerdictUnknown
	case *p.PeakOverLimitRatio >= UnsafeRatio:
		return VerdictUnsafe
	}
	return VerdictSafe
}
