// Package compare says what changed between two traces, or between two sets of them, and whether
// the difference can be believed; and where in a series of traces by commit something changed.
//
// Terms. A run is one trace, reduced to metrics (ReadRun). A side is the runs of one commit or one
// setting: base or new. A metric has a name that ends in its unit and, where there are several of
// its kind, a subject: stage_time_ns of synthesis. Outcomes are what a user pays: time, bytes,
// bytes times seconds. They make the verdict. Explanations are what moved beside them: counters,
// queues, single operations, how many buffers there were, how large, for how long. They are
// tested and shown, never make a verdict, and are never called a cause.
//
// What is compared with what: the first job submitted of one run with the first of another,
// whatever their ids; in it equal partitions, in these equal stages. What exists on one side only
// is listed and in no mean.
//
// How it is judged: with MinTestRuns or more a side by the Mann-Whitney U test on the runs, all
// outcomes together held to Alpha by Holm's correction; with fewer against a noise floor
// (NoiseFloor), below which nothing is called a change. An effect must also be as large as its
// threshold to matter.
package compare

// Alpha is the chance, over all outcomes of a comparison together, that equal sides are called
// different. Explanations have their own Alpha.
const Alpha = 0.01

// MinTestRuns is how many runs a side the test needs; with fewer a noise floor decides.
const MinTestRuns = 8
