package oom

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"highwater/analyze/report"
	"highwater/internal/units"
)

// manyEvents is from how many events on only the last is printed at length.
const manyEvents = 4

// maxListed bounds the list of events.
const maxListed = 40

// Print writes the report for people: of many events a list, and the last one at length. all prints
// every one at length.
func Print(w io.Writer, r *Report, all bool, style report.Style) error {
	if len(r.Events) == 0 {
		_, err := fmt.Fprintf(w, "%s\n%s", r.Verdict, nothingFound(r))
		return err //nolint:wrapcheck // the output's own error
	}
	events := r.Events
	if len(events) >= manyEvents && !all {
		if err := printList(w, r, style); err != nil {
			return err
		}
		events = events[len(events)-1:]
	}
	for i, e := range events {
		if i > 0 || len(events) < len(r.Events) {
			fmt.Fprintln(w)
		}
		if err := report.KeyValues(w, e.headline(), e.lines(), style); err != nil {
			return fmt.Errorf("print event: %w", err)
		}
	}
	if r.Join != nil {
		fmt.Fprintln(w)
		return r.Join.print(w, style)
	}
	return nil
}

func nothingFound(r *Report) string {
	var read int64
	for _, in := range r.Inputs {
		read += in.Bytes
	}
	return fmt.Sprintf("Read %s. The kernel's log of an earlier boot: journalctl -k -b -1 | "+
		"highwater oom -\n", units.Bytes(read))
}

func printList(w io.Writer, r *Report, style report.Style) error {
	g := report.Grid{
		Title:  fmt.Sprintf("%d events", len(r.Events)),
		Header: []string{"time", "limit", "of", "victim", "held", "cause"},
		Left:   []int{1, 3, 5},
	}
	from := max(0, len(r.Events)-maxListed)
	if from > 0 {
		g.Title += fmt.Sprintf(" (the last %d; --json has all)", maxListed)
	}
	for _, e := range r.Events[from:] {
		victim, held := "", ""
		if v := e.mainVictim(); v != nil {
			victim = v.name()
			if v.RSSBytes != nil {
				held = units.Bytes(*v.RSSBytes)
			}
		}
		of := ""
		if e.Limit.Bytes != nil {
			of = units.Bytes(*e.Limit.Bytes)
		}
		g.Rows = append(g.Rows, []string{string(e.Time), e.Limit.Kind, of, victim, held,
			e.Cause.Kind})
	}
	if err := g.Write(w, style); err != nil {
		return fmt.Errorf("print list of events: %w", err)
	}
	return nil
}

// mainVictim is the victim that held most.
func (e *Event) mainVictim() *Victim {
	var main *Victim
	for i := range e.Victims {
		if v := &e.Victims[i]; main == nil || value(v.RSSBytes) > value(main.RSSBytes) {
			main = v
		}
	}
	return main
}

// limitWords are the limits in words.
var limitWords = map[string]string{
	LimitHost: "the whole host ran out", LimitMemcg: "a cgroup's memory limit",
	LimitMemcgSwap: "a cgroup's limit on memory + swap",
	LimitCpuset:    "the nodes of a cpuset", LimitMempolicy: "the nodes of a memory policy",
	LimitZone: "the zones that the request may use",
	LimitCMA:  "pages outside CMA", LimitHugetlb: "huge pages",
	LimitKernel:  "a cgroup's limit on kernel memory",
	LimitUnknown: "not in the text",
}

var statusHeadlines = map[string]string{
	CauseContainer: "A container was OOM-killed, its status says",
	CauseKilled:    "Killed by SIGKILL: by whom is not in the text",
	CauseNotKilled: "Killed by SIGKILL, and not by its cgroup's OOM killer",
	CauseUnit:      "OOM-killed, its status says",
	CauseEvicted:   "Evicted by Kubernetes: not an OOM kill",
	CauseMonitor:   "Killed by a job manager: not an OOM kill",
	CauseUnknown:   "OOM kill on a node: the kubelet saw it",
}

// headline says in a few words what kind of failure it was.
func (e *Event) headline() string {
	switch {
	case e.Source == SourceProgram && e.OutOfMemory == no:
		return "Called out of memory, and is not: " + strings.ReplaceAll(e.Cause.Kind, "_", " ")
	case e.Source == SourceProgram:
		return "An allocation was refused: " + strings.ReplaceAll(e.Cause.Kind, "_", " ")
	case e.Source == SourceStatus:
		return statusHeadlines[e.Cause.Kind]
	case e.Source == SourceKiller:
		return "Killed by a program that watches memory"
	case e.Limit.Kind == LimitUnknown:
		return "OOM kill: which limit is not in the text"
	case !e.isKill():
		return "The kernel refused an allocation"
	}
	owner := ""
	if e.Limit.Owner != "" && e.Limit.cgroupKind() {
		owner = " (of a " + string(e.Limit.Owner) + ")"
	}
	return "OOM kill: " + limitWords[e.Limit.Kind] + owner
}

// lines are an event's figures, the most wanted first.
func (e *Event) lines() []report.KeyValue {
	var list []report.KeyValue
	add := func(key, value string) {
		if value != "" {
			list = append(list, report.KeyValue{Key: key, Value: value})
		}
	}
	add("when", e.when())
	add("limit", e.limitLine())
	for i := range e.Victims[:min(len(e.Victims), 6)] {
		add("victim", e.Victims[i].line())
	}
	if n := len(e.Victims); n > 6 {
		add("", fmt.Sprintf("and %d more", n-6))
	}
	add("cause", e.Cause.Confidence+": "+e.Cause.Sentence)
	add("figures", e.figures())
	add("held by", e.heldBy())
	add("unexplained", e.unexplained())
	add("invoked by", e.invokedBy())
	for _, n := range e.Notes[:min(len(e.Notes), 8)] {
		add("note", n)
	}
	var commands []string
	for _, f := range e.Fetch {
		add("missing", fmt.Sprintf("%s: in the line %q", strings.Join(f.Gives, ", "), f.Line))
		if !contains(commands, f.Command) {
			commands = append(commands, f.Command)
		}
	}
	for _, c := range commands {
		add("get it by", c)
	}
	for _, n := range e.Next {
		add("do next", n)
	}
	return list
}

// figures are the text's further numbers by name: "requested 8.02 GiB, hugepages free 0".
func (e *Event) figures() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(e.Numbers)) {
		word, isBytes := strings.CutSuffix(name, "_bytes")
		value := units.Count(e.Numbers[name])
		if isBytes {
			value = units.Bytes(e.Numbers[name])
		}
		parts = append(parts, strings.ReplaceAll(word, "_", " ")+" "+value)
	}
	return strings.Join(parts, ", ")
}

var timeWords = map[Text]string{
	"boot": " s after boot", "local": " (zone not given)", "partial": " (year not given)",
	"text": "", "zoned": "",
}

func (e *Event) when() string {
	s := string(e.Time) + timeWords[e.TimeKind]
	if e.Host != "" {
		s += " on " + string(e.Host)
	}
	if e.Kernel != "" {
		s += ", kernel " + string(e.Kernel)
	}
	return strings.TrimPrefix(strings.TrimSpace(s), ", ")
}

func (e *Event) limitLine() string {
	l := &e.Limit
	s := l.Kind
	if l.Bytes != nil {
		s += ", " + units.Bytes(*l.Bytes)
	}
	if l.UsageBytes != nil {
		s += fmt.Sprintf(", used %s", units.Bytes(*l.UsageBytes))
	}
	if l.Node != nil {
		s += fmt.Sprintf(", node %d", *l.Node)
	}
	if l.Zones != "" {
		s += ", zones " + string(l.Zones)
	}
	if l.Level == "parent" {
		s += ", of a parent cgroup"
	}
	if l.Cgroup != "" {
		s += ", " + string(l.Cgroup)
	}
	if e.RAMBytes != nil && !l.cgroupKind() {
		s += fmt.Sprintf("; RAM %s", units.Bytes(*e.RAMBytes))
	}
	if e.FreeBytes != nil {
		s += fmt.Sprintf(", free on the host %s", units.Bytes(*e.FreeBytes))
	}
	if e.SwapTotalBytes != nil && *e.SwapTotalBytes > 0 && e.SwapFreeBytes != nil {
		s += fmt.Sprintf(", swap %s of %s free", units.Bytes(*e.SwapFreeBytes),
			units.Bytes(*e.SwapTotalBytes))
	}
	return s
}

func (v *Victim) line() string {
	s := v.name()
	if v.PID == nil && v.Comm == "" {
		s = "not named"
		if v.Cgroup != "" {
			s = "the processes of " + string(v.Cgroup)
		}
	}
	if v.RSSBytes != nil {
		s += ": resident " + units.Bytes(*v.RSSBytes)
		if v.AnonBytes != nil {
			s += fmt.Sprintf(" (anonymous %s)", units.Bytes(*v.AnonBytes))
		}
	}
	if v.SwapBytes != nil && *v.SwapBytes > 0 {
		s += ", in swap " + units.Bytes(*v.SwapBytes)
	}
	if v.Share != nil {
		s += fmt.Sprintf(" = %s of %s", units.Percent(v.Share.Ratio), v.Share.words())
	}
	if v.WasCause != nil {
		s += map[bool]string{true: "; it filled the limit",
			false: "; it did not fill the limit"}[*v.WasCause]
	}
	if !v.Killed && v.Reaped {
		s += "; reaped, its kill line is not in the text"
	}
	return s
}

func (e *Event) heldBy() string {
	var parts []string
	for _, h := range e.Holders {
		if len(parts) == 6 {
			break
		}
		if h.Ratio != nil && *h.Ratio >= 0.001 {
			parts = append(parts, fmt.Sprintf("%s %s (%s)", strings.ReplaceAll(h.Name, "_", " "),
				units.Bytes(h.Bytes), units.Percent(*h.Ratio)))
		}
	}
	return strings.Join(parts, ", ")
}

var explainedWords = map[Text]string{
	byCounters: "by the host's counters", byNodeCounters: "by the counters of the nodes shown",
	byMemcgStats: "by the cgroup's statistics", byVictims: "by the victim's own memory; the " +
		"cgroup's statistics are missing",
}

func (e *Event) unexplained() string {
	if e.UnexplainedBytes == nil || e.AccountedBytes == nil || *e.AccountedBytes <= 0 {
		return ""
	}
	return fmt.Sprintf("%s = %s of %s, %s", units.Bytes(*e.UnexplainedBytes),
		units.Percent(float64(*e.UnexplainedBytes)/float64(*e.AccountedBytes)),
		units.Bytes(*e.AccountedBytes), explainedWords[e.ExplainedBy])
}

func (e *Event) invokedBy() string {
	v := e.Invoker
	if v == nil {
		return ""
	}
	s := string(v.Comm)
	if v.PID != nil {
		s += fmt.Sprintf(" (pid %d)", *v.PID)
	}
	if v.GFP != "" || v.GFPMask != "" {
		s += ", asking for " + orString(string(v.GFP), string(v.GFPMask))
	}
	if v.Order != nil {
		s += fmt.Sprintf(", order %d", *v.Order)
	}
	return s
}
