package journal

// SpanExt is what a KindSpanBegin or KindSpanEnd record carries beyond its fixed fields.
type SpanExt struct {
	TraceID      [16]byte // OpenTelemetry's; begin only
	SpanID       [8]byte
	ParentSpanID [8]byte // zero for a root
	Attributes   []byte  // one JSON object, or empty; those of the end come on top of those of the begin
	Cut          int     // attributes left out because they did not fit
}

// DecodeSpan reads a span record's extension. ok is false where it makes no sense (damage). Stream and threads of a begin
// are the record's X and Y, cpu ns and bytes of an end likewise; the journal writes null as math.MinInt64.
func DecodeSpan(e *Entry) (ext SpanExt, ok bool) { return SpanExt{}, false }
