package trace

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

var (
	kindWords = []string{
		KindJob, KindStage, KindOp, KindKernel, KindCopy, KindWait, KindFree,
		KindOther,
	}
	statusWords = []string{"", "ok", "error"}
)

// order is an event's place in the trace.
type order struct{ seq, time int64 }

// spans checks the spans and learns their ids and places.
func (v *validator) spans() error {
	parents := map[int64][2]int64{} // span to its parent and its begin_seq, for parents that come later
	last := Null
	for s, err := range v.t.Spans() {
		if err != nil || v.full() {
			return err
		}
		if s.BeginSeq <= last {
			v.report("seq-order", "spans", s.BeginSeq, "begin_seq comes after %d", last)
		}
		last = s.BeginSeq
		v.span(s)
		v.spanSeqs = append(v.spanSeqs, order{s.BeginSeq, s.BeginNS})
		if s.EndSeq != Null && s.EndNS != Null {
			v.spanSeqs = append(v.spanSeqs, order{s.EndSeq, s.EndNS})
		}
		if s.ParentID != 0 {
			parents[s.SpanID] = [2]int64{s.ParentID, s.BeginSeq}
		}
	}
	slices.SortFunc(v.spanSeqs, func(a, b order) int { return cmp.Compare(a.seq, b.seq) })
	v.spanParents(parents)
	return nil
}

func (v *validator) span(s *Span) {
	v.common(row{"spans", s.BeginSeq, s.BeginNS, s.Source, s.Job, s.Partition, s.Worker, s.Device})
	v.word("spans", s.BeginSeq, "kind", s.Kind, kindWords)
	v.word("spans", s.BeginSeq, "status", s.Status, statusWords)
	if _, twice := v.spanBegin[s.SpanID]; twice || s.SpanID < 1 {
		v.report("span-id", "spans", s.BeginSeq, "span id %d is below 1 or stands twice", s.SpanID)
	}
	v.spanBegin[s.SpanID] = s.BeginNS
	v.spanEnds(s)
	for _, x := range [...]struct {
		name  string
		value int64
	}{{"cpu_ns", s.CPUNS}, {"bytes", s.Bytes}, {"threads", s.Threads}} {
		if x.value < 0 && x.value != Null {
			v.report("span-range", "spans", s.BeginSeq, "%s of span %d is %d", x.name, s.SpanID,
				x.value)
		}
	}
	if a := s.Attributes; a != "" && (!json.Valid([]byte(a)) ||
		!strings.HasPrefix(strings.TrimSpace(a), "{")) {
		v.report("span-attributes", "spans", s.BeginSeq,
			"attributes of span %d are not a JSON object", s.SpanID)
	}
	if !isHex(s.OtelTraceID, 32) || !isHex(s.OtelSpanID, 16) || !isHex(s.OtelParentSpanID, 16) {
		v.report("span-otel", "spans", s.BeginSeq,
			"OpenTelemetry ids of span %d are not of 32, 16 and 16 hexadecimal digits", s.SpanID)
	}
}

func (v *validator) spanEnds(s *Span) {
	switch {
	case (s.EndSeq == Null) != (s.EndNS == Null):
		v.report("span-end", "spans", s.BeginSeq, "span %d has one of end_seq and end_ns, not both",
			s.SpanID)
	case s.EndSeq == Null && v.t.Manifest.ProcessEnd == EndFinished:
		v.report("span-open", "spans", s.BeginSeq,
			"span %d (%s) is open although the process finished", s.SpanID, s.Name)
	case s.EndSeq != Null && (s.EndSeq <= s.BeginSeq || s.EndNS < s.BeginNS):
		v.report("span-end", "spans", s.BeginSeq,
			"span %d ends at seq %d, %d ns: before its begin at %d ns", s.SpanID, s.EndSeq, s.EndNS,
			s.BeginNS)
	}
}

// spanParents checks parents once all spans are known.
func (v *validator) spanParents(parents map[int64][2]int64) {
	ids := sortedIDs(parents)
	for _, id := range ids {
		parent, seq := parents[id][0], parents[id][1]
		begin, ok := v.spanBegin[parent]
		switch {
		case !ok:
			v.report("span-parent", "spans", seq, "parent %d of span %d is not there", parent, id)
		case begin > v.spanBegin[id] || parent == id:
			v.report("span-parent", "spans", seq, "parent %d of span %d began after it", parent, id)
		}
	}
}

func sortedIDs[V any](m map[int64]V) []int64 {
	ids := make([]int64, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// isHex tells whether s is empty or n hexadecimal digits.
func isHex(s string, n int) bool {
	return s == "" || len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}
