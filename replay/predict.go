package replay

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// figures are the draws of one setting; modelOf says which model each is of.
type figures struct {
	models []*pipeline.Model
	stats  []sim.Stats
	// by how much RSS goes off its law, of itself (standard deviation); 0: not known
	off    float64
	freely float64 // degrees of freedom of what is known of off
}

func (f *figures) rss(i int) float64 {
	if v := f.stats[i].PeakRSSBytes(&f.models[modelOf(i, len(f.models))].Memory); v != trace.Null {
		return float64(v)
	}
	return math.NaN()
}

// farOff is how many times its standard deviation RSS never goes off its law.
const farOff = 8

// student is the distribution of the error of the law of RSS: how far it goes is itself estimated
// from a few recordings.
func (f *figures) student() distuv.StudentsT {
	return distuv.StudentsT{Sigma: 1, Nu: f.freely}
}

// rssOff is rss with an error of its law, spread evenly over the draws.
func (f *figures) rssOff(i int) float64 {
	const golden = 0.6180339887498949
	if f.off == 0 {
		return f.rss(i)
	}
	_, place := math.Modf((float64(i) + 0.5) * golden)
	return f.rss(i) * (1 + f.off*f.student().Quantile(place))
}

func (f *figures) live(i int) float64     { return float64(f.stats[i].PeakLiveBytes) }
func (f *figures) makespan(i int) float64 { return f.stats[i].MakespanNS }

func (f *figures) interval(i int) float64 {
	return f.stats[i].MakespanNS / float64(f.stats[i].JobsDone)
}

func (f *figures) rho(i int) float64 {
	p := &f.models[0].Policy
	syntheses := p.PartitionWorkers
	if f.models[0].Admission.NoPermit {
		syntheses = f.stats[i].QueueMax.Synthesising
	}
	if rho, ok := f.stats[i].Rho(syntheses, p.GPUWorkers, p.Devices); ok {
		return rho
	}
	return math.NaN()
}

func (f *figures) idle(i int) float64 {
	if x, ok := f.stats[i].GPUIdleRatio(f.models[0].Policy.GPUWorkers * f.models[0].Policy.Devices); ok {
		return x
	}
	return math.NaN()
}

// peak is what a limit is held against: RSS, live bytes where no law of RSS is known.
func (f *figures) peak(i int) float64 {
	if x := f.rss(i); !math.IsNaN(x) {
		return x
	}
	return f.live(i)
}

func (f *figures) of(value func(i int) float64) (s spread, ok bool) {
	return spreadOf(len(f.stats), value)
}

// fill takes medians and bounds. Frozen durations have no spread, so their bounds are not known.
func (p *Prediction) fill(f *figures, frozen bool) {
	ints := func(value func(int) float64, to bounds) {
		if s, ok := f.of(value); ok {
			to.fill(s, frozen)
		}
	}
	rss := bounds{
		&p.PeakRSSBytes, &p.PeakRSSBytesLow, &p.PeakRSSBytesHigh, &p.PeakRSSBytesLow80,
		&p.PeakRSSBytesHigh80,
	}
	ints(f.rss, rss)
	rss.widen(f)
	ints(f.live, bounds{
		&p.PeakLiveBytes, &p.PeakLiveBytesLow, &p.PeakLiveBytesHigh, &p.PeakLiveBytesLow80,
		&p.PeakLiveBytesHigh80,
	})
	ints(f.makespan, bounds{
		&p.MakespanNS, &p.MakespanNSLow, &p.MakespanNSHigh, &p.MakespanNSLow80, &p.MakespanNSHigh80,
	})
	ints(f.interval, bounds{
		&p.ProofIntervalNS, &p.ProofIntervalNSLow, &p.ProofIntervalNSHigh, &p.ProofIntervalNSLow80,
		&p.ProofIntervalNSHigh80,
	})
	if s, ok := f.of(f.rho); ok {
		p.Rho = &s.median
		if !frozen {
			p.RhoLow, p.RhoHigh, p.RhoLow80, p.RhoHigh80 = &s.low, &s.high, &s.low80, &s.high80
		}
	}
	if s, ok := f.of(f.idle); ok {
		p.GPUIdleRatio = &s.median
	}
	p.QueueMaxItems = queues(f)
}

// bounds is where a figure of a prediction goes.
type bounds struct{ mid, low, high, low80, high80 **int64 }

func (b bounds) fill(s spread, frozen bool) {
	*b.mid = rounded(s.median)
	if !frozen {
		*b.low, *b.high = rounded(s.low), rounded(s.high)
		*b.low80, *b.high80 = rounded(s.low80), rounded(s.high80)
	}
}

// widen makes the bounds of RSS those of the draws with the error of its law.
func (b bounds) widen(f *figures) {
	s, ok := f.of(f.rssOff)
	if !ok || *b.low == nil {
		return
	}
	**b.low = min(**b.low, *rounded(s.low))
	**b.high = max(**b.high, *rounded(s.high))
	**b.low80 = min(**b.low80, *rounded(s.low80))
	**b.high80 = max(**b.high80, *rounded(s.high80))
}

func rounded(x float64) *int64 {
	n := int64(math.Round(x))
	return &n
}

// queues is the median over the draws of the most that each resource saw.
func queues(f *figures) map[string]int64 {
	of := func(value func(*sim.QueueMax) int64) int64 {
		s, _ := f.of(func(i int) float64 { return float64(value(&f.stats[i].QueueMax)) })
		return int64(s.median)
	}
	return map[string]int64{
		"channel":         of(func(q *sim.QueueMax) int64 { return q.ChannelItems }),
		"blocked_send":    of(func(q *sim.QueueMax) int64 { return q.ChannelSenders }),
		"backlog":         of(func(q *sim.QueueMax) int64 { return q.Backlog }),
		"permits_held":    of(func(q *sim.QueueMax) int64 { return q.PermitsHeld }),
		"permits_waiting": of(func(q *sim.QueueMax) int64 { return q.PermitWaiting }),
		"lock_waiting":    of(func(q *sim.QueueMax) int64 { return q.LockWaiting }),
		"jobs_in_flight":  of(func(q *sim.QueueMax) int64 { return q.JobsInFlight }),
	}
}

// limit says how likely the peak exceeds bytes.
func (p *Prediction) limit(f *figures, bytes int64) {
	if bytes == 0 {
		return
	}
	sum := 0.0
	for i := range f.stats {
		sum += f.over(i, float64(bytes))
	}
	ratio := sum / float64(len(f.stats))
	p.MemoryLimitBytes, p.PeakOverLimitRatio = &bytes, &ratio
}

// over is the share of draw i's peaks, given the error of the law of RSS, that reach limit.
func (f *figures) over(i int, limit float64) float64 {
	above, off := f.peak(i)-limit, f.off*f.peak(i)
	if math.IsNaN(f.rss(i)) || off == 0 {
		if above >= 0 {
			return 1
		}
		return 0
	}
	switch {
	case above > farOff*off:
		return 1
	case above < -farOff*off:
		return 0
	}
	return f.student().CDF(above / off)
}

// identify replays the recorded settings in the same way and compares.
func (a *answer) identify() error {
	if len(a.recorded) == 0 {
		return nil
	}
	same := a.figures
	if len(a.question.Set) > 0 || a.question.Change != nil {
		models, err := a.under(&Question{})
		if err != nil {
			return err
		}
		if same, err = a.draw(models, a.draws(), nil); err != nil {
			return err
		}
	}
	p := a.prediction
	p.Identity = identity(same, &p.Recorded)
	p.Warnings = append(p.Warnings, a.identityWarnings(p)...)
	return nil
}

// identity compares the recorded settings' replay with the recording.
func identity(f *figures, rec *Recorded) *Identity {
	ratio := func(value func(int) float64, recorded *int64) *float64 {
		s, ok := f.of(value)
		if !ok || recorded == nil || *recorded == 0 {
			return nil
		}
		e := s.median/float64(*recorded) - 1
		return &e
	}
	id := &Identity{
		MakespanErrorRatio: ratio(f.makespan, rec.MakespanNS),
		PeakLiveErrorRatio: ratio(f.live, rec.PeakLiveBytes),
		PeakRSSErrorRatio:  ratio(f.rss, rec.PeakRSSBytes),
	}
	if *id == (Identity{}) {
		return nil
	}
	id.PeakRSSCalibrated = id.PeakRSSErrorRatio != nil
	return id
}
