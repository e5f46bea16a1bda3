package sim

import (
	"math"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// Stats is what one run amounts to.
type Stats struct {
	Events int64 // timed steps that ended

	PeakLiveBytes     int64 // host, the model's resident buffers included
	PeakLiveNS        float64
	PeakResidentBytes int64 // of resident bytes, scratch included
	// PeakScratchLawBytes is the most of (resident without scratch + largest scratch so far).
	PeakScratchLawBytes int64
	FinalLiveBytes      int64

	MakespanNS float64 // first submit to last free
	JobsDone   int64
	Partitions int64 // finished

	// Sums over partitions, in the terms of analyze's rho, without waits.
	SynthesisNS float64 // stages of the synthesis segment
	GPUNS       float64 // of the GPU worker, from one receive to the next while an item waits
	LockNS      float64 // lock held, 0 without a lock
	WorkerNS    float64 // GPU workers' time with a partition in hand, waits and gaps included

	QueueMax QueueMax

	Evictions int64 // cached objects given back because the byte budget was short
	// OverLimitNS is when RSS first lay above Draw.LimitBytes; -1 for never.
	OverLimitNS float64
	Starved     Starved
	// RSSFactor and RSSErrorBytes are this draw's error of the law of RSS: of what lies above the
	// base, and in bytes.
	RSSFactor     float64
	RSSErrorBytes int64
	StartupBytes  int64 // this draw's moment of loading, of RSS
}

// Starved is the request that most later ones were served before, where an order other than by
// arrival allows that. Overtaken is 0 where none was.
type Starved struct {
	Overtaken int64   // later requests served before it, at least
	WaitNS    float64 // how long it waited
	Who, For  string  // who waited, and for what

	id       int32
	resource resource
}

// GrowthPerNS is by how many partitions a ns the backlog in front of the GPU workers grows while
// nothing bounds it: what partitionWorkers syntheses offer less what the workers take, at the times
// of this run. Below 0 the workers have room; ok is false where nothing was measured.
func (s *Stats) GrowthPerNS(partitionWorkers, gpuWorkers, devices int64) (growth float64, ok bool) {
	rho, ok := s.Rho(partitionWorkers, gpuWorkers, devices)
	if !ok || rho <= 0 {
		return 0, false
	}
	offered := float64(partitionWorkers) * float64(s.Partitions) / s.SynthesisNS
	return offered * (1 - 1/rho), true
}

// QueueMax is the most that each resource saw at once.
type QueueMax struct {
	ChannelItems   int64 // accepted, not received
	ChannelSenders int64 // waiting to be accepted
	Backlog        int64 // both together
	PermitsHeld    int64
	PermitWaiting  int64
	BudgetBytes    int64
	BudgetWaiting  int64
	LockWaiting    int64
	JobsInFlight   int64
	Synthesising   int64 // between the permit's acquire and the synthesis' end
	OnWorkers      int64 // held by GPU workers
}

// Rho is what synthesis offers over what the GPU side can take; ok is false where nothing was
// measured.
func (s *Stats) Rho(partitionWorkers, gpuWorkers, devices int64) (rho float64, ok bool) {
	if s.Partitions == 0 || s.SynthesisNS <= 0 {
		return 0, false
	}
	n := float64(s.Partitions)
	synthesis, gpu, lock := s.SynthesisNS/n, s.GPUNS/n, s.LockNS/n
	d := float64(devices)
	return float64(partitionWorkers) / synthesis * max(gpu/(float64(gpuWorkers)*d), lock/d), true
}

// GPUIdleRatio is the share of the makespan in which the GPU workers held no partition.
func (s *Stats) GPUIdleRatio(workers int64) (ratio float64, ok bool) {
	if s.MakespanNS <= 0 {
		return 0, false
	}
	return max(0, 1-s.WorkerNS/(s.MakespanNS*float64(workers))), true
}

// PeakRSSBytes is the peak of the resident set by the model's law, with this draw's error of it;
// trace.Null where the model has none.
func (s *Stats) PeakRSSBytes(m *pipeline.Memory) int64 {
	switch m.Law {
	case pipeline.LawScratchHighWater:
		return max(m.BaseBytes+s.withError(float64(s.PeakScratchLawBytes)), s.StartupBytes)
	case pipeline.LawProportional:
		peak := s.withError((1 + m.Slope) * float64(s.PeakResidentBytes))
		return max(m.BaseBytes+peak, s.StartupBytes)
	}
	return trace.Null
}

func (s *Stats) withError(bytes float64) int64 {
	if s.RSSFactor != 0 {
		bytes *= s.RSSFactor
	}
	return int64(math.Round(bytes)) + s.RSSErrorBytes
}
