// Package otlp sends spans to an OpenTelemetry collector, by gRPC or HTTP, beside the recording.
//
// A collector that is down, slow or hanging never blocks or slows the program: spans wait in a
// bounded queue, what does not fit or cannot be delivered is dropped and counted, and the last
// error is kept. The standard OTEL_ variables say where to and how; without
// OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT nothing is sent.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Options bound an Exporter. The zero value works.
type Options struct {
	Endpoint      string        // for Stats
	QueueSize     int           // spans that may wait; 0: 65536
	BatchSize     int           // spans sent at once; 0: 512
	Delay         time.Duration // how long a span may wait for others; 0: 1 s
	ExportTimeout time.Duration // of one batch, retries included; 0: 10 s
	DrainTimeout  time.Duration // of Shutdown; 0: 5 s
}

// Stats counts spans.
type Stats struct {
	Endpoint  string
	Spans     int64  // ended and meant for the collector
	Delivered int64  // of these, taken by it
	Dropped   int64  // of these, neither delivered nor waiting
	LastError string // why a batch was not delivered, or what else went wrong; "" for nothing
}

// Exporter is a SpanProcessor that queues ended spans and sends them in batches from a goroutine of
// its own. A nil *Exporter has empty Stats.
type Exporter struct {
	opts  Options
	sink  sdktrace.SpanExporter
	queue chan sdktrace.ReadOnlySpan

	spans, delivered, dropped atomic.Int64

	stop     chan struct{} // closed by Shutdown
	done     chan struct{} // closed when the goroutine has left
	cancel   context.CancelFunc
	stopOnce sync.Once
	ended    atomic.Bool // Shutdown has begun
	left     atomic.Bool // the goroutine has left

	mu      sync.Mutex
	lastErr error
}

var _ sdktrace.SpanProcessor = (*Exporter)(nil)

// New makes an Exporter that sends to sink, which it shuts down in the end.
func New(sink sdktrace.SpanExporter, opts Options) *Exporter {
	opts.QueueSize = orDefault(opts.QueueSize, 1<<16)
	opts.BatchSize = min(orDefault(opts.BatchSize, 512), opts.QueueSize)
	opts.Delay = orDefault(opts.Delay, time.Second)
	opts.ExportTimeout = orDefault(opts.ExportTimeout, 10*time.Second)
	opts.DrainTimeout = orDefault(opts.DrainTimeout, 5*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	e := &Exporter{
		opts: opts, sink: sink, queue: make(chan sdktrace.ReadOnlySpan, opts.QueueSize),
		stop: make(chan struct{}), done: make(chan struct{}), cancel: cancel,
	}
	go e.run(ctx)
	return e
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// OnStart implements sdktrace.SpanProcessor: only whole spans are sent.
func (e *Exporter) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd queues a span; it never waits.
func (e *Exporter) OnEnd(s sdktrace.ReadOnlySpan) {
	e.spans.Add(1)
	if e.ended.Load() {
		e.drop(1, errors.New("span ended after the exporter was shut down"))
		return
	}
	select {
	case e.queue <- s:
	default:
		e.drop(1, nil)
	}
	if e.left.Load() { // shut down in between: nobody takes from the queue any more
		e.countLeft()
	}
}

func (e *Exporter) drop(n int, why error) {
	e.dropped.Add(int64(n))
	e.mu.Lock()
	defer e.mu.Unlock()
	if why != nil {
		e.lastErr = why
	} else if e.lastErr == nil {
		e.lastErr = fmt.Errorf("queue of %d spans is full", e.opts.QueueSize)
	}
}

// complain keeps an error of the libraries. What they drop is counted by what they return.
func (e *Exporter) complain(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lastErr = err
}

// run sends batches until Shutdown, then what is left.
func (e *Exporter) run(ctx context.Context) {
	defer close(e.done)
	batch := make([]sdktrace.ReadOnlySpan, 0, e.opts.BatchSize)
	tick := time.NewTicker(e.opts.Delay)
	defer tick.Stop()
	for {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
			if len(batch) == cap(batch) {
				batch = e.send(ctx, batch)
			}
		case <-tick.C:
			batch = e.send(ctx, batch)
		case <-e.stop:
			e.drain(ctx, batch)
			return
		}
	}
}

// drain sends what waits; once ctx is over the rest only gets counted.
func (e *Exporter) drain(ctx context.Context, batch []sdktrace.ReadOnlySpan) {
	for {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
			if len(batch) == cap(batch) {
				batch = e.send(ctx, batch)
			}
		default:
			e.send(ctx, batch)
			return
		}
	}
}

// send delivers a batch or drops it, and gives the empty batch back.
func (e *Exporter) send(ctx context.Context, batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	if err := ctx.Err(); err != nil {
		e.drop(len(batch), e.orLast(errors.New("shut down before the collector took the span")))
		return batch[:0]
	}
	ctx, cancel := context.WithTimeout(ctx, e.opts.ExportTimeout)
	defer cancel()
	if err := e.sink.ExportSpans(ctx, batch); err != nil {
		e.drop(len(batch), err)
	} else {
		e.delivered.Add(int64(len(batch)))
	}
	clear(batch)
	return batch[:0]
}

// orLast keeps an earlier error: it says more than that time was up.
func (e *Exporter) orLast(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lastErr != nil {
		return e.lastErr
	}
	return err
}

// Shutdown sends what waits, for as long as ctx and Options.DrainTimeout allow; the rest is dropped
// and counted.
func (e *Exporter) Shutdown(ctx context.Context) error {
	var err error
	e.stopOnce.Do(func() {
		e.ended.Store(true)
		ctx, cancel := context.WithTimeout(ctx, e.opts.DrainTimeout)
		defer cancel()
		close(e.stop)
		select {
		case <-e.done:
		case <-ctx.Done():
		}
		e.cancel()
		if err = e.sink.Shutdown(ctx); err != nil {
			err = fmt.Errorf("shut down span exporter: %w", err)
		}
		<-e.done // the batch under way sees its context end
		e.left.Store(true)
		e.countLeft()
	})
	return err
}

// countLeft drops spans that ended while Shutdown was under way.
func (e *Exporter) countLeft() {
	for {
		select {
		case <-e.queue:
			e.drop(1, e.orLast(errors.New("span ended while the exporter was shut down")))
		default:
			return
		}
	}
}

// ForceFlush implements sdktrace.SpanProcessor. It does nothing: spans go out within Options.Delay,
// or at Shutdown.
func (e *Exporter) ForceFlush(context.Context) error { return nil }

// Stats counts up to now.
func (e *Exporter) Stats() Stats {
	if e == nil {
		return Stats{}
	}
	s := Stats{
		Endpoint: e.opts.Endpoint, Spans: e.spans.Load(),
		Delivered: e.delivered.Load(), Dropped: e.dropped.Load(),
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lastErr != nil {
		s.LastError = e.lastErr.Error()
	}
	return s
}

// String is the sentence to print after a run.
func (s Stats) String() string {
	if s.Endpoint == "" {
		return "no collector"
	}
	text := fmt.Sprintf("%d spans to %s: %d delivered, %d dropped",
		s.Spans, s.Endpoint, s.Delivered, s.Dropped)
	if s.LastError != "" {
		text += ": " + s.LastError
	}
	return text
}
