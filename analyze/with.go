package analyze

import (
	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

// SummariseWith is Summarise with one more observer in the same walk, so that a large trace is read
// once. more gets the builder whose ledger its observer may read: the builder has taken each step
// before the observer does.
func SummariseWith(
	t *trace.Trace, more func(*memory.Builder) memory.Observer,
) (*Summary, error) {
	b := memory.NewBuilder(&t.Manifest, false)
	f := newFigures(t, b)
	if err := memory.Walk(t, b, f, more(b)); err != nil {
		return nil, err
	}
	return f.summary(), nil
}
