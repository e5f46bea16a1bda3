package oom

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Reader collects the events of one or more texts.
type Reader struct {
	rules  *rules
	report Report
	seen   map[string]int // events by what makes them the same one
}

// NewReader is a Reader that has read nothing.
func NewReader() *Reader {
	return &Reader{
		rules: newRules(), seen: map[string]int{},
		report: Report{Inputs: []Input{}, Events: []*Event{}, Warnings: []string{}},
	}
}

// Read reads a text to its end and adds its events. It never fails on what the text holds; the
// error is the input's own.
func (r *Reader) Read(name string, in io.Reader) error {
	input := Input{Name: name}
	c := newCollector(&input)
	s := &scanner{in: &input, rules: r.rules, out: c}
	if err := s.scan(in); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	c.flush(true)
	if s.damage != nil {
		r.warn("%s is damaged after %d bytes and was read up to there: %v", name, input.Bytes,
			s.damage)
	}
	r.report.Inputs = append(r.report.Inputs, input)
	r.add(c)
	return nil
}

// add judges what was collected of one input.
func (r *Reader) add(c *collector) {
	slices.SortStableFunc(c.kernel.done, func(a, b *raw) int {
		if c.in.Reversed {
			return cmp.Compare(b.firstNo, a.firstNo)
		}
		return cmp.Compare(a.firstNo, b.firstNo)
	})
	var kernel []*Event
	for _, raw := range c.kernel.done {
		kernel = append(kernel, raw.judge())
	}
	others := c.otherEvents(kernel)
	for _, e := range append(kernel, others...) {
		r.keep(e)
	}
	r.report.DroppedEvents += c.kernel.drop
	if c.kernel.drop > 0 {
		r.warn("%s: about %d further events were counted and not read", c.in.Name, c.kernel.drop)
	}
	if c.lost > 0 {
		r.warn("%s: %d further lines about exit statuses or failed allocations were not looked at",
			c.in.Name, c.lost)
	}
}

func (r *Reader) warn(format string, args ...any) {
	r.report.Warnings = append(r.report.Warnings, fmt.Sprintf(format, args...))
}

// keep adds an event, unless another input gave it already: logs hold the same report twice.
func (r *Reader) keep(e *Event) {
	if key := e.identity(); key != "" {
		if i, twice := r.seen[key]; twice {
			if old := r.report.Events[i]; e.Lines > old.Lines {
				r.report.Events[i] = e
			}
			return
		}
		r.seen[key] = len(r.report.Events)
	}
	r.report.Events = append(r.report.Events, e)
}

// identity is what two readings of one kill share: the kernel's own stamp, victim and its size; ""
// where the text does not give enough.
func (e *Event) identity() string {
	v := e.victim()
	if v == nil || v.PID == nil || v.AnonBytes == nil || e.UptimeNS == nil {
		return ""
	}
	return fmt.Sprint(*e.UptimeNS/1e6, e.Host, *v.PID, *v.AnonBytes)
}

// Report is what was found so far.
func (r *Reader) Report() *Report {
	out := r.report
	out.Verdict = out.verdict()
	return &out
}

// verdict is the report in one sentence.
func (r *Report) verdict() string {
	switch n := len(r.Events); n {
	case 0:
		return "No trace of an out-of-memory kill or of a failed allocation in the text."
	case 1:
		return r.Events[0].sentence()
	default:
		return fmt.Sprintf("%d events; the last: %s", n, r.Events[n-1].sentence())
	}
}

func (e *Event) sentence() string { return e.Cause.Sentence }
