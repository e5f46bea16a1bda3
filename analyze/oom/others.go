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
		Source: source, Input: input, Victims: []Victim{}, Holders: []Holder{},
		Programs: []Program{},
		Usage:    []Usage{}, Zones: []ZoneFree{}, Numbers: map[string]int64{}, Missing: []string{},
		Fetch: []Fetch{},
		Next:  []string{}, Notes: []string{},
	}
	e.Limit.Kind = LimitUnknown
	e.setTime(s)
	return e
}

// otherEvents reads the lines that are not of kernel reports into events; kernel are those of the
// same text, to which facts about the host and fitting exit statuses are added.
func (c *collector) otherEvents(kernel []*Event) []*Event {
	o := otherReader{collector: c}
	for i := range c.others {
		o.read(&c.others[i])
	}
	for _, e := range kernel {
		o.facts.add(e)
	}
	o.keepEndings(kernel)
	for _, e := range o.events {
		o.facts.add(e)
		e.finish()
	}
	return o.events
}

// otherReader is the reading of one text's lines that are not of kernel reports.
type otherReader struct {
	*collector
	facts   facts
	endings endings
	events  []*Event
	program *Event // that further messages may be of
	rule    int    // that decides it
	no      int64  // of its last line
}

func (o *otherReader) read(l *line) {
	switch l.kind {
	case kindFree:
		o.facts.read(l.msg)
	case kindStatus:
		o.endings.add(l)
	case kindKiller:
		e := newEvent(SourceKiller, o.in.Name, &l.head.stamp)
		e.Host, e.Lines, e.OutOfMemory = Text(l.head.host), 1, yes
		if killerRules[l.rule].read(e, l.msg) {
			o.keep(e)
		}
	case kindProgram:
		o.message(l)
	}
}

func (o *otherReader) keep(e *Event) {
	if len(o.events) >= maxOtherEvents {
		o.lost++
		return
	}
	o.events = append(o.events, e)
}

// message takes a program's message: of the failure before it where it is near, whose event it
// decides where its rule is more particular.
func (o *otherReader) message(l *line) {
	same := o.program != nil && l.no-o.no <= sameFailure
	switch {
	case !same:
		o.program = newEvent(SourceProgram, o.in.Name, &l.head.stamp)
		o.rule = l.rule
		o.program.begin(l)
		o.keep(o.program)
	case l.rule < o.rule:
		o.rule = l.rule
		o.program.begin(l)
	}
	o.program.more(l, o.rule)
	o.no = l.no
}

// keepEndings adds exit statuses: as events where nothing else explains the death, else as notes.
func (o *otherReader) keepEndings(kernel []*Event) {
	killed := slices.ContainsFunc(kernel, (*Event).isKill)
	for _, n := range o.endings.list {
		if !n.triggers() {
			continue
		}
		e := n.event(o.in.Name, o.endings.before)
		if killed {
			last := kernel[len(kernel)-1]
			if len(last.Notes) < 20 {
				last.Notes = append(last.Notes,
					"The text also has an exit status that fits: "+strings.Join(e.Notes,
						" ")+e.exitText())
			}
			continue
		}
		o.keep(e)
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
		strings.EqualFold(name, "error") || strings.EqualFold(name, "fatal") ||
		strings.Contains(name, "::") {
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
		return e.Numbers["requested_bytes"] == 0 && (e.Cause.Kind == CauseMalloc ||
			e.Cause.Kind == CausePinned || e.Cause.Kind == CauseDevice)
	}, lineProgram, false},
	{"time", func(e *Event) bool { return e.Time == "" }, lineProgram, false},
}

var killerMissing = []missingRule{
	{"limit.kind", func(e *Event) bool { return e.Limit.Kind == LimitUnknown }, -1, false},
	{"limit.bytes", func(e *Event) bool { return e.Limit.Bytes == nil }, -1, false},
	{"victims.pid",
		func(e *Event) bool { return e.lacksOfVictim(func(v *Victim) *int64 { return v.PID }) },
		-1, false},
	{"victims.anon_bytes", func(e *Event) bool { return true }, -1, false},
	{"page_bytes", func(e *Event) bool { return true }, -1, false},
	{"ram_bytes", func(e *Event) bool { return e.RAMBytes == nil }, -1, false},
	{"explained_bytes", func(e *Event) bool { return true }, -1, false},
	{"unexplained_bytes", func(e *Event) bool { return true }, -1, false},
	{"time", func(e *Event) bool { return e.Time == "" }, lineStamp, false},
}
