package tracer

import (
	"errors"
	"fmt"

	"highwater/tracer/trace"
)

// Close ends recording: open blocks are finished and the trace is sealed to Parquet (a joined
// source only closes its journal; the trace's creator seals). end is one of the process_end words.
// A second Close, and that of a nil Recorder, do nothing.
func (r *Recorder) Close(end, reason string) (err error) {
	if r == nil {
		return nil
	}
	r.closing.Do(func() { err = r.close(end, reason) })
	return err
}

func (r *Recorder) close(end, reason string) error {
	r.stopSpans()
	r.self.stop()
	r.note(r.j.Close())
	r.note(r.UpdateManifest(r.tellCost))
	if r.creator {
		r.note(r.seal(end, reason))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.deferred...); err != nil {
		return fmt.Errorf("close trace %s: %w", r.dir, err)
	}
	return nil
}

// tellCost writes what recording cost into the manifest; the counts of several sources add up.
func (r *Recorder) tellCost(m *trace.Manifest) {
	c := &m.Recorder
	c.Events += r.j.Stats().Events
	x := r.export.Stats()
	c.OTLPSpans += x.Spans
	c.OTLPDropped += x.Dropped
	if x.Endpoint != "" {
		c.OTLPEndpoint = x.Endpoint
	}
	if x.LastError != "" {
		c.OTLPLastError = x.LastError
	}
}

func (r *Recorder) seal(end, reason string) error {
	_, err := trace.Seal(r.dir, trace.SealOptions{ProcessEnd: end, Reason: reason, SealedBy: trace.SealedByClose})
	if err != nil {
		return fmt.Errorf("%w; what was recorded is kept: `highwater recover %s` seals it", err, r.dir)
	}
	return nil
}
