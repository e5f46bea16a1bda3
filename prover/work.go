package prover

import (
	"context"

	"highwater/tracer"
)

// engine makes the work of partitions. The real one is Groth16's (engine.go); tests have a fake.
type engine interface {
	// sizes are a partition's settled bytes, and how much of them a, b and c are.
	sizes() (settledBytes, abcBytes int64)
	partition(job, partition int) work
	// staged says whether a partition is brought within a device's reach before its start.
	staged() bool
}

// work is one partition's work, a method a stage, called in this order by one goroutine at a time.
// After an error, or at any point between stages, free gives everything back.
type work interface {
	witness(ctx context.Context, owner tracer.Owner) error
	synthesise(ctx context.Context, owner tracer.Owner) error
	// onto says which device the partition is for, from stageIn on.
	onto(device int32)
	// stageIn is left out where the engine does not stage.
	stageIn(ctx context.Context, owner tracer.Owner) error
	start(ctx context.Context, owner tracer.Owner) error
	freeABC() error
	// hasBG2 says whether the start has done b_g2, too: bG2 is left out then.
	hasBG2() bool
	bG2(ctx context.Context, owner tracer.Owner) error
	finalise() error
	free() error // safe to call twice
	verify() error
	// proof is nil before finalise.
	proof() []byte
	handoff(to tracer.Owner)
}
