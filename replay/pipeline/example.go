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
			Jobs: 4, Partitions: 4, JobsInFlight: Unbounded, PartitionWorkers: 2, GPUWorkers: 1,
			Devices: 1, ChannelCapacity: 1,
			PermitRelease: ReleaseSendAccepted, EarlyFree: true, SplitProving: true,
			ByteBudget: Unbounded, QueueOrder: OrderFIFO,
		},
		Machine: Machine{CPUs: 2, LockCapacity: 1, Finalisers: Unbounded, TurnaroundNS: 20e3},
		Memory: Memory{Law: LawScratchHighWater, BaseBytes: 11 << 20, Resident: []Change{
			alloc(0, 0, trace.ClassKey, 20<<20), alloc(0, 1, trace.ClassSystem, 8<<20),
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
	return Partition{
		Job: i / 4, Partition: i % 4,
		SettledBytes: 4 * mib, EarlyBytes: 3 * mib, EarlyFree: []int{0, 1, 2},
		Pieces: []Piece{
			{Segment: SegmentDispatch, SoloNS: 30e3 * float64(1+i%4)},
			{Segment: SegmentSynthesis, SoloNS: 20e3},
			{
				Segment: SegmentSynthesis, Stage: trace.StageSynthesis, SoloNS: 24e6 * f,
				Buffers: []Change{
					alloc(0, 0, trace.ClassA, mib), alloc(0, 1, trace.ClassB, mib),
					alloc(0.02, 2, trace.ClassC, mib), alloc(0.02, 3, trace.ClassAux, mib),
				},
			},
			{Segment: SegmentPickup, SoloNS: 5e3},
			{
				Segment: SegmentGPU, Stage: trace.StageProveStart, SoloNS: 210e6 * f,
				Buffers: []Change{
					change(0.1, trace.EventReclass, 0, trace.ClassH, mib),
					alloc(0.15, 4, trace.ClassCPUScratch, 12*mib), free(0.6, 4, trace.ClassCPUScratch),
					alloc(0.6, 5, trace.ClassSplit, mib),
					alloc(0.6, 6, trace.ClassCPUScratch, 6*mib), free(1, 6, trace.ClassCPUScratch),
				},
			},
			{Segment: SegmentSplit, SoloNS: 10e3},
			{
				Segment: SegmentSplit, Stage: trace.StageBG2, SoloNS: 68e6 * f,
				Buffers: []Change{
					alloc(0, 7, trace.ClassCPUScratch, 16*mib), free(1, 7, trace.ClassCPUScratch),
				},
			},
			{Segment: SegmentFinalise, Stage: trace.StageFinalise, SoloNS: 0.7e6 * f},
			{
				Segment: SegmentFinalise, SoloNS: 50e3,
				Buffers: []Change{free(0.5, 3, trace.ClassAux), free(1, 5, trace.ClassSplit)},
			},
			{Segment: SegmentAfter, Stage: trace.StageVerify, SoloNS: 2e6 * f},
		},
	}
}

func alloc(at float64, buffer int, class string, bytes int64) Change {
	return change(at, trace.EventAlloc, buffer, class, bytes)
}

func free(at float64, buffer int, class string) Change {
	return change(at, trace.EventFree, buffer, class, 0)
}

// change is a buffer event of the example; all bytes are resident.
func change(at float64, event string, buffer int, class string, bytes int64) Change {
	return Change{
		At: at, Event: event, Buffer: buffer, Class: class, Space: trace.SpaceHost,
		Capacity: bytes, Resident: bytes, Estimated: class == trace.ClassCPUScratch,
	}
}
