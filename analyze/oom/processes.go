package oom

import (
	"fmt"

	"highwater/internal/units"
)

// mostly is the share of a limit from which on one process, or the processes of one name, are what
// filled it.
const mostly = 0.5

// longBefore is the failcnt from which on a cgroup ran at its limit long before it was killed.
const longBefore = 1000

// causeProcess: processes filled the limit; it says whether the victim was the one.
func (j *judgement) causeProcess() (Cause, bool) {
	v := j.mainVictim()
	whole, of := j.whole()
	if c, ok := j.largerThanVictim(v, whole); ok {
		return c, true
	}
	if v != nil && v.Share == nil && whole != nil && *whole > 0 && v.RSSBytes != nil {
		v.Share = &Share{of, float64(*v.RSSBytes) / float64(*whole)}
	}
	switch {
	case v != nil && v.Share != nil && v.Share.Ratio >= mostly:
		return j.oneProcess(v), true
	case len(j.Event.Programs) > 0 && whole != nil:
		return j.manyProcesses(v, *whole), true
	case v != nil && v.RSSBytes != nil && whole == nil:
		return j.onlyVictim(v), true
	case v != nil && v.Share != nil:
		v.WasCause = nil
		return Cause{Kind: CauseUnknown, Confidence: Unknown, Sentence: fmt.Sprintf(
			"The victim %s held %s of %s; what held the rest is not in the text.",
			v.name(), units.Percent(v.Share.Ratio), v.Share.words())}, true
	}
	return Cause{}, false
}

// mainVictim is the victim that held most.
func (j *judgement) mainVictim() *Victim {
	var main *Victim
	for i := range j.Event.Victims {
		v := &j.Event.Victims[i]
		if main == nil || value(v.RSSBytes) > value(main.RSSBytes) {
			main = v
		}
	}
	return main
}

// whole is the memory that a process's share is of.
func (j *judgement) whole() (bytes *int64, of string) {
	switch l := &j.Event.Limit; {
	case l.Kind != LimitHost && l.Bytes != nil:
		return l.Bytes, "limit"
	case l.Kind != LimitHost && l.Kind != LimitUnknown:
		return nil, ""
	case j.ManagedBytes != nil:
		return j.ManagedBytes, "managed"
	}
	return j.RAMBytes, "ram"
}

func (v *Victim) name() string {
	name := string(v.Comm)
	if name == "" {
		name = "process"
	}
	if v.PID != nil {
		name += fmt.Sprintf(" (pid %d)", *v.PID)
	}
	return name
}

var shareWords = map[string]string{"limit": "the limit",
	"managed": "the memory the kernel manages", "ram": "RAM"}

func (s *Share) words() string { return shareWords[s.Of] }

// oneProcess: the victim filled the limit.
func (j *judgement) oneProcess(v *Victim) Cause {
	v.WasCause = ptr(true)
	held := sum(v.AnonBytes, v.ShmemBytes)
	if j.Event.Limit.Kind == LimitMemcgSwap {
		held = sum(held, v.SwapBytes)
	}
	if v.Share.Of != "limit" {
		held = v.RSSBytes
	}
	s := fmt.Sprintf("One process, %s, held %s = %s of %s: really used memory, not address space.",
		v.name(), size(held), units.Percent(v.Share.Ratio), v.Share.words())
	return Cause{Kind: CauseProcess, Confidence: Shown, Sentence: s + j.pace()}
}

// pace says from failcnt whether the limit was met long before.
func (j *judgement) pace() string {
	n := j.Event.Limit.Failcnt
	if n == nil || *n < longBefore {
		return ""
	}
	return fmt.Sprintf(" The limit had been met %s times before: growth over time, not a sudden "+
		"spike.", units.Count(*n))
}

// largerThanVictim: another process held more than the one that was killed.
func (j *judgement) largerThanVictim(v *Victim, whole *int64) (Cause, bool) {
	if v == nil || v.RSSBytes == nil {
		return Cause{}, false
	}
	var largest *row
	for i := range j.rows {
		if x := &j.rows[i]; largest == nil || x.rss > largest.rss {
			largest = x
		}
	}
	if largest == nil || largest.pid == *v.PID {
		return Cause{}, false
	}
	rss := times(largest.rss, j.PageBytes)
	if rss == nil || *rss < *v.RSSBytes+*v.RSSBytes/4 || largest.comm == string(v.Comm) {
		return Cause{}, false
	}
	v.WasCause = ptr(false)
	c := Cause{Kind: CauseOther, Confidence: Shown, Sentence: fmt.Sprintf(
		"The largest process is %s (pid %d) with %s; %s, which was killed, held %s.",
		largest.comm, largest.pid, units.Bytes(*rss), v.name(), size(v.RSSBytes))}
	if largest.adj != nil {
		c.Sentence += fmt.Sprintf(" Its oom_score_adj is %d, the victim's %s.", *largest.adj,
			number(v.OOMScoreAdj))
	}
	if whole == nil || float64(*rss) < mostly*float64(*whole) {
		c.Confidence = Suspected
	}
	return c, true
}

func number(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

// manyProcesses: no process alone filled the limit.
func (j *judgement) manyProcesses(v *Victim, whole int64) Cause {
	top := &j.Event.Programs[0]
	var all int64
	for i := range j.rows {
		all += value(times(j.rows[i].rss, j.PageBytes))
	}
	c := Cause{Kind: CauseProcesses, Confidence: Shown}
	share := float64(value(top.RSSBytes)) / float64(whole)
	if share >= mostly {
		c.Sentence = fmt.Sprintf("%s named %s held %s together = %s of %s.",
			count(int(top.Processes), "process", "processes"),
			top.Comm, size(top.RSSBytes), units.Percent(share), units.Bytes(whole))
		j.blameName(top.Comm)
		c.Sentence += j.pace()
		return c
	}
	c.Sentence = fmt.Sprintf("No program alone: all tasks shown together are resident with %s "+
		"of %s; the largest, %s, with %s.",
		units.Bytes(all), units.Bytes(whole), top.Comm, size(top.RSSBytes))
	if float64(all) < mostly*float64(whole) {
		c.Kind, c.Confidence = CauseUnknown, Unknown
		if v != nil {
			v.WasCause = nil
		}
	}
	c.Sentence += j.pace()
	return c
}

func (j *judgement) blameName(comm string) {
	for i := range j.Event.Victims {
		v := &j.Event.Victims[i]
		v.WasCause = ptr(string(v.Comm) == comm)
	}
}

// onlyVictim: only the victim's size is known. The killer takes the largest, unless oom_score_adj
// tells it otherwise.
func (j *judgement) onlyVictim(v *Victim) Cause {
	c := Cause{Kind: CauseProcess, Confidence: Suspected}
	c.Sentence = fmt.Sprintf("The victim %s held %s; the killer takes the largest it may, so it "+
		"probably filled the limit, whose size is not in the text.",
		v.name(), size(v.RSSBytes))
	if v.OOMScoreAdj != nil && *v.OOMScoreAdj > 0 {
		c.Kind, c.Confidence = CauseUnknown, Unknown
		c.Sentence = fmt.Sprintf("The victim %s held %s; its oom_score_adj %d made it a "+
			"preferred choice, so that it need not be the largest.",
			v.name(), size(v.RSSBytes), *v.OOMScoreAdj)
	}
	if chosen := j.sacrificedFor(v); chosen != "" {
		c.Kind, c.Confidence = CauseUnknown, Unknown
		c.Sentence = fmt.Sprintf("The kernel chose %s and killed its child %s instead, "+
			"which held %s: the victim is not the cause, and the size of the one that was "+
			"chosen is not in the text.", chosen, v.name(), size(v.RSSBytes))
		v.WasCause = ptr(false)
	}
	return c
}
