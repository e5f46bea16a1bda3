package trace

// column describes one column of a table. The tables below list the columns in the order of the
// fields of the row types; the type of a column is the type of its field. How each is encoded
// stands in disk.go.
type column struct {
	name     string
	nullable bool // Null in memory is null on disk
}

var spanColumns = []column{
	{name: "begin_seq"},
	{name: "end_seq", nullable: true},
	{name: "source"},
	{name: "span_id"},
	{name: "parent_id"},
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
	{name: "begin_ns"},
	{name: "end_ns", nullable: true},
	{name: "cpu_ns", nullable: true},
	{name: "bytes", nullable: true},
	{name: "status"},
	{name: "attributes"},
	{name: "otel_trace_id"},
	{name: "otel_span_id"},
	{name: "otel_parent_span_id"},
}

var bufferColumns = []column{
	{name: "seq"},
	{name: "time_ns"},
	{name: "source"},
	{name: "event"},
	{name: "buffer_id"},
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
	{name: "seq"},
	{name: "time_ns"},
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
	{name: "time_ns"},
	{name: "source"},
	{name: "metric"},
	{name: "value"},
}
