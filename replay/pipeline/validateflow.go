package pipeline

import (
	"slices"

	"highwater/internal/units"
	"highwater/tracer/trace"
)

// Limits of the parts of a model that stand in lists.
const (
	MaxLocks  = 64
	MaxCached = 64
	MaxPools  = 64
	MaxTimes  = 1 << 20
)

// flow checks what stands between a job's arrival and its partitions' synthesis.
func (v *checker) flow(m *Model) {
	v.arrivals(&m.Arrivals)
	v.between("batch size", m.Batch.Size, 0, MaxPartitions)
	v.number("batch wait_ns", m.Batch.WaitNS, 0, maxTime)
	if m.Batch.Size > 1 && m.Batch.WaitNS == 0 {
		v.bad("batch: size %d without wait_ns: the last jobs would wait for ever", m.Batch.Size)
	}
	v.between("dispatch workers", m.Dispatch.Workers, 0, MaxWorkers)
	v.word("dispatch hold", m.Dispatch.Hold, HoldParse, HoldSend, HoldFreed)
	v.admission(m)
	v.pacer(m)
	v.word("machine lock_scope", m.Machine.LockScope, LockGPU, LockKernels,
		LockWorker)
	v.number("machine memory_bandwidth", m.Machine.MemoryBandwidth, 0, 1e9)
	v.notTiny("machine memory_bandwidth", m.Machine.MemoryBandwidth)
	v.notTiny("machine cpus", m.Machine.CPUs)
	if m.Machine.LockScope == LockWorker && m.Policy.SplitProving {
		v.bad("split_proving: the lock's scope is the whole worker: it cannot end before b_g2")
	}
}

func (v *checker) arrivals(a *Arrivals) {
	v.word("arrivals kind", a.Kind, ArriveAtOnce, ArriveEvery, ArrivePoisson, ArriveTimes)
	v.number("arrivals interval_ns", a.IntervalNS, 0, maxTime)
	needs := a.Kind == ArriveEvery || a.Kind == ArrivePoisson
	if needs != (a.IntervalNS > 0) {
		v.bad("arrivals: interval_ns %g does not go with kind %q", a.IntervalNS, a.Kind)
	}
	if (a.Kind == ArriveTimes) != (len(a.AtNS) > 0) || len(a.AtNS) > MaxTimes {
		v.bad("arrivals: %d times do not go with kind %q", len(a.AtNS), a.Kind)
	}
	last := 0.0
	for _, at := range a.AtNS {
		v.number("arrivals at_ns", at, last, maxTime)
		last = max(last, at)
	}
}

func (v *checker) admission(m *Model) {
	a := &m.Admission
	v.word("admission budget_order", a.BudgetOrder, BudgetFIFO, BudgetPriority, BudgetRace)
	v.between("admission handoff", a.Handoff, 0, MaxWorkers)
	v.between("admission queue_depth", a.QueueDepth, 0, MaxPartitions)
	if a.NoPermit && a.PermitFirst {
		v.bad("admission: permit_first contradicts no_permit")
	}
	if a.Handoff > 0 && !a.Serial {
		v.bad("admission: a hand-off channel (%d) needs the serial dispatcher", a.Handoff)
	}
	if a.Serial && a.Handoff == 0 {
		v.bad("admission: the serial dispatcher needs a hand-off channel with room for 1 or more")
	}
	if a.Serial && a.PermitFirst {
		v.bad("admission: permit_first contradicts the serial dispatcher")
	}
}

func (v *checker) pacer(m *Model) {
	p := &m.Pacer
	v.number("pacer target", p.Target, 0, MaxPartitions)
	for _, x := range []struct {
		name  string
		value float64
		low   float64
		high  float64
	}{
		{"pacer alpha_waiting", p.AlphaWaiting, 0, 1}, {"pacer alpha_gpu", p.AlphaGPU, 0, 1},
		{"pacer kp", p.KP, 0, 1e6}, {"pacer ki", p.KI, 0, 1e6},
		{"pacer integral_min", p.IntegralMin, -1e9, 0}, {"pacer integral_max", p.IntegralMax, 0, 1e9},
		{"pacer rate_min", p.RateMin, 0, 1e3}, {"pacer rate_max", p.RateMax, 0, 1e3},
		{"pacer interval_min_ns", p.IntervalMinNS, 0, maxTime},
		{"pacer interval_max_ns", p.IntervalMaxNS, 0, maxTime},
		{"pacer bootstrap_ns", p.BootstrapNS, 0, maxTime},
		{"pacer rebootstrap_ns", p.RebootstrapNS, 0, maxTime},
	} {
		v.number(x.name, x.value, x.low, x.high)
	}
	if q := p.WithDefaults(); q.RateMin > q.RateMax || q.IntervalMinNS > q.IntervalMaxNS {
		v.bad("pacer: a lower clamp lies above the upper one")
	}
	if p.Target > 0 && m.Policy.PermitRelease == ReleaseFreed && !m.Admission.NoPermit &&
		m.Admission.PermitFirst {
		v.bad("pacer: permits held until freed and taken first would starve the pacer")
	}
}

// shared checks what partitions and jobs share.
func (v *checker) shared(m *Model) {
	if len(m.Locks) > MaxLocks || len(m.Cached) > MaxCached || len(m.Pools) > MaxPools {
		v.bad("model has more than %d locks, %d cached objects or %d pools", MaxLocks, MaxCached,
			MaxPools)
		return
	}
	for i := range m.Locks {
		l := &m.Locks[i]
		v.between(v.of("lock", l.Name)+" capacity", l.Capacity, 1, MaxWorkers)
		for _, stage := range []string{l.From, l.To} {
			if !v.stages[stage] {
				v.bad("lock %s: stage %q has no law", l.Name, stage)
			}
		}
	}
	budgeted := int64(0)
	for i := range m.Cached {
		c := &m.Cached[i]
		what := v.of("cached", c.Class)
		v.between(what+" bytes", c.Bytes, 1, 1<<50)
		v.between(what+" load_bytes", c.LoadBytes, 0, 1<<50)
		v.number(what+" load_ns", c.LoadNS, 0, maxTime)
		v.number(what+" idle_ns", c.IdleNS, 0, maxTime)
		v.between(what+" every", c.Every, 0, MaxPartitions)
		v.word(what+" space", c.Space, trace.SpaceHost, trace.SpacePinned)
		if c.Budgeted && !c.Background {
			budgeted += c.Bytes
		}
		if c.Evictable && !c.Budgeted {
			v.bad("cached %s: evictable, but its bytes are none of the budget", c.Class)
		}
		v.background(c, what)
	}
	if b := m.Policy.ByteBudget; budgeted > 0 && !b.AtMost(budgeted) {
		v.bad("byte_budget: %s is less than the %s of the cached objects", units.Bytes(int64(b)),
			units.Bytes(budgeted))
	}
	v.pools(m)
	v.follows(m)
}

// minPoll is the shortest time between two looks at the byte budget, in ns.
const minPoll = 1e3

// background checks how a cached object is loaded that no job waits for.
func (v *checker) background(c *Cached, what string) {
	v.between(what+" load_reserve_bytes", c.LoadReserveBytes, 0, 1<<50)
	v.number(what+" poll_ns", c.PollNS, 0, maxTime)
	v.number(what+" save_ns", c.SaveNS, 0, maxTime)
	switch {
	case !c.Background && (c.LoadReserveBytes != 0 || c.PollNS != 0 || c.SaveNS != 0):
		v.bad("cached %s: load_reserve_bytes, poll_ns and save_ns are of background loads alone",
			c.Class)
	case c.LoadReserveBytes > 0 && !c.Budgeted:
		v.bad("cached %s: load_reserve_bytes, but its bytes are none of the budget", c.Class)
	case c.PollNS > 0 && c.PollNS < minPoll:
		v.bad("cached %s: poll_ns %g is below %g", c.Class, c.PollNS, minPoll)
	}
}

func (v *checker) pools(m *Model) {
	seen := map[string]bool{}
	for i := range m.Pools {
		p := &m.Pools[i]
		v.word(v.of("pool", p.Class)+" space", p.Space, trace.SpaceHost, trace.SpacePinned)
		if p.Class == "" || len(p.Classes) == 0 {
			v.bad("pool %d: class or classes are empty", i)
		}
		for _, class := range p.Classes {
			if seen[class] {
				v.bad("pool %s: class %q is cut from two pools", p.Class, class)
			}
			seen[class] = true
		}
	}
}

func (v *checker) follows(m *Model) {
	for i := range m.Follows {
		f := &m.Follows[i]
		v.word("follow setting", f.Setting, "channel_capacity", "partition_workers",
			"handoff", "dispatch_workers")
		v.word("follow of", f.Of, "partition_workers", "byte_budget", "devices")
		v.between("follow least", f.Least, 0, MaxWorkers)
		v.between("follow most", f.Most, 0, MaxWorkers)
		if f.Setting == f.Of {
			v.bad("follow: %s follows itself", f.Setting)
		}
	}
	for i := range m.Fixed {
		if f := &m.Fixed[i]; f.Reason == "" || !slices.Contains(ModelSettings(), f.Setting) {
			v.bad("fixed %q: unknown, or without a reason", f.Setting)
		}
	}
}

// lockOrder checks that no partition's way gives a lock before it takes it.
func (v *checker) lockOrder(what string, p *Partition, locks []Lock) {
	for i := range locks {
		from, to := -1, -1
		for k := range p.Pieces {
			if p.Pieces[k].Stage == locks[i].From && from < 0 {
				from = k
			}
			if p.Pieces[k].Stage == locks[i].To {
				to = k
			}
		}
		if (from < 0) != (to < 0) || from > to {
			v.bad("%s: lock %s is not taken and given once, in that order", what, locks[i].Name)
		}
	}
}

// once checks that a stage that begins or ends a lock occurs once in a partition's way.
func (v *checker) once(what string, p *Partition, locks []Lock) {
	for i := range locks {
		for _, stage := range [...]string{locks[i].From, locks[i].To} {
			if n := occurrences(p.Pieces, stage); n > 1 {
				v.bad("%s: stage %q occurs %d times: lock %s could not tell which", what, stage, n,
					locks[i].Name)
			}
		}
	}
}

func occurrences(pieces []Piece, stage string) (n int) {
	for i := range pieces {
		if pieces[i].Stage == stage {
			n++
		}
	}
	return n
}

// budgetFits checks that every partition can reserve its bytes at all.
func (v *checker) budgetFits(m *Model) {
	most := int64(0)
	for i := range m.Partitions {
		all, _ := m.Partitions[i].Reserves()
		most = max(most, all)
	}
	if m.Batch.Merge && m.Batch.Size > 1 {
		most *= m.Batch.Size
	}
	if budget := m.Policy.ByteBudget; !budget.AtMost(most) {
		v.bad("byte_budget: %s is less than the %s that a partition settles at: it could never start",
			units.Bytes(int64(budget)), units.Bytes(most))
	}
}

// stageFlow checks the parts of a stage's law besides the cores.
func (v *checker) stageFlow(s *Stage) {
	what := v.of("stage", s.Name) + " "
	v.number(what+"uncertainty", s.Uncertainty, 0, 10)
	v.number(what+"bandwidth", s.Bandwidth, 0, 1e9)
	v.number(what+"pressure", s.Pressure, 0, 1e6)
	v.number(what+"sensitivity", s.Sensitivity, 0, 1e6)
	v.number(what+"batch_share", s.BatchShare, 0, 1)
	v.between(what+"workers", s.Workers, 0, MaxWorkers)
	v.notTiny(what+"parallelism", s.Parallelism)
	v.notTiny(what+"weight", s.Weight)
	v.notTiny(what+"bandwidth", s.Bandwidth)
}

// notTiny refuses shares so small that dividing by them loses the number.
func (v *checker) notTiny(what string, x float64) {
	if x > 0 && x < 1e-6 {
		v.bad("%s: %g is above 0, but below 1e-6", what, x)
	}
}
