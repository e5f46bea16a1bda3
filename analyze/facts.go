package analyze

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"highwater/analyze/memory"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// facts is what several passes need of the walk, gathered once: the runs of stages with what ran
// beside them, and the sampled counters of each source. It comes after the figures in the walk,
// whose clocks of waiting it reads. Its size is bounded; what did not fit is counted.
type facts struct {
	manifest *trace.Manifest
	ledger   *memory.Ledger
	rho      *rhoFigures

	stages    []string // names, by number
	byName    map[string]int
	runs      []stageRun // in order of their ends
	truncated int64      // runs left out
	open      map[int64]openRun

	demand   float64 // threads of the stages that run now
	integral float64 // of demand over time, thread-nanoseconds
	peak     float64 // of demand
	lastNS   int64
	started  bool
	firstNS  int64

	curves  map[string]map[string]*curve // source, metric
	sources []string                     // in order of first sample
}

// maxRuns bounds the runs of stages that are kept.
const maxRuns = 1 << 20

// stageRun is one closed span of kind stage.
type stageRun struct {
	beginNS, endNS int64
	ownNS          int64 // without what its partition waited meanwhile
	load           float32
	stage          uint16
	job, partition int32
	device         int16
	threads        float32
	anyThreads     bool  // how many it had is not recorded: threads is 1
	cpuNS          int64 // trace.Null where not measured
}

type openRun struct {
	integral float64
	waited   int64
	threads  float64
}

// curveMetrics are the metrics whose curves are kept.
var curveMetrics = map[string]bool{
	probe.RSS: true, probe.FaultsMinor: true, probe.FaultsMajor: true, probe.CPUUser: true,
	probe.CPUSystem: true, probe.Steal: true, probe.CgroupUsage: true, probe.CgroupPeak: true,
	probe.CgroupLimit: true, probe.CgroupOOMs: true, probe.GoUsed: true, heapFree: true,
	eventsHigh: true, eventsMax: true, eventsOOM: true, failCount: true, throttledTime: true,
	probe.MemAvailable: true, limiterUsage: true, virtualBytes: true,
}

// Metrics of the probe's table that have no name there.
const (
	heapFree      = "go.memory.heap.free"
	eventsHigh    = "container.memory.events.high"
	eventsMax     = "container.memory.events.max"
	eventsOOM     = "container.memory.events.oom"
	failCount     = "container.memory.failcnt"
	throttledTime = "container.cpu.throttled.time"
	limiterUsage  = "container.memory.limiter.usage"
	virtualBytes  = "process.memory.virtual"
)

// maxCurveSources bounds the sources whose samples are kept.
const maxCurveSources = 64

func newFacts(t *trace.Trace, b *memory.Builder, f *figures) *facts {
	return &facts{
		manifest: &t.Manifest, ledger: b.Ledger, rho: &f.rho, byName: map[string]int{},
		open: map[int64]openRun{}, curves: map[string]map[string]*curve{},
	}
}

// Observe implements memory.Observer.
func (f *facts) Observe(s *memory.Step) {
	if !f.started {
		f.started, f.firstNS, f.lastNS = true, s.TimeNS, s.TimeNS
	}
	switch s.Kind {
	case memory.StepSpanBegin:
		if s.Span.Kind == trace.KindStage {
			f.begin(s.Span)
		}
	case memory.StepSpanEnd:
		if s.Span.Kind == trace.KindStage {
			f.end(s.Span)
		}
	case memory.StepSample:
		f.sample(s.Sample)
	}
}

// advance brings the integral of demand up to timeNS.
func (f *facts) advance(timeNS int64) {
	if timeNS > f.lastNS {
		f.integral += f.demand * float64(timeNS-f.lastNS)
		f.lastNS = timeNS
	}
}

func threadsOf(s *trace.Span) float64 {
	if s.Threads > 0 {
		return float64(s.Threads)
	}
	return 1
}

func (f *facts) begin(s *trace.Span) {
	if s.EndNS == trace.Null { // never ends: it would load the rest of the trace
		return
	}
	f.advance(s.BeginNS)
	o := openRun{integral: f.integral, threads: threadsOf(s)}
	if s.Job >= 0 && s.Partition >= 0 {
		o.waited = f.rho.clock(s.Job, s.Partition).at(s.BeginNS)
	}
	f.open[s.SpanID] = o
	f.demand += o.threads
	f.peak = max(f.peak, f.demand)
}

func (f *facts) end(s *trace.Span) {
	o, ok := f.open[s.SpanID]
	if !ok {
		return
	}
	delete(f.open, s.SpanID)
	f.advance(s.EndNS)
	f.demand -= o.threads
	if s.Status == "error" {
		return
	}
	if len(f.runs) >= maxRuns {
		f.truncated++
		return
	}
	r := stageRun{
		beginNS: s.BeginNS, endNS: s.EndNS, ownNS: s.EndNS - s.BeginNS, stage: f.number(s.Stage),
		job: clamp32(s.Job), partition: clamp32(s.Partition), device: int16(clamp32(s.Device)),
		cpuNS: s.CPUNS, threads: float32(o.threads), anyThreads: s.Threads <= 0,
	}
	if s.Job >= 0 && s.Partition >= 0 {
		waited := f.rho.clock(s.Job, s.Partition).at(s.EndNS) - o.waited
		r.ownNS = max(0, r.ownNS-waited)
	}
	if d := float64(s.EndNS - s.BeginNS); d > 0 {
		r.load = float32((f.integral-o.integral)/d - o.threads)
	}
	f.runs = append(f.runs, r)
}

func clamp32(v int64) int32 { return int32(min(max(v, -1), math.MaxInt32)) }

// maxStages bounds the names of stages that are told apart; the rest share the last number.
const maxStages = 1 << 12

func (f *facts) number(stage string) uint16 {
	i, ok := f.byName[stage]
	if !ok {
		i = min(len(f.stages), maxStages)
		if i < maxStages {
			stage = strings.Clone(stage)
			f.stages = append(f.stages, stage)
			f.byName[stage] = i
		}
	}
	return uint16(i)
}

func (f *facts) stageName(i uint16) string {
	if int(i) < len(f.stages) {
		return f.stages[i]
	}
	return "other stages"
}

func (f *facts) sample(s *trace.Sample) {
	if !curveMetrics[s.Metric] || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return
	}
	of := f.curves[s.Source]
	if of == nil {
		if len(f.sources) >= maxCurveSources {
			return
		}
		name := strings.Clone(s.Source)
		of = map[string]*curve{}
		f.curves[name], f.sources = of, append(f.sources, name)
	}
	c := of[s.Metric]
	if c == nil {
		c = &curve{}
		of[strings.Clone(s.Metric)] = c
	}
	c.add(s.TimeNS, s.Value)
}

// main is the source that ran the jobs; without jobs, the first that was sampled.
func (f *facts) main() string {
	if f.ledger.JobSource != "" {
		return f.ledger.JobSource
	}
	if len(f.sources) > 0 {
		return f.sources[0]
	}
	return ""
}

// curve is a metric of the main source, or of the one source that has it (the host's, a cgroup's);
// nil where it was not sampled.
func (f *facts) curve(metric string) *curve {
	if c := f.curves[f.main()][metric]; c != nil {
		return c
	}
	if strings.HasPrefix(metric, "process.") || strings.HasPrefix(metric, "go.") {
		return nil
	}
	for _, s := range f.sources {
		if c := f.curves[s][metric]; c != nil {
			return c
		}
	}
	return nil
}

// of lists the runs of one stage, in order of their ends.
func (f *facts) of(stage string) []stageRun {
	n, ok := f.byName[stage]
	if !ok {
		return nil
	}
	var runs []stageRun
	for i := range f.runs {
		if int(f.runs[i].stage) == n {
			runs = append(runs, f.runs[i])
		}
	}
	return runs
}

// byBegin orders runs by their begin.
func byBegin(runs []stageRun) []stageRun {
	slices.SortStableFunc(runs,
		func(a, b stageRun) int { return cmp.Compare(a.beginNS, b.beginNS) })
	return runs
}

// meanOwn is the mean time of runs without waiting, 0 for none.
func meanOwn(runs []stageRun) float64 {
	sum := 0.0
	for i := range runs {
		sum += float64(runs[i].ownNS)
	}
	return sum / math.Max(1, float64(len(runs)))
}

// setting is a whole-numbered setting of the manifest, 0 where it has none.
func (f *facts) setting(name string) int64 { return f.rho.setting(name) }
