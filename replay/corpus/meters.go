package corpus

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// meters says what a recorder would have sampled beside a simulated run.
type meters struct {
	rng  *rand.Rand
	hz   float64 // 0 samples nothing
	idle float64 // seconds of samples after the last event
	cpus int
	ram  int64

	limit int64 // of the cgroup; 0: none
	// smallPages says whose first touches come in 4 KiB pages; nil: nobody's
	smallPages func(job int64) bool
	counters   bool    // faults and CPU time, beside RSS
	faultNS    float64 // system CPU time of a fault of 4 KiB
	retain     float64 // share of the highest resident bytes that RSS keeps
	throttled  float64 // share of the time
	ooms       float64 // OOM events, at half time
	onlyAfter  bool    // RSS is read only when the work is over
}

func baseMeters(rng *rand.Rand) *meters {
	return &meters{
		rng: rng, hz: 4, idle: 20, cpus: 64, ram: 755 << 30, counters: true,
		faultNS: 1700 + 1000*rng.Float64(),
	}
}

const smallPage, hugePage = 4 << 10, 2 << 20

// state is what the meters read at one time.
type state struct {
	resident, highest int64
	faults            float64
	user, system      float64 // seconds
	threads           float64 // of the stages that run
	lastNS            int64
	owned             int64
}

// step is one change of the state.
type step struct {
	atNS    int64
	bytes   int64 // resident
	owned   int64 // capacity of jobs' buffers
	threads float64
	small   bool
}

// attach samples the run of d and describes the machine it is said to have run on.
func (m *meters) attach(d *trace.Data) {
	mf := &d.Manifest
	mf.Origin, mf.Model = trace.OriginRecorded, ""
	mf.Program = "highwater corpus"
	mf.Anchor.Kind = trace.AnchorMonotonic
	mf.Host = trace.Host{Name: "corpus", CPUs: m.cpus, RAMBytes: m.ram}
	mf.Memory = trace.MemoryLimit{EffectiveBytes: m.ram, Kind: "mem_available"}
	if m.limit > 0 {
		mf.Memory = trace.MemoryLimit{EffectiveBytes: m.limit, Kind: "cgroup", Path: "/corpus"}
	}
	mf.PeakRSS, mf.Metrics, d.Samples = nil, nil, nil
	base := int64(200 << 20)
	mf.BaseBytes = &base
	if m.hz == 0 {
		return
	}
	m.metrics(mf)
	m.run(d, base)
}

func (m *meters) metrics(mf *trace.Manifest) {
	for _, x := range probe.Metrics() {
		mf.Metrics = append(mf.Metrics, trace.Metric{Name: x.Name, Unit: x.Unit, Kind: x.Kind})
	}
}

// run samples d at the meters' rate, from its begin until idle seconds after its end.
func (m *meters) run(d *trace.Data, base int64) {
	steps := m.steps(d)
	if len(steps) == 0 {
		return
	}
	// A live loop samples before the first job, so that there is a base.
	begin, end := steps[0].atNS, steps[len(steps)-1].atNS
	tick := int64(1e9 / m.hz)
	var s state
	s.lastNS = begin
	total := float64(end-begin) / 1e9
	i := 0
	for at := begin; at <= end+int64(m.idle*1e9); at += tick {
		for ; i < len(steps) && steps[i].atNS <= at; i++ {
			m.apply(&s, &steps[i])
		}
		m.advance(&s, at)
		if m.onlyAfter && at <= end {
			continue
		}
		m.sample(d, &s, at, base, total)
	}
}

// apply takes one step into the state.
func (m *meters) apply(s *state, x *step) {
	m.advance(s, x.atNS)
	s.threads += x.threads
	s.resident += x.bytes
	s.owned += x.owned
	s.highest = max(s.highest, s.resident)
	if x.bytes <= 0 {
		return
	}
	page := float64(hugePage)
	if x.small {
		page = smallPage
	}
	n := float64(x.bytes) / page
	s.faults += n
	s.system += n * m.faultNS / 1e9
	if !x.small {
		s.system += n * 100e-6 // clearing a huge page
	}
}

// advance spends CPU time up to atNS.
func (m *meters) advance(s *state, atNS int64) {
	dt := float64(atNS-s.lastNS) / 1e9
	s.lastNS = atNS
	busy := math.Min(s.threads, 0.97*float64(m.cpus)) // no more than there are
	s.user += dt * (0.02 + 0.98*busy)
	s.system += dt * (0.002 + 0.02*busy)
	s.faults += dt * 50
}

// sample writes one reading.
func (m *meters) sample(d *trace.Data, s *state, at, base int64, total float64) {
	add := func(metric string, v float64) {
		d.Samples = append(d.Samples, trace.Sample{
			TimeNS: at, Source: d.Manifest.Sources[0].Name, Metric: metric, Value: v,
		})
	}
	kept := math.Max(float64(s.resident), m.retain*float64(s.highest))
	rss := math.Floor((kept + float64(base)) * (1 + 0.002*m.rng.NormFloat64()))
	add(probe.RSS, rss)
	if m.counters {
		add(probe.FaultsMinor, math.Floor(s.faults))
		add(probe.FaultsMajor, 0)
		add(probe.CPUUser, s.user)
		add(probe.CPUSystem, s.system)
	}
	add(probe.CgroupUsage, math.Floor(1.02*rss))
	if m.limit > 0 {
		add(probe.CgroupLimit, float64(m.limit))
	}
	seconds := float64(at) / 1e9
	ooms := 0.0
	if seconds > total/2 {
		ooms = m.ooms
	}
	add("container.memory.events.oom", ooms)
	add("container.memory.events.max", 3*ooms)
	add("container.cpu.throttled.time", m.throttled*seconds)
}

// steps lists what changes the meters, in order of time.
func (m *meters) steps(d *trace.Data) []step {
	steps := make([]step, 0, len(d.Buffers)+2*len(d.Spans))
	for i := range d.Buffers {
		e := &d.Buffers[i]
		if e.Space == trace.SpaceDevice || e.ParentID != 0 {
			continue
		}
		x := step{atNS: e.TimeNS, bytes: e.DeltaResidentBytes}
		if e.Job >= 0 {
			x.owned = e.DeltaBytes
			x.small = m.smallPages != nil && m.smallPages(e.Job)
		}
		steps = append(steps, x)
	}
	for i := range d.Spans {
		s := &d.Spans[i]
		if s.Kind != trace.KindStage || s.EndNS == trace.Null {
			continue
		}
		threads := math.Max(1, float64(s.Threads))
		steps = append(steps, step{atNS: s.BeginNS, threads: threads},
			step{atNS: s.EndNS, threads: -threads})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.atNS, b.atNS) })
	return steps
}
