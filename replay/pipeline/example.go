package pipeline

import "highwater/tracer/trace"

// Example is a small model of the shape of the prover on two cores: for documentation, tests and
// benchmarks. Its pool has eight partitions that differ by some per cent; its partitions settle at
// 4 MiB.
func Example() *Model {
	m := &Model{
		Name:   "example",
		Source: "made up, in the proportions of prover.md 1.5",
		Policy: Policy{
			Jobs: 4, Partitions: 4, JobsInFlight: Unbounded, PartitionWorkers: 2, GPUWorkers: 1, Devices: 1, ChannelCapacity: 1,
			PermitRelease: ReleaseSendAccepted, EarlyFree: true, SplitProving: true, ByteBudget: Unbounded, QueueOrder: OrderFIFO,
		},
		Machine: Machine{CPUs: 2, LockCapacity: 1, Finalisers: Unbounded, TurnaroundNS: 20e3},
		Memory: Memory{Law: LawScratchHighWater, BaseBytes: 11 << 20, Resident: []Change{
			{Event: trace.EventAlloc, Buffer: 0, Class: trace.ClassKey, Space: trace.SpaceHost, Capacity: 20 << 20, Resident: 20 << 20},
			{Event: trace.EventAlloc, Buffer: 1, Class: trace.ClassSystem, Space: trace.SpaceHost, Capacity: 8 << 20, Resident: 8 << 20},
		}},
		Stages: []Stage{
			{Name: trace.StageSynthesis, Parallelism: 1},
			{Name: trace.StageProveStart, Parallelism: 1.75, Weight: 2},
			{Name: trace.StageBG2, Parallelism: 2},
			{Name: trace.StageFinalise, Parallelism: 1},
			{Name: trace.StageVerify, Parallelism: 1},
		},
	}
	for i := range int64(8) {
		m.Partitions = append(m.Partitions, examplePartition(i))
	}
	return m
}

// examplePartition is pool member i; its services take 0.9 to 1.1 times the mean.
func examplePartition(i int64) Partition {
	const mib = 1 << 20
	f := 0.9 + 0.2*float64(i*5%8)/7
	buffer := func(at float64, event string, number int, class string, bytes int64) Change {
		return Change{At: at, Event: event, Buffer: number, Class: class, Space: trace.SpaceHost, Capacity: bytes, Resident: bytes,
			Estimated: class == trace.ClassCPUScratch}
	}
	return Partition{
		Job: i / 4, Partition: i % 4, SettledBytes: 4 * mib, EarlyBytes: 3 * mib, EarlyFree: []int{0, 1, 2},
		Pieces: []Piece{
			{Segment: SegmentDispatch, SoloNS: 30e3 * float64(1+i%4)},
			{Segment: SegmentSynthesis, SoloNS: 20e3},
			{Segment: SegmentSynthesis, Stage: trace.StageSynthesis, SoloNS: 24e6 * f, Buffers: []Change{
				buffer(0, trace.EventAlloc, 0, trace.ClassA, mib), buffer(0, trace.EventAlloc, 1, trace.ClassB, mib),
				buffer(0.02, trace.EventAlloc, 2, trace.ClassC, mib), buffer(0.02, trace.EventAlloc, 3, trace.ClassAux, mib),
			}},
			{Segment: SegmentPickup, SoloNS: 5e3},
			{Segment: SegmentGPU, Stage: trace.StageProveStart, SoloNS: 210e6 * f, Buffers: []Change{
				buffer(0.1, trace.EventReclass, 0, trace.ClassH, mib),
				buffer(0.15, trace.EventAlloc, 4, trace.ClassCPUScratch, 12*mib), buffer(0.6, trace.EventFree, 4, trace.ClassCPUScratch, 0),
				buffer(0.6, trace.EventAlloc, 5, trace.ClassSplit, mib),
				buffer(0.6, trace.EventAlloc, 6, trace.ClassCPUScratch, 6*mib), buffer(1, trace.EventFree, 6, trace.ClassCPUScratch, 0),
			}},
			{Segment: SegmentSplit, SoloNS: 10e3},
			{Segment: SegmentSplit, Stage: trace.StageBG2, SoloNS: 68e6 * f, Buffers: []Change{
				buffer(0, trace.EventAlloc, 7, trace.ClassCPUScratch, 16*mib), buffer(1, trace.EventFree, 7, trace.ClassCPUScratch, 0),
			}},
			{Segment: SegmentFinalise, Stage: trace.StageFinalise, SoloNS: 0.7e6 * f},
			{Segment: SegmentFinalise, SoloNS: 50e3, Buffers: []Change{
				buffer(0.5, trace.EventFree, 3, trace.ClassAux, 0), buffer(1, trace.EventFree, 5, trace.ClassSplit, 0),
			}},
			{Segment: SegmentAfter, Stage: trace.StageVerify, SoloNS: 2e6 * f},
		},
	}
}
