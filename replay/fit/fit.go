package fit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
	Frozen   *pipeline.Model // recorded durations, nothing contends
	Report   Report
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
	OtherCores                *float64 // mean that other programs used; nil where not sampled
	Pace                      *float64 // of the CPU, ns, mean over the traces; nil where not sampled
	// Concurrency is, by stage, how many ran at once as each service saw it, ascending.
	Concurrency map[string][]float64
	TooFew      error // why nothing is fitted, nil where it is
	Warnings    []string
}

// StageReport is one stage's law and residual.
type StageReport struct {
	Name        string
	Services    int
	Parallelism float64
	Weight      float64
	Sensitivity float64 // slow-down by one core's worth of other services
	CPUMeasured bool    // its solo times rest on measured CPU time
	// Spread is the standard deviation of the logarithm of solo times, with the error of the law's
	// CPU time where that was measured.
	Spread float64
}

// TooFewError says how many more complete partitions a fit needs.
type TooFewError struct{ Have, Need int }

func (e *TooFewError) Error() string {
	partitions := "partitions"
	if e.Have == 1 {
		partitions = "partition"
	}
	return fmt.Sprintf("the trace has %d complete %s; a fit needs %d: "+
		"record %d more, or replay recorded durations",
		e.Have, partitions, e.Need, e.Need-e.Have)
}

// Fit makes the models of one or several traces of a program: settings, machine and memory are
// those of the first, services and partitions those of all. The error says what they lack.
func Fit(ds ...*trace.Data) (*Result, error) {
	if len(ds) == 0 {
		return nil, errors.New("fit: no trace")
	}
	runs, err := readAll(ds)
	if err != nil {
		return nil, err
	}
	if err := alike(ds); err != nil {
		return nil, fmt.Errorf("fit: %w", err)
	}
	f := &fitter{recording: runs[0], runs: runs}
	for i, r := range runs {
		left := len(r.timeline.parts) - len(r.parts)
		f.report.Partitions += len(r.parts)
		f.report.Left += left
		if left > 0 {
			f.warn("%d of %d partitions%s did not go all the way and are left out of the pool",
				left, len(r.timeline.parts), inTrace(i, len(runs)))
		}
	}
	return f.fit()
}

// inTrace names one of several traces.
func inTrace(i, n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" of trace %d", i+1)
}

// fitter gathers what one fit makes.
type fitter struct {
	*recording // the first
	runs       []*recording
	report     Report
	base       pipeline.Model // what all models share
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
	f.memory()
	h, err := newHistory(f.runs)
	if err != nil {
		return nil, err
	}
	f.report.Concurrency = map[string][]float64{}
	for _, r := range f.runs {
		for stage, x := range Concurrency(r.data.Spans) {
			f.report.Concurrency[stage] = append(f.report.Concurrency[stage], x...)
		}
	}
	for _, x := range f.report.Concurrency {
		slices.Sort(x)
	}
	r := &Result{Frozen: f.frozen(h)}
	if n := f.report.Partitions; n < MinPartitions {
		f.report.TooFew = &TooFewError{n, MinPartitions}
	} else {
		r.Fitted, r.Variants = f.fitted(h)
	}
	r.Report = f.report
	return r, r.validate()
}

func (r *Result) validate() error {
	models := append([]*pipeline.Model{r.Frozen}, r.Variants...)
	if r.Fitted != nil {
		models = append(models, r.Fitted)
	}
	for _, m := range models {
		if err := m.Validate(); err != nil {
			return fmt.Errorf("fit: the trace gives a model that is not valid: %w", err)
		}
	}
	return nil
}

// Variants is how many further laws that the services bear are modelled.
const Variants = 7

// fitted chooses the law and builds the model under it, and the variants.
func (f *fitter) fitted(h *history) (*pipeline.Model, []*pipeline.Model) {
	if h.cpus == 0 {
		f.warn("the trace does not say how many CPUs the machine has: " +
			"stages are taken as independent of each other")
	}
	if n := f.report.Partitions; n < MinGood {
		f.warn("intervals rest on %d partitions only: %d more would make %d", n, MinGood-n, MinGood)
	}
	f.load(h.cpus)
	f.paces()
	l := h.choose()
	f.describe(h, l)
	m := f.under(h, l)
	var variants []*pipeline.Model
	if l.name() == LawSharing {
		for i := range Variants {
			variants = append(variants, f.under(h, h.borne(l, uint64(i+1))))
		}
	}
	return m, variants
}

// load says what other programs took of the machine.
func (f *fitter) load(cpus float64) {
	sum, n := 0.0, 0.0
	for _, r := range f.runs {
		if mean, known := r.meanLoad(); known {
			sum, n = sum+mean, n+1
		}
	}
	if n == 0 {
		return
	}
	mean := sum / n
	f.report.OtherCores = &mean
	if cpus > 0 && mean > 0.1*cpus {
		f.warn("other programs used %.1f of the machine's %.0f cores while it was recorded: "+
			"predictions are for a machine as busy; record on a quiet one to be sure", mean, cpus)
	}
}

// describe reports the law and what it leaves unexplained.
func (f *fitter) describe(h *history, l *law) {
	s := &search{history: h, seen: h.seen}
	of := s.fitness(l)
	spread := of.spread()
	rep := &f.report
	rep.Law, rep.CPUs, rep.Misfit = l.name(), l.cpus, l.misfit
	rep.MisfitIndependent = s.misfit(h.prior(0, 0))
	for i, law := range l.stages {
		rep.Stages = append(rep.Stages, StageReport{
			Name: law.Name, Services: s.services(i), Parallelism: law.Parallelism,
			Weight: law.Weight, Sensitivity: law.Sensitivity, Spread: spread[i],
			CPUMeasured: of.measured(i),
		})
	}
	if rep.Misfit > 0.3 {
		f.warn("the contention law leaves a spread of %.0f %% in the stages' times: "+
			"something else slows them", 100*rep.Misfit)
	}
}

// under builds the model under a law.
func (f *fitter) under(h *history, l *law) *pipeline.Model {
	of := (&search{history: h, seen: h.seen}).fitness(l)
	by := &solo{clocks: h.clocksOf(l), law: l}
	common := h.together(l, by.clocks)
	for i := range l.stages {
		by.measured = append(by.measured, of.measured(i) && of.bound[i].size() < maxCPUError)
	}
	m := f.base
	m.Stages = slices.Clone(l.stages)
	m.Machine.CPUs = l.cpus
	if f.report.OtherCores != nil && l.cpus > 0 {
		m.Machine.CPUs = Cores(l.cpus, *f.report.OtherCores)
	}
	drift, ends := drifts{}, []int{0}
	for i, r := range f.runs {
		at := *by
		at.offset = r.offset
		from, jobs := len(m.Partitions), len(m.Jobs)
		f.pooled(&m, r, &at)
		m.Partitions = append(m.Partitions[:from], r.inner(m.Partitions[from:])...)
		Slow(m.Stages, m.Partitions[from:], m.Jobs[jobs:], 1/r.slowness)
		drift.add(i, m.Partitions[from:])
		ends = append(ends, len(m.Partitions))
	}
	for i := range f.runs {
		drift.level(i, m.Partitions[ends[i]:ends[i+1]])
	}
	drift.into(m.Stages, common, f.report.Pace != nil)
	return &m
}

// maxCPUError is how far measured CPU time may lie from the law's, in logarithms, to be taken for
// the work of a stage: one that waits for something else is not explained by its CPU time.
const maxCPUError = 0.5

// frozen builds the model with the first trace's recorded durations.
func (f *fitter) frozen(h *history) *pipeline.Model {
	m := f.base
	for _, n := range h.names {
		m.Stages = append(m.Stages, pipeline.Stage{Name: n})
	}
	f.pooled(&m, f.recording, frozen{})
	turned := f.turned()
	for i, p := range f.parts {
		m.Partitions[i].TurnaroundNS = turned[p.key]
	}
	return &m
}

// pooled adds a recording's partitions and jobs to the pool.
func (f *fitter) pooled(m *pipeline.Model, r *recording, by measure) {
	split := f.base.Policy.SplitProving
	if r != f.recording {
		split = r.data.Manifest.Settings["split_proving"].Value != "false"
	}
	for _, p := range r.parts {
		m.Partitions = append(m.Partitions, r.partition(p, split, by))
	}
	m.Jobs = append(m.Jobs, r.jobsOf(by)...)
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
	m.TurnaroundNS = median(slices.Collect(maps.Values(f.turned())))
}

// turned is the time from a GPU worker's letting go of a partition to its next receive, at least 1,
// for the partitions after which an item was waiting for it.
func (f *fitter) turned() map[key]float64 {
	before := map[int64]*part{} // by worker
	byRecv := slices.Clone(f.parts)
	slices.SortFunc(byRecv, func(a, b *part) int { return cmp.Compare(a.recv, b.recv) })
	gaps := map[key]float64{}
	for _, p := range byRecv {
		if b := before[p.worker]; b != nil {
			if last := f.letGo(b); p.send <= last && p.recv >= last {
				gaps[b.key] = max(1, float64(p.recv-last))
			}
		}
		before[p.worker] = p
	}
	return gaps
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
