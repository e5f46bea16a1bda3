package replay

import (
	"fmt"

	"highwater/analyze"
	"highwater/tracer/trace"
)

// recordedOf is a run as analyze sums it up.
func recordedOf(t *trace.Trace) (Recorded, error) {
	s, err := analyze.Summarise(t)
	if err != nil {
		return Recorded{}, fmt.Errorf("summarise source trace: %w", err)
	}
	return Recorded{
		PeakRSSBytes: s.PeakRSSBytes, PeakRSSSource: string(s.PeakRSSSource),
		PeakLiveBytes: s.PeakLiveBytes, MakespanNS: s.MakespanNS,
		ProofIntervalNS: s.ProofIntervalNS, Rho: s.Rho, Settings: s.Settings,
	}, nil
}
