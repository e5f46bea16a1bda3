package oom

import (
	"fmt"
	"strconv"
	"strings"
)

// Kinds of cause of an exit status and of a userspace killer.
const (
	// docker or Kubernetes say that the container was OOM-killed
	CauseContainer = "container_limit"
	CauseKilled    = "killed_by_signal" // SIGKILL: by whom, the status does not say
	CauseNotKilled = "not_oom_killed"   // SIGKILL, and docker says that it was not the OOM killer
	// systemd or Slurm say that the kernel killed a process of the unit
	CauseUnit    = "unit_oom_kill"
	CauseEvicted = "evicted"          // Kubernetes ended the pod to free a node's memory
	CauseOomd    = "userspace_killer" // systemd-oomd, earlyoom, lmkd
	CauseMonitor = "memory_monitor"   // YARN, Slurm, LSF measured too much and killed
)

// What a status line says; the index of ruleWord.rule for kindStatus.
const (
	statusField     = iota // "Exit Code: 137", "OOMKilled": true, reason: OOMKilled …
	statusExit             // "exited with code 137", "exit status 137"
	statusSignal           // "signal: killed", "status=9/KILL"
	statusKilled           // a shell's "Killed"
	statusUnit             // systemd, Slurm, containerd
	statusEvicted          // the node was low on resource: memory
	statusMonitor          // YARN and others
	statusContainer        // "Container killed due to memory usage" of ECS, "OOM Killed" of Nomad
	statusCounter          // "oom_kill 3" of memory.events, memory.oom_control and /proc/vmstat
	statusRSS              // "Maximum resident set size (kbytes): …" of time -v
)

// statusWords mark lines about how a process ended.
var statusWords = []struct {
	text string
	rule int
}{
	{"oomkilled", statusField},
	{"exitcode", statusField},
	{"exit code", statusExit}, {"exit status", statusExit}, {"exited with", statusExit},
	{"exited (", statusExit}, {"exitcode=", statusExit},
	{"non-zero exit", statusExit}, {"non-zero status", statusExit}, {"wait status", statusExit},
	{"returncode", statusExit},
	{"return code", statusExit}, {"exit_code", statusExit}, {" error 137", statusExit},
	{"signal: killed", statusSignal}, {"signal: 9", statusSignal}, {"signal 9", statusSignal},
	{"sigkill", statusSignal},
	{"status=9/kill", statusSignal}, {"code=killed", statusSignal}, {"signal=9", statusSignal},
	{"signal (9)", statusSignal},
	{"killed by the oom killer", statusUnit}, {"result 'oom-kill'", statusUnit}, {"oom-kill event",
		statusUnit},
	{"oom_kill event", statusUnit}, {"cgroup out-of-memory handler", statusUnit}, {"taskoom",
		statusUnit},
	{"out_of_memory", statusUnit}, {"out_of_me+", statusUnit}, {"srun: error", statusUnit},
	{"low on resource: memory", statusEvicted},
	{"beyond physical memory limits", statusMonitor}, {"beyond virtual memory limits",
		statusMonitor},
	{"exceeded job memory limit", statusMonitor}, {"exceeded memory limit", statusMonitor},
	{"term_memlimit", statusMonitor},
	{"container killed due to memory usage", statusContainer}, {"oom killed", statusContainer},
	{"container oom ", statusContainer}, {"/tasks/oom", statusContainer},
	{"oom_kill ", statusCounter},
	{"maximum resident set size", statusRSS},
	{" killed ", statusKilled}, {"killed\n", statusKilled},
}

// exitSigkill is how a shell, docker and Kubernetes give a death by signal 9: 128 + 9.
const exitSigkill = 137

// ended says whether a status line is about a death by SIGKILL, or a field of a status.
func ended(rule int, msg string) bool {
	switch rule {
	case statusExit:
		n, ok := exitNumber(msg)
		return ok && (n == exitSigkill || n == -9 || n == 9 && (hasFold(msg, "wait status") ||
			hasFold(msg, "returncode")))
	case statusKilled:
		return shellKilled(msg)
	case statusField:
		_, _, ok := field(msg)
		return ok || hasFold(msg, "OOMKilled") && !strings.Contains(msg, "{{") // a template
	case statusCounter:
		n, ok := intAfter(msg, "oom_kill ")
		return ok && n > 0
	case statusUnit:
		return !strings.Contains(msg, "+0x") && // a call trace's out_of_memory
			(!hasFold(msg, "srun: error") || hasFold(msg, "out of memory"))
	}
	return true
}

// exitNumber is the exit status that a line gives.
func exitNumber(msg string) (int64, bool) {
	for _, key := range []string{
		"exit code", "exited with code", "exited with", "exit status", "exited (", "non-zero exit",
		"wait status",
		"returncode", "return code", "exit_code", "exitcode=", "non-zero status", "error ",
	} {
		i := indexFold(msg, key)
		if i < 0 {
			continue
		}
		rest := strings.TrimLeft(msg[i+len(key):], " :=(\"'<>")
		rest = strings.TrimPrefix(rest, "code ")
		if hex, ok := strings.CutPrefix(rest, "0x"); ok {
			end := len(hex) - len(strings.TrimLeft(hex, "0123456789abcdefABCDEF"))
			n, err := strconv.ParseInt(hex[:end], 16, 32)
			return n, err == nil
		}
		if n, _, ok := cutInt(rest); ok {
			return n, true
		}
	}
	return 0, false
}

// shellKilled says whether a line is a shell's report that a command was killed: "Killed",
// "./x.sh: line 22: 53222 Killed   cmd", "[1]+  Killed   cmd", "[1]  53222 killed   cmd".
func shellKilled(msg string) bool {
	t := strings.TrimSpace(msg)
	if strings.EqualFold(t, "killed") || strings.HasPrefix(t, "Killed (core dumped)") {
		return true
	}
	i := indexFold(t, "killed ")
	if i < 0 && strings.HasSuffix(strings.ToLower(t), " killed") {
		i = len(t) - len("killed")
	}
	if i < 1 || hasFold(t, "killed process") {
		return false
	}
	before := strings.TrimSpace(t[:i])
	last := before[strings.LastIndexByte(before, ' ')+1:]
	_, rest, isPID := cutDigits(last, 1, 10)
	return isPID && rest == "" && (strings.Contains(before, "line ") || strings.HasPrefix(before,
		"[")) ||
		strings.HasPrefix(before, "[") && (strings.HasSuffix(before, "]+") ||
			strings.HasSuffix(before, "]-") || strings.HasSuffix(before, "]"))
}

// fields are what a description of a container's status is made of, in docker's and Kubernetes'
// JSON, in YAML and as kubectl describe writes it.
var fields = map[string]bool{
	"exit code": true, "exitcode": true, "oomkilled": true, "reason": true, "limits": true,
	"requests": true,
	"memory":   true, "finished": true, "finishedat": true, "name": true, "signal": true,
	"container id": true,
	"containerid":  true, "restart count": true, "restartcount": true, "memoryswap": true,
	"pid": true,
}

// describedExit is the key of an exit code in kubectl describe, where it stands behind the reason; in
// JSON and YAML it is before it.
const describedExit = "exit code"

// field splits "Exit Code: 137", `"OOMKilled": true,` and "- name: prover" into a known key and its
// value.
func field(msg string) (key, value string, ok bool) {
	t := strings.TrimLeft(msg, " \t-")
	key, value, ok = strings.Cut(t, ":")
	key = strings.ToLower(strings.Trim(key, "\" "))
	return key, strings.Trim(strings.TrimSpace(value), "\",{[ "), ok && fields[key]
}

// ending is what a text says of how one process or container ended.
type ending struct {
	first, last   int64 // lines
	stamp         stamp
	host          string
	exit, signal  *int64
	oomKilled     *bool
	reason, name  string
	limit, rss    *int64
	pid, kills    *int64
	comm          string
	finished      string
	unit, evicted string
	monitor       string
	words         []string
	lines         int
	described     bool // the exit code is kubectl describe's
}

// triggers says whether the ending says more than that a container is described.
func (n *ending) triggers() bool {
	return n.oomKilled != nil && *n.oomKilled || n.exit != nil && (*n.exit == exitSigkill ||
		*n.exit == -9 || *n.exit == 9) ||
		n.signal != nil && *n.signal == 9 || strings.EqualFold(n.reason, "OOMKilled") ||
		n.unit != "" || n.kills != nil || n.evicted != "" || n.monitor != ""
}

// endings reads the status lines of one text. Fields of a container stand together; a second reason
// or exit code begins another.
type endings struct {
	list   []*ending
	cur    *ending
	inside string // "limits" or "requests": what "memory:" is of
	before *int64 // a limit seen before its status, as in a pod's spec
}

// maxEndings bounds the statuses kept of one text.
const maxEndings = 256

func (s *endings) add(l *line) {
	if s.cur == nil || l.no-s.cur.last > 150 {
		s.begin(l)
	}
	if key, _, ok := field(l.msg); l.rule == statusField || ok && key == describedExit {
		s.field(l)
		return
	}
	s.sentence(l)
}

func (s *endings) begin(l *line) {
	if len(s.list) >= maxEndings {
		s.list = s.list[:maxEndings-1]
	}
	s.cur = &ending{first: l.no, last: l.no, stamp: l.head.stamp, host: l.head.host}
	s.list = append(s.list, s.cur)
}

// again begins another ending where the current one has this field already.
func (s *endings) again(l *line, has bool) *ending {
	if has {
		s.begin(l)
	}
	s.cur.last = l.no
	s.cur.lines++
	return s.cur
}

func (s *endings) field(l *line) {
	key, v, ok := field(l.msg)
	if !ok {
		if hasFold(l.msg, "OOMKilled") {
			n := s.again(l, s.cur.reason != "")
			n.reason = "OOMKilled"
			n.words = append(n.words, strings.TrimSpace(l.msg))
		}
		return
	}
	switch key {
	case describedExit, "exitcode":
		if code, _, ok := cutInt(v); ok && code != 0 {
			n := s.again(l, s.cur.exit != nil)
			n.exit = &code
			if n.described = key == describedExit; n.described {
				n.words = append(n.words, strings.TrimSpace(l.msg))
			}
		}
	case "signal":
		if code, _, ok := cutInt(v); ok {
			s.cur.signal = &code
		}
	case "oomkilled":
		s.again(l, s.cur.oomKilled != nil).oomKilled = ptr(strings.HasPrefix(strings.ToLower(v),
			"true"))
	case "reason":
		if strings.EqualFold(v, "OOMKilled") {
			s.again(l, s.cur.reason != "" || s.cur.described && s.cur.exit != nil).reason = v
		}
	default:
		s.detail(key, v)
	}
}

// detail takes a field that describes the container rather than its end.
func (s *endings) detail(key, v string) {
	switch key {
	case "limits", "requests":
		s.inside = key
	case "memory":
		n, ok := quantity(v)
		if !ok || n < 0 || s.inside == "requests" {
			return
		}
		if s.cur.triggers() && s.cur.limit == nil {
			s.cur.limit = &n
		}
		s.before = &n
	case "finished", "finishedat":
		s.cur.finished = v
	case "name":
		if s.cur.name == "" && v != "" {
			s.cur.name = strings.TrimPrefix(v, "/")
		}
	}
}

// sentence takes a line that says in words how something ended.
func (s *endings) sentence(l *line) {
	n := s.cur
	text := strings.TrimSpace(l.msg)
	switch l.rule {
	case statusExit:
		if code, ok := exitNumber(l.msg); ok {
			n = s.again(l, n.exit != nil && *n.exit != code)
			n.exit = &code
		}
	case statusSignal, statusKilled:
		n = s.again(l, false)
		n.signal = ptr(int64(9))
		if p := readDeath(l.msg, "killed"); p != nil && n.pid == nil {
			n.pid, n.comm = &p.pid, p.comm
		}
	case statusUnit:
		n = s.again(l, false)
		n.unit = text
	case statusContainer:
		n = s.again(l, false)
		n.reason = "OOMKilled"
	case statusCounter:
		n = s.again(l, false)
		if kills, ok := intAfter(l.msg, "oom_kill "); ok {
			n.kills = &kills
		}
	case statusEvicted:
		n = s.again(l, false)
		n.evicted = text
	case statusMonitor:
		n = s.again(l, false)
		n.monitor = text
	case statusRSS:
		if kb, ok := intAfter(l.msg, "(kbytes):"); ok {
			n = s.again(l, false)
			n.rss = ptr(kb << 10)
		}
	}
	if len(n.words) < 4 {
		n.words = append(n.words, text)
	}
	if n.stamp.kind == noStamp {
		n.stamp = l.head.stamp
	}
}

// event is the ending as an event.
func (n *ending) event(input string, before *int64) *Event {
	e := newEvent(SourceStatus, input, &n.stamp)
	e.Host, e.Lines = Text(n.host), max(n.lines, 1)
	if n.limit == nil {
		n.limit = before
	}
	if n.finished != "" && e.Time == "" {
		e.finished(n.finished)
	}
	if n.exit != nil {
		e.Numbers["exit_code"] = *n.exit
	}
	if n.signal != nil {
		e.Numbers["signal"] = *n.signal
	}
	e.Container = Text(n.name)
	n.judge(e)
	if n.rss != nil || n.pid != nil {
		e.Victims = append(e.Victims, Victim{PID: n.pid, Comm: Text(n.comm), RSSBytes: n.rss,
			Killed: true})
	}
	for _, w := range n.words {
		e.Notes = append(e.Notes, fmt.Sprintf("%q", short(w)))
	}
	e.missing(statusMissing)
	return e
}

// finished takes the time of an end: RFC 3339 as Kubernetes' JSON has it, or as kubectl describe
// writes it ("Mon, 26 Jan 2026 01:49:41 +0900").
func (e *Event) finished(text string) {
	if st, _, ok := cutISO(text); ok {
		e.setTime(&st)
		return
	}
	if st, ok := readDate(text); ok {
		st.text = text
		if i := strings.LastIndexAny(text, "+-"); i > 0 && st.kind == wallStamp {
			if zone, _, _ := cutZone(" " + text[i:] + " "); zone != nil {
				y, m, d := st.wall.Date()
				c := clock{st.wall.Hour(), st.wall.Minute(), st.wall.Second(),
					st.wall.Nanosecond(), st.digits}
				st = makeStamp(date{y, m, d}, c, zone)
			}
		}
		e.setTime(&st)
	}
}

func short(s string) string {
	const most = 160
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// judge says what the status shows.
func (n *ending) judge(e *Event) {
	oomReason := strings.EqualFold(n.reason, "OOMKilled") || n.oomKilled != nil && *n.oomKilled
	limited := n.limit != nil && *n.limit > 0
	switch {
	case n.evicted != "":
		e.OutOfMemory = no
		e.Cause = Cause{CauseEvicted, "Not an OOM kill: Kubernetes evicted the pod because its " +
			"node was low on memory.", Shown}
		e.Next = []string{"Give the pod a memory request that covers what it uses: pods above " +
			"their request are evicted first."}
	case n.monitor != "":
		e.Cause = Cause{CauseMonitor, "A job manager measured more memory than the job may use, " +
			"and killed it; the kernel's OOM killer has no part in it.", Shown}
		e.OutOfMemory = no
		e.Next = []string{"Ask for more memory, or lower what the job holds at once."}
	case oomReason:
		n.judgeContainer(e, limited)
	case n.kills != nil:
		e.OutOfMemory = yes
		e.Numbers["oom_kills"] = *n.kills
		e.Cause = Cause{CauseUnit, fmt.Sprintf("The kernel's counter says that it OOM-killed "+
			"%s; in a cgroup's memory.events that is in this cgroup, whosever limit was met.",
			count(int(min(*n.kills, 1<<30)), "process", "processes")), Suspected}
		e.Next = []string{"Fetch the kernel's report of that moment."}
	case n.unit != "":
		e.OutOfMemory = yes
		e.Cause = Cause{CauseUnit, "The kernel OOM-killed a process of this unit; whether the " +
			"unit's own limit, a parent's or the host's was met stands only in the kernel log.",
			Suspected}
		e.Next = []string{"Fetch the kernel's report of that moment."}
	case n.oomKilled != nil && !*n.oomKilled:
		e.Cause = Cause{CauseNotKilled, "Killed by SIGKILL (137 = 128 + 9), and the runtime " +
			"says that its cgroup's OOM killer did not do it: somebody sent the signal (docker " +
			"stop or kill, a failed health check), or the host's OOM killer did.", Suspected}
		e.Next = []string{"Look in the kernel log for that moment; ask who stops the container."}
	default:
		e.Cause = Cause{CauseKilled, "Killed by SIGKILL (137 = 128 + 9). The status does not " +
			"say by whom: the OOM killer is one suspect, an operator, a timeout or a supervisor " +
			"another.", Unknown}
		e.Next = []string{"Look in the kernel log for that moment: without an OOM report there, " +
			"it was not the kernel."}
	}
}

// judgeContainer: the runtime says that the OOM killer killed in the container's cgroup.
func (n *ending) judgeContainer(e *Event, limited bool) {
	e.OutOfMemory = yes
	e.Cause = Cause{Kind: CauseContainer, Confidence: Suspected}
	e.Next = []string{"Fetch the kernel's report of that moment: it names the process, its " +
		"size, and whose limit it was."}
	e.Limit.Kind = LimitMemcg
	switch {
	case limited:
		e.Limit.Bytes, e.Limit.Owner = n.limit, "container"
		e.Cause.Sentence = fmt.Sprintf("The container was OOM-killed; its limit is %s. The "+
			"runtime says so too when the pod's or the host's limit was met.", size(n.limit))
	case n.limit != nil:
		e.Limit.Kind = LimitUnknown
		e.Cause.Sentence = "A process of the container was OOM-killed, and the container has no " +
			"limit of its own: a parent cgroup's was met, or the host's."
	default:
		e.Cause.Sentence = "The container was OOM-killed: most often its own limit, which the " +
			"text does not give; the runtime says so too when the pod's or the host's was met."
	}
}

// statusMissing is for exit statuses: all that a kernel's report would say.
var statusMissing = []missingRule{
	{"limit.kind", func(e *Event) bool {
		return e.Limit.Kind == LimitUnknown &&
			e.Cause.Kind != CauseEvicted
	}, lineDmesg, false},
	{"limit.bytes", func(e *Event) bool { return e.Limit.Bytes == nil }, lineDescribe, false},
	{"limit.cgroup", func(e *Event) bool { return e.Limit.Cgroup == "" }, lineDmesg, false},
	{"invoker", func(e *Event) bool { return e.Invoker == nil }, lineDmesg, false},
	{"victims", func(e *Event) bool { return e.victim() == nil }, lineDmesg, false},
	{"victims.pid", func(e *Event) bool {
		return e.victim() != nil && e.lacksOfVictim(func(v *Victim) *int64 { return v.PID })
	}, lineDmesg, false},
	{"victims.comm", func(e *Event) bool { return e.victim() == nil || e.victim().Comm == "" },
		lineDmesg, false},
	{"victims.anon_bytes",
		func(e *Event) bool { return e.lacksOfVictim(func(v *Victim) *int64 { return v.AnonBytes }) }, lineDmesg, false},
	{"ram_bytes", func(e *Event) bool { return e.RAMBytes == nil }, lineDmesg, false},
	{"page_bytes", func(e *Event) bool { return e.PageBytes == nil }, -1, false},
	{"explained_bytes", func(e *Event) bool { return e.ExplainedBytes == nil }, lineDmesg, false},
	{"unexplained_bytes", func(e *Event) bool { return e.UnexplainedBytes == nil }, lineDmesg,
		false},
	{"time", func(e *Event) bool { return e.Time == "" }, lineDescribe, false},
}
