package sim_test

import (
	"fmt"
	"math"
	"sort"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// slow is a second simulator, for the differential test: no heaps, no compiled steps, no virtual
// clocks. It keeps what each partition has still to do as a list of words, and at every instant
// looks at everything.
type slow struct {
	m       *pipeline.Model
	now     float64
	todo    []*slowPart
	queues  map[string][]*slowPart
	held    map[string]int64
	idle    []int
	live    int64
	res     int64
	scratch int64
	high    int64

	peak, peakRSS int64
	makespan      float64
	maxBacklog    int

	flow slowFlow
}

// slowPart is a partition and what it has still to do.
type slowPart struct {
	id, job int
	acts    []slowAct
	worker  int
	permit  bool
	budget  int64
	pool    *pipeline.Partition
	blocked bool
	mult    int64 // jobs merged into it
	since   float64
	isJob   bool
	isLoad  bool // in the background
}

type slowAct struct {
	word  string
	stage string
	left  float64
	delta [3]int64
	class string // of a buffer event
	index int    // of a lock or cached object
}

func runSlow(m *pipeline.Model) (*slow, error) {
	s := &slow{m: m, queues: map[string][]*slowPart{}, held: map[string]int64{}}
	for _, c := range m.Memory.Resident {
		s.live += c.Capacity
		s.res += c.Resident
	}
	s.high = m.Memory.ScratchHigh
	s.startFlow()
	s.peaks()
	for w := range int(m.Policy.GPUWorkers * m.Policy.Devices) {
		s.idle = append(s.idle, w)
	}
	byKey := map[[2]int64]*pipeline.Partition{}
	for i := range m.Partitions {
		byKey[[2]int64{m.Partitions[i].Job, m.Partitions[i].Partition}] = &m.Partitions[i]
	}
	n := int(m.Policy.Partitions)
	for j := range int(m.Policy.Jobs) {
		for p := range n {
			pool := byKey[[2]int64{int64(j), int64(p)}]
			if pool == nil {
				pool = &m.Partitions[(j*n+p)%len(m.Partitions)]
			}
			s.todo = append(s.todo, &slowPart{
				id: j*n + p, job: j, acts: s.acts(pool), worker: -1,
				pool: pool, mult: 1, blocked: true,
			})
		}
	}
	s.startJobs()
	return s, s.loop()
}

// slowWay writes a partition's way as a list of words.
type slowWay struct {
	*slow
	part  *pipeline.Partition
	sizes map[int]pipeline.Change // of buffers, as the words so far leave them
	out   []slowAct
}

// acts is a partition's way.
func (s *slow) acts(p *pipeline.Partition) []slowAct {
	w := &slowWay{slow: s, part: p, sizes: map[int]pipeline.Change{}}
	w.segment("dispatch")
	for _, word := range s.admissionWords() {
		w.word(word)
	}
	w.segment("synthesis")
	w.word("synth_end")
	w.word("send")
	w.underLock()
	w.afterLock()
	w.word("freed")
	if !s.m.Policy.SplitProving && !s.m.Machine.FreeOffWorker {
		w.word("worker_done")
	}
	w.segment("after")
	w.word("over")
	return w.out
}

// underLock is from the receive to the lock's release.
func (w *slowWay) underLock() {
	policy, scope := &w.m.Policy, w.m.Machine.LockScope
	if scope == pipeline.LockWorker {
		w.word("lock")
	}
	w.segment("pickup")
	if scope != pipeline.LockWorker {
		w.word("lock")
	}
	w.segment("gpu")
	if policy.EarlyFree {
		w.early()
		w.word("budget_part")
	}
	if !policy.SplitProving && scope != pipeline.LockKernels {
		w.segment("split")
	}
	w.word("unlock")
}

// afterLock is from there to the last free.
func (w *slowWay) afterLock() {
	policy, machine := &w.m.Policy, &w.m.Machine
	if !policy.SplitProving && machine.LockScope == pipeline.LockKernels {
		w.segment("split")
	}
	if policy.SplitProving || machine.FreeOffWorker {
		w.word("worker_done")
	}
	if policy.SplitProving {
		w.segment("split")
	}
	w.segment("finalise")
	if !policy.EarlyFree {
		w.early()
	}
}

func (w *slowWay) word(word string) { w.out = append(w.out, slowAct{word: word}) }

func (w *slowWay) work(stage string, ns float64) {
	w.out = append(w.out, slowAct{word: "work", stage: stage, left: ns})
}

func (w *slowWay) memory(c pipeline.Change) {
	old := w.sizes[c.Buffer]
	if c.Event == trace.EventFree {
		c.Capacity, c.Resident = 0, 0
	}
	a := slowAct{word: "memory", class: c.Class}
	a.delta[0] = c.Capacity - old.Capacity
	a.delta[1+scratchOf(old)] -= old.Resident
	a.delta[1+scratchOf(c)] += c.Resident
	w.sizes[c.Buffer] = c
	w.out = append(w.out, a)
}

// early frees what early_free places.
func (w *slowWay) early() {
	for _, b := range w.part.EarlyFree {
		c := w.sizes[b]
		c.Event = trace.EventFree
		w.memory(c)
	}
}

func (w *slowWay) segment(name string) {
	for i := range w.part.Pieces {
		if w.part.Pieces[i].Segment == name {
			w.piece(&w.part.Pieces[i])
		}
	}
}

func (w *slowWay) piece(p *pipeline.Piece) {
	w.out = append(w.out, w.lockActs("ask", p.Stage)...)
	done := 0.0
	for _, c := range p.Buffers {
		w.work(p.Stage, (c.At-done)*p.SoloNS)
		done = c.At
		w.memory(c)
	}
	w.work(p.Stage, (1-done)*p.SoloNS)
	w.out = append(w.out, w.lockActs("give", p.Stage)...)
}

func scratchOf(c pipeline.Change) int {
	if c.Class == trace.ClassCPUScratch {
		return 1
	}
	return 0
}

func (s *slow) peaks() {
	s.high = max(s.high, s.scratch)
	if s.m.Memory.ScratchPool {
		s.peak = max(s.peak, s.live-s.scratch+s.high) // in the models of the tests all is resident
	} else {
		s.peak = max(s.peak, s.live)
	}
	s.peakRSS = max(s.peakRSS, s.m.Memory.BaseBytes+s.res+s.high)
}

// loop goes from instant to instant.
func (s *slow) loop() error {
	for {
		for s.serve(); s.settle(); {
		}
		rates, timer := s.rates(), s.nextTimer()
		dt := timer - s.now
		for _, p := range s.working() {
			dt = min(dt, p.acts[0].left/rates[p.acts[0].stage])
		}
		if math.IsInf(dt, 1) {
			for _, p := range s.todo {
				if len(p.acts) > 0 && !p.isLoad {
					return fmt.Errorf("stuck at %v", s.now)
				}
			}
			return nil
		}
		if s.now += dt; math.Abs(s.now-timer) < 1e-6 {
			s.now = timer
		}
		s.skipLooks()
		for _, p := range s.working() {
			p.acts[0].left -= dt * rates[p.acts[0].stage]
			if p.acts[0].left < 1e-6 {
				p.acts[0].left = 0
			}
		}
	}
}

func (s *slow) working() []*slowPart {
	var out []*slowPart
	for _, p := range s.todo {
		if !p.blocked && len(p.acts) > 0 && p.acts[0].word == "work" {
			out = append(out, p)
		}
	}
	return out
}

// settle does one thing that takes no time, for the lowest partition that has one; false when there
// is none.
func (s *slow) settle() bool {
	for _, p := range s.todo {
		if p.blocked || len(p.acts) == 0 || p.acts[0].word == "work" && p.acts[0].left > 0 ||
			p.acts[0].word == "until" && p.acts[0].left > s.now {
			continue
		}
		a := p.acts[0]
		p.acts = p.acts[1:]
		s.do(p, a)
		s.serve()
		return true
	}
	return false
}

func (s *slow) do(p *slowPart, a slowAct) {
	switch a.word {
	case "memory":
		s.change(p, a)
		if a.delta[0] < 0 {
			s.makespan = s.now
		}
	case "budget":
		s.askBudget(p)
	case "send":
		p.blocked = true
		s.queues["send"] = append(s.queues["send"], p)
	case "permit":
		p.blocked = true
		s.queues["permit"] = append(s.queues["permit"], p)
	case "lock":
		p.blocked = true
		s.queues[s.lockName(p)] = append(s.queues[s.lockName(p)], p)
	case "synth_end":
		s.release(p, pipeline.ReleaseSynthEnd)
	case "budget_part":
		_, early := p.pool.Reserves()
		s.giveBudget(p, min(early*p.mult, p.budget))
	case "unlock":
		s.held[s.lockName(p)]--
	case "worker_done":
		s.proved(p)
		turn := s.m.Machine.TurnaroundNS
		if p.pool.TurnaroundNS > 0 {
			turn = p.pool.TurnaroundNS
		}
		s.todo = append(s.todo, &slowPart{id: -1, job: -1, worker: p.worker, acts: []slowAct{
			{word: "work", left: turn}, {word: "idle"},
		}})
		p.worker = -1
	case "idle":
		s.idle = append(s.idle, p.worker)
	case "freed":
		s.giveBudget(p, p.budget)
		s.release(p, pipeline.ReleaseFreed)
		s.freed(p)
	default:
		s.doFlow(p, a)
	}
}

func (s *slow) release(p *slowPart, point string) {
	if p.permit && s.m.Policy.PermitRelease == point {
		p.permit = false
		s.held["permit"]--
	}
}

// serve grants what can be granted, in the order of the queues.
func (s *slow) serve() {
	for again := true; again; {
		again = s.serveOne("job", int64(s.m.Policy.JobsInFlight)) || s.serveBudget() ||
			s.serveOne("permit", s.m.Policy.PartitionWorkers) || s.serveChannel() ||
			s.serveFlow()
		for d := range s.m.Policy.Devices {
			again = again || s.serveOne(fmt.Sprint("lock", d), s.m.Machine.LockCapacity)
		}
	}
	s.maxBacklog = max(s.maxBacklog, len(s.queues["send"])+len(s.queues["item"]))
}

func (s *slow) take(name string) *slowPart {
	q := s.queues[name]
	if len(q) == 0 {
		return nil
	}
	if s.m.Policy.QueueOrder == pipeline.OrderPriority && (name == "permit" || name == "send" ||
		name == "item" || name == "hand" || name == "depth" || name == "pace") ||
		name == "budget" && s.m.Admission.BudgetOrder == pipeline.BudgetPriority {
		sort.SliceStable(q, func(i, j int) bool { return q[i].id < q[j].id })
	}
	return q[0]
}

func (s *slow) drop(name string) { s.queues[name] = s.queues[name][1:] }

func (s *slow) serveOne(name string, capacity int64) bool {
	p := s.take(name)
	if p == nil {
		return false
	}
	amount := s.amount(name, p)
	if capacity >= 0 && s.held[name]+amount > capacity {
		return false
	}
	s.drop(name)
	s.held[name] += amount
	p.blocked = false
	switch name {
	case "permit":
		p.permit = true
		if !s.m.Admission.PermitFirst {
			s.synthBegins()
		}
	case "budget":
		p.budget = amount
	case "handoff":
		s.held["hand"]--
	}
	return true
}

func (s *slow) serveChannel() bool {
	room := s.m.Policy.ChannelCapacity == pipeline.Unbounded ||
		len(s.queues["item"]) < int(s.m.Policy.ChannelCapacity) ||
		s.m.Policy.ChannelCapacity == 0 && len(s.queues["item"]) < len(s.idle)
	if p := s.take("send"); p != nil && room {
		s.drop("send")
		s.queues["item"] = append(s.queues["item"], p)
		s.release(p, pipeline.ReleaseSendAccepted)
		s.accepted(p)
		return true
	}
	if p := s.take("item"); p != nil && len(s.idle) > 0 {
		s.drop("item")
		p.worker, s.idle = s.idle[0], s.idle[1:]
		p.blocked, p.since = false, s.now
		s.release(p, pipeline.ReleaseGPUPickup)
		return true
	}
	return false
}
