package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"highwater/analyze/memory"
	"highwater/internal/units"
)

// shortPeak finds a peak RSS that lies below a sample of the same phase: it was read too late, or
// of another process.
func (p *auditPass) shortPeak(m *memory.Report) *Finding {
	r := m.Remainder
	if r == nil || r.PeakRSSBytes == nil || r.AtRSSPeak == nil {
		return nil
	}
	sample := r.AtRSSPeak.RSSBytes
	if float64(sample-*r.PeakRSSBytes) <= p.limit("max_peak_short")*float64(sample) {
		return nil
	}
	return &Finding{
		Check: "peak_below_sample", Severity: Error,
		Sentence: fmt.Sprintf(
			"The peak RSS of the trace (%s, %s) lies below a sample of the same run (%s): it is "+
				"not a peak.",
			units.Bytes(*r.PeakRSSBytes),
			r.PeakRSSSource,
			units.Bytes(sample),
		),
		Evidence: Evidence{
			Numbers: Numbers{
				{"peak_rss_bytes", float64(*r.PeakRSSBytes)},
				{"highest_sample_bytes", float64(sample)},
			},
			Window: &Window{BeginNS: r.AtRSSPeak.TimeNS, EndNS: r.AtRSSPeak.TimeNS},
		},
		Remedy: "Take VmHWM at the end of the phase, reset at its beginning; RSS read after the " +
			"run is no peak.",
	}
}

// remainder finds RSS that neither the ledger nor the base explains.
func (p *auditPass) remainder(m *memory.Report) *Finding {
	r := m.Remainder
	if r == nil || r.AtRSSPeak == nil {
		return nil
	}
	at := r.AtRSSPeak
	unexplained := at.RemainderBytes
	if r.BaseBytes != nil {
		unexplained -= *r.BaseBytes
	}
	share := ratio(float64(unexplained), float64(at.RSSBytes))
	if share <= p.limit("max_remainder") || float64(unexplained) < p.limit("min_remainder_bytes") {
		return nil
	}
	f := &Finding{
		Check: "remainder_large", Severity: Warning,
		Sentence: fmt.Sprintf(
			"At the highest RSS sample (%s) the ledger explains %s: %s (%.0f %%) is neither in "+
				"the ledger nor in the base.",
			units.Bytes(at.RSSBytes),
			units.Bytes(at.ResidentBytes),
			units.Bytes(unexplained),
			100*share,
		),
		Evidence: remainderEvidence(r, at),
		Remedy: "Record the buffers that are missing, or find what keeps freed memory resident " +
			"(a garbage-collected heap, allocator " +
			"arenas); predictions of RSS carry this remainder along.",
	}
	f.Evidence.Numbers = append(f.Evidence.Numbers,
		Number{"unexplained_bytes", float64(unexplained)},
		Number{"unexplained_ratio", share},
	)
	return f
}

// negative finds a ledger that claims more than the kernel saw, be the estimated buffers as small
// as they may.
func (p *auditPass) negative(m *memory.Report) *Finding {
	r := m.Remainder
	if r == nil || r.Smallest == nil {
		return nil
	}
	at := r.Smallest
	short := -(at.RemainderBytes + at.EstimatedBytes)
	if short <= 0 || float64(short) <= p.limit("max_negative")*float64(at.ResidentBytes) {
		return nil
	}
	return &Finding{
		Check: "remainder_negative", Severity: Warning,
		Sentence: fmt.Sprintf(
			"RSS (%s) was %s below what the ledger counts as touched (%s, estimates left out).",
			units.Bytes(at.RSSBytes),
			units.Bytes(short),
			units.Bytes(at.ResidentBytes-at.EstimatedBytes),
		),
		Evidence: remainderEvidence(r, at),
		Remedy: "Look for buffers whose fill is recorded before their pages are touched, frees " +
			"recorded late, estimates that are too high, " +
			"or memory in swap.",
	}
}

func remainderEvidence(r *memory.Remainder, at *memory.Point) Evidence {
	n := Numbers{
		{"rss_bytes", float64(at.RSSBytes)},
		{"ledger_resident_bytes", float64(at.ResidentBytes)},
		{"remainder_bytes", float64(at.RemainderBytes)},
	}
	if r.BaseBytes != nil {
		n = append(n, Number{"base_bytes", float64(*r.BaseBytes)})
	}
	if at.EstimatedBytes > 0 {
		n = append(n, Number{"estimated_bytes", float64(at.EstimatedBytes)})
	}
	if at.UnknownBytes > 0 {
		n = append(n, Number{"not_measured_bytes", float64(at.UnknownBytes)})
	}
	n = append(n, Number{"samples", float64(r.Samples)})
	return Evidence{Numbers: n, Window: &Window{BeginNS: at.TimeNS, EndNS: at.TimeNS}}
}

func byBytes(classes map[string]*lateClass) []*lateClass {
	all := make([]*lateClass, 0, len(classes))
	for _, c := range classes {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *lateClass) int {
		return cmp.Or(cmp.Compare(b.deadArea, a.deadArea), cmp.Compare(a.class, b.class))
	})
	return all
}

// firstIDs are the lowest ids, at most MaxExamples.
func firstIDs(ids []int64) []int64 {
	slices.Sort(ids)
	return ids[:min(len(ids), MaxExamples)]
}
