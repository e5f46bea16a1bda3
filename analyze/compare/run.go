package compare

import (
	"fmt"
	"math"
	"strconv"

	"highwater/analyze"
	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// Run is one trace reduced to what can be compared.
type Run struct {
	Name    string // the trace's directory
	Traits  Traits
	Summary *analyze.Summary
	Values  Values

	// at is what held the host's live bytes at their peak, devices those of each device.
	at      peakMakeup
	devices map[int64]peakMakeup
	stages  *stageTable
	// sampled counters, so that one that is missing is known to be missing
	counters  map[string]bool
	sampledNS int64   // how long they were sampled
	paceNS    float64 // mean of probe.Pace; 0 where it is not known
}

// ReadRun reads t once, in memory bounded by what is alive and by the number of partitions.
func ReadRun(t *trace.Trace) (*Run, error) {
	r := &Run{Name: t.Dir, Values: Values{}, devices: map[int64]peakMakeup{}}
	var o *observer
	s, err := analyze.SummariseWith(t, func(b *memory.Builder) memory.Observer {
		o = newObserver(&t.Manifest, b.Ledger)
		return o
	})
	if err != nil {
		return nil, fmt.Errorf("compare trace %s: %w", t.Dir, err)
	}
	r.Summary = s
	r.Traits = traitsOf(t, s)
	r.headlines()
	o.finish(r)
	return r, nil
}

// headlines takes over the figures that analyze shows for the trace.
func (r *Run) headlines() {
	s := r.Summary
	for name, v := range map[string]*int64{
		ProofInterval: s.ProofIntervalNS, PeakLive: s.PeakLiveBytes, PeakRSS: s.PeakRSSBytes,
	} {
		if v != nil {
			r.Values.set(name, "", float64(*v))
		}
	}
	for _, d := range s.DevicePeaks {
		r.Values.set(DevicePeak, strconv.FormatInt(d.Device, 10), float64(d.PeakLiveBytes))
	}
	if s.Rho != nil {
		r.Values.set(Rho, "", *s.Rho)
	}
}

// observer gathers what Summarise does not: bytes by class over time, stages by partition,
// operations, queues, counters. Everything is counted from the first job's request on; in a trace
// without jobs, from the start.
type observer struct {
	ledger   *memory.Ledger
	phase    int64 // FirstRequestSeq last seen
	jobs     jobOrder
	classes  *classObserver
	stages   *stageObserver
	queues   *queueObserver
	counters *counterObserver
	beginNS  int64
	endNS    int64
}

func newObserver(m *trace.Manifest, l *memory.Ledger) *observer {
	o := &observer{ledger: l, phase: trace.Null, jobs: jobOrder{}, beginNS: trace.Null}
	o.classes = newClassObserver(o.jobs)
	o.stages = newStageObserver(o.jobs)
	o.queues = newQueueObserver(m)
	o.counters = newCounterObserver(m)
	return o
}

// Observe takes one step.
func (o *observer) Observe(s *memory.Step) {
	if o.beginNS == trace.Null {
		o.beginNS = s.TimeNS
	}
	if o.phase != o.ledger.FirstRequestSeq {
		o.phase = o.ledger.FirstRequestSeq
		o.beginNS = s.TimeNS
		o.classes.startJobs(s.TimeNS)
		o.stages.startJobs()
		o.queues.startJobs(s.TimeNS)
		o.counters.startJobs()
	}
	o.endNS = s.TimeNS
	switch s.Kind {
	case memory.StepBuffer:
		o.classes.buffer(s.Buffer)
	case memory.StepQueue:
		o.jobs.rank(s.Queue.Job)
		o.queues.event(s.Queue)
	case memory.StepSpanEnd:
		o.stages.end(s.Span, o.beginNS)
	case memory.StepSample:
		o.counters.sample(s.Sample)
	}
}

func (o *observer) finish(r *Run) {
	o.classes.finish(r.Values, o.endNS)
	o.stages.finish(r)
	o.queues.finish(r.Values, o.endNS)
	o.counters.finish(r, o.ledger.JobSource)
	r.at = makeupOf(o.ledger, o.ledger.Host, o.classes)
	for device, t := range o.ledger.Devices {
		r.devices[device] = makeupOf(o.ledger, t, o.classes)
	}
}

// jobOrder ranks jobs by when they were first heard of: the first submitted is 0. That is how the
// jobs of two runs are paired.
type jobOrder map[int64]int64

// rank is the job's place; -1 for no job.
func (j jobOrder) rank(job int64) int64 {
	if job < 0 {
		return trace.None
	}
	r, ok := j[job]
	if !ok {
		r = int64(len(j))
		j[job] = r
	}
	return r
}

// gibSeconds turns byte·nanoseconds into GiB·seconds.
func gibSeconds(byteNanos float64) float64 {
	return byteNanos / float64(units.GiB) / 1e9
}

// ratioOf is a over b minus 1, nil where b is 0.
func ratioOf(a, b float64) *float64 {
	if b == 0 || math.IsNaN(a) || math.IsNaN(b) {
		return nil
	}
	r := a/b - 1
	return &r
}
