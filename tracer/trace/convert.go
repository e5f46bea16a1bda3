package trace

import (
	"encoding/hex"
	"encoding/json"
	"highwater/tracer/journal"
	"math"
)

// sink takes the rows of a trace in order.
type sink interface {
	Span(*Span) error
	Buffer(*BufferEvent) error
	Queue(*QueueEvent) error
	Sample(*Sample) error
}

// dataSink gathers rows in memory.
type dataSink struct{ d *Data }

func (s dataSink) Span(r *Span) error          { s.d.Spans = append(s.d.Spans, *r); return nil }
func (s dataSink) Buffer(r *BufferEvent) error { s.d.Buffers = append(s.d.Buffers, *r); return nil }
func (s dataSink) Queue(r *QueueEvent) error   { s.d.Queues = append(s.d.Queues, *r); return nil }
func (s dataSink) Sample(r *Sample) error      { s.d.Samples = append(s.d.Samples, *r); return nil }

// converter turns merged records into rows: it gives seq, resolves words, makes ids unique over the
// trace, computes deltas, and joins the two ends of each span.
type converter struct {
	in     *journalData
	out    sink
	seq    int64
	ledger ledger
	spans  []Span // by BeginSeq; written at the end, when their ends are known
	spanAt map[int64]int
	tally  tally
	buffer BufferEvent // reused
	queue  QueueEvent
	sample Sample
}

// tally counts what a conversion found.
type tally struct {
	buffers, queues, samples, begins, ends int64
	strayEnds                              int64 // ends of spans whose begin is not there
	openSpans                              int64
	lastNS                                 int64
}

// convert writes all records of in to out.
func convert(in *journalData, out sink) (*converter, error) {
	c := &converter{
		in: in, out: out, ledger: ledger{}, spanAt: map[int64]int{},
		tally: tally{lastNS: Null},
	}
	if err := in.each(c.one); err != nil {
		return nil, err
	}
	for i := range c.spans {
		if c.spans[i].EndSeq == Null {
			c.tally.openSpans++
		}
		if err := out.Span(&c.spans[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *converter) one(n uint32, r *journal.Record) error {
	s := &c.in.sources[r.Check]
	c.tally.lastNS = r.TimeNS
	switch r.Kind {
	case journal.KindBuffer:
		return c.bufferRow(s, r)
	case journal.KindQueue:
		return c.queueRow(s, r)
	case journal.KindSample:
		c.tally.samples++
		c.sample = Sample{
			TimeNS: r.TimeNS, Source: s.head.Source, Metric: s.reader.Word(r.Word0),
			Value: math.Float64frombits(uint64(r.X)),
		}
		return c.out.Sample(&c.sample)
	case journal.KindSpanBegin:
		c.spanBegin(s, n, r)
	case journal.KindSpanEnd:
		c.spanEnd(s, n, r)
	}
	return nil
}

func (c *converter) nextSeq() int64 {
	c.seq++
	return c.seq
}

func (c *converter) bufferRow(s *journalSource, r *journal.Record) error {
	c.tally.buffers++
	e := &c.buffer
	*e = BufferEvent{
		Seq: c.nextSeq(), TimeNS: r.TimeNS, Source: s.head.Source,
		Event:    journal.Text(journal.BufferEvents, r.Event),
		BufferID: s.head.GlobalID(r.ID), ParentID: s.head.GlobalID(r.Parent),
		Class: s.reader.Word(r.Word0), Space: journal.Text(journal.Spaces, r.Space),
		Device:        int64(r.Device),
		CapacityBytes: r.X, ResidentBytes: r.Y, Estimated: r.Extra == 1,
		Job: int64(r.Job), Partition: int64(r.Partition), Worker: int64(r.Worker),
		Stage: s.reader.Word(r.Word1), SpanID: s.head.GlobalID(r.Span),
	}
	e.DeltaBytes, e.DeltaResidentBytes = c.ledger.deltas(e)
	c.ledger.record(e)
	return c.out.Buffer(e)
}

func (c *converter) queueRow(s *journalSource, r *journal.Record) error {
	c.tally.queues++
	e := &c.queue
	*e = QueueEvent{
		Seq: c.nextSeq(), TimeNS: r.TimeNS, Source: s.head.Source, Resource: s.reader.Word(r.Word0),
		Event: journal.Text(journal.QueueEvents, r.Event),
		Job:   int64(r.Job), Partition: int64(r.Partition), Worker: int64(r.Worker),
		Priority: int64(r.Extra), Amount: r.X, LevelAfter: r.Y, WaitingAfter: int64(r.Parent),
		SpanID: s.head.GlobalID(r.Span),
	}
	if r.Parent == journal.UnknownWaiting {
		e.WaitingAfter = Null
	}
	return c.out.Queue(e)
}

func (c *converter) spanBegin(s *journalSource, n uint32, r *journal.Record) {
	c.tally.begins++
	x := c.in.exts[n]
	row := Span{
		BeginSeq: c.nextSeq(), EndSeq: Null, Source: s.head.Source,
		SpanID: s.head.GlobalID(r.ID), ParentID: s.head.GlobalID(r.Parent),
		Kind:  journal.Text(journal.SpanKinds, r.Event),
		Stage: s.reader.Word(r.Word0), Name: s.reader.Word(r.Word1), Track: s.reader.Word(r.Word2),
		Job: int64(r.Job), Partition: int64(r.Partition), Worker: int64(r.Worker),
		Device: int64(r.Device),
		Stream: r.X, Threads: r.Y, BeginNS: r.TimeNS, EndNS: Null, CPUNS: Null, Bytes: Null,
		Attributes:  string(x.Attributes),
		OtelTraceID: hexID(x.TraceID[:]), OtelSpanID: hexID(x.SpanID[:]),
		OtelParentSpanID: hexID(x.ParentSpanID[:]),
	}
	c.spanAt[row.SpanID] = len(c.spans)
	c.spans = append(c.spans, row)
}

func (c *converter) spanEnd(s *journalSource, n uint32, r *journal.Record) {
	c.tally.ends++
	id := s.head.GlobalID(r.ID)
	i, ok := c.spanAt[id]
	if !ok {
		c.tally.strayEnds++
		return
	}
	delete(c.spanAt, id)
	row := &c.spans[i]
	row.EndSeq, row.EndNS = c.nextSeq(), r.TimeNS
	row.CPUNS, row.Bytes, row.Status = r.X, r.Y, journal.Text(journal.SpanStatuses, r.Event)
	row.Attributes = mergeAttributes(row.Attributes, c.in.exts[n].Attributes)
}

// mergeAttributes puts the attributes of a span's end on top of those of its begin. One that is no
// JSON object gives way.
func mergeAttributes(begin string, end []byte) string {
	if len(end) == 0 {
		return begin
	}
	var top map[string]json.RawMessage
	if begin == "" || json.Unmarshal(end, &top) != nil {
		return string(end)
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(begin), &all) != nil {
		return string(end)
	}
	for k, v := range top {
		all[k] = v
	}
	merged, err := json.Marshal(all)
	if err != nil {
		return begin
	}
	return string(merged)
}

// hexID writes an OpenTelemetry id, "" for an empty one.
func hexID(id []byte) string {
	for _, b := range id {
		if b != 0 {
			return hex.EncodeToString(id)
		}
	}
	return ""
}
