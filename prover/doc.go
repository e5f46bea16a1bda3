// Package prover turns jobs into proofs through a pipeline, and records what it does.
//
// A job is a proof of P partitions. The dispatcher admits jobs; each partition reserves bytes from
// the budget, waits for a synthesis permit, is synthesised (witness, then solve into a, b, c and
// the assignment), is sent over a bounded channel, is started by a GPU worker under the device's
// lock (NTTs and G1 MSMs), then finalised (G2 MSM, blinding), freed and verified. Which stage gives
// which resource back when is a setting, so that each incident can be reproduced and undone.
//
// Terms: a permit allows one partition to be in synthesis; the channel holds partitions that are
// synthesised and not yet picked up; the GPU lock is held while a device proves (the CPU backend
// counts as one device); the settled bytes of a partition are its a, b, c and assignment; a job is
// in flight from its admission to its last free.
//
// Recording or not changes none of the behaviour, and equal seeds give equal proof bytes under
// every setting.
package prover
