package oom

// A missingRule says of one field when the text lacks it, and which line would give it.
type missingRule struct {
	field string
	lacks func(*Event) bool
	line  int  // of fetchLines; -1 where no line gives it
	known bool // the field is there, but the line would give it better
}

// Lines that a report may lack, as indices of fetchLines.
const (
	lineInvoked = iota
	lineConstraint
	lineUsage
	lineStats
	lineKilled
	lineTable
	lineMemInfo
	lineStamp
	lineDescribe
	lineDmesg
	lineHuge
	lineProgram
)

// dmesgCommand gives the kernel's whole report. The ring buffer may have overwritten it; the
// journal has not.
const dmesgCommand = "journalctl -k -o short-iso-precise --no-pager | highwater oom -"

var fetchLines = [...]struct{ line, command string }{
	lineInvoked:    {"NAME invoked oom-killer: gfp_mask=…, order=…", dmesgCommand},
	lineConstraint: {"oom-kill:constraint=…,oom_memcg=…,task_memcg=…,task=…,pid=…", dmesgCommand},
	lineUsage:      {"memory: usage …kB, limit …kB, failcnt …", dmesgCommand},
	lineStats:      {"Memory cgroup stats for … and the lines below it", dmesgCommand},
	lineKilled:     {"Killed process PID (NAME) total-vm:…kB, anon-rss:…kB, …", dmesgCommand},
	lineTable: {"the task table: [  pid  ]   uid  tgid total_vm      rss … name",
		dmesgCommand},
	lineMemInfo: {"Mem-Info: … to … pages RAM", dmesgCommand},
	lineStamp:   {"the same lines with their time", "dmesg --time-format iso"},
	lineDescribe: {"Limits, Last State, Reason, Exit Code", "kubectl describe pod NAME; " +
		"docker inspect NAME"},
	lineDmesg:   {"the kernel's report of that moment, if there is one", dmesgCommand},
	lineHuge:    {"HugePages_Total, HugePages_Free, HugePages_Rsvd", "grep Huge /proc/meminfo"},
	lineProgram: {"the message with the size that was asked for", "the program's own log"},
}

func (e *Event) victim() *Victim {
	if len(e.Victims) == 0 {
		return nil
	}
	return &e.Victims[0]
}

func (e *Event) lacksOfVictim(field func(*Victim) *int64) bool {
	v := e.victim()
	return v == nil || field(v) == nil
}

// kernelMissing is for kernel reports. Fields that a report of the event's kind never has are not
// missing.
var kernelMissing = []missingRule{
	{"limit.kind", func(e *Event) bool { return e.Limit.Kind == LimitUnknown }, lineConstraint,
		false},
	{"limit.bytes", func(e *Event) bool { return e.Limit.Bytes == nil && !e.Limit.cgroupKind() },
		lineMemInfo, false},
	{"limit.bytes", func(e *Event) bool {
		return e.Limit.Bytes == nil && e.Limit.cgroupKind() &&
			!e.Limit.unlimited(e)
	}, lineUsage, false},
	{"limit.cgroup", func(e *Event) bool { return e.Limit.Cgroup == "" && e.Limit.cgroupKind() },
		lineConstraint, false},
	{"limit.node", func(e *Event) bool {
		return (e.Limit.Kind == LimitCpuset || e.Limit.Kind == LimitMempolicy) &&
			e.Limit.Nodes == ""
	}, lineConstraint, false},
	{"invoker", func(e *Event) bool { return e.Invoker == nil || e.Invoker.Comm == "" },
		lineInvoked, false},
	{"victims", func(e *Event) bool { return len(e.Victims) == 0 && e.killer() }, lineKilled,
		false},
	{"victims.anon_bytes", func(e *Event) bool {
		return e.killer() && e.lacksOfVictim(func(v *Victim) *int64 { return v.AnonBytes })
	}, lineKilled, false},
	{"victims.file_bytes", func(e *Event) bool {
		return e.killer() && e.lacksOfVictim(func(v *Victim) *int64 { return v.FileBytes })
	}, lineKilled, false},
	{"victims.shmem_bytes", func(e *Event) bool {
		return e.killer() && e.lacksOfVictim(func(v *Victim) *int64 { return v.ShmemBytes })
	}, lineKilled, false},
	{"victims.swap_bytes", func(e *Event) bool {
		return e.killer() && e.lacksOfVictim(func(v *Victim) *int64 { return v.SwapBytes })
	}, lineTable, false},
	{"victims.oom_score_adj", func(e *Event) bool {
		return e.killer() && e.lacksOfVictim(func(v *Victim) *int64 { return v.OOMScoreAdj })
	}, lineTable, false},
	{"page_bytes", func(e *Event) bool { return e.PageBytes == nil }, lineTable, false},
	{"ram_bytes", func(e *Event) bool { return e.RAMBytes == nil && !e.Limit.cgroupKind() },
		lineMemInfo, false},
	{"explained_bytes", func(e *Event) bool {
		return e.ExplainedBytes == nil &&
			!e.Limit.cgroupKind()
	}, lineMemInfo, false},
	{"unexplained_bytes", func(e *Event) bool {
		return e.UnexplainedBytes == nil &&
			!e.Limit.cgroupKind()
	}, lineMemInfo, false},
	{"explained_bytes", func(e *Event) bool {
		return e.Limit.cgroupKind() &&
			e.ExplainedBytes == nil
	}, lineStats, false},
	{"holders", func(e *Event) bool { return e.ExplainedBy == byVictims }, lineStats, true},
	{"unexplained_bytes", func(e *Event) bool {
		return e.UnexplainedBytes == nil &&
			e.Limit.cgroupKind()
	}, lineStats, false},
	{"ram_bytes", func(e *Event) bool { return e.RAMBytes == nil && e.Limit.cgroupKind() }, -1,
		false},
	{"time", func(e *Event) bool { return e.Time == "" }, lineStamp, false},
}

// killer says whether the event is one in which a process is killed.
func (e *Event) killer() bool { return e.OutOfMemory != nil && *e.OutOfMemory && !e.nobody }

// isKill says whether memory ran out and the kernel acted, whether or not it found somebody to
// kill.
func (e *Event) isKill() bool { return e.OutOfMemory != nil && *e.OutOfMemory }

// unlimited says whether the cgroup's counters are there and have no limit.
func (l *Limit) unlimited(e *Event) bool { return len(e.Usage) > 0 && l.UsageBytes != nil }

// missing names the fields that are null and the lines that would fill them. A field without a line
// (-1) is never in such a report.
func (e *Event) missing(rules []missingRule) {
	at := map[int]int{}
	for _, rule := range rules {
		if !rule.lacks(e) || contains(e.Missing, rule.field) {
			continue
		}
		if !rule.known {
			e.Missing = append(e.Missing, rule.field)
		}
		if rule.line < 0 {
			continue
		}
		i, ok := at[rule.line]
		if !ok {
			i = len(e.Fetch)
			at[rule.line] = i
			f := fetchLines[rule.line]
			e.Fetch = append(e.Fetch, Fetch{Line: f.line, Command: f.command})
		}
		e.Fetch[i].Gives = append(e.Fetch[i].Gives, rule.field)
	}
}
