package journal

import "encoding/binary"

// SpanExt is what a KindSpanBegin or KindSpanEnd record carries beyond its fixed fields.
type SpanExt struct {
	TraceID      [16]byte // OpenTelemetry's; begin only
	SpanID       [8]byte
	ParentSpanID [8]byte // zero for a root
	Attributes   []byte  // one JSON object, or empty; those of the end come on top of those of the begin
	Cut          int     // attributes left out because they did not fit
}

// Layout of the extension: ids (begin only), length of the attributes, how many were cut, the
// attributes.
const (
	spanIDBytes   = 16 + 8 + 8
	spanTailBytes = 4

	// MaxSpanAttributes is how many bytes of attributes a span's begin or end can carry.
	MaxSpanAttributes = MaxExt - spanIDBytes - spanTailBytes
)

// AppendSpanBegin appends the extension of a KindSpanBegin record to dst. x.Attributes must not be
// longer than MaxSpanAttributes.
func AppendSpanBegin(dst []byte, x *SpanExt) []byte {
	dst = append(dst, x.TraceID[:]...)
	dst = append(dst, x.SpanID[:]...)
	dst = append(dst, x.ParentSpanID[:]...)
	return AppendSpanEnd(dst, x)
}

// AppendSpanEnd appends the extension of a KindSpanEnd record to dst; of x only Attributes and Cut
// count.
func AppendSpanEnd(dst []byte, x *SpanExt) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(x.Attributes)))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(min(x.Cut, 1<<16-1)))
	return append(dst, x.Attributes...)
}

// DecodeSpan reads a span record's extension; Attributes point into it. ok is false where it makes
// no sense (damage). Stream and threads of a begin are the record's X and Y, cpu ns and bytes of an
// end likewise; null is math.MinInt64. A record without extension has none of this, which is fine.
func DecodeSpan(e *Entry) (x SpanExt, ok bool) {
	b := e.Extension
	if len(b) == 0 {
		return x, true
	}
	if e.Kind == KindSpanBegin {
		if len(b) < spanIDBytes {
			return x, false
		}
		copy(x.TraceID[:], b)
		copy(x.SpanID[:], b[16:])
		copy(x.ParentSpanID[:], b[24:])
		b = b[spanIDBytes:]
	}
	if len(b) < spanTailBytes {
		return x, false
	}
	n := int(binary.LittleEndian.Uint16(b))
	x.Cut = int(binary.LittleEndian.Uint16(b[2:]))
	if b = b[spanTailBytes:]; n > len(b) {
		return x, false
	}
	x.Attributes = b[:n]
	return x, true
}
