// Package corpus makes labelled traces, faulty and clean, and counts how analyze judges them.
//
// A kind is one fault of the design's list, made on purpose: a simulated run (replay/sim) of a
// random pipeline, whose settings, durations or buffers have the fault, beside the counters that a
// recorder would have sampled (RSS, page faults, CPU time, cgroup, copies), which the simulator
// does not know. A clean kind has none. Equal seeds give equal traces. Each seed draws sizes, durations,
// workers and the severity of the fault anew.
//
// Recall is the share of faulty traces whose own analyzer finds something. A false finding is any
// finding of an analyzer on a clean trace; it counts against the pairs (clean trace, analyzer) in
// which the analyzer could look.
package corpus
