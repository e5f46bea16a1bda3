package sim

import (
	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// opcode is what a step does.
type opcode uint8

const (
	opWork       opcode = iota // spend work in a class; the only timed step
	opMemory                   // a buffer event
	opFree                     // buffer events of one instant that only take away
	opBegin                    // a stage's span begins
	opEnd                      // and ends
	opBudget                   // request and await the budget
	opPermit                   // request and await the permit
	opSynthEnd                 // the synthesis segment is over
	opSend                     // send, await acceptance and a worker's receive
	opLock                     // request and await the device's lock, where there is one
	opUnlock                   // the part under the lock is over
	opBudgetPart               // give back what is freed early
	opWorkerDone               // the GPU worker lets go of the partition
	opFinaliser                // request and await a finaliser
	opFreed                    // the last free is done
	opPartEnd                  // the partition is over
	opSubmit                   // the job requests admission
	opDispatch                 // start the job's partitions and await their ends
	opJobEnd                   // the job is over
	opIdle                     // a GPU worker awaits an item
	opLater                    // a buffer event of no job
	opStop                     // end of a way that nobody awaits

	opArrive     // the job comes when its arrival says
	opCollect    // join the batch
	opFlush      // the batch has waited long enough
	opDispatcher // request and await a dispatcher
	opHand       // request and await the serial dispatcher's hand
	opDepth      // request and await room in the queue depth
	opPace       // await the pacer
	opPaced      // the pacer's time has come
	opHandoff    // request and await room on the hand-off channel; the hand is free
	opSynthBegin // permit and bytes are there
	opAskLock    // request and await lock arg
	opGiveLock
	opNeed      // need cached object arg; skips the load where it is there, waits where it loads
	opReserve   // reserve its bytes
	opLoad      // its bytes come
	opLoaded    // it is there
	opStartLoad // start the background load of cached object arg, where it is not there
	opLook      // reserve live bytes of the budget, or look again later
	opLoadOwn   // the bytes of a background load of arg come
	opLoadedOwn // it is there; it goes where another load was faster
	opKeep      // and becomes the cached object, where none is there
	opPool      // a buffer event of a buffer cut from pool class
)

// step is one instruction.
type step struct {
	op    opcode
	class uint8   // of opWork: 0 is plain time, else the service class
	gains bool    // of opWork: its change of memory may make a peak
	arg   int32   // index of the stage (opBegin, opEnd) or of the change (opMemory)
	work  float64 // of opWork, ns alone on the machine
	// of opMemory, and of opWork before it takes its time: changes of live bytes, and of resident bytes
	// apart for cpu_scratch
	live, resident, scratch int64
}

// way is where an entity's steps begin, with the budget amounts of a partition.
type way struct {
	start          int32
	worker         int32   // of the GPU worker that lets go of it
	settled, early int64   // reserved of the byte budget, and given back early
	synthGap       float64 // gaps in the segment synthesis, which are not work
	turn           float64 // the worker's, from letting go of it to its next receive
}

// detail is how much of a run a program can tell. Statistics can do without many steps.
type detail uint8

const (
	forStats   detail = iota
	withStages        // begin and end of every stage
	withEvents        // and every buffer event and reservation
)

// program is a model compiled for one policy.
type program struct {
	model      *pipeline.Model
	steps      []step
	changes    []pipeline.Change
	partitions []way // one a pool member
	jobs       []way
	idle       int32 // start of a GPU worker's way
	later      int32
	flush      int32 // way of the batch collector's timer
	paced      int32 // way of the pacer's timer
	locks      []pipeline.Lock
	cached     []cachedSteps
	loads      []int32            // background objects, by index among the cached
	poolOf     map[string]uint8   // class of buffer to 1 + pool
	own        map[[2]int64]int32 // recorded (job, partition) to pool member
	classes    []class
	classOf    map[string]uint8
	stageOf    map[string]int32
	detail     detail
	start      levels
}

// levels are the running sums of the ledger.
type levels struct{ live, resident, scratch int64 }

// Bounds of what one simulation is ready to hold.
const maxSteps = 1 << 26

func compile(m *pipeline.Model, d detail) *program {
	p := &program{
		model: m, detail: d, own: map[[2]int64]int32{}, classOf: map[string]uint8{},
		stageOf: map[string]int32{}, poolOf: map[string]uint8{},
	}
	p.compileLocks()
	p.compileCached()
	p.compileLoads()
	p.compileStages()
	for i := range m.Partitions {
		t := &m.Partitions[i]
		if _, ok := p.own[[2]int64{t.Job, t.Partition}]; !ok {
			p.own[[2]int64{t.Job, t.Partition}] = int32(i)
		}
		p.partitions = append(p.partitions, p.compilePartition(t))
	}
	for i := range m.Jobs {
		p.jobs = append(p.jobs, p.compileJob(&m.Jobs[i]))
	}
	if len(m.Jobs) == 0 {
		p.jobs = append(p.jobs, p.compileJob(&pipeline.Job{}))
	}
	p.compileWorkers()
	p.flush = p.here()
	p.add(step{op: opFlush})
	p.paced = p.here()
	p.add(step{op: opPaced})
	p.compileMemory()
	return p
}

// compileWorkers lays out how GPU workers turn from one partition to the next.
func (p *program) compileWorkers() {
	turn := p.here()
	p.work(0, p.model.Machine.TurnaroundNS)
	p.idle = p.here()
	p.add(step{op: opIdle})
	for i := range p.partitions {
		p.partitions[i].worker, p.partitions[i].turn = turn, p.model.Machine.TurnaroundNS
		if own := p.model.Partitions[i].TurnaroundNS; own > 0 {
			p.partitions[i].worker, p.partitions[i].turn = p.here(), own
			p.work(0, own)
			p.add(step{op: opIdle})
		}
	}
}

func (p *program) here() int32 { return int32(len(p.steps)) }
func (p *program) add(s step)  { p.steps = append(p.steps, s) }

// work adds time that passes. A memory step right before becomes part of it, which spares a step of
// the two commonest kinds; not where it is an event of its own or counts for several jobs.
func (p *program) work(class uint8, ns float64) {
	if ns <= 0 {
		return
	}
	n := len(p.steps)
	apart := p.detail == withEvents || p.model.Batch.Merge || n == 0
	if apart || p.steps[n-1].op != opMemory && p.steps[n-1].op != opFree {
		p.add(step{op: opWork, class: class, work: ns})
		return
	}
	last := &p.steps[n-1]
	last.gains = last.op == opMemory
	last.op, last.class, last.work = opWork, class, ns
}

// compileStages gives each distinct contention law a service class.
func (p *program) compileStages() {
	type law struct{ parallelism, weight, bandwidth, slope, pressure, sensitivity float64 }
	known := map[law]uint8{}
	for i, s := range p.model.Stages {
		p.stageOf[s.Name] = int32(i)
		l := law{s.Parallelism, s.Weight, s.Bandwidth, s.Slope(), s.Pressure, s.Sensitivity}
		if l.weight == 0 || l.parallelism == 0 {
			l.weight = l.parallelism
		}
		if p.model.Machine.CPUs == 0 {
			l.parallelism, l.weight = 0, 0
		}
		if p.model.Machine.MemoryBandwidth == 0 {
			l.bandwidth = 0
		}
		if l.bandwidth == 0 {
			l.slope = 0 // that of the cores, if any
		}
		if l == (law{}) {
			continue
		}
		if known[l] == 0 {
			p.classes = append(p.classes, class{
				parallelism: l.parallelism, weight: l.weight,
				bandwidth: l.bandwidth, slope: l.slope, pressure: l.pressure, sensitivity: l.sensitivity,
			})
			known[l] = uint8(len(p.classes))
		}
		p.classOf[s.Name] = known[l]
	}
}

// compileMemory sets the sums at the start and the way of what changes without a job.
func (p *program) compileMemory() {
	held := p.ledger()
	for _, c := range p.model.Memory.Resident {
		s := held.apply(c)
		p.start.live += s.live
		p.start.resident += s.resident
		p.start.scratch += s.scratch
	}
	p.later = p.here()
	last := 0.0
	for _, l := range p.model.Memory.Later {
		p.work(0, l.AtNS-last)
		last = max(last, l.AtNS)
		s := held.apply(l.Change)
		s.op = opLater
		p.change(s, l.Change)
	}
	p.add(step{op: opStop})
}

func (p *program) change(s step, c pipeline.Change) {
	s.arg = int32(len(p.changes))
	if pool := p.poolOf[c.Class]; pool > 0 && s.op == opMemory {
		s.op, s.class = opPool, pool-1
	}
	if p.detail < withEvents && p.merged(&s) {
		return
	}
	p.changes = append(p.changes, c)
	p.add(s)
}

// merged adds a memory step to the one before it, where both only give or both only take: the peaks
// are the same. A step that only takes cannot make one. Only statistics can do without the events.
func (p *program) merged(s *step) bool {
	if s.op != opMemory {
		return false
	}
	gives := s.live >= 0 && s.resident >= 0 && s.scratch >= 0
	if s.live <= 0 && s.resident <= 0 && s.scratch <= 0 {
		s.op = opFree
	}
	if len(p.steps) == 0 || s.op == opMemory && !gives {
		return false
	}
	last := &p.steps[len(p.steps)-1]
	if last.op != s.op ||
		last.op == opMemory && (last.live < 0 || last.resident < 0 || last.scratch < 0) {
		return false
	}
	last.live += s.live
	last.resident += s.resident
	last.scratch += s.scratch
	return true
}

// ledger follows the buffers of one way while it is compiled.
type ledger struct {
	held map[int]pipeline.Change
	pool bool // cpu_scratch is cut from a pool, which the engine counts
}

func (p *program) ledger() ledger {
	return ledger{map[int]pipeline.Change{}, p.model.Memory.ScratchPool}
}

// apply is the memory step of a change. Events of a buffer that is not held do nothing.
func (l ledger) apply(c pipeline.Change) step {
	s := step{op: opMemory}
	old, held := l.held[c.Buffer]
	if held {
		l.count(&s, old, -1)
	}
	if c.Event == trace.EventFree {
		delete(l.held, c.Buffer)
		return s
	}
	if held || c.Event == trace.EventAlloc {
		l.held[c.Buffer] = c
		l.count(&s, c, 1)
	}
	return s
}

func (l ledger) count(s *step, c pipeline.Change, sign int64) {
	if c.Space == trace.SpaceDevice {
		return
	}
	scratch := c.Class == trace.ClassCPUScratch
	if scratch && l.pool {
		s.scratch += sign * c.Capacity
		return
	}
	s.live += sign * c.Capacity
	if scratch {
		s.scratch += sign * c.Resident
	} else {
		s.resident += sign * c.Resident
	}
}
