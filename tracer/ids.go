package tracer

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"

	oteltrace "go.opentelemetry.io/otel/trace"
)

// idGenerator makes OpenTelemetry ids that hold our own: a span id is a number of this recorder and
// the span's number in the journal, so that a parent is found without a table.
type idGenerator struct {
	nonce uint32 // never 0
	next  atomic.Uint32
}

func newIDGenerator() *idGenerator { return &idGenerator{nonce: rand.Uint32() | 1} }

// NewIDs implements the SDK's IDGenerator.
func (g *idGenerator) NewIDs(context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	var t oteltrace.TraceID
	binary.BigEndian.PutUint64(t[:], rand.Uint64()|1)
	binary.BigEndian.PutUint64(t[8:], rand.Uint64())
	return t, g.span()
}

// NewSpanID implements the SDK's IDGenerator.
func (g *idGenerator) NewSpanID(context.Context, oteltrace.TraceID) oteltrace.SpanID { return g.span() }

func (g *idGenerator) span() (s oteltrace.SpanID) {
	binary.BigEndian.PutUint32(s[:], g.nonce)
	binary.BigEndian.PutUint32(s[4:], g.next.Add(1))
	return s
}

// number is the span's number in the journal, 0 for a span that is not of this recorder.
func (g *idGenerator) number(s oteltrace.SpanID) uint32 {
	if binary.BigEndian.Uint32(s[:]) != g.nonce {
		return 0
	}
	return binary.BigEndian.Uint32(s[4:])
}
