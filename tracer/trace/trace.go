package trace

import (
	"errors"
	"iter"
)

// Trace reads a trace's tables in order, from files or from memory. A row handed out by an iterator is valid
// until the next one. An iterator that meets damage yields its error last and stops.
type Trace struct {
	Dir      string // "" for a trace in memory
	Manifest Manifest
	Live     bool // still being written, or killed and not yet recovered: read from its journal

	data *Data
}

// FromData wraps a trace in memory.
func FromData(d *Data) *Trace { return &Trace{Manifest: d.Manifest, data: d} }

// Open opens the trace directory dir: sealed (Parquet), or still being written or killed (its journal is read
// into memory as it stands, and Live is set).
func Open(dir string) (*Trace, error) { return nil, errors.New("trace.Open: to be written") }

// Close releases the files.
func (t *Trace) Close() error { return nil }

// Spans yields spans by BeginSeq.
func (t *Trace) Spans() iter.Seq2[*Span, error] { return rows(t.data.Spans) }

// Buffers yields buffer events by Seq.
func (t *Trace) Buffers() iter.Seq2[*BufferEvent, error] { return rows(t.data.Buffers) }

// Queues yields queue events by Seq.
func (t *Trace) Queues() iter.Seq2[*QueueEvent, error] { return rows(t.data.Queues) }

// Samples yields samples by time.
func (t *Trace) Samples() iter.Seq2[*Sample, error] { return rows(t.data.Samples) }

// Load reads the whole trace into memory.
func (t *Trace) Load() (*Data, error) { return t.data, nil }

func rows[T any](s []T) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for i := range s {
			if !yield(&s[i], nil) {
				return
			}
		}
	}
}
