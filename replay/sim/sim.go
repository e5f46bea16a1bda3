package sim

import (
	"math"
	"math/rand/v2"

	"highwater/replay/pipeline"
)

// entity is a partition, a job or a GPU worker on its way.
type entity struct {
	pc     int32
	job    int32
	worker int32   // GPU worker that holds the partition, -1 for none
	member int32   // pool member
	live   int32   // of a job: partitions that are not freed
	open   int32   // of a job: partitions that are not over
	mult   int32   // jobs merged into it; 0 and 1 are one
	next   int32   // of a job: the next one of its merged batch, -1 for none
	unsent int32   // of a job: partitions that the channel has not accepted
	what   int32   // of a job: the cached object it reserves for; else the lock it waits for
	uses   bool    // of a job: it counts as a user of the cached objects that it needs
	held   bool    // of a job: it has a dispatcher; of a background load: its next look has a timer
	permit bool    // holds a permit
	state  state   // what it waits for
	budget int64   // bytes reserved
	scale  float64 // of the work of the stage it is in
	since  float64 // permit acquired, later received
	locked float64 // lock acquired; of a background load: its latest look
	asked  float64 // when it asked for what it waits for
	turn   int64   // grants of that gate by then
}

// state is what an entity waits for.
type state uint8

const (
	stateRun state = iota
	stateNew
	stateAdmission
	stateBudget
	statePermit
	stateSend
	stateChannel
	stateLock
	stateFinaliser
	stateArrival
	stateBatch
	stateDispatcher
	stateHand
	stateDepth
	statePacer
	stateHandoff
	stateCached
	stateModelLock
	statePoll
	statePartitions
	stateItem
	stateOver
)

// Simulator runs one model again and again, reusing its memory. It is for one goroutine.
type Simulator struct {
	prog     *program
	steps    []step // the program's
	policy   pipeline.Policy
	nParts   int32
	nJobs    int32
	nWorkers int32

	now    float64
	seq    uint32
	timers timerHeap
	shares shares
	ents   []entity // partitions by (job, partition), jobs, workers, extras, loads
	ready  []int32  // to be continued now; a stack of waves, see drain
	head   int
	open   bool // all have begun their ways
	ended  int  // 1 + the class whose first service has just ended, 0: the first timer; or nothing

	jobs, permits, budget, finalisers gate
	locks                             []gate
	items, senders, receivers         waitQueue
	channelCap                        int64

	dispatchers, hand, handoff, depth gate
	modelLocks                        []gate
	batch                             collector
	pacer                             pacer
	cached                            []cachedState
	polling                           []int32 // loads that look for bytes of the budget
	pools                             []poolState
	scales                            []float64 // by stage: this draw's factor
	arrivals                          []float64 // by job
	raceOrder                         []int32   // scratch

	levels      levels
	scratchHigh int64
	limit       int64
	pooled      bool  // cpu_scratch is cut from a pool that only grows
	working     int64 // partitions in synthesis
	onWorkers   int64
	stats       Stats
	rng         rand.PCG
	random      *rand.Rand
	pool        []int32
	tape        *tape     // nil unless the run is recorded
	stages      *stageLog // nil unless its stages are asked for
}

// Draw says which partition of the pool each simulated partition is.
type Draw struct {
	Seed uint64
	// Bootstrap draws partitions from a resampled pool, so that draws differ as repeated recordings
	// would. Without it every partition is its recorded self, or the next one of the pool where
	// there is none.
	Bootstrap bool
	// LimitBytes asks when RSS first lies above it (Stats.OverLimitNS); 0 asks nothing.
	LimitBytes int64
}

// New compiles m. The model must not be changed while the simulator is in use.
func New(m *pipeline.Model) (*Simulator, error) {
	return new(Programs).New(m)
}

// newSimulator runs p under the policy of m.
func newSimulator(m *pipeline.Model, p *program) *Simulator {
	s := &Simulator{
		prog: p, steps: p.steps, policy: m.Policy, channelCap: int64(m.Policy.ChannelCapacity),
		pooled: m.Memory.ScratchPool,
	}
	s.nJobs = int32(m.Policy.Jobs)
	s.nParts = s.nJobs * int32(m.Policy.Partitions)
	s.nWorkers = int32(m.Policy.GPUWorkers * m.Policy.Devices)
	s.shares = newShares(&m.Machine, p.classes)
	s.ents = make([]entity, s.extra(extras)+s.nJobs*int32(len(p.loads)))
	s.ready = make([]int32, 0, len(s.ents))
	s.timers = newTimerHeap(len(s.ents))
	s.pool = make([]int32, len(m.Partitions))
	s.random = rand.New(&s.rng)
	s.makeQueues(m)
	s.makeFlow(m)
	return s
}

// Entities after the workers: the timers of pacer and batch collector, and Memory.Later. The
// background loads follow.
const (
	extraPacer = iota
	extraBatch
	extraLater
	extras
)

func (s *Simulator) extra(which int32) int32 { return s.nParts + s.nJobs + s.nWorkers + which }

func (s *Simulator) makeQueues(m *pipeline.Model) {
	priority := m.Policy.QueueOrder == pipeline.OrderPriority
	n := int(s.nParts)
	s.jobs = gate{capacity: int64(m.Policy.JobsInFlight), wait: newWaitQueue(false, int(s.nJobs))}
	s.permits = gate{
		capacity: m.Policy.PartitionWorkers, wait: newWaitQueue(priority, n), unfair: priority,
	}
	order := m.Admission.BudgetOrder
	s.budget = gate{
		capacity: int64(m.Policy.ByteBudget),
		wait:     newWaitQueue(order == pipeline.BudgetPriority, n+int(s.nJobs)),
		unfair:   order != pipeline.BudgetFIFO, race: order == pipeline.BudgetRace,
	}
	s.finalisers = gate{capacity: int64(m.Machine.Finalisers), wait: newWaitQueue(false, n)}
	s.items = newWaitQueue(priority, n)
	s.senders = newWaitQueue(priority, n)
	s.receivers = newWaitQueue(false, int(s.nWorkers))
	for range m.Policy.Devices {
		s.locks = append(s.locks, gate{
			capacity: m.Machine.LockCapacity, wait: newWaitQueue(false, int(s.nWorkers)),
		})
	}
}

// Run simulates once and returns the statistics. The error is a *DeadlockError.
func (s *Simulator) Run(d Draw) (Stats, error) {
	s.reset(d)
	s.start()
	s.loop()
	s.stats.FinalLiveBytes = s.levels.live
	s.nameStarved()
	if s.stats.JobsDone != int64(s.nJobs) {
		return s.stats, s.deadlock()
	}
	return s.stats, nil
}

// loop goes from event to event: the next one is the earliest of the plain timers and of the classes.
// It continues the entity whose step has ended, and whom that wakes.
func (s *Simulator) loop() {
	for {
		if s.shares.stale {
			s.shares.settle(s.now)
		}
		at, class := s.shares.next(s.timers.first())
		if at > math.MaxFloat64 {
			return
		}
		if at > s.now {
			s.now = at
		}
		id := int32(0)
		if class < 0 {
			id = s.timers.entity()
		} else {
			id = s.shares.ending(class)
		}
		s.stats.Events++
		s.ended = class + 1
		s.run(id)
		if s.ended != nothing {
			s.finish()
		}
		if len(s.ready) > 0 {
			s.drain()
		}
	}
}

// drain continues the entities that were woken, in the order in which they were.
func (s *Simulator) drain() {
	for s.head < len(s.ready) {
		id := s.ready[s.head]
		s.head++
		s.run(id)
	}
	s.ready, s.head = s.ready[:0], 0
}

func (s *Simulator) wake(id int32) { s.ready = append(s.ready, id) }

func (s *Simulator) reset(d Draw) {
	s.resetFlow()
	s.open = false
	s.now, s.seq, s.working, s.onWorkers, s.ended = 0, 0, 0, 0, nothing
	s.timers.reset()
	s.shares.reset()
	s.ready, s.head = s.ready[:0], 0
	for _, g := range []*gate{&s.jobs, &s.permits, &s.budget, &s.finalisers} {
		g.reset()
	}
	for i := range s.locks {
		s.locks[i].reset()
	}
	s.items.reset()
	s.senders.reset()
	s.receivers.reset()
	s.levels = s.prog.start
	s.scratchHigh = max(s.prog.model.Memory.ScratchHigh, s.levels.scratch)
	s.stats = Stats{}
	s.rng.Seed(d.Seed, 0x9e3779b97f4a7c15)
	// First, so that runs of different lengths have them in common.
	s.drawFactors(d.Bootstrap)
	s.fillPool(d.Bootstrap)
	s.place(d.Bootstrap)
	s.fillArrivals()
	s.limit, s.stats.OverLimitNS = d.LimitBytes, -1
}

func (s *Simulator) fillPool(bootstrap bool) {
	for i := range s.pool {
		s.pool[i] = int32(i)
		if bootstrap {
			s.pool[i] = int32(s.random.Uint64N(uint64(len(s.pool))))
		}
	}
}

// place puts every entity at the start of its way.
func (s *Simulator) place(bootstrap bool) {
	perJob := int32(s.policy.Partitions)
	for i := range s.nParts {
		member := s.member(int64(i/perJob), int64(i%perJob), i, bootstrap)
		s.ents[i] = entity{
			pc: s.prog.partitions[member].start, job: i / perJob, worker: -1, member: member,
			scale: 1, state: stateNew,
		}
	}
	for j := range s.nJobs {
		member := j % int32(len(s.prog.jobs))
		s.ents[s.nParts+j] = entity{
			pc: s.prog.jobs[member].start, job: j, worker: -1,
			member: member, scale: 1, next: -1,
		}
	}
	for w := range s.nWorkers {
		s.ents[s.nParts+s.nJobs+w] = entity{pc: s.prog.idle, job: -1, worker: w, scale: 1}
	}
	for i, pc := range [extras]int32{s.prog.paced, s.prog.flush, s.prog.later} {
		s.ents[s.extra(int32(i))] = entity{pc: pc, job: -1, worker: -1, scale: 1}
	}
	s.placeLoads()
}

func (s *Simulator) member(job, partition int64, index int32, bootstrap bool) int32 {
	n := int32(len(s.pool))
	if bootstrap {
		return s.pool[s.random.Uint64N(uint64(n))]
	}
	if m, ok := s.prog.own[[2]int64{job, partition}]; ok {
		return m
	}
	return index % n
}

// start records what is there at time 0 and lets workers and jobs go.
func (s *Simulator) start() {
	if s.tape != nil {
		s.tape.begin(s)
	}
	s.resetCached()
	s.peaks()
	for w := range s.nWorkers {
		s.run(s.nParts + s.nJobs + w)
	}
	for j := range s.nJobs {
		s.run(s.nParts + j)
	}
	s.run(s.extra(extraLater))
	s.open = true
	s.drain()
}
