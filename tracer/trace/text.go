package trace

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// The text form, for tests and for people: manifest keys as directives, then one line an event in
// the order of the trace. A line writes only what differs from what the lines before it let expect
// (see docs/format.md):
//
//	process_end finished
//	source main
//	resource permit kind=permit unit=permit capacity=2
//	@100 queue request permit job=0 partition=0
//	@100 queue acquire permit job=0 partition=0
//	@120 span begin 1 stage=synthesis job=0 partition=0
//	@130 buffer alloc 1 class=a capacity_bytes=4096 job=0 partition=0
//	@150 buffer fill 1 resident_bytes=4096
//	@200 span end 1 status=ok
//	@210 buffer free 1
//	@220 sample process.memory.usage 123456

// textState is what the lines so far let expect of the next one; reading and writing keep it in the
// same way.
type textState struct {
	source  string
	nextSeq int64
	ledger  ledger
	last    map[int64]BufferEvent // of each buffer
	levels  map[string][2]int64   // by resource: level, waiting
}

func newTextState(m *Manifest) *textState {
	s := &textState{
		source: "main", nextSeq: 1, ledger: ledger{},
		last: map[int64]BufferEvent{}, levels: map[string][2]int64{},
	}
	if len(m.Sources) > 0 {
		s.source = m.Sources[0].Name
	}
	return s
}

// sequence notes that an event took seq.
func (s *textState) sequence(seq int64) {
	if seq != Null {
		s.nextSeq = seq + 1
	}
}

func (s *textState) expectSpan(id, time int64) Span {
	return Span{
		BeginSeq: s.nextSeq, EndSeq: Null, Source: s.source, SpanID: id, Kind: KindStage,
		Job: None, Partition: None, Worker: None, Device: None, Stream: Null, Threads: Null,
		BeginNS: time, EndNS: Null, CPUNS: Null, Bytes: Null,
	}
}

func (s *textState) expectBuffer(id, time int64, event string) BufferEvent {
	e := BufferEvent{Space: SpaceHost, Device: None, Job: None, Partition: None, Worker: None}
	if prev, ok := s.last[id]; ok {
		e = prev
	}
	e.Seq, e.TimeNS, e.Event, e.BufferID, e.Source = s.nextSeq, time, event, id, s.source
	return e
}

func (s *textState) expectQueue(resource, event string, time int64) QueueEvent {
	return QueueEvent{
		Seq: s.nextSeq, TimeNS: time, Source: s.source, Resource: resource, Event: event,
		Job: None, Partition: None, Worker: None, Amount: 1,
	}
}

// expectLevels fills the levels of e from those after the event before.
func (s *textState) expectLevels(e *QueueEvent) {
	at := s.levels[e.Resource]
	level, waiting := levelStep(e.Event)
	e.LevelAfter, e.WaitingAfter = at[0]+level*e.Amount, at[1]+waiting
}

func (s *textState) recordQueue(e *QueueEvent) {
	s.levels[e.Resource] = [2]int64{e.LevelAfter, e.WaitingAfter}
	s.sequence(e.Seq)
}

func (s *textState) recordBuffer(e *BufferEvent) {
	s.ledger.record(e)
	s.last[e.BufferID] = *e
	s.sequence(e.Seq)
}

// token is a word of a line: a bare value, or key=value.
type token struct {
	key, value string
	quoted     bool
}

// splitLine cuts a line into tokens. Values with other than plain characters are in "double quotes"
// (as in Go) or `back quotes`; # starts a comment.
func splitLine(line string) ([]token, error) {
	var tokens []token
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' {
			return tokens, nil
		}
		var t token
		if line[0] != '"' && line[0] != '`' {
			n := strings.IndexAny(line, "= \t\"`")
			if n >= 0 && line[n] == '=' {
				t.key, line = line[:n], line[n+1:]
			}
		}
		var err error
		if line, err = t.takeValue(line); err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
	}
}

// takeValue reads t's value from the front of line and returns what follows.
func (t *token) takeValue(line string) (string, error) {
	if line == "" || line[0] != '"' && line[0] != '`' {
		n := strings.IndexAny(line, " \t")
		if n < 0 {
			n = len(line)
		}
		t.value = line[:n]
		return line[n:], nil
	}
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", fmt.Errorf("value of %q: the quotes do not close", t.key)
	}
	t.value, err = strconv.Unquote(quoted)
	t.quoted = true
	return line[len(quoted):], err
}

// quoteValue writes a string so that takeValue gives it back.
func quoteValue(s string) string {
	if s == "null" || s == "" {
		return strconv.Quote(s)
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+-%,@"
	switch {
	case strings.Trim(s, plain) == "":
		return s
	case strings.ContainsAny(s, `"\`) && strconv.CanBackquote(s):
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

// setField stores a token's value into a field of a row.
func setField(f reflect.Value, t token) error {
	var err error
	switch f.Kind() {
	case reflect.Int64, reflect.Int:
		var n int64
		if n, err = Null, nil; t.value != "null" {
			n, err = strconv.ParseInt(t.value, 10, 64)
		}
		f.SetInt(n)
	case reflect.Float64:
		var x float64
		x, err = strconv.ParseFloat(t.value, 64)
		f.SetFloat(x)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(t.value)
		f.SetBool(b)
	case reflect.String:
		f.SetString(t.value)
	}
	if err != nil {
		return fmt.Errorf("%s=%s is not a value of type %s", t.key, t.value, f.Kind())
	}
	return nil
}

// fieldText writes the value of a field.
func fieldText(f reflect.Value) string {
	switch f.Kind() {
	case reflect.Int64, reflect.Int:
		if f.Int() == Null {
			return "null"
		}
		return strconv.FormatInt(f.Int(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(f.Float(), 'g', -1, 64)
	case reflect.Bool:
		return strconv.FormatBool(f.Bool())
	}
	return quoteValue(f.String())
}
