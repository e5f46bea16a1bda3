package oom

import (
	"strings"
)

// invocation is the line "comm invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, …".
type invocation struct {
	comm, mask, names, nodemask string
	order, adj                  *int64
}

// maxComm is the longest name of a task.
const maxComm = 15

// readInvoke reads every form since 2.6.18; commas may be lost, and the line may be cut.
func readInvoke(msg string) invocation {
	var v invocation
	i := strings.Index(msg, "invoked oom-killer")
	v.comm = commOf(msg[:max(i, 0)])
	rest := msg[i+len("invoked oom-killer"):]
	if mask, ok := wordAfter(rest, "gfp_mask=", " ,"); ok {
		v.mask, v.names, _ = strings.Cut(mask, "(")
		v.names = strings.TrimSuffix(v.names, ")")
		v.mask, _, _ = strings.Cut(v.mask, "order=")
	}
	if n, ok := intAfter(rest, "order="); ok {
		v.order = &n
	}
	if n, ok := intAfter(rest, "oom_score_adj="); ok {
		v.adj = &n
	}
	v.nodemask, _ = wordAfter(rest, "nodemask=", " ")
	v.nodemask = strings.TrimSuffix(v.nodemask, ",")
	return v
}

// commOf is the name that ends a text. A name may hold blanks, colons and brackets, so that only
// its greatest length tells it from a prefix that was not understood.
func commOf(s string) string {
	if i := strings.LastIndex(s, "kernel: "); i >= 0 { // behind a date that was not understood
		s = s[i+len("kernel: "):]
	}
	s = strings.TrimSpace(s)
	for len(s) > maxComm {
		i := strings.IndexAny(s, " \t")
		if i < 0 {
			return s[len(s)-maxComm:]
		}
		s = strings.TrimLeft(s[i+1:], " \t")
	}
	return s
}

// killLine is a line that names a victim.
type killLine struct {
	pid                          int64
	comm                         string
	uid, adj, score              *int64
	vm, anon, file, shmem, table *int64
	memcg                        bool // "Memory cgroup out of memory"
	host                         bool // "Out of memory"
	killed                       bool // "Killed", not "Kill"
}

// readKill reads "Killed process 116 (name) total-vm:1kB, anon-rss:…", "Killed process 9163, UID
// 27, (mysqld) …", "Out of memory: Kill process 1 (x) score 2 or sacrifice child".
func readKill(msg string) (k killLine, ok bool) {
	i := indexFold(msg, "killed process ")
	k.killed = i >= 0
	from := i + len("killed process ")
	if i < 0 {
		if i = indexFold(msg, "kill process "); i < 0 {
			return k, false
		}
		from = i + len("kill process ")
	}
	k.memcg = hasFold(msg[:i], "cgroup")
	k.host = !k.memcg && hasFold(msg[:i], "out of memory")
	var rest string
	if k.pid, rest, ok = cutInt(msg[from:]); !ok {
		return k, false
	}
	k.comm, rest = readComm(rest)
	if k.comm == "" && !k.memcg && !k.host {
		return k, false
	}
	k.uid = intOf(rest, "UID:")
	if k.uid == nil {
		k.uid = intOf(msg[from:], "UID ")
	}
	k.vm, k.anon = kbAfter(rest, "total-vm:"), kbAfter(rest, "anon-rss:")
	k.file, k.shmem = kbAfter(rest, "file-rss:"), kbAfter(rest, "shmem-rss:")
	k.table, k.adj = kbAfter(rest, "pgtables:"), intOf(rest, "oom_score_adj:")
	if k.adj == nil {
		k.adj = intOf(rest, "oom_score_adj ")
	}
	k.score = intOf(rest, " score ")
	return k, true
}

func intOf(s, key string) *int64 {
	if n, ok := intAfter(s, key); ok {
		return &n
	}
	return nil
}

// readComm takes a name in brackets, which may itself hold brackets, and gives what stands behind.
func readComm(s string) (comm, rest string) {
	open := strings.IndexByte(s, '(')
	if open < 0 || open > 16 {
		return "", s
	}
	end := len(s)
	for _, mark := range []string{" total-vm:", ", UID", " score ", ", now ", ", total-vm",
		" with "} {
		if i := strings.Index(s[open:], mark); i >= 0 {
			end = min(end, open+i)
		}
	}
	comm = s[open+1 : end]
	if i := strings.LastIndexByte(comm, ')'); i >= 0 {
		end = open + 1 + i
		comm = comm[:i]
	}
	return comm, s[end:]
}

// reapLine is a line of the reaper.
type reapLine struct {
	pid               int64
	comm              string
	anon, file, shmem *int64 // what is left
	failed            bool
}

// readReap reads "oom_reaper: reaped process 1440763 (perl), now anon-rss:0kB, …" and "oom_reaper:
// unable to reap pid:123 (x)".
func readReap(msg string) (r reapLine, ok bool) {
	i := strings.Index(msg, "reaped process ")
	from := i + len("reaped process ")
	if i < 0 {
		if i = strings.Index(msg, "unable to reap pid:"); i < 0 {
			return r, false
		}
		r.failed, from = true, i+len("unable to reap pid:")
	}
	var rest string
	if r.pid, rest, ok = cutInt(msg[from:]); !ok {
		return r, false
	}
	r.comm, rest = readComm(rest)
	r.anon, r.file, r.shmem = kbAfter(rest, "anon-rss:"), kbAfter(rest, "file-rss:"), kbAfter(rest,
		"shmem-rss:")
	return r, true
}

// constraint is the line "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=…".
type constraint struct {
	kind, nodemask, cpuset, mems, memcg, taskMemcg, comm string
	global                                               bool
	pid, uid                                             *int64
}

// constraintKeys are its fields. A value ends where the next key begins: values hold commas
// (mems_allowed=0-1,4) and so may names.
var constraintKeys = []string{
	"constraint=", ",nodemask=", ",cpuset=", ",mems_allowed=", ",global_oom", ",oom_memcg=",
	",task_memcg=", ",task=", ",pid=", ",uid=",
}

func readConstraint(msg string) constraint {
	field := func(key string) string {
		i := strings.Index(msg, key)
		if i < 0 {
			return ""
		}
		v := msg[i+len(key):]
		end := len(v)
		for _, next := range constraintKeys {
			if j := strings.Index(v, next); j >= 0 {
				end = min(end, j)
			}
		}
		return strings.TrimSpace(v[:end])
	}
	c := constraint{
		kind: field("constraint="), nodemask: field(",nodemask="), cpuset: field(",cpuset="),
		mems: field(",mems_allowed="), memcg: field(",oom_memcg="),
		taskMemcg: field(",task_memcg="),
		comm:      field(",task="), global: strings.Contains(msg, ",global_oom"),
	}
	c.pid, c.uid = intOf(field(",pid="), ""), intOf(field(",uid="), "")
	return c
}

// usageLine is "memory: usage 4194304kB, limit 4194304kB, failcnt 1273284".
type usageLine struct {
	counter        string
	usage, failcnt int64
	limit          *int64
}

// counters of a cgroup, the longer names first.
var usageCounters = []string{"memory+swap", "kmem", "swap", "memory"}

// unlimited is from where on a limit means none: cgroup v1 prints 2^63 less a page.
const unlimited = 1 << 60

func readUsage(msg string) (u usageLine, ok bool) {
	usage := kbAfter(msg, "usage ")
	if usage == nil {
		return u, false
	}
	before := msg[:indexFold(msg, "usage ")]
	for _, c := range usageCounters {
		if strings.Contains(before, c+":") {
			u.counter = c
			break
		}
	}
	u.usage = *usage
	if n, ok := intAfter(msg, "limit "); ok && n < unlimited>>10 {
		u.limit = ptr(n << 10)
	}
	u.failcnt, _ = intAfter(msg, "failcnt ")
	return u, u.counter != ""
}

// zoneName splits "Node 0 DMA32 free:…" or, on machines without nodes, "Normal free:…". ok is false
// where no zone is named.
func zoneName(msg string) (node *int64, zone, rest string, ok bool) {
	t := strings.TrimLeft(msg, " \t")
	if after, found := strings.CutPrefix(t, "Node "); found {
		n, r, isNode := cutInt(after)
		if !isNode {
			return nil, "", msg, false
		}
		node, t = &n, strings.TrimLeft(r, " ")
	}
	for _, z := range zoneOrder {
		if rest, found := strings.CutPrefix(t, z); found && (strings.HasPrefix(rest, " ") ||
			strings.HasPrefix(rest, ":")) {
			return node, z, rest, true
		}
	}
	return node, "", t, false
}

// zoneOrder is the kernel's, lowest first.
var zoneOrder = []string{"DMA", "DMA32", "Normal", "HighMem", "Movable", "Device"}

// buddyLine is "Node 0 DMA: 0*4kB 1*8kB (M) … = 32kB".
type buddyLine struct {
	node  *int64
	zone  string
	first int64 // bytes of a block of order 0: a page
	free  []int64
	cma   []bool // the blocks of that order are CMA's alone
}

func readBuddy(msg string) (b buddyLine, ok bool) {
	if b.node, b.zone, msg, ok = zoneName(msg); !ok {
		return b, false
	}
	body, _, _ := strings.Cut(msg, "=")
	for f := range strings.FieldsSeq(strings.ReplaceAll(body, "* ", "*")) {
		n, rest, isCount := cutInt(f)
		if isCount && strings.HasPrefix(rest, "*") {
			size, unit, isSize := cutInt(rest[1:])
			if !isSize || unit != "kB" {
				continue
			}
			if len(b.free) == 0 {
				b.first = size << 10
			}
			b.free, b.cma = append(b.free, n), append(b.cma, false)
		} else if f == "(C)" && len(b.cma) > 0 {
			b.cma[len(b.cma)-1] = true
		}
	}
	return b, len(b.free) > 0
}

// hugeLine is "Node 0 hugepages_total=4 hugepages_free=0 hugepages_surp=0 hugepages_size=2048kB".
type hugeLine struct {
	node                    *int64
	total, free, surp, size int64 // size in bytes
}

func readHuge(msg string) (h hugeLine, ok bool) {
	if n, found := intAfter(msg, "Node "); found {
		h.node = &n
	}
	size := kbAfter(msg, "hugepages_size=")
	h.total, ok = intAfter(msg, "hugepages_total=")
	h.free, _ = intAfter(msg, "hugepages_free=")
	h.surp, _ = intAfter(msg, "hugepages_surp=")
	if size == nil || !ok {
		return h, false
	}
	h.size = *size
	return h, true
}
