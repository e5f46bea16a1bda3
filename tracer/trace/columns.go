package trace

// column describes one column of a table. The tables below list the columns in the order of the fields of the row
// types; the type of a column is the type of its field.
type column struct {
	name     string
	nullable bool // Null in memory is null on disk
	delta    bool // delta encoded: times, ids, sequence numbers; other integers go through a dictionary
	optional bool // a file without it is read with the default (columns added after schema version 1 began)
}

var spanColumns = []column{
	{name: "begin_seq", delta: true},
	{name: "end_seq", delta: true, nullable: true},
	{name: "source"},
	{name: "span_id", delta: true},
	{name: "parent_id", delta: true},
	{name: "kind"},
	{name: "stage"},
	{name: "name"},
	{name: "track"},
	{name: "job"},
	{name: "partition"},
	{name: "worker"},
	{name: "device"},
	{name: "stream", nullable: true},
	{name: "threads", nullable: true},
	{name: "begin_ns", delta: true},
	{name: "end_ns", delta: true, nullable: true},
	{name: "cpu_ns", delta: true, nullable: true},
	{name: "bytes", nullable: true},
	{name: "status"},
	{name: "attributes"},
	{name: "otel_trace_id"},
	{name: "otel_span_id"},
	{name: "otel_parent_span_id"},
}

var bufferColumns = []column{
	{name: "seq", delta: true},
	{name: "time_ns", delta: true},
	{name: "source"},
	{name: "event"},
	{name: "buffer_id", delta: true},
	{name: "parent_id"},
	{name: "class"},
	{name: "space"},
	{name: "device"},
	{name: "capacity_bytes", nullable: true},
	{name: "resident_bytes", nullable: true},
	{name: "delta_bytes"},
	{name: "delta_resident_bytes", nullable: true},
	{name: "estimated"},
	{name: "job"},
	{name: "partition"},
	{name: "worker"},
	{name: "stage"},
	{name: "span_id"},
}

var queueColumns = []column{
	{name: "seq", delta: true},
	{name: "time_ns", delta: true},
	{name: "source"},
	{name: "resource"},
	{name: "event"},
	{name: "job"},
	{name: "partition"},
	{name: "worker"},
	{name: "priority"},
	{name: "amount"},
	{name: "level_after", nullable: true},
	{name: "waiting_after", nullable: true},
	{name: "span_id"},
}

var sampleColumns = []column{
	{name: "time_ns", delta: true},
	{name: "source"},
	{name: "metric"},
	{name: "value"},
}
