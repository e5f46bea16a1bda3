package oom

import (
	"fmt"
	"slices"
	"strings"
)

// facts are what a text says of the host outside any report: output of free, /proc/meminfo, prose.
type facts struct {
	ram, swapTotal, swapFree *int64
	ramSource                string
	used                     *int64
	meminfo                  map[string]int64 // bytes; counts of huge pages as they are
	numbers                  map[string]int64
	unit                     int64 // of free's plain numbers; 0 where not known
	aborted                  *deathLine
}

// deathLine is a shell's "./exec.sh: line 22: 53222 Aborted  sudo ./target/release/demo".
type deathLine struct {
	pid  int64
	comm string
}

// maxOtherEvents bounds the events of one text that are not the kernel's.
const maxOtherEvents = 512

// sameFailure is how many lines apart two messages of a program are of one failure.
const sameFailure = 40

func newEvent(source, input string, s *stamp) *Event {
	e := &Event{
		Source: source, Input: input, Victims: []Victim{}, Holders: []Holder{}, Programs: []Program{},
		Usage: []Usage{}, Zones: []ZoneFree{}, Numbers: map[string]int64{}, Missing: []string{}, Fetch: []Fetch{},
		Next: []string{}, Notes: []string{},
	}
	e.Limit.Kind = LimitUnknown
	e.setTime(s)
	return e
}

// others reads the lines that are not of kernel reports into events; kernel are those of the same text.
func (r *Reader) others(c *collector, kernel []*Event) {
	var f facts
	var ends endings
	var events []*Event
	killed := slices.ContainsFunc(kernel, (*Event).isKill)
	var program *Event
	lastRule, lastNo := 0, int64(0)
	for i := range c.others {
		l := &c.others[i]
		switch l.kind {
		case kindFree:
			f.read(l.msg)
		case kindStatus:
			ends.add(l)
		case kindKiller:
			e := newEvent(SourceKiller, c.in.Name, &l.head.stamp)
			e.Host, e.Lines, e.OutOfMemory = Text(l.head.host), 1, yes
			if killerRules[l.rule].read(e, l.msg) && len(events) < maxOtherEvents {
				events = append(events, e)
			}
		case kindProgram:
			if program == nil || l.no-lastNo > sameFailure || l.rule < lastRule {
				at := len(events)
				if program != nil && l.no-lastNo <= sameFailure {
					at-- // a more particular message of the same failure
				}
				if at >= maxOtherEvents {
					c.lost++
					continue
				}
				program = newEvent(SourceProgram, c.in.Name, &l.head.stamp)
				events = append(events[:at], program)
				lastRule = l.rule
				program.begin(l)
			}
			program.more(l, lastRule)
			lastNo = l.no
		}
	}
	for _, e := range kernel {
		f.add(e)
	}
	r.keepEndings(c, &ends, kernel, &events, killed)
	for _, e := range events {
		f.add(e)
		e.finish()
		r.keep(e)
	}
}

// keepEndings adds exit statuses: as events where nothing else explains the death, else as notes.
func (r *Reader) keepEndings(c *collector, ends *endings, kernel []*Event, events *[]*Event, killed bool) {
	for _, n := range ends.list {
		if !n.triggers() {
			continue
		}
		e := n.event(c.in.Name, ends.before)
		if killed {
			last := kernel[len(kernel)-1]
			if len(last.Notes) < 20 {
				last.Notes = append(last.Notes, "The text also has an exit status that fits: "+strings.Join(e.Notes, " ")+e.exitText())
			}
			continue
		}
		*events = append(*events, e)
	}
}

func (e *Event) exitText() string {
	if n, ok := e.Numbers["exit_code"]; ok {
		return fmt.Sprintf(" exit code %d", n)
	}
	return ""
}

// begin makes a program's event of the line that decides it.
func (e *Event) begin(l *line) {
	p := &programRules[l.rule]
	e.Host, e.OutOfMemory = Text(l.head.host), p.oom
	e.Cause = Cause{p.kind, p.sentence, p.confidence}
	e.Limit.Kind = orString(p.limit, LimitUnknown)
	e.Next = []string{p.next}
}

// more takes a further line of the same failure.
func (e *Event) more(l *line, rule int) {
	e.Lines++
	if len(e.Notes) < 3 {
		e.Notes = append(e.Notes, fmt.Sprintf("%q", short(strings.TrimSpace(l.msg))))
	}
	if read := programRules[rule].read; read != nil {
		read(e, l.msg)
	}
	if e.Invoker == nil && (strings.Contains(l.msg, "Assertion") || e.Cause.Kind == CauseFork) {
		if comm := commBefore(l.msg); comm != "" {
			e.Invoker = &Invoker{Comm: Text(comm)}
		}
	}
}

// commBefore is the program's name where it heads its message: "supra-seal-demo: pc1/…: Assertion".
func commBefore(msg string) string {
	name, _, ok := strings.Cut(strings.TrimSpace(msg), ": ")
	if !ok || len(name) > 40 || len(name) < 2 || strings.ContainsAny(name, " ()<>[]\"'=/") ||
		strings.EqualFold(name, "error") || strings.EqualFold(name, "fatal") || strings.Contains(name, "::") {
		return ""
	}
	return name
}

// finish adds what is missing.
func (e *Event) finish() {
	switch e.Source {
	case SourceProgram:
		e.missing(programMissing)
	case SourceKiller:
		e.missing(killerMissing)
	case SourceStatus:
		e.missing(statusMissing)
	}
}

var programMissing = []missingRule{
	{"limit.kind", func(e *Event) bool { return e.Limit.Kind == LimitUnknown }, -1, false},
	{"limit.bytes", func(e *Event) bool { return e.Limit.Bytes == nil }, -1, false},
	{"invoker", func(e *Event) bool { return e.Invoker == nil }, lineProgram, false},
	{"page_bytes", func(e *Event) bool { return true }, -1, false},
	{"ram_bytes", func(e *Event) bool { return e.RAMBytes == nil }, -1, false},
	{"explained_bytes", func(e *Event) bool { return true }, -1, false},
	{"unexplained_bytes", func(e *Event) bool { return true }, -1, false},
	{"numbers.hugepages_free", func(e *Event) bool {
		_, known := e.Numbers["hugepages_free"]
		return e.Cause.Kind == CauseHugepages && !known
	}, lineHuge, false},
	{"numbers.requested_bytes", func(e *Event) bool {
		return e.Numbers["requested_bytes"] == 0 && (e.Cause.Kind == CauseMalloc || e.Cause.Kind == CausePinned || e.Cause.Kind == CauseDevice)
	}, lineProgram, false},
	{"time", func(e *Event) bool { return e.Time == "" }, lineProgram, false},
}

var killerMissing = []missingRule{
	{"limit.kind", func(e *Event) bool { return e.Limit.Kind == LimitUnknown }, -1, false},
	{"limit.bytes", func(e *Event) bool { return e.Limit.Bytes == nil }, -1, false},
	{"victims.pid", func(e *Event) bool { return e.lacksOfVictim(func(v *Victim) *int64 { return v.PID }) }, -1, false},
	{"victims.anon_bytes", func(e *Event) bool { return true }, -1, false},
	{"page_bytes", func(e *Event) bool { return true }, -1, false},
	{"ram_bytes", func(e *Event) bool { return e.RAMBytes == nil }, -1, false},
	{"explained_bytes", func(e *Event) bool { return true }, -1, false},
	{"unexplained_bytes", func(e *Event) bool { return true }, -1, false},
	{"time", func(e *Event) bool { return e.Time == "" }, lineStamp, false},
}
