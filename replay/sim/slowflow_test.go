package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"highwater/replay/pipeline"
)

// slowFlow is the slow simulator's part between a job's arrival and its partitions' synthesis, and
// what jobs share.
type slowFlow struct {
	rng     *rand.Rand
	jobs    []*slowPart
	batch   []*slowPart
	started float64           // of the batch
	leads   map[int][]int     // job to the others of its merged batch
	live    map[int]int64     // by job: partitions not freed
	open    map[int]int64     // by job: partitions not over
	unsent  map[int]int64     // by job
	cached  []slowCached      //
	pools   []slowPool        //
	poolOf  map[string]int    // class to pool
	locks   []pipeline.Lock   // of the model and of its stages
	pace    slowPace          //
	reserve map[*slowPart]int // cached object that a job reserves for
}

type slowCached struct {
	present, loading bool
	users            int
	last             float64
	waiting          []*slowPart
}

type slowPool struct{ used, size int64 }

// slowPace is the pacer, kept as the model states it.
type slowPace struct {
	c                     pipeline.Pacer
	boots, bootNS, nextAt float64
	known                 bool
	waiting, gpu          float64
	integral              float64
	sent, done            int
}

func (s *slow) startFlow() {
	f := &s.flow
	f.rng = rand.New(rand.NewPCG(0, 0x9e3779b97f4a7c15))
	f.leads, f.live = map[int][]int{}, map[int]int64{}
	f.open, f.unsent = map[int]int64{}, map[int]int64{}
	f.poolOf, f.reserve = map[string]int{}, map[*slowPart]int{}
	f.pools = make([]slowPool, len(s.m.Pools))
	for i, p := range s.m.Pools {
		for _, c := range p.Classes {
			f.poolOf[c] = i
		}
	}
	f.locks = slices.Clone(s.m.Locks)
	for _, st := range s.m.Stages {
		if st.Workers > 0 {
			f.locks = append(f.locks, pipeline.Lock{Capacity: st.Workers, From: st.Name, To: st.Name})
		}
	}
	f.cached = make([]slowCached, len(s.m.Cached))
	for i, c := range s.m.Cached {
		if c.Preloaded {
			f.cached[i].present = true
			s.live += c.Bytes
			s.res += c.Bytes
			if c.Budgeted && s.m.Policy.ByteBudget != pipeline.Unbounded {
				s.held["budget"] += c.Bytes
			}
		}
	}
	f.pace.c = s.m.Pacer.WithDefaults()
	f.pace.boots, f.pace.bootNS = f.pace.c.Target, f.pace.c.BootstrapNS
}

// startJobs writes each job's way.
func (s *slow) startJobs() {
	at := 0.0
	for j := range int(s.m.Policy.Jobs) {
		pool := &pipeline.Job{}
		if n := len(s.m.Jobs); n > 0 {
			pool = &s.m.Jobs[j%n]
		}
		switch s.m.Arrivals.Kind {
		case pipeline.ArriveEvery:
			at = float64(j) * s.m.Arrivals.IntervalNS
		case pipeline.ArrivePoisson:
			if j > 0 {
				at += s.m.Arrivals.IntervalNS * s.flow.rng.ExpFloat64()
			}
		case pipeline.ArriveTimes:
			at = s.m.Arrivals.AtNS[min(j, len(s.m.Arrivals.AtNS)-1)]
		}
		acts := []slowAct{{word: "work", left: pool.SubmitNS}, {word: "until", left: at}, {word: "job"}}
		if s.m.Batch.Size > 1 {
			acts = append(acts, slowAct{word: "collect"})
		}
		if s.m.Dispatch.Workers > 0 {
			acts = append(acts, slowAct{word: "dispatcher"})
		}
		var loads []slowAct
		for i := range s.m.Cached {
			if s.m.Cached[i].Background {
				loads = append(loads, slowAct{word: "start_load", index: i})
			} else {
				acts = append(acts, slowAct{word: "need", index: i})
			}
		}
		var frees []slowAct
		for _, b := range pool.Before {
			for _, c := range b.Buffers { // of the tests: allocs at the begin
				alloc := slowAct{word: "memory", class: c.Class, delta: [3]int64{c.Capacity, c.Resident}}
				acts = append(acts, alloc)
				alloc.delta = [3]int64{-c.Capacity, -c.Resident}
				frees = append(frees, alloc)
			}
			acts = append(acts, slowAct{word: "work", stage: b.Stage, left: b.SoloNS})
		}
		acts = append(append(acts, loads...), slowAct{word: "dispatch"}, slowAct{word: "await"})
		acts = append(append(acts, frees...), slowAct{word: "job_end"})
		job := &slowPart{id: 1 << 20, job: j, acts: acts, worker: -1, mult: 1, isJob: true}
		s.flow.jobs = append(s.flow.jobs, job)
		s.todo = append(s.todo, job)
	}
}

func (s *slow) admissionWords() (w []string) {
	a := &s.m.Admission
	if a.PermitFirst {
		w = append(w, "permit")
	}
	if a.Serial {
		w = append(w, "hand")
	}
	if a.QueueDepth > 0 {
		w = append(w, "depth")
	}
	if s.m.Pacer.Target > 0 {
		w = append(w, "pace")
	}
	w = append(w, "budget")
	if a.Serial {
		w = append(w, "handoff")
	}
	if a.NoPermit || a.PermitFirst {
		return append(w, "synth_begin")
	}
	return append(w, "permit")
}

func (s *slow) lockActs(word, stage string) (out []slowAct) {
	for i, l := range s.flow.locks {
		if word == "ask" && l.From == stage || word == "give" && l.To == stage {
			out = append(out, slowAct{word: word + "_lock", index: i})
		}
	}
	return out
}

func (s *slow) lockName(p *slowPart) string {
	if s.m.Machine.OneLock {
		return "lock0"
	}
	return fmt.Sprint("lock", int64(p.worker)/s.m.Policy.GPUWorkers)
}

func (s *slow) amount(name string, p *slowPart) int64 {
	if name != "budget" {
		return 1
	}
	if p.isJob {
		return s.m.Cached[s.flow.reserve[p]].Bytes
	}
	all, _ := p.pool.Reserves()
	return all * p.mult
}

// change applies a buffer event.
func (s *slow) change(p *slowPart, a slowAct) {
	if i, ok := s.flow.poolOf[a.class]; ok {
		pool := &s.flow.pools[i]
		pool.used += a.delta[0] * p.times()
		if grow := pool.used - pool.size; grow > 0 {
			s.live += grow
			s.res += grow
			pool.size = pool.used
		}
	} else {
		s.live += a.delta[0] * p.times()
		s.res += a.delta[1] * p.times()
		s.scratch += a.delta[2] * p.times()
	}
	s.peaks()
	if a.delta[0] < 0 {
		s.makespan = s.now
	}
}

// times is for how many jobs a partition's buffers count.
func (p *slowPart) times() int64 {
	if p.isJob {
		return 1
	}
	return p.mult
}

func (s *slow) doFlow(p *slowPart, a slowAct) {
	switch a.word {
	case "job", "dispatcher", "hand", "depth", "handoff", "pace":
		p.blocked = true
		s.queues[a.word] = append(s.queues[a.word], p)
	case "ask_lock":
		p.blocked = true
		name := fmt.Sprint("model", a.index)
		s.queues[name] = append(s.queues[name], p)
	case "give_lock":
		s.held[fmt.Sprint("model", a.index)]--
	case "synth_begin":
		s.synthBegins()
	case "collect":
		s.collect(p)
	case "need":
		s.need(p, a.index)
	case "reserve":
		s.flow.reserve[p] = a.index
		if s.m.Cached[a.index].Budgeted && s.m.Policy.ByteBudget != pipeline.Unbounded {
			s.askBudget(p)
		}
	case "load":
		s.load(s.m.Cached[a.index].Bytes + s.m.Cached[a.index].LoadBytes)
	case "loaded":
		s.loaded(p, a.index)
	case "dispatch":
		s.dispatch(p)
	case "await":
		p.blocked = true
	case "job_end":
		for i := range s.flow.cached {
			if p.since > 0 && s.uses(p, i) {
				s.flow.cached[i].users--
				s.flow.cached[i].last = s.now
			}
		}
		if p.since > 0 && len(s.queues["budget"]) > 0 && s.evictCachedSlowly() {
			s.raceBudget()
		}
	case "over":
		s.over(p)
	case "start_load":
		s.startLoad(p, a.index)
	case "look", "loaded_own", "keep":
		s.doLoad(p, a)
	}
}

func (s *slow) synthBegins() {
	if s.m.Admission.Serial {
		s.held["handoff"]--
	}
}

func (s *slow) collect(p *slowPart) {
	f := &s.flow
	p.blocked = true
	if len(f.batch) == 0 {
		f.started = s.now
	}
	if f.batch = append(f.batch, p); int64(len(f.batch)) == s.m.Batch.Size {
		s.flush()
	}
}

func (s *slow) flush() {
	f := &s.flow
	for i, p := range f.batch {
		p.blocked = s.m.Batch.Merge && i > 0
		if p.blocked {
			for ; p.acts[0].word != "await"; p.acts = p.acts[1:] {
				if p.acts[0].word == "memory" {
					s.change(p, p.acts[0])
				}
			}
			p.acts = p.acts[1:] // the leader's partitions wake it
			f.leads[f.batch[0].job] = append([]int{p.job}, f.leads[f.batch[0].job]...)
		}
	}
	if s.m.Batch.Merge {
		f.batch[0].mult = int64(len(f.batch))
	}
	f.batch = nil
}

func (s *slow) dispatch(job *slowPart) {
	n := s.m.Policy.Partitions
	s.flow.live[job.job], s.flow.open[job.job], s.flow.unsent[job.job] = n, n, n
	for _, p := range s.todo {
		if p.job == job.job && !p.isJob {
			p.blocked, p.mult = false, job.mult
			for i := range p.acts {
				for _, l := range s.m.Stages {
					if l.Name == p.acts[i].stage {
						p.acts[i].left *= 1 + float64(job.mult-1)*l.BatchShare
					}
				}
			}
		}
		if p.job != job.job && !p.isJob && slices.Contains(s.flow.leads[job.job], p.job) {
			p.acts = nil // the leader's do it
		}
	}
	s.freeDispatcher(pipeline.HoldParse)
}

func (s *slow) freeDispatcher(point string) {
	if s.m.Dispatch.Workers > 0 && s.m.Dispatch.Hold == point {
		s.held["dispatcher"]--
	}
}

func (s *slow) accepted(p *slowPart) {
	if s.flow.unsent[p.job]--; s.flow.unsent[p.job] == 0 {
		s.freeDispatcher(pipeline.HoldSend)
	}
}

func (s *slow) freed(p *slowPart) {
	if s.m.Admission.QueueDepth > 0 {
		s.held["depth"]--
	}
	if s.flow.live[p.job]--; s.flow.live[p.job] == 0 {
		s.held["job"] -= p.mult
		s.freeDispatcher(pipeline.HoldFreed)
	}
}

func (s *slow) over(p *slowPart) {
	if s.flow.open[p.job]--; s.flow.open[p.job] > 0 {
		return
	}
	s.flow.jobs[p.job].blocked = false
	for _, j := range s.flow.leads[p.job] {
		s.flow.jobs[j].blocked = false
	}
}

// need lets a job go on where the cached object is there, wait where it loads, else load it.
func (s *slow) need(p *slowPart, i int) {
	if p.since == 0 {
		p.since = 1 // it uses them
		for k := range s.flow.cached {
			if s.uses(p, k) {
				s.flow.cached[k].users++
			}
		}
	}
	c := &s.flow.cached[i]
	switch {
	case c.present || !s.needs(p, i):
	case c.loading:
		p.blocked = true
		c.waiting = append(c.waiting, p)
	default:
		c.loading = true
		p.acts = append([]slowAct{
			{word: "reserve", index: i}, {word: "load", index: i},
			{word: "work", left: s.m.Cached[i].LoadNS}, {word: "loaded", index: i},
		}, p.acts...)
	}
}

func (s *slow) needs(p *slowPart, i int) bool {
	every := int(s.m.Cached[i].Every)
	return every < 2 || p.job%every == 0
}

// uses says whether a job waits for cached object i and keeps it from being evicted.
func (s *slow) uses(p *slowPart, i int) bool { return s.needs(p, i) && !s.m.Cached[i].Background }

func (s *slow) load(bytes int64) {
	s.live += bytes
	s.res += bytes
	s.peaks()
}

func (s *slow) loaded(p *slowPart, i int) {
	s.load(-s.m.Cached[i].LoadBytes)
	p.budget = 0
	c := &s.flow.cached[i]
	c.present, c.loading = true, false
	for _, w := range c.waiting {
		w.blocked = false
	}
	c.waiting = nil
}

// askBudget queues a request, or serves it at once where those who wake race.
func (s *slow) askBudget(p *slowPart) {
	amount := s.amount("budget", p)
	fits := s.m.Policy.ByteBudget.AtMost(s.held["budget"] + amount)
	if s.m.Admission.BudgetOrder == pipeline.BudgetRace && fits {
		s.held["budget"] += amount
		p.budget = amount
		return
	}
	p.blocked = true
	s.queues["budget"] = append(s.queues["budget"], p)
	s.serveBudget()
	if p.blocked && s.evictSlowly() && s.m.Admission.BudgetOrder == pipeline.BudgetRace {
		if s.m.Policy.ByteBudget.AtMost(s.held["budget"] + amount) {
			s.takeBudget(p)
		}
	}
}

func (s *slow) takeBudget(p *slowPart) {
	queue := s.queues["budget"]
	s.queues["budget"] = slices.DeleteFunc(queue, func(q *slowPart) bool { return q == p })
	s.held["budget"] += s.amount("budget", p)
	p.budget, p.blocked = s.amount("budget", p), false
}

func (s *slow) giveBudget(p *slowPart, amount int64) {
	if amount <= 0 {
		return
	}
	s.held["budget"] -= amount
	p.budget -= amount
	s.raceBudget()
}

// raceBudget serves those who wait and fit, in random order, where the budget is raced for.
func (s *slow) raceBudget() {
	if s.m.Admission.BudgetOrder != pipeline.BudgetRace {
		return
	}
	order := slices.Clone(s.queues["budget"])
	for i := len(order) - 1; i > 0; i-- {
		j := int(s.flow.rng.Uint64N(uint64(i + 1)))
		order[i], order[j] = order[j], order[i]
	}
	for _, q := range order {
		if s.m.Policy.ByteBudget.AtMost(s.held["budget"] + s.amount("budget", q)) {
			s.takeBudget(q)
		}
	}
}

func (s *slow) serveBudget() bool {
	if s.m.Admission.BudgetOrder == pipeline.BudgetRace {
		return false // served where it is given
	}
	return s.serveOne("budget", int64(s.m.Policy.ByteBudget))
}

func (s *slow) evictSlowly() (freed bool) {
	for i, p := range s.m.Pools {
		if pool := &s.flow.pools[i]; p.Evictable {
			s.live -= pool.size - pool.used
			s.res -= pool.size - pool.used
			pool.size = pool.used
		}
	}
	return s.evictCachedSlowly()
}

func (s *slow) evictCachedSlowly() (freed bool) {
	for i, c := range s.m.Cached {
		st := &s.flow.cached[i]
		if st.present && c.Evictable && st.users == 0 && s.now-st.last >= c.IdleNS {
			st.present, freed = false, true
			s.held["budget"] -= c.Bytes
			s.load(-c.Bytes)
		}
	}
	return freed
}

// serveFlow serves what stands before synthesis, the model's locks, the batch and the pacer.
func (s *slow) serveFlow() bool {
	a := &s.m.Admission
	handoff := a.Handoff
	if a.NoPermit || a.PermitFirst {
		handoff = -1
	}
	if s.serveOne("dispatcher", s.m.Dispatch.Workers) || s.serveOne("hand", 1) ||
		s.serveOne("depth", a.QueueDepth) || s.serveOne("handoff", handoff) || s.servePace() {
		return true
	}
	for i, l := range s.flow.locks {
		if s.serveOne(fmt.Sprint("model", i), l.Capacity) {
			return true
		}
	}
	if len(s.flow.batch) > 0 && s.now >= s.flow.started+s.m.Batch.WaitNS {
		s.flush()
		return true
	}
	return false
}

func (s *slow) servePace() bool {
	f, p := &s.flow.pace, s.take("pace")
	if p == nil || f.boots <= 0 && !f.known || f.nextAt > s.now {
		return false
	}
	s.drop("pace")
	p.blocked = false
	f.sent++
	queue := float64(len(s.queues["send"]) + len(s.queues["item"]))
	f.waiting += f.c.AlphaWaiting * (queue - f.waiting)
	workers := float64(s.m.Policy.GPUWorkers * s.m.Policy.Devices)
	if f.boots > 0 {
		f.boots--
		f.nextAt = s.now + f.bootNS
		return true
	}
	if f.waiting < 1 && f.sent <= f.done {
		f.boots, f.bootNS = f.c.Target, max(f.c.RebootstrapNS, f.gpu/workers)
	}
	e := (f.c.Target - f.waiting) / f.c.Target
	f.integral = min(max(f.integral+e, f.c.IntegralMin), f.c.IntegralMax)
	rate := min(max(1+f.c.KP*e+f.c.KI*f.integral, f.c.RateMin), f.c.RateMax)
	f.nextAt = s.now + min(max(f.gpu/workers/rate, f.c.IntervalMinNS), f.c.IntervalMaxNS)
	return true
}

func (s *slow) proved(p *slowPart) {
	f := &s.flow.pace
	f.done++
	if took := s.now - p.since; f.known {
		f.gpu += f.c.AlphaGPU * (took - f.gpu)
	} else {
		f.known, f.gpu = true, took
	}
}

// nextTimer is when the batch, the pacer or an arrival is due, if nothing else happens before.
func (s *slow) nextTimer() float64 {
	at := math.Inf(1)
	if len(s.flow.batch) > 0 {
		at = s.flow.started + s.m.Batch.WaitNS
	}
	f := &s.flow.pace
	if len(s.queues["pace"]) > 0 && (f.boots > 0 || f.known) && f.nextAt > s.now {
		at = min(at, f.nextAt)
	}
	for _, p := range s.todo {
		if p.polls() {
			if look, ok := s.nextLook(p); ok {
				at = min(at, look)
			}
		} else if !p.blocked && len(p.acts) > 0 && p.acts[0].word == "until" {
			at = min(at, p.acts[0].left)
		}
	}
	return at
}
