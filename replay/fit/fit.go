package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"highwater/replay/pipeline"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// MinPartitions is how many complete partitions a fitted law needs; below MinGood an interval is
// doubtful.
const (
	MinPartitions = 3
	MinGood       = 8
)

// Result is what a trace gives.
type Result struct {
	Fitted *pipeline.Model // with the contention law; nil where TooFew
	// Variants are Fitted under laws refitted to resampled services: how sure the law is.
	Variants []*pipeline.Model
	Frozen *pipeline.Model // recorded durations, nothing contends
	Report Report
}

// Report is how the models were made and how far they carry.
type Report struct {
	Partitions int // complete ones, the pool
	Left       int // incomplete ones, left out
	Law        string
	CPUs       float64
	// Misfit is the standard deviation of the logarithm of solo times within a stage, weighted by
	// time: what the law leaves unexplained. MisfitIndependent is the same without any law.
	Misfit, MisfitIndependent float64
	Stages                    []StageReport
	Remainder                 Remainder
	// Concurrency is, by stage, how many ran at once as each service saw it, ascending.
	Concurrency map[string][]float64
	TooFew                    error            // why nothing is fitted, nil where it is
	Warnings                  []string
}

// StageReport is one stage's law and residual.
type StageReport struct {
	Name        string
	Services    int
	Parallelism float64
	Weight      float64
	Spread      float64 // standard deviation of the logarithm of solo times
}

// TooFewError says how many more complete partitions a fit needs.
type TooFewError struct{ Have, Need int }

func (e *TooFewError) Error() string {
	return fmt.Sprintf("the trace has %d complete partitions; a fit needs %d: "+
		"record %d more, or replay recorded durations",
		e.Have, e.Need, e.Need-e.Have)
}

// Fit makes the models of one or several traces of a program. The error says what they lack.
func Fit(ds ...*trace.Data) (*Result, error) {
	if len(ds) != 1 {
		return nil, fmt.Errorf("fit: %d traces at once are not fitted yet", len(ds))
	}
	t, err := read(ds[0])
	if err != nil {
		return nil, err
	}
	parts := t.complete()
	if len(parts) == 0 {
		return nil, fmt.Errorf("fit: none of the trace's %d partitions went all the way: %w",
			len(t.parts), &TooFewError{0, 1})
	}
	f := &fitter{timeline: t, parts: parts}
	f.report.Partitions, f.report.Left = len(parts), len(t.parts)-len(parts)
	if f.report.Left > 0 {
		f.warn("%d of %d partitions did not go all the way and are left out of the pool",
			f.report.Left, len(t.parts))
	}
	return f.fit()
}

// fitter gathers what one fit makes.
type fitter struct {
	*timeline
	parts  []*part
	report Report
	base   pipeline.Model // what both models share
}

func (f *fitter) warn(format string, args ...any) {
	f.report.Warnings = append(f.report.Warnings, fmt.Sprintf(format, args...))
}

func (f *fitter) fit() (*Result, error) {
	if err := f.policy(); err != nil {
		return nil, err
	}
	f.machine()
	f.base.Name = "fit"
	f.base.Memory.Resident, f.base.Memory.Later = f.background()
	f.base.Memory.ScratchPool, f.base.Memory.ScratchHigh = f.pool != 0, f.poolBefore()
	f.report.Remainder = f.remainder(&f.base.Memory)
	if e := f.report.Remainder.ErrorRatio; e != nil && math.Abs(*e) > 0.15 {
		f.warn("the law of RSS is %+.0f %% off the recorded peak before it is moved to fit: "+
			"RSS under other settings is doubtful", 100**e)
	}
	h, err := newHistory(f.stages)
	if err != nil {
		return nil, err
	}
	h.gpu = len(f.data.Manifest.Host.GPUs) > 0
	f.report.Concurrency = Concurrency(f.data.Spans)
	r := &Result{Frozen: f.build(frozen, h.names, nil)}
	if len(f.parts) < MinPartitions {
		f.report.TooFew = &TooFewError{len(f.parts), MinPartitions}
	} else {
		r.Fitted = f.fitted(h)
	}
	r.Report = f.report
	for _, m := range []*pipeline.Model{r.Frozen, r.Fitted} {
		if m == nil {
			continue
		}
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("fit: the trace gives a model that is not valid: %w", err)
		}
	}
	return r, nil
}

// fitted chooses the law and builds the model under it.
func (f *fitter) fitted(h *history) *pipeline.Model {
	cpus := float64(f.data.Manifest.Host.CPUs)
	if cpus == 0 {
		f.warn("the trace does not say how many CPUs the machine has: " +
			"stages are taken as independent of each other")
	}
	if n := len(f.parts); n < MinGood {
		f.warn("intervals rest on %d partitions only: %d more would make %d", n, MinGood-n, MinGood)
	}
	l := h.choose(cpus)
	clocks := h.clocksOf(l.cpus, l.stages)
	spread := h.spread(l.cpus, l.stages)
	f.report.Law, f.report.CPUs, f.report.Misfit = l.name(), l.cpus, l.misfit
	f.report.MisfitIndependent = h.misfit(0, h.prior(0))
	for i, s := range l.stages {
		f.report.Stages = append(f.report.Stages, StageReport{
			Name: s.Name, Services: h.services(i), Parallelism: s.Parallelism, Weight: s.Weight,
			Spread: spread[i],
		})
	}
	if f.report.Misfit > 0.3 {
		f.warn("the contention law leaves a spread of %.0f %% in the stages' times: "+
			"something else slows them", 100*f.report.Misfit)
	}
	m := f.build(clocks.measure, h.names, l.stages)
	m.Machine.CPUs = l.cpus
	return m
}

func (h *history) services(stage int) int {
	n := 0
	for _, s := range h.spans {
		if h.index[s.Stage] == stage {
			n++
		}
	}
	return n
}

// build makes a model with durations as solo measures them.
func (f *fitter) build(solo measure, names []string, laws []pipeline.Stage) *pipeline.Model {
	m := f.base
	m.Stages = slices.Clone(laws)
	if laws == nil {
		for _, n := range names {
			m.Stages = append(m.Stages, pipeline.Stage{Name: n})
		}
	}
	split := f.base.Policy.SplitProving
	for _, p := range f.parts {
		m.Partitions = append(m.Partitions, f.partition(p, split, solo))
	}
	m.Jobs = f.jobsOf(solo)
	return &m
}

// policy takes the settings as recorded; what the manifest does not say comes from the resources or
// the default.
func (f *fitter) policy() error {
	p := &f.base.Policy
	p.Devices = max(1, f.devices())
	for _, s := range setting.Table() {
		if !s.Replay {
			continue
		}
		text := s.Default
		if v, ok := f.data.Manifest.Settings[s.Name]; ok {
			text = v.Value
		} else if v, ok := f.inferred(s.Name); ok {
			text = v
			f.warn("the trace does not say %s: taken from what was recorded as %s", s.Name, v)
		} else {
			f.warn("the trace does not say %s: taken as the default %s", s.Name, text)
		}
		if err := p.SetText(s.Name, text); err != nil {
			return fmt.Errorf("fit: recorded %w", err)
		}
	}
	return nil
}

// inferred is a setting's value as the rest of the trace shows it.
func (f *fitter) inferred(name string) (string, bool) {
	kind := map[string]string{
		"jobs_in_flight": trace.ResourceJob, "partition_workers": trace.ResourcePermit,
		"channel_capacity": trace.ResourceChannel, "byte_budget": trace.ResourceBudget,
	}[name]
	for _, r := range f.data.Manifest.Resources {
		if kind == "" || r.Kind != kind {
			continue
		}
		if r.Capacity == nil {
			return "unbounded", true
		}
		return strconv.FormatInt(*r.Capacity, 10), true
	}
	switch name {
	case "jobs":
		return strconv.Itoa(len(f.jobs)), true
	case "partitions":
		n := max(1, len(f.jobs))
		return strconv.Itoa((len(f.timeline.parts) + n - 1) / n), true
	}
	return "", false
}

func (f *fitter) devices() int64 {
	n := int64(0)
	for _, r := range f.data.Manifest.Resources {
		if r.Kind == trace.ResourceLock {
			n++
		}
	}
	return n
}

// machine takes what partitions share: the lock, and how fast a GPU worker turns to its next item.
func (f *fitter) machine() {
	m := &f.base.Machine
	m.Finalisers = pipeline.Unbounded
	for _, r := range f.data.Manifest.Resources {
		if r.Kind == trace.ResourceLock && f.locks {
			m.LockCapacity = 1
			if r.Capacity != nil && *r.Capacity > 0 {
				m.LockCapacity = *r.Capacity
			}
		}
	}
	m.TurnaroundNS = f.turnaround()
}

// turnaround is the median time from a GPU worker's letting go of a partition to its next receive,
// where an item was waiting for it.
func (f *fitter) turnaround() float64 {
	done := map[int64]int64{} // by worker, its last letting go
	byRecv := slices.Clone(f.parts)
	slices.SortFunc(byRecv, func(a, b *part) int { return cmp.Compare(a.recv, b.recv) })
	var gaps []float64
	for _, p := range byRecv {
		if last, ok := done[p.worker]; ok && p.send <= last && p.recv >= last {
			gaps = append(gaps, float64(p.recv-last))
		}
		done[p.worker] = f.letGo(p)
	}
	return median(gaps)
}

func (f *fitter) letGo(p *part) int64 {
	switch {
	case !f.base.Policy.SplitProving:
		return p.freed
	case p.unlocked != unset:
		return p.unlocked
	}
	return max(p.recv, p.spanTime(trace.StageProveStart, true))
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	if n := len(x); n%2 == 0 {
		return (x[n/2-1] + x[n/2]) / 2
	}
	return x[int(math.Floor(float64(len(x))/2))]
}
