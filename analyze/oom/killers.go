package oom

import (
	"fmt"
	"strings"
)

// killerRules are the messages of killers that run as a program. Each line with a kill is an event.
var killerRules = []struct {
	word string
	read func(*Event, string) bool
}{
	{"systemd-oomd", readOomd},
	{"due to memory pressure for", readOomd},
	{"due to memory used", readOomd},
	{"sending sigterm to process", readEarlyoom},
	{"sending sigkill to process", readEarlyoom},
	{"lowmemorykiller", readLmkd},
	{" to free ", readLmkd},
	{"system oom encountered", readSystemOOM},
}

// readOomd reads systemd-oomd's "Killed /path due to memory used (a) / total (b) and swap used …"
// and "… due to memory pressure for /slice being 62.97% > 50.00% for > 20s …".
func readOomd(e *Event, msg string) bool {
	i := strings.Index(msg, "Killed /")
	if i < 0 || !strings.Contains(msg, "due to memory") {
		return false
	}
	path, _ := wordAfter(msg[i:], "Killed ", " ")
	e.Limit.Cgroup = Text(path)
	v := Victim{Cgroup: Text(path), Killed: true, KillLines: 1}
	if n := sizeIn(msg, "memory used ("); n != nil {
		e.Numbers["memory_used_bytes"] = *n
	}
	if n := sizeIn(msg, "total ("); n != nil && strings.Contains(msg, "memory used (") {
		e.RAMBytes, e.RAMSource = n, "systemd-oomd"
	}
	why, _ := wordAfter(msg, "due to ", "\n")
	e.Cause = Cause{CauseOomd, fmt.Sprintf("systemd-oomd, not the kernel, killed %s due to %s: "+
		"its own thresholds were met before memory ran out.",
		path, strings.TrimRight(why, ".")), Shown}
	e.Next = []string{"See oomctl and oomd.conf (SwapUsedLimit=, DefaultMemoryPressureLimit=), " +
		"or ManagedOOMPreference=omit for the unit; find who uses the memory: systemd-oomd " +
		"takes the cgroup with the most swap or reclaim."}
	e.Victims = append(e.Victims, v)
	return true
}

// readEarlyoom reads `sending SIGTERM to process 1234 uid 1000 "chrome": badness 861, VmRSS 2345
// MiB`.
func readEarlyoom(e *Event, msg string) bool {
	i := indexFold(msg, "to process ")
	if i < 0 {
		return false
	}
	pid, rest, ok := cutInt(msg[i+len("to process "):])
	if !ok {
		return false
	}
	v := Victim{PID: &pid, Killed: true, KillLines: 1, UID: intOf(rest, "uid ")}
	if name, ok := wordAfter(rest, "\"", "\""); ok {
		v.Comm = Text(name)
	}
	v.RSSBytes = sizeIn(rest, "VmRSS ")
	e.Victims = append(e.Victims, v)
	e.Cause = Cause{CauseOomd, "earlyoom, not the kernel, ended the process: available memory " +
		"and free swap fell below its thresholds.", Shown}
	e.Next = []string{"See the line \"mem avail\" before it; change -m and -s, or --avoid for " +
		"this process."}
	return true
}

// readSystemOOM reads the kubelet's "System OOM encountered, victim process: prover, pid: 12399",
// which it takes from the kernel's report of a host-wide kill.
func readSystemOOM(e *Event, msg string) bool {
	pid, ok := intAfter(msg, "pid: ")
	if !ok {
		return false
	}
	name, _ := wordAfter(msg, "victim process: ", ",")
	e.Source, e.Limit.Kind = SourceStatus, LimitHost
	e.Victims = append(e.Victims, Victim{PID: &pid, Comm: Text(name), Killed: true, KillLines: 1})
	e.Cause = Cause{CauseUnknown, "The kubelet saw a host-wide OOM kill on its node; what " +
		"filled the host is not in the text.", Unknown}
	e.Next = []string{"Fetch the kernel's report of that moment on the node."}
	return true
}

// readLmkd reads Android's "Kill 'com.example' (1234), uid 10123, oom_score_adj 900 to free 51234kB
// rss, 1234kB swap; reason: …", and the kernel's own driver before it.
func readLmkd(e *Event, msg string) bool {
	i := indexFold(msg, "kill")
	free := sizeIn(msg, "to free ")
	if i < 0 || free == nil {
		return false
	}
	name, ok := wordAfter(msg[i:], "'", "'")
	if !ok {
		return false
	}
	v := Victim{Comm: Text(name), Killed: true, KillLines: 1, UID: intOf(msg, "uid ")}
	if j := strings.Index(msg, "' ("); j >= 0 {
		v.PID = intOf(msg[j:], "' (")
	}
	v.RSSBytes = kbAfter(msg, "to free ")
	v.OOMScoreAdj = or(intOf(msg, "oom_score_adj "), intOf(msg, "adj "))
	if k := strings.Index(msg, "rss, "); k >= 0 {
		v.SwapBytes = kbAfter(msg[k:], "rss, ")
	}
	e.Victims = append(e.Victims, v)
	why := "memory was low"
	if reason, ok := wordAfter(msg, "reason: ", "\n"); ok {
		why = strings.TrimSpace(reason)
	}
	e.Cause = Cause{CauseOomd, fmt.Sprintf("Android's low memory killer, not the kernel's OOM "+
		"killer, killed the process: %s.", strings.TrimRight(why, ".")), Shown}
	e.Next = []string{"Least important processes go first, by oom_score_adj: see what filled " +
		"memory."}
	return true
}
