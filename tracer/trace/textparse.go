package trace

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// ParseText reads the text form of a trace (docs/format.md). The error names the line.
func ParseText(text string) (*Data, error) {
	p := &textReader{data: &Data{Manifest: textManifest()}, open: map[int64]int{}}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(strings.TrimLeft(line, " \t"), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("parse text trace: line %d: %w", n+1, err)
		}
	}
	if err := p.finishManifest(); err != nil {
		return nil, fmt.Errorf("parse text trace: %w", err)
	}
	return p.data, nil
}

// textReader is a trace being read, and what the next line may leave out.
type textReader struct {
	data     *Data
	manifest manifestText
	state    *textState    // nil until the first event
	open     map[int64]int // span id to row
}

func (p *textReader) line(line string) error {
	if line[0] != '@' {
		if p.state != nil {
			return fmt.Errorf("%q: manifest directives stand before the first event", line)
		}
		return p.directive(line)
	}
	if p.state == nil {
		if err := p.finishManifest(); err != nil {
			return err
		}
		p.state = newTextState(&p.data.Manifest)
	}
	tokens, err := splitLine(line)
	if err != nil {
		return err
	}
	if len(tokens) < 4 || tokens[0].key+tokens[1].key+tokens[2].key+tokens[3].key != "" {
		return fmt.Errorf("want @TIME TABLE EVENT NAME [column=value …], have %q", line)
	}
	time, err := strconv.ParseInt(tokens[0].value[1:], 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not @ and a time in nanoseconds", tokens[0].value)
	}
	return p.event(time, tokens[1].value, tokens[2].value, tokens[3:])
}

// event reads one event; rest begins with the id, resource or value.
func (p *textReader) event(time int64, table, event string, rest []token) error {
	name, keys := rest[0].value, rest[1:]
	switch table {
	case "queue":
		return p.queue(time, event, name, keys)
	case "sample":
		return p.sample(time, event, rest[0], keys)
	case "span", "buffer":
	default:
		return fmt.Errorf("unknown table %q: want span, buffer, queue or sample", table)
	}
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return fmt.Errorf("%s is not a %s id", name, table)
	}
	switch {
	case table == "buffer":
		return p.buffer(time, event, id, keys)
	case event == "begin":
		return p.spanBegin(time, id, keys)
	case event == "end":
		return p.spanEnd(time, id, keys)
	}
	return fmt.Errorf("unknown span event %q: want begin or end", event)
}

func (p *textReader) spanBegin(time, id int64, keys []token) error {
	row := p.state.expectSpan(id, time)
	given, err := applyKeys(&row, spanColumns, keys)
	if err != nil {
		return err
	}
	if !given["name"] {
		row.Name = row.Stage
	}
	p.open[id] = len(p.data.Spans)
	p.data.Spans = append(p.data.Spans, row)
	p.state.sequence(row.BeginSeq)
	return nil
}

func (p *textReader) spanEnd(time, id int64, keys []token) error {
	i, ok := p.open[id]
	if !ok {
		return fmt.Errorf("span %d ends but is not open", id)
	}
	delete(p.open, id)
	row := &p.data.Spans[i]
	row.EndNS, row.EndSeq = time, p.state.nextSeq
	_, err := applyKeys(row, spanColumns, keys)
	p.state.sequence(row.EndSeq)
	return err
}

func (p *textReader) buffer(time int64, event string, id int64, keys []token) error {
	row := p.state.expectBuffer(id, time, event)
	given, err := applyKeys(&row, bufferColumns, keys)
	if err != nil {
		return err
	}
	bytes, resident := p.state.ledger.deltas(&row)
	if !given["delta_bytes"] {
		row.DeltaBytes = bytes
	}
	if !given["delta_resident_bytes"] {
		row.DeltaResidentBytes = resident
	}
	p.data.Buffers = append(p.data.Buffers, row)
	p.state.recordBuffer(&row)
	return nil
}

func (p *textReader) queue(time int64, event, resource string, keys []token) error {
	row := p.state.expectQueue(resource, event, time)
	given, err := applyKeys(&row, queueColumns, keys)
	if err != nil {
		return err
	}
	expected := row
	p.state.expectLevels(&expected)
	if !given["level_after"] {
		row.LevelAfter = expected.LevelAfter
	}
	if !given["waiting_after"] {
		row.WaitingAfter = expected.WaitingAfter
	}
	p.data.Queues = append(p.data.Queues, row)
	p.state.recordQueue(&row)
	return nil
}

func (p *textReader) sample(time int64, metric string, value token, keys []token) error {
	row := Sample{TimeNS: time, Source: p.state.source, Metric: metric}
	value.key = "value"
	if _, err := applyKeys(&row, sampleColumns, append([]token{value}, keys...)); err != nil {
		return err
	}
	p.data.Samples = append(p.data.Samples, row)
	return nil
}

// applyKeys stores column=value tokens into row (a pointer to a struct) and says which columns were
// given.
func applyKeys(row any, columns []column, keys []token) (map[string]bool, error) {
	given := map[string]bool{}
	for _, t := range keys {
		i := columnIndex(columns, t.key)
		if i < 0 {
			return nil, fmt.Errorf("unknown column %q in %s=%s", t.key, t.key, t.value)
		}
		if given[t.key] {
			return nil, fmt.Errorf("column %q stands twice", t.key)
		}
		given[t.key] = true
		if err := setField(reflect.ValueOf(row).Elem().Field(i), t); err != nil {
			return nil, err
		}
	}
	return given, nil
}

func columnIndex(columns []column, name string) int {
	for i, c := range columns {
		if c.name == name {
			return i
		}
	}
	return -1
}
