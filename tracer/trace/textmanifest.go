package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// textManifest is the manifest of a text trace without directives: a finished recording.
func textManifest() Manifest {
	return Manifest{
		SchemaVersion: SchemaVersion,
		Origin:        OriginRecorded,
		Anchor:        Anchor{Kind: AnchorMonotonic},
		SealedBy:      SealedByClose,
		ProcessEnd:    EndFinished,
	}
}

// manifestText gathers the directives of a text trace.
type manifestText struct {
	keys    map[string]json.RawMessage // key KEY VALUE
	anchors map[int]bool               // sources that gave an anchor of their own
}

// directive reads one manifest line: a list entry (setting, resource, source, metric, loss), or KEY VALUE.
func (p *textReader) directive(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "setting", "resource", "source", "metric", "loss":
		tokens, err := splitLine(rest)
		if err != nil {
			return err
		}
		return p.entry(word, tokens)
	}
	if !slices.Contains(manifestKeys(), word) {
		return fmt.Errorf("unknown directive %q: want a key of manifest.json, setting, resource, source, metric or loss", word)
	}
	if p.manifest.keys == nil {
		p.manifest.keys = map[string]json.RawMessage{}
	}
	rest = strings.TrimSpace(rest)
	if !json.Valid([]byte(rest)) || isString(word) && !strings.HasPrefix(rest, `"`) {
		quoted, err := json.Marshal(rest)
		if err != nil {
			return err
		}
		rest = string(quoted)
	}
	p.manifest.keys[word] = json.RawMessage(rest)
	return nil
}

// entry reads one entry of a list of the manifest.
func (p *textReader) entry(word string, tokens []token) error {
	m := &p.data.Manifest
	var name string
	if word != "loss" {
		if len(tokens) == 0 || tokens[0].key != "" {
			return fmt.Errorf("%s wants a name", word)
		}
		name, tokens = tokens[0].value, tokens[1:]
	}
	switch word {
	case "setting":
		return p.setting(name, tokens)
	case "resource":
		m.Resources = append(m.Resources, Resource{Name: name, Device: None})
		return applyJSON(&m.Resources[len(m.Resources)-1], tokens)
	case "source":
		m.Sources = append(m.Sources, Source{Name: name, Kind: "process", Device: None})
		return p.sourceAnchor(&m.Sources[len(m.Sources)-1], tokens)
	case "metric":
		m.Metrics = append(m.Metrics, Metric{Name: name, Kind: "gauge"})
		return applyJSON(&m.Metrics[len(m.Metrics)-1], tokens)
	}
	m.Loss = append(m.Loss, Loss{})
	return applyJSON(&m.Loss[len(m.Loss)-1], tokens)
}

func (p *textReader) setting(name string, tokens []token) error {
	if len(tokens) == 0 || tokens[0].key != "" {
		return fmt.Errorf("setting %s wants a value", name)
	}
	s := Setting{Value: tokens[0].value, Source: "default"}
	if p.data.Manifest.Settings == nil {
		p.data.Manifest.Settings = map[string]Setting{}
	}
	err := applyJSON(&s, tokens[1:])
	p.data.Manifest.Settings[name] = s
	return err
}

// sourceAnchor reads a source's keys; anchor_kind, anchor_monotonic_ns and anchor_unix_ns are those of its anchor, which is
// the trace's where they are left out.
func (p *textReader) sourceAnchor(s *Source, tokens []token) error {
	var own, anchor []token
	for _, t := range tokens {
		if key, ok := strings.CutPrefix(t.key, "anchor_"); ok {
			t.key = key
			anchor = append(anchor, t)
			continue
		}
		own = append(own, t)
	}
	if len(anchor) > 0 {
		if p.manifest.anchors == nil {
			p.manifest.anchors = map[int]bool{}
		}
		p.manifest.anchors[len(p.data.Manifest.Sources)-1] = true
	}
	if err := applyJSON(&s.Anchor, anchor); err != nil {
		return err
	}
	return applyJSON(s, own)
}

// finishManifest stores the gathered keys.
func (p *textReader) finishManifest() error {
	m := &p.data.Manifest
	if len(p.manifest.keys) > 0 {
		doc, err := json.Marshal(p.manifest.keys)
		if err != nil {
			return fmt.Errorf("manifest directives: %w", err)
		}
		if err := json.Unmarshal(doc, m); err != nil {
			return fmt.Errorf("manifest directives: %w", err)
		}
		p.manifest.keys = nil
	}
	if p.state == nil {
		for i := range m.Sources {
			if !p.manifest.anchors[i] {
				m.Sources[i].Anchor = m.Anchor
			}
		}
	}
	return nil
}

// applyJSON stores key=value tokens into the fields of a struct by their JSON names.
func applyJSON(row any, tokens []token) error {
	v := reflect.ValueOf(row).Elem()
	for _, t := range tokens {
		f, ok := jsonField(v, t.key)
		if !ok {
			return fmt.Errorf("unknown key %q in %s=%s", t.key, t.key, t.value)
		}
		if f.Kind() == reflect.Pointer {
			if t.value == "null" {
				continue
			}
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		if err := setField(f, t); err != nil {
			return err
		}
	}
	return nil
}

func jsonField(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if jsonName(v.Type().Field(i)) == key && key != "" {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// manifestKeys are the directives of the form KEY VALUE, in order.
func manifestKeys() []string {
	var keys []string
	t := reflect.TypeFor[Manifest]()
	for i := range t.NumField() {
		switch name := jsonName(t.Field(i)); name {
		case "settings", "resources", "sources", "metrics", "loss": // have directives of their own
		case "tables", "checksum": // are about the files
		default:
			keys = append(keys, name)
		}
	}
	return keys
}

func isString(key string) bool {
	f, ok := jsonField(reflect.ValueOf(&Manifest{}).Elem(), key)
	return ok && f.Kind() == reflect.String
}

// manifest writes what differs from textManifest.
func (f *textWriter) manifest() {
	m := &f.d.Manifest
	want := textManifest()
	got, base := reflect.ValueOf(m).Elem(), reflect.ValueOf(&want).Elem()
	for _, key := range manifestKeys() {
		g, _ := jsonField(got, key)
		b, _ := jsonField(base, key)
		if text := manifestValue(g); text != manifestValue(b) {
			fmt.Fprintf(&f.out, "%s %s\n", key, text)
		}
	}
	for _, name := range sortedKeys(m.Settings) {
		s := m.Settings[name]
		fmt.Fprintf(&f.out, "setting %s %s", quoteValue(name), quoteValue(s.Value))
		f.jsonDifferences(&s, &Setting{Value: s.Value, Source: "default"})
	}
	for i := range m.Resources {
		r := &m.Resources[i]
		fmt.Fprintf(&f.out, "resource %s", quoteValue(r.Name))
		f.jsonDifferences(r, &Resource{Name: r.Name, Device: None})
	}
	f.sources()
	for i := range m.Metrics {
		fmt.Fprintf(&f.out, "metric %s", quoteValue(m.Metrics[i].Name))
		f.jsonDifferences(&m.Metrics[i], &Metric{Name: m.Metrics[i].Name, Kind: "gauge"})
	}
	for i := range m.Loss {
		f.out.WriteString("loss")
		f.jsonDifferences(&m.Loss[i], &Loss{})
	}
}

func (f *textWriter) sources() {
	m := &f.d.Manifest
	for i := range m.Sources {
		s := &m.Sources[i]
		fmt.Fprintf(&f.out, "source %s", quoteValue(s.Name))
		if s.Anchor != m.Anchor { // all of it, so that a zero is said too
			a := s.Anchor
			fmt.Fprintf(&f.out, " anchor_kind=%s anchor_monotonic_ns=%d anchor_unix_ns=%d",
				quoteValue(a.Kind), a.MonotonicNS, a.UnixNS)
		}
		f.jsonDifferences(s, &Source{Name: s.Name, Kind: "process", Device: None, Anchor: s.Anchor})
	}
}

func (f *textWriter) jsonDifferences(row, want any) {
	r, w := reflect.ValueOf(row).Elem(), reflect.ValueOf(want).Elem()
	for i := range r.NumField() {
		a, b := r.Field(i), w.Field(i)
		if a.Kind() == reflect.Struct {
			continue
		}
		if a.Kind() == reflect.Pointer {
			if !a.IsNil() {
				fmt.Fprintf(&f.out, " %s=%s", jsonName(r.Type().Field(i)),
					fieldText(a.Elem()))
			}
			continue
		}
		if text := fieldText(a); text != fieldText(b) {
			fmt.Fprintf(&f.out, " %s=%s", jsonName(r.Type().Field(i)), text)
		}
	}
	f.out.WriteByte('\n')
}

// manifestValue writes a key's value: a plain string bare, anything else as JSON on one line.
func manifestValue(v reflect.Value) string {
	if v.Kind() == reflect.String && v.String() != "" && quoteValue(v.String()) == v.String() {
		return v.String()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v.Interface()); err != nil {
		return strconv.Quote(err.Error())
	}
	return strings.TrimSpace(b.String())
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
