package trace

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// FormatText writes the text form: ParseText(FormatText(d)) is d.
func FormatText(d *Data) string {
	f := &textWriter{d: d, state: newTextState(&d.Manifest)}
	f.manifest()
	f.placeEnds()
	for f.next() {
	}
	return f.out.String()
}

// textWriter merges the tables into lines in the order of the trace.
type textWriter struct {
	d     *Data
	state *textState
	out   strings.Builder

	span, buffer, queue, sample int   // next rows
	ends                        []int // spans whose end has a line of its own, by EndSeq
	ended                       []bool
}

// placeEnds finds the spans whose end can stand on its own line: both ends in order, the id unique,
// the table sorted. All others write their end on the line of their begin.
func (f *textWriter) placeEnds() {
	spans := f.d.Spans
	f.ended = make([]bool, len(spans))
	ids := make(map[int64]bool, len(spans))
	for i := range spans {
		if ids[spans[i].SpanID] || i > 0 && spans[i].BeginSeq <= spans[i-1].BeginSeq {
			return
		}
		ids[spans[i].SpanID] = true
	}
	for i := range spans {
		if s := &spans[i]; s.EndSeq != Null && s.EndNS != Null && s.EndSeq > s.BeginSeq {
			f.ends, f.ended[i] = append(f.ends, i), true
		}
	}
	slices.SortStableFunc(f.ends, func(a, b int) int {
		return cmp.Compare(spans[a].EndSeq,
			spans[b].EndSeq)
	})
}

// next writes the line of the earliest row left; false when there is none.
func (f *textWriter) next() bool {
	const none = math.MaxInt64
	seq, time := int64(none), int64(none)
	var write func()
	consider := func(s, t int64, w func()) {
		if write == nil || s < seq {
			seq, time, write = s, t, w
		}
	}
	if f.span < len(f.d.Spans) {
		s := &f.d.Spans[f.span]
		consider(s.BeginSeq, s.BeginNS, f.spanBegin)
	}
	if len(f.ends) > 0 {
		s := &f.d.Spans[f.ends[0]]
		consider(s.EndSeq, s.EndNS, f.spanEnd)
	}
	if f.buffer < len(f.d.Buffers) {
		consider(f.d.Buffers[f.buffer].Seq, f.d.Buffers[f.buffer].TimeNS, f.bufferLine)
	}
	if f.queue < len(f.d.Queues) {
		consider(f.d.Queues[f.queue].Seq, f.d.Queues[f.queue].TimeNS, f.queueLine)
	}
	if f.sample < len(f.d.Samples) && (write == nil || f.d.Samples[f.sample].TimeNS < time) {
		write = f.sampleLine
	}
	if write != nil {
		write()
	}
	return write != nil
}

func (f *textWriter) spanBegin() {
	row := f.d.Spans[f.span]
	if f.ended[f.span] { // the end's own line says these
		row.EndSeq, row.EndNS, row.CPUNS, row.Bytes, row.Status = Null, Null, Null, Null, ""
	}
	f.span++
	want := f.state.expectSpan(row.SpanID, row.BeginNS)
	want.Name = row.Stage
	fmt.Fprintf(&f.out, "@%d span begin %d", row.BeginNS, row.SpanID)
	f.differences(&row, &want, spanColumns)
	f.state.sequence(row.BeginSeq)
}

func (f *textWriter) spanEnd() {
	row := &f.d.Spans[f.ends[0]]
	f.ends = f.ends[1:]
	fmt.Fprintf(&f.out, "@%d span end %d", row.EndNS, row.SpanID)
	end := Span{EndSeq: row.EndSeq, CPUNS: row.CPUNS, Bytes: row.Bytes, Status: row.Status}
	f.differences(&end, &Span{EndSeq: f.state.nextSeq, CPUNS: Null, Bytes: Null}, spanColumns)
	f.state.sequence(row.EndSeq)
}

func (f *textWriter) bufferLine() {
	row := &f.d.Buffers[f.buffer]
	f.buffer++
	want := f.state.expectBuffer(row.BufferID, row.TimeNS, row.Event)
	want.DeltaBytes, want.DeltaResidentBytes = f.state.ledger.deltas(row)
	fmt.Fprintf(&f.out, "@%d buffer %s %d", row.TimeNS, quoteValue(row.Event), row.BufferID)
	f.differences(row, &want, bufferColumns)
	f.state.recordBuffer(row)
}

func (f *textWriter) queueLine() {
	row := &f.d.Queues[f.queue]
	f.queue++
	want := f.state.expectQueue(row.Resource, row.Event, row.TimeNS)
	amount := want.Amount
	want.Amount = row.Amount
	f.state.expectLevels(&want)
	want.Amount = amount
	fmt.Fprintf(&f.out, "@%d queue %s %s", row.TimeNS, quoteValue(row.Event),
		quoteValue(row.Resource))
	f.differences(row, &want, queueColumns)
	f.state.recordQueue(row)
}

func (f *textWriter) sampleLine() {
	row := &f.d.Samples[f.sample]
	f.sample++
	value := fieldText(reflect.ValueOf(row.Value))
	fmt.Fprintf(&f.out, "@%d sample %s %s", row.TimeNS, quoteValue(row.Metric), value)
	want := *row
	want.Source = f.state.source
	f.differences(row, &want, sampleColumns)
}

// differences ends a line with the columns in which row (a pointer to a struct) is not what was
// expected.
func (f *textWriter) differences(row, want any, columns []column) {
	r, w := reflect.ValueOf(row).Elem(), reflect.ValueOf(want).Elem()
	for i, c := range columns {
		if got := fieldText(r.Field(i)); got != fieldText(w.Field(i)) {
			fmt.Fprintf(&f.out, " %s=%s", c.name, got)
		}
	}
	f.out.WriteByte('\n')
}
