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

	// Sums over partitions, in the terms of analyze's rho: stages only, without waits and gaps.
	SynthesisNS float64 // synthesis segment
	GPUNS       float64 // on the GPU worker up to the end of the lock
	LockNS      float64 // lock held, 0 without a lock
	WorkerNS    float64 // GPU workers' time with a partition in hand, waits and gaps included

	QueueMax QueueMax
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

// PeakRSSBytes is the peak of the resident set by the model's law; trace.Null where it has none.
func (s *Stats) PeakRSSBytes(m *pipeline.Memory) int64 {
	switch m.Law {
	case pipeline.LawScratchHighWater:
		return m.BaseBytes + s.PeakScratchLawBytes
	case pipeline.LawProportional:
		return m.BaseBytes + int64(math.Round((1+m.Slope)*float64(s.PeakResidentBytes)))
	}
	return trace.Null
}
