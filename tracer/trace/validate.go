package trace

import (
	"errors"
	"fmt"
)

// Severity of a violation.
type Severity string

// Severities: an error breaks an invariant; a warning is a break that the trace's own counted losses explain.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Violation is one broken invariant of a trace.
type Violation struct {
	Rule     string   `json:"rule"`  // the rule's id, stable
	Table    string   `json:"table"` // manifest, spans, buffers, queues or samples
	Seq      int64    `json:"seq"`   // of the event; for samples the row; Null where there is none
	Severity Severity `json:"severity"`
	Text     string   `json:"text"` // one sentence
}

// String is the violation in one line.
func (v Violation) String() string {
	at := v.Table
	if v.Seq != Null {
		at = fmt.Sprintf("%s seq %d", v.Table, v.Seq)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", v.Severity, at, v.Text, v.Rule)
}

// Validate checks every invariant of a trace and returns the first max violations (all of them for max <= 0), in the
// order in which they are met. The error is about reading only.
func Validate(t *Trace, max int) ([]Violation, error) {
	return nil, errors.New("trace.Validate: to be written")
}
