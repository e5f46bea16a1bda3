// Package pipeline describes a proving pipeline as plain data: which resources a partition waits
// for and gives back and when (Policy), what the machine shares out (Machine), the stages with
// their contention law (Stage), what single partitions did in them (Partition: durations and
// buffers), and what lies in memory besides (Memory). It is read from and written to TOML,
// strictly; replay/fit makes one from a trace, replay/sim runs it.
//
// Terms. A piece is one stage of one partition, or a gap: time that passes between stages without
// CPU work. A segment is the part of a partition's way that a piece belongs to; partitions go
// through the segments in the order of Segments:
//
//	dispatch  from the job's admission to the first request (budget or permit)
//	synthesis from the permit's acquire to the send
//	pickup    from the receive to the lock's request
//	gpu       under the device's lock, on a GPU worker
//	split     b_g2: under the lock on the GPU worker without split_proving, after both with it
//	finalise  off the worker, up to the last free
//	after     after the last free (verification)
//
// Waiting is never data: it comes out of the simulation. The pool is the partitions that a
// simulation draws from.
package pipeline
