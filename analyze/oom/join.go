package oom

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"highwater/analyze"
	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// Moments of Join.At.
const (
	AtKill = "kill" // the report's time, within the trace
	AtEnd  = "end"  // the trace's last event: it ends with the kill
	AtPeak = "peak" // of live bytes: the run went on, or its end is not that of a kill
)

// Explain says what the run recorded in t held when the event came that killed it, and fills r.Join
// but for Tried and Survivor. The error is about reading the trace.
func Explain(t *trace.Trace, r *Report) error {
	j := &Join{
		Trace: t.Dir, Live: t.Live, Warnings: []string{}, ByClass: []Held{}, ByStage: []Held{},
		ByPlace: []Place{}, Tried: []Survivor{},
	}
	r.Join = j
	if t.Live {
		j.warn("The run is not sealed: its journal is read as it stands. Once it is dead, "+
			"`highwater recover %s` seals it.", filepath.Clean(t.Dir))
	}
	found, err := analyze.Run(t, analyze.Options{})
	if err != nil {
		return fmt.Errorf("analyze %s: %w", t.Dir, err)
	}
	e := j.choose(t, r.Events)
	j.limit(e, &t.Manifest)
	m := &moment{until: j.killTime(t, e, found.Summary)}
	m.ledger = memory.NewBuilder(&t.Manifest, false)
	if err := memory.Walk(t, m); err != nil {
		return fmt.Errorf("read %s: %w", t.Dir, err)
	}
	if killedRun(t) || m.until != trace.Null {
		j.fromMoment(m)
	} else {
		j.warn("The trace does not end with a kill (process_end %s): this is its peak, not the "+
			"moment of the kill.", orString(string(found.ProcessEnd), "unknown"))
		j.fromPeak(found.Attribution)
	}
	j.remainder(e)
	j.Finding = explains(found)
	return nil
}

func (j *Join) warn(format string, args ...any) {
	j.Warnings = append(j.Warnings, fmt.Sprintf(format, args...))
}

// killedRun says whether the trace's last event is, as far as anybody knows, that of a kill.
func killedRun(t *trace.Trace) bool {
	switch t.Manifest.ProcessEnd {
	case "killed":
		return true
	case "", "unknown":
		return t.Live || t.Manifest.SealedBy == "recover"
	}
	return false
}

// choose picks the event that killed the run: the one whose victim has the pid of one of the
// trace's processes, else the last one; it warns where they do not match.
func (j *Join) choose(t *trace.Trace, events []*Event) *Event {
	at := -1
	for i, e := range events {
		if !e.isKill() || e.victim() == nil {
			continue
		}
		if match := matches(t, e); match != nil && *match {
			at, j.Matches = i, match
		} else if j.Matches == nil || !*j.Matches {
			at, j.Matches = i, match
		}
	}
	if at < 0 {
		j.warn("The text has no kill to explain; this is what the trace shows by itself.")
		return nil
	}
	j.Event = &at
	e := events[at]
	if j.Matches != nil && !*j.Matches {
		j.warn("The victim %s is not a process of the trace (%s): the event is about something "+
			"else, or the run was in a container whose pids are its own.",
			e.victim().name(), pids(&t.Manifest))
	}
	host := &t.Manifest.Host
	if e.Kernel != "" && host.Kernel != "" && string(e.Kernel) != host.Kernel {
		j.warn("The report is of kernel %s, the trace of %s.", e.Kernel, host.Kernel)
	}
	if e.Host != "" && host.Name != "" && shortHost(string(e.Host)) != shortHost(host.Name) {
		j.warn("The report is of host %s, the trace of %s.", e.Host, host.Name)
	}
	return e
}

func shortHost(s string) string {
	s, _, _ = strings.Cut(strings.ToLower(s), ".")
	return s
}

func pids(m *trace.Manifest) string {
	var list []string
	for _, s := range m.Sources {
		if s.PID > 0 {
			list = append(list, fmt.Sprintf("%s is pid %d", s.Name, s.PID))
		}
	}
	if len(list) == 0 {
		return "its pids were not recorded"
	}
	return strings.Join(list, ", ")
}

// matches says whether a victim is a process of the trace; nil where pids are not known.
func matches(t *trace.Trace, e *Event) *bool {
	known := false
	for _, s := range t.Manifest.Sources {
		for i := range e.Victims {
			if s.PID > 0 && e.Victims[i].PID != nil {
				known = true
				if *e.Victims[i].PID == int64(s.PID) {
					return yes
				}
			}
		}
	}
	if known {
		return no
	}
	return nil
}

// limit takes what the run may use: the limit less what others held.
func (j *Join) limit(e *Event, m *trace.Manifest) {
	if e == nil || e.Limit.Bytes == nil {
		if m.Memory.EffectiveBytes > 0 {
			j.LimitBytes = ptr(m.Memory.EffectiveBytes)
			j.warn("The text does not give the limit: %s is what bounded the run when it "+
				"started (%s).", units.Bytes(m.Memory.EffectiveBytes), m.Memory.Kind)
		}
		return
	}
	limit := *e.Limit.Bytes
	j.LimitBytes = &limit
	v := e.mainVictim()
	if v == nil || v.RSSBytes == nil || e.AccountedBytes == nil || e.ExplainedBy == byVictims {
		return
	}
	own := *v.RSSBytes
	if e.Limit.cgroupKind() {
		own = value(sum(v.AnonBytes, v.ShmemBytes))
	}
	others := *e.AccountedBytes - own
	for _, h := range e.Holders {
		if h.Name == holdFree {
			others -= h.Bytes
		}
	}
	if others > 0 && others < limit {
		limit -= others
	}
}

// killTime is when the kill came, after the trace's anchor; Null where neither says so or it is
// outside the trace.
func (j *Join) killTime(t *trace.Trace, e *Event, s *analyze.Summary) int64 {
	if e == nil {
		return trace.Null
	}
	a := &t.Manifest.Anchor
	at, exact := int64(trace.Null), int64(1e9)
	switch {
	case e.UptimeNS != nil && a.MonotonicNS > 0:
		at = *e.UptimeNS - a.MonotonicNS
		exact = 5e9 // the kernel's stamps drift from its monotonic clock
	case e.TimeKind == "zoned" && a.UnixNS > 0:
		if st, _, ok := cutISO(string(e.Time)); ok {
			at = st.wall.UnixNano() - a.UnixNS
		}
	}
	if at == trace.Null || s.ObservedNS == nil {
		return trace.Null
	}
	if at < -exact || at > *s.ObservedNS+60e9 {
		j.warn("The report's time is %s from the trace's %s: probably another run.", farther(at,
			*s.ObservedNS), side(at))
		return trace.Null
	}
	if at > *s.ObservedNS-exact || at < 0 {
		return trace.Null // the end, as near as the clocks tell
	}
	return at
}

func farther(at, end int64) string {
	if at < 0 {
		return units.Nanos(-at)
	}
	return units.Nanos(at - end)
}

func side(at int64) string {
	if at < 0 {
		return "start"
	}
	return "end"
}

// moment is what was alive at one time of the trace.
type moment struct {
	until  int64 // Null: to the end
	past   bool
	lastNS int64
	ledger *memory.Builder
	live   map[int64]*holding
}

// holding is one live buffer.
type holding struct {
	parent          int64
	class, stage    string
	bytes, resident int64
}

// Observe implements memory.Observer.
func (m *moment) Observe(s *memory.Step) {
	m.past = m.past || m.until != trace.Null && s.TimeNS > m.until
	if m.past {
		return
	}
	if s.Kind != memory.StepSample {
		m.lastNS = max(m.lastNS, s.TimeNS)
	}
	m.ledger.Observe(s)
	if s.Kind == memory.StepBuffer {
		m.buffer(s.Buffer)
	}
}

func (m *moment) buffer(b *trace.BufferEvent) {
	if b.Space == trace.SpaceDevice {
		return
	}
	if m.live == nil {
		m.live = map[int64]*holding{}
	}
	if b.Event == trace.EventFree {
		delete(m.live, b.BufferID)
		return
	}
	h := m.live[b.BufferID]
	if h == nil {
		h = &holding{}
		m.live[b.BufferID] = h
	}
	h.parent, h.class = b.ParentID, strings.Clone(b.Class)
	if b.Stage != "" {
		h.stage = strings.Clone(b.Stage)
	}
	h.bytes = b.CapacityBytes
	if b.ResidentBytes != trace.Null {
		h.resident = b.ResidentBytes
	}
}

// fromMoment fills what was held from the ledger at the moment.
func (j *Join) fromMoment(m *moment) {
	j.At = AtEnd
	if m.until != trace.Null {
		j.At = AtKill
	}
	host := m.ledger.Ledger.Host
	j.HeldBytes, j.ResidentBytes, j.AtNS = ptr(host.LiveBytes), ptr(host.ResidentBytes),
		ptr(m.lastNS)
	byClass, byStage := map[string]*Held{}, map[string]*Held{}
	add := func(to map[string]*Held, name string, bytes, resident int64) {
		if to[name] == nil {
			to[name] = &Held{Name: name}
		}
		to[name].Bytes += bytes
		to[name].ResidentBytes += resident
	}
	for _, h := range m.live {
		add(byClass, h.class, h.bytes, h.resident)
		add(byStage, h.stage, h.bytes, h.resident)
		if parent := m.live[h.parent]; parent != nil {
			add(byClass, parent.class, -h.bytes, -h.resident)
			add(byStage, parent.stage, -h.bytes, -h.resident)
		}
	}
	j.ByClass, j.ByStage = heldList(byClass, host.LiveBytes), heldList(byStage, host.LiveBytes)
	for _, p := range memory.Places() {
		if w := m.ledger.Ledger.At(p); w.Bytes != 0 || w.Partitions != 0 {
			j.ByPlace = append(j.ByPlace, Place{Held{Name: p.String(), Bytes: w.Bytes,
				Ratio: ratio(w.Bytes, host.LiveBytes)}, w.Partitions})
		}
	}
	sortPlaces(j.ByPlace)
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func heldList(by map[string]*Held, whole int64) []Held {
	list := []Held{}
	for _, h := range by {
		if h.Bytes != 0 || h.ResidentBytes != 0 {
			h.Ratio = ratio(h.Bytes, whole)
			list = append(list, *h)
		}
	}
	slices.SortFunc(list, func(a, b Held) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func sortPlaces(list []Place) {
	slices.SortStableFunc(list, func(a, b Place) int { return cmp.Compare(b.Bytes, a.Bytes) })
}

// fromPeak fills what was held from the attribution of the peak.
func (j *Join) fromPeak(r *memory.Report) {
	j.At = AtPeak
	p := r.Peak
	if p == nil {
		return
	}
	j.HeldBytes, j.ResidentBytes, j.AtNS = &p.LiveBytes, &p.ResidentBytes, &p.TimeNS
	list := func(shares memory.Shares) []Held {
		held := []Held{}
		for _, s := range shares {
			held = append(held, Held{s.Name, s.Bytes, s.ResidentBytes, s.Ratio})
		}
		return held
	}
	j.ByClass, j.ByStage = list(p.ByClass), list(p.ByStage)
	for _, h := range list(p.ByPlace) {
		place := Place{Held: h}
		for _, c := range p.Partitions {
			if c.Place == h.Name {
				place.Partitions = c.Partitions
			}
		}
		j.ByPlace = append(j.ByPlace, place)
	}
}

// remainder is what the ledger does not explain of the victim's size in the report.
func (j *Join) remainder(e *Event) {
	if e == nil || j.ResidentBytes == nil || j.Matches != nil && !*j.Matches {
		return
	}
	if v := e.mainVictim(); v != nil && v.RSSBytes != nil {
		j.VictimRSSBytes = v.RSSBytes
		j.UnattributedBytes = ptr(*v.RSSBytes - *j.ResidentBytes)
	}
}

// memoryFindings are the analyzers that can explain why memory ran out.
var memoryFindings = []string{
	"queue-pileup", "late-free", "leak", "large-allocation", "thundering-herd", "page-fault-storm",
	"budget-not-a-bound", "allocator-retention", "oversubscription", "hidden-limit",
}

// explains is the most severe finding that can explain it.
func explains(r *analyze.Report) *Finding {
	for i := range r.Findings {
		f := &r.Findings[i]
		if slices.Contains(memoryFindings, f.ID) && f.Severity.AtLeast(analyze.Warning) {
			return &Finding{f.ID, string(f.Severity), f.Sentence, f.Remedy, f.WhatIf}
		}
	}
	return nil
}

// Candidates are the settings to replay, in order, until one survives: the finding's own remedy,
// then the permit held until the send is accepted, then fewer and fewer partitions at once.
func (j *Join) Candidates(m *trace.Manifest) []map[string]string {
	var list []map[string]string
	add := func(set map[string]string) {
		changes := false
		for name, v := range set {
			changes = changes || m.Settings[name].Value != v
		}
		if changes && !slices.ContainsFunc(list,
			func(o map[string]string) bool { return fmt.Sprint(o) == fmt.Sprint(set) }) {
			list = append(list, set)
		}
	}
	if j.Finding != nil && len(j.Finding.WhatIf) > 0 {
		add(j.Finding.WhatIf)
	}
	add(map[string]string{"permit_release": "send_accepted"})
	workers, err := strconv.ParseInt(m.Settings["partition_workers"].Value, 10, 64)
	if err != nil {
		return list
	}
	for _, n := range []int64{workers * 3 / 4, workers / 2, workers / 4, 1} {
		if n >= 1 && n < workers {
			add(map[string]string{"permit_release": "send_accepted",
				"partition_workers": strconv.FormatInt(n, 10)})
		}
	}
	return list
}
