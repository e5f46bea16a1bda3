package replay

import (
	"fmt"
	"maps"
	"math"

	"highwater/internal/units"
	"highwater/replay/fit"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// figures are the draws of one model.
type figures struct {
	model *pipeline.Model
	stats []sim.Stats
	off   float64 // bytes by which RSS may lie above or below its law; 0 where not known
}

func (f *figures) rss(i int) float64 {
	if v := f.stats[i].PeakRSSBytes(&f.model.Memory); v != trace.Null {
		return float64(v)
	}
	return math.NaN()
}

// rssOff is rss with an error of its law: between -off and off, spread evenly over the draws.
func (f *figures) rssOff(i int) float64 {
	const golden = 0.6180339887498949
	_, place := math.Modf((float64(i) + 0.5) * golden)
	return f.rss(i) + (2*place-1)*f.off
}

func (f *figures) live(i int) float64     { return float64(f.stats[i].PeakLiveBytes) }
func (f *figures) makespan(i int) float64 { return f.stats[i].MakespanNS }

func (f *figures) interval(i int) float64 {
	return f.stats[i].MakespanNS / float64(f.stats[i].JobsDone)
}

func (f *figures) rho(i int) float64 {
	p := &f.model.Policy
	if rho, ok := f.stats[i].Rho(p.PartitionWorkers, p.GPUWorkers, p.Devices); ok {
		return rho
	}
	return math.NaN()
}

func (f *figures) idle(i int) float64 {
	if x, ok := f.stats[i].GPUIdleRatio(f.model.Policy.GPUWorkers * f.model.Policy.Devices); ok {
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

func (r *run) figures(m *pipeline.Model, n int, progress func(int, int)) (*figures, error) {
	plan := &drawPlan{model: m, n: n, seed: r.opts.Seed, bootstrap: !r.frozen(), progress: progress}
	stats, err := plan.run(r.ctx)
	f := &figures{model: m, stats: stats}
	if e := r.fit.Report.Remainder.ErrorBytes; e != nil {
		f.off = float64(*e)
	}
	return f, err
}

// predict runs the draws and fills in the prediction.
func (r *run) predict() (*Prediction, error) {
	f, err := r.figures(r.model, r.draws, r.opts.Progress)
	if err != nil {
		return nil, err
	}
	p := &Prediction{
		Durations: DurationsFitted, Draws: r.draws, Seed: r.opts.Seed,
		Settings: r.settings(), Warnings: []string{},
	}
	if r.frozen() {
		p.Durations = DurationsRecorded
	}
	p.fill(f, r.frozen())
	p.limit(f, r.opts.MemoryLimit)
	p.Law = r.law()
	if p.Recorded, err = r.recorded(); err != nil {
		return nil, err
	}
	same := f
	if len(r.opts.Set) > 0 {
		if same, err = r.figures(r.base, r.draws, nil); err != nil {
			return nil, err
		}
	}
	p.Identity = identity(same, &p.Recorded)
	p.Warnings = append(p.Warnings, r.warnings(f, same, p)...)
	if r.opts.Out != "" {
		middle, _ := f.of(f.peak)
		if err := r.write(middle.index); err != nil {
			return nil, err
		}
		p.Out = r.opts.Out
	}
	return p, nil
}

// fill takes medians and bounds. Frozen durations have no spread, so their bounds are not known.
func (p *Prediction) fill(f *figures, frozen bool) {
	ints := func(value func(int) float64, mid, low, high **int64) {
		s, ok := f.of(value)
		if !ok {
			return
		}
		*mid = rounded(s.median)
		if !frozen {
			*low, *high = rounded(s.low), rounded(s.high)
		}
	}
	ints(f.rss, &p.PeakRSSBytes, &p.PeakRSSBytesLow, &p.PeakRSSBytesHigh)
	p.widen(f)
	ints(f.live, &p.PeakLiveBytes, &p.PeakLiveBytesLow, &p.PeakLiveBytesHigh)
	ints(f.makespan, &p.MakespanNS, &p.MakespanNSLow, &p.MakespanNSHigh)
	ints(f.interval, &p.ProofIntervalNS, &p.ProofIntervalNSLow, &p.ProofIntervalNSHigh)
	if s, ok := f.of(f.rho); ok {
		p.Rho = &s.median
		if !frozen {
			p.RhoLow, p.RhoHigh = &s.low, &s.high
		}
	}
	if s, ok := f.of(f.idle); ok {
		p.GPUIdleRatio = &s.median
	}
	p.QueueMaxItems = queues(f)
}

// widen makes the bounds of RSS those of the draws with the error of its law.
func (p *Prediction) widen(f *figures) {
	s, ok := f.of(f.rssOff)
	if !ok || p.PeakRSSBytesLow == nil {
		return
	}
	*p.PeakRSSBytesLow = min(*p.PeakRSSBytesLow, *rounded(s.low))
	*p.PeakRSSBytesHigh = max(*p.PeakRSSBytesHigh, *rounded(s.high))
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

// over is the share of draw i's peaks, given the error of the law of RSS, above limit.
func (f *figures) over(i int, limit float64) float64 {
	above, off := f.peak(i)-limit, f.off
	if math.IsNaN(f.rss(i)) {
		off = 0
	}
	switch {
	case above > off:
		return 1
	case above <= -off:
		return 0
	}
	return (above + off) / (2 * off)
}

// settings are the trace's with those that were set.
func (r *run) settings() map[string]trace.Setting {
	out := maps.Clone(r.trace.Manifest.Settings)
	if out == nil {
		out = map[string]trace.Setting{}
	}
	for name, s := range out {
		out[name] = trace.Setting{Value: s.Value, Source: "trace"}
	}
	for name := range r.opts.Set {
		text, _ := r.model.Policy.Text(name)
		out[name] = trace.Setting{Value: text, Source: "set"}
	}
	return out
}

func (r *run) law() Law {
	rep := &r.fit.Report
	l := Law{
		Service: DurationsRecorded, Remainder: rep.Remainder.Law,
		RemainderErrorOf:    rep.Remainder.ErrorRatio,
		RemainderErrorBytes: rep.Remainder.ErrorBytes, Text: lawText(&rep.Remainder),
	}
	if !r.frozen() {
		l.Service, l.CPUs, l.ServiceResidual = rep.Law, rep.CPUs, &rep.Misfit
	}
	if rep.Remainder.Law != pipeline.LawNone {
		base := rep.Remainder.BaseBytes
		l.RemainderBytes = &base
	}
	return l
}

// lawText says the law of RSS and its error in a sentence.
func lawText(r *fit.Remainder) string {
	text := "RSS = base (calibrated to the recorded peak) + ledger without scratch + most scratch so far"
	switch r.Law {
	case pipeline.LawNone:
		return "RSS is not predicted: the trace has neither its base nor its peak"
	case pipeline.LawProportional:
		text = "RSS = base + ledger times a factor (calibrated to the recorded peak)"
	}
	switch {
	case r.ErrorBytes == nil:
		return text + "; how far RSS goes off it is not known: it was not sampled while jobs held buffers"
	case r.Samples < 2:
		return text + fmt.Sprintf("; bounds allow for %s either way, by which calibrating moved it",
			units.Bytes(*r.ErrorBytes))
	}
	return text + fmt.Sprintf("; bounds allow for %s either way, by which %d samples went off it",
		units.Bytes(*r.ErrorBytes), r.Samples)
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
