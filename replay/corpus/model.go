package corpus

import (
	"math"
	"math/rand/v2"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// plan is a pipeline to be drawn: the means of its services and its policy.
type plan struct {
	rng *rand.Rand

	jobs, partitions  int64
	permits, gpus     int64
	capacity          pipeline.Bound
	jobsInFlight      pipeline.Bound
	release           string
	earlyFree         bool
	synthesis         float64 // seconds
	gpu               float64
	bg2               float64
	cv                float64 // of each service
	vector            int64   // bytes of each of a, b, c and the assignment
	key               int64
	budget            pipeline.Bound
	settled           int64   // what the budget reserves; 0: the truth
	cpus              float64 // that the stages share; 0: nothing contends
	synthesisThreads  float64
	slowJobs          func(job int64) bool // whose synthesis is slower, by slowBy
	slowBy            float64
	startSpreadFactor float64 // dispatch takes this share of a synthesis, drawn; 0: at once
}

// basePlan is a healthy pipeline: rho between 0.75 and 0.9, permits held until the send, early
// frees, no contention.
func basePlan(rng *rand.Rand) *plan {
	p := &plan{
		rng: rng, jobs: 10 + rng.Int64N(3), partitions: 3 + rng.Int64N(3),
		permits: 2 + rng.Int64N(3), gpus: 1 + rng.Int64N(2), capacity: 1,
		jobsInFlight: 2, release: pipeline.ReleaseSendAccepted, earlyFree: true,
		synthesis: 10 + 20*rng.Float64(), cv: 0.04, vector: (256 + rng.Int64N(1024)) << 20,
		key: (2 + rng.Int64N(8)) << 30, budget: pipeline.Unbounded, synthesisThreads: 4,
		startSpreadFactor: 0.3,
	}
	p.capacity = pipeline.Bound(rng.Int64N(3))
	p.rho(0.75 + 0.15*rng.Float64())
	return p
}

// rho sets the GPU side's times so that synthesis offers rho times what it takes.
func (p *plan) rho(rho float64) {
	p.gpu = rho * p.synthesis / float64(p.permits)
	p.bg2 = 0.3 * p.gpu
}

// draw is a time about mean seconds, in nanoseconds.
func (p *plan) draw(mean float64) float64 {
	return 1e9 * mean * math.Max(0.2, 1+p.cv*p.rng.NormFloat64())
}

// model is the plan as replay/sim takes it: a pool with each partition of the run.
func (p *plan) model(name string) *pipeline.Model {
	settled := p.settled
	if settled == 0 {
		settled = 4 * p.vector
	}
	m := &pipeline.Model{
		Name: name, Source: "highwater corpus, drawn from a seed",
		Policy: pipeline.Policy{
			Jobs: p.jobs, Partitions: p.partitions, JobsInFlight: p.jobsInFlight,
			PartitionWorkers: p.permits, GPUWorkers: p.gpus, Devices: 1,
			ChannelCapacity: p.capacity, PermitRelease: p.release, EarlyFree: p.earlyFree,
			SplitProving: true, ByteBudget: p.budget, QueueOrder: pipeline.OrderFIFO,
		},
		Machine: pipeline.Machine{
			CPUs: p.cpus, LockCapacity: 1, Finalisers: pipeline.Unbounded, TurnaroundNS: 1e6,
		},
		Memory: pipeline.Memory{
			Law: pipeline.LawScratchHighWater, BaseBytes: 200 << 20,
			Resident: []pipeline.Change{alloc(0, 0, trace.ClassKey, p.key)},
		},
		Stages: []pipeline.Stage{
			{Name: trace.StageSynthesis, Parallelism: p.synthesisThreads},
			{Name: trace.StageProveStart, Parallelism: 1},
			{Name: trace.StageBG2, Parallelism: 4},
			{Name: trace.StageFinalise, Parallelism: 1},
		},
	}
	for job := range p.jobs {
		for part := range p.partitions {
			m.Partitions = append(m.Partitions, p.partition(job, part, settled))
		}
	}
	return m
}

// fillSteps is in how many steps synthesis touches its vectors.
const fillSteps = 32

func (p *plan) partition(job, part, settled int64) pipeline.Partition {
	synthesis := p.draw(p.synthesis)
	if p.slowJobs != nil && p.slowJobs(job) {
		synthesis *= p.slowBy
	}
	dispatch := 1e6 * (1 + p.rng.Float64())
	if p.startSpreadFactor > 0 {
		dispatch += 1e9 * p.synthesis * p.startSpreadFactor * p.rng.Float64()
	}
	var make, use, after []pipeline.Change
	for i, class := range []string{trace.ClassA, trace.ClassB, trace.ClassC, trace.ClassAux} {
		c := alloc(0, i, class, p.vector)
		c.Resident = 0
		make = append(make, c)
	}
	for step := range fillSteps {
		for i, class := range []string{trace.ClassA, trace.ClassB, trace.ClassC, trace.ClassAux} {
			c := change(0.05+0.6*float64(step)/fillSteps, trace.EventFill, i, class, p.vector)
			c.Resident = p.vector * int64(step+1) / fillSteps
			make = append(make, c)
		}
	}
	for i, class := range []string{trace.ClassA, trace.ClassB, trace.ClassC} {
		use = append(use, change(0.98, trace.EventLastUse, i, class, p.vector))
	}
	after = append(after, change(0.99, trace.EventLastUse, 3, trace.ClassAux, p.vector))
	return pipeline.Partition{
		Job: job, Partition: part, SettledBytes: settled, EarlyBytes: settled * 3 / 4,
		EarlyFree: []int{0, 1, 2},
		Pieces: []pipeline.Piece{
			{Segment: pipeline.SegmentDispatch, SoloNS: dispatch},
			{
				Segment: pipeline.SegmentSynthesis, Stage: trace.StageSynthesis, SoloNS: synthesis,
				Buffers: make,
			},
			{Segment: pipeline.SegmentPickup, SoloNS: 1e5},
			{
				Segment: pipeline.SegmentGPU, Stage: trace.StageProveStart, SoloNS: p.draw(p.gpu),
				Buffers: use,
			},
			{
				Segment: pipeline.SegmentSplit, Stage: trace.StageBG2, SoloNS: p.draw(p.bg2),
				Buffers: after,
			},
			{
				Segment: pipeline.SegmentFinalise, Stage: trace.StageFinalise,
				SoloNS:  p.draw(0.02 * p.gpu),
				Buffers: []pipeline.Change{change(0.01, trace.EventFree, 3, trace.ClassAux, 0)},
			},
		},
	}
}

func alloc(at float64, buffer int, class string, bytes int64) pipeline.Change {
	return change(at, trace.EventAlloc, buffer, class, bytes)
}

func change(at float64, event string, buffer int, class string, bytes int64) pipeline.Change {
	return pipeline.Change{
		At: at, Event: event, Buffer: buffer, Class: class, Space: trace.SpaceHost,
		Capacity: bytes, Resident: bytes,
	}
}
