package trace

// The rows as parquet-go writes them: the public rows with a pointer where a null is possible.
// Words go through a dictionary, integers through delta encoding: a dictionary of integers costs a
// hash a value, 15 % of sealing, and saves 0.6 B an event. Where a null is possible parquet-go has no delta
// encoding: there integers that repeat go through a dictionary too. The order and the names of the columns are those of
// columns.go (a test keeps them equal).

type diskSpan struct {
	BeginSeq         int64  `parquet:"begin_seq,delta"`
	EndSeq           *int64 `parquet:"end_seq,optional"`
	Source           string `parquet:"source,dict"`
	SpanID           int64  `parquet:"span_id,delta"`
	ParentID         int64  `parquet:"parent_id,delta"`
	Kind             string `parquet:"kind,dict"`
	Stage            string `parquet:"stage,dict"`
	Name             string `parquet:"name,dict"`
	Track            string `parquet:"track,dict"`
	Job              int64  `parquet:"job,delta"`
	Partition        int64  `parquet:"partition,delta"`
	Worker           int64  `parquet:"worker,delta"`
	Device           int64  `parquet:"device,delta"`
	Stream           *int64 `parquet:"stream,optional,dict"`
	Threads          *int64 `parquet:"threads,optional,dict"`
	BeginNS          int64  `parquet:"begin_ns,delta"`
	EndNS            *int64 `parquet:"end_ns,optional"`
	CPUNS            *int64 `parquet:"cpu_ns,optional"`
	Bytes            *int64 `parquet:"bytes,optional,dict"`
	Status           string `parquet:"status,dict"`
	Attributes       string `parquet:"attributes"`
	OtelTraceID      string `parquet:"otel_trace_id,dict"`
	OtelSpanID       string `parquet:"otel_span_id"`
	OtelParentSpanID string `parquet:"otel_parent_span_id"`
}

type diskBuffer struct {
	Seq                int64  `parquet:"seq,delta"`
	TimeNS             int64  `parquet:"time_ns,delta"`
	Source             string `parquet:"source,dict"`
	Event              string `parquet:"event,dict"`
	BufferID           int64  `parquet:"buffer_id,delta"`
	ParentID           int64  `parquet:"parent_id,delta"`
	Class              string `parquet:"class,dict"`
	Space              string `parquet:"space,dict"`
	Device             int64  `parquet:"device,delta"`
	CapacityBytes      *int64 `parquet:"capacity_bytes,optional,dict"`
	ResidentBytes      *int64 `parquet:"resident_bytes,optional,dict"`
	DeltaBytes         int64  `parquet:"delta_bytes,delta"`
	DeltaResidentBytes *int64 `parquet:"delta_resident_bytes,optional,dict"`
	Estimated          bool   `parquet:"estimated"`
	Job                int64  `parquet:"job,delta"`
	Partition          int64  `parquet:"partition,delta"`
	Worker             int64  `parquet:"worker,delta"`
	Stage              string `parquet:"stage,dict"`
	SpanID             int64  `parquet:"span_id,delta"`
}

type diskQueue struct {
	Seq          int64  `parquet:"seq,delta"`
	TimeNS       int64  `parquet:"time_ns,delta"`
	Source       string `parquet:"source,dict"`
	Resource     string `parquet:"resource,dict"`
	Event        string `parquet:"event,dict"`
	Job          int64  `parquet:"job,delta"`
	Partition    int64  `parquet:"partition,delta"`
	Worker       int64  `parquet:"worker,delta"`
	Priority     int64  `parquet:"priority,delta"`
	Amount       int64  `parquet:"amount,delta"`
	LevelAfter   *int64 `parquet:"level_after,optional,dict"`
	WaitingAfter *int64 `parquet:"waiting_after,optional,dict"`
	SpanID       int64  `parquet:"span_id,delta"`
}

type diskSample struct {
	TimeNS int64   `parquet:"time_ns,delta"`
	Source string  `parquet:"source,dict"`
	Metric string  `parquet:"metric,dict"`
	Value  float64 `parquet:"value"`
}

// nullable points to *v, or nowhere for Null. The row it points into must outlive the write.
func nullable(v *int64) *int64 {
	if *v == Null {
		return nil
	}
	return v
}

func (d *diskSpan) from(r *Span) {
	*d = diskSpan{
		BeginSeq: r.BeginSeq, EndSeq: nullable(&r.EndSeq), Source: r.Source, SpanID: r.SpanID,
		ParentID: r.ParentID,
		Kind:     r.Kind, Stage: r.Stage, Name: r.Name, Track: r.Track,
		Job: r.Job, Partition: r.Partition, Worker: r.Worker, Device: r.Device,
		Stream: nullable(&r.Stream), Threads: nullable(&r.Threads),
		BeginNS: r.BeginNS, EndNS: nullable(&r.EndNS), CPUNS: nullable(&r.CPUNS),
		Bytes:  nullable(&r.Bytes),
		Status: r.Status, Attributes: r.Attributes,
		OtelTraceID: r.OtelTraceID, OtelSpanID: r.OtelSpanID, OtelParentSpanID: r.OtelParentSpanID,
	}
}

func (d *diskBuffer) from(r *BufferEvent) {
	*d = diskBuffer{
		Seq: r.Seq, TimeNS: r.TimeNS, Source: r.Source, Event: r.Event, BufferID: r.BufferID,
		ParentID: r.ParentID,
		Class:    r.Class, Space: r.Space, Device: r.Device,
		CapacityBytes: nullable(&r.CapacityBytes), ResidentBytes: nullable(&r.ResidentBytes),
		DeltaBytes: r.DeltaBytes, DeltaResidentBytes: nullable(&r.DeltaResidentBytes),
		Estimated: r.Estimated,
		Job:       r.Job, Partition: r.Partition, Worker: r.Worker, Stage: r.Stage, SpanID: r.SpanID,
	}
}

func (d *diskQueue) from(r *QueueEvent) {
	*d = diskQueue{
		Seq: r.Seq, TimeNS: r.TimeNS, Source: r.Source, Resource: r.Resource, Event: r.Event,
		Job: r.Job, Partition: r.Partition, Worker: r.Worker, Priority: r.Priority,
		Amount:     r.Amount,
		LevelAfter: nullable(&r.LevelAfter), WaitingAfter: nullable(&r.WaitingAfter),
		SpanID: r.SpanID,
	}
}

func (d *diskSample) from(r *Sample) {
	*d = diskSample{TimeNS: r.TimeNS, Source: r.Source, Metric: r.Metric, Value: r.Value}
}
