package tracer

import (
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"highwater/tracer/journal"
)

// attributeSets are attributes from several places that make one JSON object.
type attributeSets [3][]attribute.KeyValue

// maxValueBytes bounds one attribute's text; a longer one is cut, and counted as cut.
const maxValueBytes = 512

// appendAttributes appends the JSON object of the attributes to dst, which has room for
// journal.MaxExt bytes, and counts those that did not fit or had to be shortened. No attributes
// give no bytes.
func appendAttributes(dst []byte, sets attributeSets) (out []byte, cut int) {
	empty := true
	for _, set := range sets {
		for i := range set {
			start := len(dst)
			sep := byte(',')
			if empty {
				sep = '{'
			}
			var shortened bool
			dst, shortened = appendAttribute(append(dst, sep), &set[i])
			if len(dst)+1 > journal.MaxSpanAttributes {
				dst = dst[:start]
				cut++
				continue
			}
			empty = false
			if shortened {
				cut++
			}
		}
	}
	if !empty {
		dst = append(dst, '}')
	}
	return dst, cut
}

func appendAttribute(dst []byte, kv *attribute.KeyValue) (out []byte, shortened bool) {
	dst, shortened = appendText(dst, string(kv.Key))
	dst = append(dst, ':')
	switch v := kv.Value; v.Type() {
	case attribute.BOOL:
		return strconv.AppendBool(dst, v.AsBool()), shortened
	case attribute.INT64:
		return strconv.AppendInt(dst, v.AsInt64(), 10), shortened
	case attribute.FLOAT64:
		return appendFloat(dst, v.AsFloat64()), shortened
	case attribute.BOOLSLICE, attribute.INT64SLICE, attribute.STRINGSLICE, attribute.FLOAT64SLICE:
		b, err := json.Marshal(v.AsInterface())
		if err == nil && len(b) <= maxValueBytes {
			return append(dst, b...), shortened
		}
	}
	dst, short := appendText(dst, kv.Value.String())
	return dst, shortened || short
}

// appendFloat writes what JSON can; infinities and NaN become text.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.AppendQuote(dst, strconv.FormatFloat(f, 'g', -1, 64))
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

const hexDigits = "0123456789abcdef"

// appendText writes a JSON string.
func appendText(dst []byte, s string) (out []byte, shortened bool) {
	if len(s) > maxValueBytes {
		s, shortened = s[:maxValueBytes], true
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 {
			s = s[:len(s)-1]
		}
	}
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		}
		i++
	}
	return append(dst, '"'), shortened
}

// eventAttributes keeps a span's events, by name: the tables have no rows for them.
func eventAttributes(events []sdktrace.Event) []attribute.KeyValue {
	if len(events) == 0 {
		return nil
	}
	kv := make([]attribute.KeyValue, 0, 1+len(events))
	names := make([]string, 0, len(events))
	for _, e := range events {
		names = append(names, e.Name)
		for _, a := range e.Attributes {
			key := attribute.Key("otel.event." + e.Name + "." + string(a.Key))
			kv = append(kv, attribute.KeyValue{Key: key, Value: a.Value})
		}
	}
	return append(kv, attribute.StringSlice("otel.events", names))
}

// lateAttributes drops what is in the trace already: columns, and attributes that did not change
// since the start.
func lateAttributes(all, start []attribute.KeyValue) []attribute.KeyValue {
	var late []attribute.KeyValue
	for _, kv := range all {
		if columnAttributes[kv.Key] || contains(start, kv) {
			continue
		}
		late = append(late, kv)
	}
	return late
}

func contains(set []attribute.KeyValue, kv attribute.KeyValue) bool {
	for _, x := range set {
		if x.Key == kv.Key && x.Value == kv.Value {
			return true
		}
	}
	return false
}
