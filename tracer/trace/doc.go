// Package trace is the trace: the schema of its tables, the manifest, Parquet in and out, sealing a journal,
// validation, and a text form for tests.
//
// A trace is a directory NAME.hw. While it is recorded it holds manifest.json and journal/; sealed, it holds
// manifest.json and spans.parquet, buffers.parquet, queues.parquet, samples.parquet. Times are int64
// nanoseconds after the trace's anchor; seq is one order over all events, given at sealing.
package trace
