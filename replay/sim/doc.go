// Package sim runs a pipeline model in virtual time: a discrete-event engine with processor sharing
// over the model's contention law. One seed gives one result, to the byte.
//
// Terms. A step is one instruction of an entity's way (a partition, a job or a GPU worker). An
// event is a timed step that ends: a gap or a part of a stage between two buffer events is over,
// and everything that this causes at that instant (buffer events, permits, sends, grants to others)
// is done with it. Virtual time is in nanoseconds from the first submit, kept as float64: exact for
// whole nanoseconds up to 104 days.
//
// A run in statistics mode allocates nothing per event; Record also writes an ordinary trace.
package sim
