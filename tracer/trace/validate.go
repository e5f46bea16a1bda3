package trace

import (
	"fmt"
	"slices"
)

// Severity of a violation.
type Severity string

// Severities: an error breaks an invariant; a warning is a break that the trace's own counted
// losses explain.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Violation is one broken invariant of a trace.
type Violation struct {
	Rule     string   `json:"rule"`  // the rule's id, stable
	Table    string   `json:"table"` // manifest, spans, buffers, queues or samples
	Seq      int64    `json:"seq"`   // of the event; for samples the row, from 0; Null where there is none
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

// Rule is one invariant that Validate checks.
type Rule struct {
	ID     string
	Doc    string
	ByLoss bool // missing events can break it: a warning in a trace that counts losses
}

// Rules are all invariants, in the order of the documentation.
func Rules() []Rule { return slices.Clone(rules) }

var rules = []Rule{
	{
		"manifest-word",
		"words of the manifest are known: origin, anchor, ends, kinds, setting sources", false,
	},
	{"manifest-name", "resources, sources and metrics have names, each of its own", false},
	{
		"manifest-range", "capacities, loss counts and byte counts of the manifest are not negative",
		false,
	},
	{"seq-order", "seq rises strictly within a table", false},
	{"seq-unique", "no two events of the trace, ends of spans included, share a seq", false},
	{"time-order", "time does not fall as seq rises", false},
	{"time-range", "times of a recorded or simulated trace are not negative", false},
	{"owner-range", "job, partition, worker and device are -1 or more", false},
	{
		"word", "events, kinds, spaces and statuses are words of the schema; no class is empty",
		false,
	},
	{"source-listed", "sources are listed in the manifest", false},
	{"resource-listed", "resources are listed in the manifest", false},
	{"metric-listed", "metrics are listed in the manifest", false},
	{"sample-finite", "sample values are finite", false},
	{"span-id", "span ids are 1 or more, each of its own", false},
	{"span-parent", "a span's parent is there and did not begin later", true},
	{
		"span-end", "a span ends after it begins, with end_seq and end_ns both there or both null",
		false,
	},
	{"span-open", "a trace whose process finished has no open span", true},
	{"span-range", "cpu_ns, bytes and threads of spans are not negative", false},
	{"span-attributes", "attributes are one JSON object", false},
	{"span-otel", "OpenTelemetry ids are hexadecimal, of their length", false},
	{"span-known", "the span that a buffer or queue event names is there", true},
	{"buffer-id", "buffer ids are 1 or more and never used again", false},
	{"buffer-alloc", "a buffer's first event is its alloc", true},
	{"buffer-freed", "nothing happens to a buffer after its free", false},
	{"double-free", "a buffer is freed once", false},
	{"buffer-time", "times of one buffer's events rise (strictly, where recorded)", false},
	{
		"buffer-space", "device buffers name their device; a buffer keeps its space, but for pinning",
		false,
	},
	{
		"buffer-range", "capacity and resident bytes are not negative, resident not above capacity",
		false,
	},
	{"buffer-delta", "delta_bytes and delta_resident_bytes follow from the buffer's events", true},
	{"buffer-parent", "a buffer's parent is live from before its alloc until after its free", true},
	{"buffer-children", "children fit into their parent's capacity", true},
	{"live-negative", "live bytes are never negative", true},
	{"queue-time", "times of one resource's events rise (strictly, where recorded)", false},
	{"queue-amount", "amounts are positive, and 1 where the resource does not count bytes", false},
	{"queue-level", "level_after is the level before, plus or minus the amount", true},
	{"queue-capacity", "level_after stays between 0 and the capacity", true},
	{"queue-waiting", "waiting_after is not negative", false},
	{
		"queue-pairing",
		"acquire follows request, sent send; release, recv, cancel follow these, by one owner",
		true,
	},
}

// Validate checks every invariant of a trace and returns the first limit violations (all of them for
// limit <= 0), in the order in which they are met: manifest, spans, buffers and queues by seq,
// samples. The error is about reading only.
func Validate(t *Trace, limit int) ([]Violation, error) {
	v := newValidator(t, limit)
	v.manifest()
	for _, check := range []func() error{v.spans, v.events, v.samples} {
		if v.full() {
			break
		}
		if err := check(); err != nil {
			return v.found, err
		}
	}
	if v.full() {
		v.found = v.found[:limit]
	}
	return v.found, nil
}

// validator holds what the rules need to know of the events so far.
type validator struct {
	t        *Trace
	limit    int
	byLoss   map[string]bool // rules that the trace's losses may explain
	found    []Violation
	strict   bool // times of one buffer or resource must rise, not only not fall
	negative bool // times may be negative

	sources   map[string]bool
	resources map[string]*resourceState
	metrics   map[string]bool

	spanBegin map[int64]int64 // span id to begin_ns
	spanSeqs  []order         // begins and ends, by seq
	buffers   map[int64]*bufferState
	ledger    ledger
	live      map[int64]int64 // live bytes: by device, None for the host
}

func newValidator(t *Trace, limit int) *validator {
	v := &validator{
		t: t, limit: limit, byLoss: map[string]bool{},
		strict: t.Manifest.Origin == OriginRecorded, negative: t.Manifest.Origin == OriginImported,
		sources: map[string]bool{}, resources: map[string]*resourceState{},
		metrics:   map[string]bool{},
		spanBegin: map[int64]int64{}, buffers: map[int64]*bufferState{}, ledger: ledger{},
		live: map[int64]int64{},
	}
	if v.lossy() {
		for _, r := range rules {
			v.byLoss[r.ID] = r.ByLoss
		}
	}
	return v
}

// lossy tells whether events are missing, and counted. A living writer's trace ends wherever it was
// read.
func (v *validator) lossy() bool {
	for _, l := range v.t.Manifest.Loss {
		if l.Count > 0 && l.Reason != "words_full" && l.Reason != "attributes_cut" {
			return true
		}
	}
	return v.t.Live
}

func (v *validator) full() bool { return v.limit > 0 && len(v.found) >= v.limit }

// report notes a violation of rule.
func (v *validator) report(rule, table string, seq int64, format string, args ...any) {
	severity := SeverityError
	if v.byLoss[rule] {
		severity = SeverityWarning
	}
	v.found = append(v.found, Violation{
		Rule: rule, Table: table, Seq: seq, Severity: severity,
		Text: fmt.Sprintf(format, args...),
	})
}

// row is what events of all tables have in common.
type row struct {
	table                          string
	seq, time                      int64
	source                         string
	job, partition, worker, device int64
}

// common checks what holds for the events of every table.
func (v *validator) common(r row) {
	if r.time < 0 && !v.negative {
		v.report("time-range", r.table, r.seq, "time %d is before the trace began", r.time)
	}
	if !v.sources[r.source] {
		v.report("source-listed", r.table, r.seq, "source %q is not in the manifest", r.source)
	}
	for _, x := range [...]struct {
		name  string
		value int64
	}{{"job", r.job}, {"partition", r.partition}, {"worker", r.worker}, {"device", r.device}} {
		if x.value < None {
			v.report("owner-range", r.table, r.seq, "%s is %d; none is -1", x.name, x.value)
		}
	}
}

// word checks that a word is one of the schema's.
func (v *validator) word(table string, seq int64, column, word string, known []string) {
	if !slices.Contains(known, word) {
		v.report("word", table, seq, "%s %q is not one of %v", column, word, known)
	}
}

// samples checks the samples.
func (v *validator) samples() error {
	n, last := int64(0), Null
	for s, err := range v.t.Samples() {
		if err != nil || v.full() {
			return err
		}
		v.common(row{"samples", n, s.TimeNS, s.Source, None, None, None, None})
		if s.TimeNS < last {
			v.report("time-order", "samples", n, "time %d comes after %d", s.TimeNS, last)
		}
		if !v.metrics[s.Metric] {
			v.report("metric-listed", "samples", n, "metric %q is not in the manifest", s.Metric)
		}
		if s.Value-s.Value != 0 { // NaN or infinite
			v.report("sample-finite", "samples", n, "%s is %v", s.Metric, s.Value)
		}
		last = s.TimeNS
		n++
	}
	return nil
}
