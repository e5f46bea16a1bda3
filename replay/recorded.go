package replay

import (
	"fmt"

	"highwater/analyze"
)

// recorded is the source run as analyze sums it up.
func (r *run) recorded() (Recorded, error) {
	s, err := analyze.Summarise(r.trace)
	if err != nil {
		return Recorded{}, fmt.Errorf("summarise source trace: %w", err)
	}
	return Recorded{
		PeakRSSBytes: s.PeakRSSBytes, PeakRSSSource: string(s.PeakRSSSource),
		PeakLiveBytes: s.PeakLiveBytes, MakespanNS: s.MakespanNS,
		ProofIntervalNS: s.ProofIntervalNS, Rho: s.Rho, Settings: s.Settings,
	}, nil
}
