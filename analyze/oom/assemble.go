package oom

import (
	"maps"
	"slices"
	"time"
)

// assembler puts the lines of one input, in order of time, into kernel events.
type assembler struct {
	input string
	open  map[string]*raw // by host
	done  []*raw
	drop  int64 // events beyond MaxEvents

	last   *raw // that took the last line
	lastNo int64
}

// MaxEvents bounds how many events of one input are read; further ones are only counted.
const MaxEvents = 2048

// full says whether no more events are kept.
func (a *assembler) full() bool { return len(a.done) >= MaxEvents }

func newAssembler(input string) *assembler {
	return &assembler{input: input, open: map[string]*raw{}}
}

// Bounds beyond which a line does not belong to an event that it would otherwise continue.
const (
	maxGapLines = 4000
	maxGap      = 2 * time.Minute
)

// add takes the next line.
func (a *assembler) add(l *line) {
	if l.kind == kindReaped && a.reap(l) {
		return
	}
	cur := a.open[l.head.host]
	if l.head.host == "" && !l.head.text && a.last != nil && l.no-a.lastNo < 16 && a.lastNo-l.no < 16 {
		cur = a.last // the rest of a message of several lines, of which only the first has a prefix
	}
	if cur == nil && l.head.host == "" && len(a.open) == 1 {
		for _, only := range a.open { // a line that lost its prefix
			cur = only
		}
	}
	if o := a.open[""]; cur == nil && o != nil && o.last.kind == noStamp && l.no-o.lastNo < 16 {
		cur = o // the first line lost its prefix, as where a text was cut in it
		delete(a.open, "")
		a.open[l.head.host] = cur
	}
	if cur == nil || cur.endsBefore(l) {
		a.close(cur)
		cur = newRaw(l, a.input)
		if len(a.open) > 64 {
			a.closeAll()
		}
		a.open[l.head.host] = cur
	}
	cur.take(l)
	a.last, a.lastNo = cur, l.no
}

// reap gives a reaper's line to the event that killed its process, which may be long over.
func (a *assembler) reap(l *line) bool {
	p, ok := readReap(l.msg)
	if !ok {
		return true
	}
	if cur := a.open[l.head.host]; cur != nil && cur.killsPID(p.pid) {
		cur.take(l) // another host may have killed a process of that number too
		return true
	}
	for _, cur := range a.byBegin() {
		if cur.killsPID(p.pid) {
			cur.take(l)
			return true
		}
	}
	for i := len(a.done) - 1; i >= max(0, len(a.done)-256); i-- {
		if a.done[i].killsPID(p.pid) {
			a.done[i].take(l)
			return true
		}
	}
	return false
}

func (r *raw) killsPID(pid int64) bool {
	if r.constraint != nil && r.constraint.pid != nil && *r.constraint.pid == pid {
		return true
	}
	return slices.ContainsFunc(r.kills, func(k killLine) bool { return k.pid == pid })
}

// over says whether the event has its last line: what follows, but for the reaper, is of another.
func (r *raw) over() bool { return r.seen[kindKilled] || r.seen[kindNoVictim] }

// endsBefore says whether l begins another event.
func (r *raw) endsBefore(l *line) bool {
	if l.no-r.lastNo > maxGapLines || r.lastNo-l.no > maxGapLines || r.last.farFrom(&l.head.stamp) {
		return true
	}
	switch l.kind {
	case kindInvoke, kindFailedOrder:
		return true
	case kindConstraint:
		return r.seen[kindConstraint] || r.over()
	case kindScore, kindKilled:
		return r.killEnds(l)
	case kindGroup, kindReaped, kindNoVictim:
		return false
	case kindHeader:
		return r.over() || r.seen[kindRow]
	}
	return r.over()
}

// killEnds says whether a kill line is of another event. One kill may be printed twice, a cgroup
// may be killed as a group, and older kernels name a parent and kill its child.
func (r *raw) killEnds(l *line) bool {
	k, ok := readKill(l.msg)
	switch {
	case !ok || r.group || r.killsPID(k.pid):
		return false
	case len(r.kills) > 0:
		return r.seen[kindKilled] || !k.killed
	case r.constraint != nil && r.constraint.pid != nil:
		return true // of a kill whose line is missing
	}
	return false
}

// farFrom says whether two stamps are known to lie too far apart for one event.
func (s *stamp) farFrom(o *stamp) bool {
	ns, ok := o.since(s)
	return ok && (ns > int64(maxGap) || -ns > int64(maxGap))
}

func (a *assembler) close(r *raw) {
	if r == nil || r.closed {
		return
	}
	r.closed = true
	delete(a.open, r.host)
	for host, o := range a.open {
		if o == r {
			delete(a.open, host)
		}
	}
	if !r.isEvent() {
		return
	}
	if a.full() {
		a.drop++
		return
	}
	a.done = append(a.done, r)
}

// closeAll ends every open event.
func (a *assembler) closeAll() {
	for _, r := range a.byBegin() {
		a.close(r)
	}
}

// byBegin is the open events in the order in which they began.
func (a *assembler) byBegin() []*raw {
	return slices.SortedFunc(maps.Values(a.open),
		func(x, y *raw) int { return sign64(x.firstNo - y.firstNo) })
}

// isEvent says whether the lines show the OOM killer at work, or a request refused: a dump of
// memory counters alone is neither.
func (r *raw) isEvent() bool {
	for _, k := range []kind{
		kindInvoke, kindConstraint, kindScore, kindKilled, kindGroup, kindNoVictim, kindTaskIn,
		kindReaped, kindHeader, kindFailedOrder,
	} {
		if r.seen[k] {
			return true
		}
	}
	return len(r.rows) >= 3 || r.seen[kindUsage] && r.seen[kindStats] || r.paths[pathMemcg] &&
		r.seen[kindCPU]
}
