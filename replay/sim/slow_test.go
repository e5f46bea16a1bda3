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
}

type slowAct struct {
	word  string
	stage string
	left  float64
	delta [3]int64
}

func runSlow(m *pipeline.Model) (*slow, error) {
	s := &slow{m: m, queues: map[string][]*slowPart{}, held: map[string]int64{}}
	for _, c := range m.Memory.Resident {
		s.live += c.Capacity
		s.res += c.Resident
	}
	s.high = m.Memory.ScratchHigh
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
				pool: pool,
			})
		}
	}
	return s, s.loop()
}

// acts writes a partition's way as a list of words.
func (s *slow) acts(p *pipeline.Partition) []slowAct {
	sizes := map[int]pipeline.Change{}
	var out []slowAct
	word := func(w string) { out = append(out, slowAct{word: w}) }
	memory := func(c pipeline.Change) {
		old := sizes[c.Buffer]
		if c.Event == trace.EventFree {
			c.Capacity, c.Resident = 0, 0
		}
		a := slowAct{word: "memory"}
		a.delta[0] = c.Capacity - old.Capacity
		a.delta[1+scratchOf(old)] -= old.Resident
		a.delta[1+scratchOf(c)] += c.Resident
		sizes[c.Buffer] = c
		out = append(out, a)
	}
	early := func() {
		for _, b := range p.EarlyFree {
			c := sizes[b]
			c.Event = trace.EventFree
			memory(c)
		}
	}
	segment := func(name string) {
		for _, piece := range p.Pieces {
			if piece.Segment != name {
				continue
			}
			done := 0.0
			for _, c := range piece.Buffers {
				out = append(out, slowAct{
					word: "work", stage: piece.Stage,
					left: (c.At - done) * piece.SoloNS,
				})
				done = c.At
				memory(c)
			}
			out = append(out, slowAct{
				word: "work", stage: piece.Stage,
				left: (1 - done) * piece.SoloNS,
			})
		}
	}
	policy := s.m.Policy
	segment("dispatch")
	word("budget")
	word("permit")
	segment("synthesis")
	word("synth_end")
	word("send")
	segment("pickup")
	word("lock")
	segment("gpu")
	if policy.EarlyFree {
		early()
		word("budget_part")
	}
	if !policy.SplitProving {
		segment("split")
	}
	word("unlock")
	if policy.SplitProving {
		word("worker_done")
		segment("split")
	}
	segment("finalise")
	if !policy.EarlyFree {
		early()
	}
	word("freed")
	if !policy.SplitProving {
		word("worker_done")
	}
	segment("after")
	return out
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
	for j := range s.m.Policy.Jobs { // admission, first come first served
		first := s.todo[int(j)*int(s.m.Policy.Partitions)]
		s.queues["job"] = append(s.queues["job"], first)
	}
	for _, p := range s.todo {
		p.blocked = true
	}
	s.serve()
	for {
		for s.settle() {
		}
		dt, working := math.Inf(1), false
		rates := s.rates()
		for _, p := range s.working() {
			dt, working = min(dt, p.acts[0].left/rates[p.acts[0].stage]), true
		}
		if !working {
			for _, p := range s.todo {
				if len(p.acts) > 0 {
					return fmt.Errorf("stuck at %v", s.now)
				}
			}
			return nil
		}
		s.now += dt
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

// rates shares the cores by bisection on the share of a unit of weight.
func (s *slow) rates() map[string]float64 {
	laws := map[string]pipeline.Stage{}
	for _, l := range s.m.Stages {
		if l.Weight == 0 {
			l.Weight = l.Parallelism
		}
		laws[l.Name] = l
	}
	use := func(level float64) float64 {
		sum := 0.0
		for _, p := range s.working() {
			l := laws[p.acts[0].stage]
			sum += min(l.Parallelism, level*l.Weight)
		}
		return sum
	}
	low, high := 0.0, 1e9
	for range 200 {
		if mid := (low + high) / 2; use(mid) <= s.m.Machine.CPUs {
			low = mid
		} else {
			high = mid
		}
	}
	out := map[string]float64{"": 1}
	for name, l := range laws {
		out[name] = 1
		if l.Parallelism > 0 && s.m.Machine.CPUs > 0 {
			out[name] = min(1, low*l.Weight/l.Parallelism)
		}
	}
	return out
}

// settle does one thing that takes no time, for the lowest partition that has one; false when there
// is none.
func (s *slow) settle() bool {
	for _, p := range s.todo {
		if p.blocked || len(p.acts) == 0 || p.acts[0].word == "work" && p.acts[0].left > 0 {
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
		s.live += a.delta[0]
		s.res += a.delta[1]
		s.scratch += a.delta[2]
		s.peaks()
		if a.delta[0] < 0 {
			s.makespan = s.now
		}
	case "budget", "permit", "send", "lock":
		s.queues[a.word] = append(s.queues[a.word], p)
		p.blocked = true
	case "synth_end":
		s.release(p, pipeline.ReleaseSynthEnd)
	case "budget_part":
		s.held["budget"] -= min(p.pool.EarlyBytes, p.budget)
		p.budget -= min(p.pool.EarlyBytes, p.budget)
	case "unlock":
		s.held["lock"]--
	case "worker_done":
		s.todo = append(s.todo, &slowPart{id: -1, job: -1, worker: p.worker, acts: []slowAct{
			{word: "work", left: s.m.Machine.TurnaroundNS}, {word: "idle"},
		}})
		p.worker = -1
	case "idle":
		s.idle = append(s.idle, p.worker)
	case "freed":
		s.held["budget"] -= p.budget
		p.budget = 0
		s.release(p, pipeline.ReleaseFreed)
		s.held[fmt.Sprint("live", p.job)]--
		if s.held[fmt.Sprint("live", p.job)] == 0 {
			s.held["job"]--
		}
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
		again = s.serveOne("job", int64(s.m.Policy.JobsInFlight)) || s.serveOne("budget",
			int64(s.m.Policy.ByteBudget)) ||
			s.serveOne("permit", s.m.Policy.PartitionWorkers) || s.serveChannel() ||
			s.serveOne("lock", s.m.Machine.LockCapacity)
	}
	s.maxBacklog = max(s.maxBacklog, len(s.queues["send"])+len(s.queues["item"]))
}

func (s *slow) take(name string) *slowPart {
	q := s.queues[name]
	if len(q) == 0 {
		return nil
	}
	if s.m.Policy.QueueOrder == pipeline.OrderPriority && (name == "permit" || name == "send" ||
		name == "item") {
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
	amount := int64(1)
	if name == "budget" {
		amount = p.pool.SettledBytes
	}
	if capacity >= 0 && s.held[name]+amount > capacity {
		return false
	}
	s.drop(name)
	s.held[name] += amount
	switch name {
	case "job":
		for _, q := range s.todo {
			if q.job == p.job {
				q.blocked = false
			}
		}
		s.held[fmt.Sprint("live", p.job)] = s.m.Policy.Partitions
		return true
	case "permit":
		p.permit = true
	case "budget":
		p.budget = amount
	}
	p.blocked = false
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
		return true
	}
	if p := s.take("item"); p != nil && len(s.idle) > 0 {
		s.drop("item")
		p.worker, s.idle = s.idle[0], s.idle[1:]
		p.blocked = false
		s.release(p, pipeline.ReleaseGPUPickup)
		return true
	}
	return false
}
