package memory

import (
	"cmp"
	"slices"

	"highwater/tracer/trace"
)

// Builder gathers a Report from a walk. It is an Observer; passes after it in the walk may read its
// Ledger.
type Builder struct {
	Ledger *Ledger
	RSS    *RSS

	manifest *trace.Manifest
	timeline *Timeline // nil without series
}

// NewBuilder starts a report on a trace with manifest m. Series cost some time; without them
// Report.Series is nil.
func NewBuilder(m *trace.Manifest, series bool) *Builder {
	l := NewLedger(m)
	b := &Builder{Ledger: l, RSS: newRSS(l, series), manifest: m}
	if series {
		b.timeline = newTimeline(l)
	}
	return b
}

// Observe takes one step.
func (b *Builder) Observe(s *Step) {
	b.Ledger.Observe(s)
	b.RSS.Observe(s)
	if b.timeline != nil {
		b.timeline.Observe(s)
	}
}

// Build reads t once and reports on it, series included.
func Build(t *trace.Trace) (*Report, error) {
	b := NewBuilder(&t.Manifest, true)
	if err := Walk(t, b); err != nil {
		return nil, err
	}
	return b.Report(), nil
}

// Report is what the walk has shown so far.
func (b *Builder) Report() *Report {
	l := b.Ledger
	r := &Report{Phase: PhaseJobs, Devices: []DevicePeak{}, AtEnd: l.atEnd()}
	if l.FirstRequestSeq == trace.Null {
		r.Phase = PhaseWhole
	}
	if l.Host.Peak.LiveBytes > 0 {
		a := l.attribution(l.Host)
		r.Peak = &a
	}
	for device, t := range l.Devices {
		r.Devices = append(r.Devices, DevicePeak{device, l.attribution(t)})
	}
	slices.SortFunc(r.Devices, func(a, b DevicePeak) int { return cmp.Compare(a.Device, b.Device) })
	r.Remainder = b.remainder()
	if b.timeline != nil {
		r.Series = b.series()
	}
	return r
}

// atEnd is what is alive now, by class.
func (l *Ledger) atEnd() Shares {
	g := group{}
	for k, c := range l.Host.cells {
		g.add(l.words.text[k.class], k.dead, c.cur)
	}
	return g.shares(l.Host.LiveBytes)
}

// Leftover is a buffer that is still alive.
type Leftover struct {
	Buffer *Buffer
	Class  string
}

// Leftovers visits every live buffer that belongs to a job, in no order.
func (l *Ledger) Leftovers(visit func(Leftover)) {
	for _, b := range l.buffers {
		if b.Owner.Job >= 0 {
			visit(Leftover{b, l.Class(b)})
		}
	}
}

// PeakRSS is the highest resident set of the job phase and its source, from the manifest if it
// stands there, else from samples: VmHWM where it is known to cover this phase alone, else the
// highest sample. nil where neither exists or there is no job.
func (b *Builder) PeakRSS() *trace.PeakRSS {
	if b.Ledger.FirstRequestSeq == trace.Null {
		return nil
	}
	if p := b.manifest.PeakRSS; p != nil {
		return p
	}
	p := b.RSS.main()
	switch {
	case p == nil:
		return nil
	case b.manifest.Origin == trace.OriginSimulated && p.atRSSPeak != nil:
		return &trace.PeakRSS{Bytes: p.atRSSPeak.RSSBytes, Source: "predicted"}
	case p.provingHWM() != nil && p.plausible(*p.provingHWM()):
		return &trace.PeakRSS{Bytes: *p.provingHWM(), Source: "vmhwm"}
	case p.atRSSPeak != nil:
		return &trace.PeakRSS{Bytes: p.atRSSPeak.RSSBytes, Source: "sampled"}
	}
	return nil
}

// SetupPeakRSS is the highest RSS that any one process had before the first job's request.
func (b *Builder) SetupPeakRSS() *int64 {
	var peak *int64
	for _, p := range b.RSS.order {
		v := p.setupPeak
		if b.Ledger.FirstRequestSeq == trace.Null && p.atRSSPeak != nil {
			v = &p.atRSSPeak.RSSBytes
		}
		if v != nil && (peak == nil || *v > *peak) {
			peak = v
		}
	}
	return peak
}

func (b *Builder) remainder() *Remainder {
	p := b.RSS.main()
	if p == nil || p.samples == 0 {
		return nil
	}
	own := b.Ledger.sourceOf(b.Ledger.words.of(p.name))
	r := &Remainder{
		Source: p.name, Samples: p.samples, BaseBytes: b.manifest.BaseBytes, ResidentPeak: own.peak,
		AtLivePeak: p.atLivePeak, AtRSSPeak: p.atRSSPeak, Largest: p.largest, Smallest: p.smallest,
	}
	if p.samples > 1 {
		gap := (p.last.TimeNS - p.firstNS) / (p.samples - 1)
		r.SampleGapNS = &gap
	}
	if peak := b.PeakRSS(); peak != nil {
		of := peak.Bytes - own.peak
		r.PeakRSSBytes, r.PeakRSSSource, r.OfPeakBytes = &peak.Bytes, peak.Source, &of
		if peak.Bytes > 0 {
			ratio := float64(of) / float64(peak.Bytes)
			r.OfPeakRatio = &ratio
		}
	}
	return r
}

func (b *Builder) series() []*Series {
	t := b.timeline
	all := []*Series{t.Live, t.Res, t.Waiting}
	if p := b.RSS.main(); p != nil {
		all = append(all, p.rss, p.remainder)
	}
	named := make([]*Series, 0, len(t.classes)+int(NumPlaces))
	for _, s := range t.classes {
		named = append(named, s)
	}
	for _, s := range t.places {
		if s != nil {
			named = append(named, s)
		}
	}
	slices.SortFunc(named, func(a, b *Series) int { return cmp.Compare(a.Name, b.Name) })
	return append(all, named...)
}

// PartitionCount is how many distinct (job, partition) the trace has shown.
func (l *Ledger) PartitionCount() int {
	n := 0
	for k := range l.owners {
		if k.partition >= 0 {
			n++
		}
	}
	return n
}
