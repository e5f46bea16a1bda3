package memory

import (
	"math"

	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// maxSources bounds the processes whose RSS is followed.
const maxSources = 64

// RSS follows the resident set of every process of the trace and compares it with that process's
// ledger. It comes after its ledger in the walk.
type RSS struct {
	ledger    *Ledger
	processes map[string]*process
	order     []*process
	phase     int64  // FirstRequestSeq last seen
	epoch     uint64 // of the host tally, last seen
	timeline  bool
}

// process is one source that samples its RSS.
type process struct {
	name    string
	samples int64 // of RSS, in the current phase
	firstNS int64
	last    Point

	setupPeak *int64
	setupHWM  *int64 // last VmHWM of the set-up phase
	hwm       *int64 // last VmHWM of the job phase
	hwmFell   bool   // VmHWM was reset: what it says since is of this phase alone

	atRSSPeak, largest, smallest *Point
	atLivePeak                   *Point
	livePeakNS                   int64
	// the next sample may be nearer to the live peak than the last was
	awaitsAfter bool

	rss, remainder *Series
}

// Point is RSS beside the ledger of the same process at one sample.
type Point struct {
	TimeNS        int64 `json:"time_ns"`
	RSSBytes      int64 `json:"rss_bytes"`
	ResidentBytes int64 `json:"resident_bytes"` // of the ledger, at the time of the sample
	// of the resident bytes, by formula rather than by measurement
	EstimatedBytes int64 `json:"estimated_bytes"`
	// capacity of buffers whose resident bytes were not recorded
	UnknownBytes   int64 `json:"unknown_bytes"`
	RemainderBytes int64 `json:"remainder_bytes"` // RSS - resident
	DistanceNS     int64 `json:"distance_ns"`     // sample time minus the moment it stands for
}

// measured is RSS minus the resident bytes that were measured: the remainder if every estimate were
// 0.
func (p *Point) measured() int64 { return p.RemainderBytes + p.EstimatedBytes }

func newRSS(l *Ledger, timeline bool) *RSS {
	return &RSS{ledger: l, processes: map[string]*process{}, phase: trace.Null, timeline: timeline}
}

// Observe takes one step.
func (r *RSS) Observe(s *Step) {
	if r.phase != r.ledger.FirstRequestSeq {
		r.phase = r.ledger.FirstRequestSeq
		for _, p := range r.order {
			p.startJobs()
		}
	}
	if r.epoch != r.ledger.Host.epoch {
		r.epoch = r.ledger.Host.epoch
		r.livePeak()
	}
	if s.Kind != StepSample {
		return
	}
	switch s.Sample.Metric {
	case probe.RSS:
		r.sample(s.Sample)
	case probe.HWM:
		r.highWater(s.Sample)
	}
}

// startJobs begins the job phase: what was seen so far belongs to set-up.
func (p *process) startJobs() {
	if p.atRSSPeak != nil {
		peak := p.atRSSPeak.RSSBytes
		p.setupPeak = &peak
	}
	p.setupHWM, p.hwm = p.hwm, nil
	p.samples = 0
	p.atRSSPeak, p.largest, p.smallest, p.atLivePeak = nil, nil, nil, nil
}

// livePeak notes that the host's live bytes have just reached a new peak.
func (r *RSS) livePeak() {
	for _, p := range r.order {
		p.livePeakNS, p.awaitsAfter, p.atLivePeak = r.ledger.Host.Peak.TimeNS, true, nil
		if p.samples > 0 {
			before := p.last
			before.DistanceNS = before.TimeNS - p.livePeakNS
			p.atLivePeak = &before
		}
	}
}

func (r *RSS) process(source string) *process {
	p := r.processes[source]
	if p == nil && len(r.processes) < maxSources {
		name := r.ledger.words.text[r.ledger.words.of(source)]
		p = &process{
			name:      name,
			rss:       newSeries("rss_bytes", true),
			remainder: newSeries("remainder_bytes", true),
		}
		p.livePeakNS, p.awaitsAfter = r.ledger.Host.Peak.TimeNS, r.epoch > 0
		r.processes[name] = p
		r.order = append(r.order, p)
	}
	return p
}

func (r *RSS) sample(s *trace.Sample) {
	p := r.process(s.Source)
	if p == nil || !validBytes(s.Value) {
		return
	}
	own := r.ledger.sourceOf(r.ledger.words.of(s.Source))
	at := Point{
		TimeNS: s.TimeNS, RSSBytes: int64(s.Value), ResidentBytes: own.resident,
		EstimatedBytes: own.estimated, UnknownBytes: own.unknown,
	}
	at.RemainderBytes = at.RSSBytes - at.ResidentBytes
	if r.timeline {
		p.rss.set(at.TimeNS, at.RSSBytes)
		p.remainder.set(at.TimeNS, at.RemainderBytes)
	}
	p.take(at, r.ledger.OwnedBytes() > 0)
}

// take notes a sample. Extremes of the remainder count while jobs hold buffers: what a process
// keeps after its work says nothing about the work.
func (p *process) take(at Point, busy bool) {
	if p.samples == 0 {
		p.firstNS = at.TimeNS
	}
	p.samples++
	p.last = at
	if p.atRSSPeak == nil || at.RSSBytes > p.atRSSPeak.RSSBytes {
		c := at
		p.atRSSPeak = &c
	}
	if busy && (p.largest == nil || at.RemainderBytes > p.largest.RemainderBytes) {
		c := at
		p.largest = &c
	}
	if busy && (p.smallest == nil || at.measured() < p.smallest.measured()) {
		c := at
		p.smallest = &c
	}
	if !p.awaitsAfter {
		return
	}
	p.awaitsAfter = false
	at.DistanceNS = at.TimeNS - p.livePeakNS
	if p.atLivePeak == nil || at.DistanceNS < -p.atLivePeak.DistanceNS {
		p.atLivePeak = &at
	}
}

func (r *RSS) highWater(s *trace.Sample) {
	p := r.process(s.Source)
	if p == nil || !validBytes(s.Value) {
		return
	}
	v := int64(s.Value)
	if last := p.lastHWM(); last != nil && v < *last {
		p.hwmFell = true
	}
	p.hwm = &v
}

func (p *process) lastHWM() *int64 {
	if p.hwm != nil {
		return p.hwm
	}
	return p.setupHWM
}

// provingHWM is VmHWM if it is known to be of the job phase: it was reset, or it rose above what
// set-up had reached.
func (p *process) provingHWM() *int64 {
	if p.hwm == nil || !p.hwmFell && p.setupHWM != nil && *p.hwm <= *p.setupHWM {
		return nil
	}
	return p.hwm
}

// plausible says that hwm is not below what was sampled by more than the kernel's batching of RSS
// counters explains.
func (p *process) plausible(hwm int64) bool {
	return p.atRSSPeak == nil || float64(hwm) >= 0.97*float64(p.atRSSPeak.RSSBytes)
}

func validBytes(v float64) bool { return v >= 0 && v < math.MaxInt64/2 }

// main is the process that ran the jobs; without jobs, the first that was sampled; nil where none
// was.
func (r *RSS) main() *process {
	if p := r.processes[r.ledger.JobSource]; p != nil && r.ledger.FirstRequestSeq != trace.Null {
		return p
	}
	if r.ledger.FirstRequestSeq == trace.Null && len(r.order) > 0 {
		return r.order[0]
	}
	return nil
}
