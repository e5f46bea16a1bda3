package oom

import (
	"fmt"

	"highwater/internal/units"
)

// nextSteps are what to do, by cause.
var nextSteps = map[string][]string{
	CauseProcess: {
		"Lower what the process holds at once (fewer workers, a bounded queue), or raise the " +
			"limit; `highwater analyze` on its trace says what it held.",
	},
	CauseProcesses: {"Run fewer of them at once, or raise the limit."},
	CauseOther:     {"Look at the largest process, not at the victim; check both oom_score_adj."},
	CauseUnusable: {
		"Do not bind to a node that has only zone Movable (hot-plugged, CXL or persistent " +
			"memory): add a node with zone Normal to cpuset.mems or the policy.",
	},
	CauseNodeFull: {"Allow more nodes (cpuset.mems, numactl --membind), or prefer instead of " +
		"binding (numactl --preferred)."},
	CauseZone: {
		"Use a 64-bit kernel, or lower what the kernel needs from that zone; more RAM does not " +
			"help.",
	},
	CauseCMA: {"Make the CMA area smaller (cma= on the kernel's command line); more RAM does " +
		"not help."},
	CauseFragmented: {
		"Give the kernel blocks: echo 1 > /proc/sys/vm/compact_memory, raise " +
			"vm.min_free_kbytes; find out who asks for that order.",
	},
	CauseHugePool: {
		"Give pages back: lower vm.nr_hugepages (or hugepages= on the kernel's command line) to " +
			"what is used; see HugePages_Free in /proc/meminfo.",
	},
	CauseKernelMemory: {"See which cache grows: slabtop -o -s c, and /proc/slabinfo over time."},
	CauseShmem:        {"See what lies there: df -h -t tmpfs; ipcs -m; limit tmpfs with size=."},
	CausePageTables:   {"Use huge pages, or fewer processes that map the same memory."},
	CausePageCache: {"See whether it is dirty or tmpfs: dirty and shmem in the report; " +
		"slower writers, or vm.dirty_bytes, help."},
	CauseUncounted: {
		"Compare with MemTotal and the drivers' own counters (nvidia-smi, /proc/meminfo Percpu " +
			"and VmallocUsed, zramctl, pipes): the report cannot say more.",
	},
	CauseNotFull: {"See whether the counters were read after memory came free; look for " +
		"repeated kills."},
	CauseUnknown: {"Fetch the missing lines and ask again."},
}

// notes adds what the report shows besides, and what makes its figures doubtful.
func (j *judgement) notes() {
	note := func(format string, args ...any) {
		j.Notes = append(j.Notes, fmt.Sprintf(format,
			args...))
	}
	j.noteLimit(note)
	j.noteVictim(note)
	if j.noVictim != "" {
		j.nobody = len(j.Event.Victims) == 0
		note("The kernel found nobody to kill: %q.", j.noVictim)
	}
	if j.group {
		note("memory.oom.group is set: every process of %s was killed.", orString(j.groupOf,
			"the cgroup"))
	}
	if j.rowsLost > 0 {
		note("The task table has %d rows more than were kept.", j.rowsLost)
	}
	if n := j.UnexplainedBytes; n != nil && *n < 0 {
		note("The counters add up to %s more than there is: they are read one after another, "+
			"and some lag.", units.Bytes(-*n))
	}
	if j.Event.Limit.Kind == LimitHost && j.constraint == nil && j.raw.invoke == nil {
		note("Host is what \"Out of memory:\" usually means; a cpuset or memory policy is not " +
			"excluded without the line oom-kill:constraint=…")
	}
	if j.Event.Limit.Kind == LimitHost && j.constraint == nil && j.raw.invoke != nil && j.mems == "" &&
		len(j.kills) == 0 && j.noVictim == "" && j.failed == "" {
		note("The report is cut before the line oom-kill:constraint=…: the host fits, and a cpuset " +
			"or memory policy is not excluded.")
	}
	j.noteSwap(note)
}

func (j *judgement) noteLimit(note func(string, ...any)) {
	l := &j.Event.Limit
	if l.Level == "parent" {
		note("The limit is not the task's own cgroup's but that of a parent (%s): raising the "+
			"task's own does not help.",
			orString(string(l.Owner), "above it"))
	}
	if l.cgroupKind() {
		note("The host's RAM is irrelevant here: the cgroup's limit was met.")
	}
	if l.Kind == LimitHost && j.constraint != nil && j.constraint.taskMemcg != "/" &&
		j.constraint.taskMemcg != "" {
		note("task_memcg=%s says where the victim lived, not whose limit it was: the failure is "+
			"host-wide.", j.constraint.taskMemcg)
	}
	if l.Failcnt != nil && *l.Failcnt > 0 {
		note("failcnt %s: so often was the limit met before.", units.Count(*l.Failcnt))
	}
}

func (j *judgement) noteVictim(note func(string, ...any)) {
	for i := range j.Event.Victims {
		v := &j.Event.Victims[i]
		if v.KillLines > 1 {
			note("The kill line of pid %d is printed %d times: one kill.", *v.PID, v.KillLines)
		}
		if v.ReapedNS != nil {
			note("%s was reaped %s after the kill.", v.name(), units.Nanos(*v.ReapedNS))
		}
		if vm := v.VirtualBytes; vm != nil && value(v.RSSBytes) > 0 && *vm > 4**v.RSSBytes {
			note("%s of %s is address space, not memory.", units.Bytes(*vm), v.name())
		}
		if adj := v.OOMScoreAdj; adj != nil && *adj > 0 && v.Share != nil && j.isLargest(v) {
			note("oom_score_adj %d made %s a first choice; it was the largest anyway.", *adj,
				v.name())
		}
		if j.sacrificedFor(v) != "" {
			note("The kernel chose %s and killed its child %s.", j.sacrificedFor(v), v.name())
		}
		if i >= 8 {
			return
		}
	}
}

// isLargest says whether no task of the table is larger.
func (j *judgement) isLargest(v *Victim) bool {
	mine := j.row(*v.PID)
	if mine == nil {
		return false
	}
	for i := range j.rows {
		if j.rows[i].rss > mine.rss {
			return false
		}
	}
	return true
}

// sacrificedFor is the process that was chosen where v, its child, was killed.
func (j *judgement) sacrificedFor(v *Victim) string {
	for _, k := range j.kills {
		if !k.killed && k.pid != *v.PID && j.sacrificed(k.pid) {
			return fmt.Sprintf("%s (pid %d)", k.comm, k.pid)
		}
	}
	return ""
}

func (j *judgement) noteSwap(note func(string, ...any)) {
	total, free := j.SwapTotalBytes, j.SwapFreeBytes
	for i := range j.usage {
		if u := &j.usage[i]; u.counter == "swap" && u.atLimit() && *u.limit > 0 {
			note("The cgroup's own limit on swap was met too (%s).", units.Bytes(*u.limit))
		}
	}
	switch {
	case total == nil || j.Event.Limit.cgroupKind():
	case *total == 0:
		note("There is no swap.")
	case free != nil && *free < *total/50:
		note("Swap is full (%s).", units.Bytes(*total))
	case free != nil && *free > *total/4:
		note("%s of %s swap were free: more swap would not have helped.", units.Bytes(*free),
			units.Bytes(*total))
	}
}
