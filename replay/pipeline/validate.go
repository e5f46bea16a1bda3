package pipeline

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"highwater/tracer/trace"
)

// Limits of a model, so that a hostile file cannot ask for unbounded work.
const (
	MaxPartitions = 1 << 22 // jobs times partitions
	MaxWorkers    = 1 << 16
	MaxStages     = 62
	maxTime       = 1e18 // ns, 31 years
)

// Validate reports every violation of the model at once.
func (m *Model) Validate() error { return violations(func(v *checker) { v.model(m) }) }

// ValidateSettings is Validate for a model that was valid before some of its settings were changed:
// it looks at those alone, and at what they may contradict.
func (m *Model) ValidateSettings() error { return violations(func(v *checker) { v.settings(m) }) }

// violations are what check finds. Names took half of a question's time, and a model is hardly ever
// bad: they are made for those.
func violations(check func(*checker)) error {
	quick := &checker{}
	check(quick)
	if !quick.failed {
		return nil
	}
	v := &checker{named: true}
	check(v)
	return errors.Join(v.errs...)
}

// settings is the part of model that settings change: policy, flow and the jobs' arrivals.
func (v *checker) settings(m *Model) {
	v.stages = make(map[string]bool, len(m.Stages))
	for i := range m.Stages {
		v.stages[m.Stages[i].Name] = true
	}
	v.policy(&m.Policy)
	v.flow(m)
	v.shared(m)
	v.budgetFits(m)
	for i := range m.Jobs {
		v.number(v.numbered("job", i)+" submit_ns", m.Jobs[i].SubmitNS, 0, maxTime)
	}
}

func (v *checker) model(m *Model) {
	v.stages = make(map[string]bool, len(m.Stages))
	v.policy(&m.Policy)
	v.machine(&m.Machine)
	v.stageLaws(m.Stages)
	v.memory(&m.Memory)
	if len(m.Partitions) == 0 {
		v.bad("model has no partition to draw from")
	}
	v.flow(m)
	v.shared(m)
	locks := slices.Concat(m.Locks, stageLocks(m.Stages))
	for i := range m.Partitions {
		what := v.numbered("partition", i)
		v.partition(what, &m.Partitions[i])
		v.lockOrder(what, &m.Partitions[i], m.Locks)
		v.once(what, &m.Partitions[i], locks)
	}
	v.budgetFits(m)
	for i := range m.Jobs {
		v.job(v.numbered("job", i), &m.Jobs[i])
	}
}

// checker finds violations; with named it says each, up to a bound.
type checker struct {
	named  bool
	failed bool
	errs   []error
	stages map[string]bool
}

// numbered and of name a part of the model, "" where nothing is said.
func (v *checker) numbered(what string, i int) string {
	if !v.named {
		return ""
	}
	return fmt.Sprintf("%s %d", what, i)
}

func (v *checker) of(what, name string) string {
	if !v.named {
		return ""
	}
	return what + " " + name
}

func (v *checker) bad(format string, args ...any) {
	v.failed = true
	if v.named && len(v.errs) < 20 {
		v.errs = append(v.errs, fmt.Errorf(format, args...))
	}
}

func (v *checker) between(what string, n, low, high int64) {
	if n < low || n > high {
		v.bad("%s: %d is outside %d..%d", what, n, low, high)
	}
}

func (v *checker) bound(what string, b Bound, low int64) {
	if b != Unbounded && int64(b) < low {
		v.bad("%s: %d is below %d", what, b, low)
	}
}

func (v *checker) word(what, word string, allowed ...string) {
	if !slices.Contains(allowed, word) {
		// a copy, so that the list itself stays on the stack
		v.bad("%s: %q is not one of %v", what, word, slices.Clone(allowed))
	}
}

func (v *checker) number(what string, x, low, high float64) {
	if math.IsNaN(x) || x < low || x > high {
		v.bad("%s: %g is outside %g..%g", what, x, low, high)
	}
}

func (v *checker) policy(p *Policy) {
	v.between("jobs", p.Jobs, 1, MaxPartitions)
	v.between("partitions", p.Partitions, 1, MaxPartitions)
	if p.Jobs > 0 && p.Partitions > MaxPartitions/p.Jobs {
		v.bad("jobs × partitions: %d × %d is more than the %d partitions one replay takes", p.Jobs,
			p.Partitions, MaxPartitions)
	}
	v.bound("jobs_in_flight", p.JobsInFlight, 1)
	v.between("partition_workers", p.PartitionWorkers, 1, MaxWorkers)
	v.between("gpu_workers", p.GPUWorkers, 1, MaxWorkers)
	v.between("devices", p.Devices, 1, 1024)
	if p.GPUWorkers > 0 && p.Devices > MaxWorkers/p.GPUWorkers {
		v.bad("gpu_workers × devices: %d × %d is more than %d workers", p.GPUWorkers, p.Devices,
			MaxWorkers)
	}
	v.bound("channel_capacity", p.ChannelCapacity, 0)
	v.bound("byte_budget", p.ByteBudget, 1)
	v.word("permit_release", p.PermitRelease, ReleaseSynthEnd, ReleaseSendAccepted,
		ReleaseGPUPickup, ReleaseFreed)
	v.word("queue_order", p.QueueOrder, OrderFIFO, OrderPriority)
}

func (v *checker) machine(m *Machine) {
	v.number("machine cpus", m.CPUs, 0, 1<<20)
	v.between("machine lock_capacity", m.LockCapacity, 0, MaxWorkers)
	v.bound("machine finalisers", m.Finalisers, 1)
	v.number("machine turnaround_ns", m.TurnaroundNS, 0, maxTime)
}

func (v *checker) stageLaws(stages []Stage) {
	if len(stages) > MaxStages {
		v.bad("model has %d stages: at most %d", len(stages), MaxStages)
	}
	for i := range stages {
		s := &stages[i]
		if s.Name == "" || v.stages[s.Name] {
			v.bad("stage %d: name %q is empty or used twice", i, s.Name)
		}
		v.stages[s.Name] = true
		what := v.of("stage", s.Name)
		v.number(what+" parallelism", s.Parallelism, 0, 1<<20)
		v.number(what+" weight", s.Weight, 0, 1<<20)
		v.number(what+" cv", s.CV, 0, 10)
		v.stageFlow(s)
	}
}

func (v *checker) memory(m *Memory) {
	v.word("memory law", m.Law, LawScratchHighWater, LawProportional, LawNone)
	v.between("memory base_bytes", m.BaseBytes, -1<<50, 1<<50)
	v.between("memory scratch_high_bytes", m.ScratchHigh, 0, 1<<50)
	v.number("memory slope", m.Slope, -1, 100)
	v.number("memory uncertainty", m.Uncertainty, 0, 10)
	v.between("memory startup_bytes", m.StartupBytes, 0, 1<<50)
	v.between("memory startup_bytes_high", m.StartupBytesHigh, m.StartupBytes, 1<<50)
	v.between("memory uncertainty_bytes", m.UncertaintyBytes, 0, 1<<50)
	for i := range m.Resident {
		v.change("memory resident", &m.Resident[i])
	}
	for i := range m.Later {
		v.number("memory later at_ns", m.Later[i].AtNS, 0, maxTime)
		v.change("memory later", &m.Later[i].Change)
	}
}

func (v *checker) partition(what string, p *Partition) {
	v.between(what+" settled_bytes", p.SettledBytes, 0, 1<<50)
	v.between(what+" early_bytes", p.EarlyBytes, 0, max(p.SettledBytes, 0))
	v.between(what+" reserve_bytes", p.ReserveBytes, 0, 1<<50)
	v.between(what+" reserve_early_bytes", p.ReserveEarlyBytes, 0, max(p.ReserveBytes, 0))
	v.number(what+" turnaround_ns", p.TurnaroundNS, 0, maxTime)
	last := 0
	for i := range p.Pieces {
		at := slices.Index(Segments, p.Pieces[i].Segment)
		if at < last {
			v.bad("%s piece %d: segment %q is unknown or out of order", what, i,
				p.Pieces[i].Segment)
		}
		last = max(at, last)
		v.piece(v.numbered(what+" piece", i), &p.Pieces[i])
	}
	for _, b := range p.EarlyFree {
		v.between(what+" early_free", int64(b), 0, MaxBuffers-1)
	}
}

func (v *checker) job(what string, j *Job) {
	v.number(what+" submit_ns", j.SubmitNS, 0, maxTime)
	for i := range j.Before {
		v.piece(what+" before", &j.Before[i])
	}
	for i := range j.After {
		v.piece(what+" after", &j.After[i])
	}
}

func (v *checker) piece(what string, p *Piece) {
	if p.Stage != "" && !v.stages[p.Stage] {
		v.bad("%s: stage %q has no law", what, p.Stage)
	}
	v.number(what+" solo_ns", p.SoloNS, 0, maxTime)
	last := 0.0
	for i := range p.Buffers {
		v.change(what, &p.Buffers[i])
		v.number(what+" buffer at", p.Buffers[i].At, last, 1)
		last = max(last, p.Buffers[i].At)
	}
}

// MaxBuffers bounds the buffers of one partition.
const MaxBuffers = 1 << 16

func (v *checker) change(what string, c *Change) {
	v.word(what+" event", c.Event, trace.EventAlloc, trace.EventResize, trace.EventFill,
		trace.EventReclass, trace.EventPin,
		trace.EventUnpin, trace.EventHandoff, trace.EventLastUse, trace.EventFree)
	v.between(what+" buffer", int64(c.Buffer), 0, MaxBuffers-1)
	v.between(what+" capacity_bytes", c.Capacity, 0, 1<<50)
	v.between(what+" resident_bytes", c.Resident, 0, 1<<50)
}

// stageLocks are the locks that stand for a stage's bounded workers.
func stageLocks(stages []Stage) (out []Lock) {
	for i := range stages {
		if s := &stages[i]; s.Workers > 0 {
			out = append(out, Lock{Name: s.Name + " workers", From: s.Name, To: s.Name})
		}
	}
	return out
}
