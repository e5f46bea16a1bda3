package oom

import (
	"strings"
)

// line is one line of a text that may matter.
type line struct {
	kind kind
	rule int // of the table that kind names
	head head
	msg  string
	no   int64 // number of the line in its input
}

// raw is the lines of one kernel event, read but not judged.
type raw struct {
	first    stamp
	killedAt stamp
	host     string
	input    string
	lines    int
	firstNo  int64
	lastNo   int64
	closed   bool
	last     stamp
	seen     [lastKernelKind + 1]bool

	invoke      *invocation
	invokerPID  *int64
	kernel      string
	cpuset      string // of kernels before 5.0
	mems        string
	constraint  *constraint
	taskIn      string
	limitOf     string
	usage       []usageLine
	statsOf     string
	stats       map[string]int64 // bytes
	counters    map[string]int64 // pages; kernel_stack in bytes
	nodes       []nodeLine
	zones       []zoneLine
	buddies     []buddyLine
	huge        []hugeLine
	pagesRAM    *int64
	reserved    *int64
	highmem     *int64
	cmaReserved *int64
	swapFree    *int64
	swapTotal   *int64
	columns     []string
	rows        []row
	rowsLost    int64
	kills       []killLine
	reaps       []reaped
	group       bool
	groupOf     string
	noVictim    string
	paths       map[string]bool
	// "page allocation failure: order:4, …": the request was refused, nobody killed
	failed string
}

type nodeLine struct {
	node int64
	kb   map[string]int64 // bytes
}

type zoneLine struct {
	node    *int64
	zone    string
	bytes   map[string]int64
	reserve []int64 // pages, lowmem_reserve[]
}

type reaped struct {
	reapLine
	at stamp
}

// row is one task of the table, in pages.
type row struct {
	pid, uid, tgid, vm, rss int64
	anon, file, shmem       *int64
	tableBytes              *int64
	swap, adj               *int64
	comm                    string
}

// maxRows bounds the task table of one event.
const maxRows = 1 << 15

func newRaw(l *line, input string) *raw {
	return &raw{
		first: l.head.stamp, last: l.head.stamp, killedAt: unstamped, host: l.head.host, input: input, firstNo: l.no,
		stats: map[string]int64{}, counters: map[string]int64{}, paths: map[string]bool{},
	}
}

// readers take a line's fields into an event, by the line's kind.
var readers = [lastKernelKind + 1]func(*raw, *line){
	kindInvoke: func(r *raw, l *line) { v := readInvoke(l.msg); r.invoke = &v },
	kindCpuset: func(r *raw, l *line) {
		r.cpuset, _ = wordAfter(l.msg, "cpuset=", " ,")
		r.mems, _ = wordAfter(l.msg, "mems_allowed=", " ")
	},
	kindCPU:     (*raw).readCPU,
	kindFrame:   (*raw).readFrame,
	kindTaskIn:  (*raw).readTaskIn,
	kindUsage:   (*raw).readUsage,
	kindStats:   (*raw).readStats,
	kindStat:    (*raw).readStat,
	kindCounter: (*raw).readCounters,
	kindNode:    (*raw).readNode,
	kindZone:    (*raw).readZone,
	kindReserve: (*raw).readReserve,
	kindBuddy: func(r *raw, l *line) {
		if b, ok := readBuddy(l.msg); ok && len(r.buddies) < 512 {
			r.buddies = append(r.buddies, b)
		}
	},
	kindHuge: func(r *raw, l *line) {
		if h, ok := readHuge(l.msg); ok && len(r.huge) < 512 {
			r.huge = append(r.huge, h)
		}
	},
	kindPages:  (*raw).readPages,
	kindSwap:   (*raw).readSwap,
	kindHeader: (*raw).readHeader,
	kindRow:    (*raw).readRow,
	kindConstraint: func(r *raw, l *line) {
		c := readConstraint(l.msg)
		r.constraint = &c
	},
	kindScore:    (*raw).readKill,
	kindKilled:   (*raw).readKill,
	kindNoVictim: func(r *raw, l *line) { r.noVictim = strings.TrimSpace(l.msg) },
	kindGroup: func(r *raw, l *line) {
		r.group = true
		r.groupOf, _ = wordAfter(l.msg, "Tasks in ", " ")
	},
	kindFailedOrder: (*raw).readFailed,
	kindReaped: func(r *raw, l *line) {
		if p, ok := readReap(l.msg); ok && len(r.reaps) < maxVictims {
			r.reaps = append(r.reaps, reaped{p, l.head.stamp})
		}
	},
}

// maxVictims bounds the victims of one event.
const maxVictims = 1024

// take reads a line into the event.
func (r *raw) take(l *line) {
	r.lines++
	r.seen[l.kind] = true
	r.lastNo = l.no
	if l.head.stamp.kind != noStamp {
		r.last = l.head.stamp
	}
	if r.first.kind == noStamp {
		r.first = l.head.stamp
	}
	if r.host == "" {
		r.host = l.head.host
	}
	if read := readers[l.kind]; read != nil {
		read(r, l)
	}
}

// readCPU reads "CPU: 1 UID: 0 PID: 116 Comm: x Not tainted 6.11.0-test #15", and "Pid: 1, comm: x"
// of kernels before 3.9.
func (r *raw) readCPU(l *line) {
	for _, key := range []string{" PID: ", "Pid: "} {
		if n, ok := intAfter(l.msg, key); ok && r.invokerPID == nil {
			r.invokerPID = &n
		}
	}
	i := indexFold(l.msg, "tainted")
	rest := strings.TrimPrefix(l.msg[i+len("tainted"):], ":")
	for f := range strings.FieldsSeq(rest) {
		if f[0] >= '0' && f[0] <= '9' && strings.Count(f, ".") >= 1 {
			r.kernel = f
			return
		}
	}
}

func (r *raw) readFrame(l *line) {
	function, _ := readFrame(strings.TrimLeft(l.msg, " \t"))
	for _, f := range frames {
		if strings.HasPrefix(strings.TrimLeft(function, "_"), strings.TrimLeft(f.name, "_")) {
			r.paths[f.path] = true
		}
	}
}

func (r *raw) readTaskIn(l *line) {
	r.taskIn, _ = wordAfter(l.msg, "Task in ", " ")
	r.limitOf, _ = wordAfter(l.msg, "as a result of limit of ", " ")
}

func (r *raw) readUsage(l *line) {
	if u, ok := readUsage(l.msg); ok && len(r.usage) < 8 {
		r.usage = append(r.usage, u)
	}
}

// readStats reads the head of a cgroup's statistics; kernels up to 5.1 print them in that line, one
// line for each cgroup below the limit, and they add up.
func (r *raw) readStats(l *line) {
	msg := l.msg
	if path, ok := wordAfter(msg, "stats for ", " "); ok {
		if r.statsOf == "" {
			r.statsOf = strings.TrimSuffix(path, ":")
		}
		msg = msg[strings.Index(msg, path)+len(path):]
	}
	pairs(msg, func(key string, n int64, unit string) bool {
		if strings.EqualFold(unit, "kB") && memcgStats[key] {
			r.stats[key] += n << 10
		}
		return true
	})
}

func (r *raw) readStat(l *line) {
	key, rest, _ := strings.Cut(strings.TrimSpace(l.msg), " ")
	if n, rest, ok := cutInt(strings.TrimSpace(rest)); ok && rest == "" && n >= 0 {
		r.stats[key] = n
	}
}

func (r *raw) readCounters(l *line) {
	pairs(l.msg, func(key string, n int64, unit string) bool {
		key = strings.ToLower(key)
		if _, twice := r.counters[key]; unit == "" && !twice && len(r.counters) < 128 && n >= 0 {
			r.counters[key] = n
		}
		return true
	})
}

// kbPairs is the counters of a line in kB, as bytes.
func kbPairs(msg string) map[string]int64 {
	m := map[string]int64{}
	pairs(msg, func(key string, n int64, unit string) bool {
		if _, twice := m[key]; !twice && strings.EqualFold(unit, "kB") && n >= 0 && n < 1<<52 {
			m[key] = n << 10
		}
		return true
	})
	return m
}

func (r *raw) readNode(l *line) {
	n, ok := intAfter(l.msg, "Node ")
	if ok && len(r.nodes) < 512 {
		r.nodes = append(r.nodes, nodeLine{n, kbPairs(l.msg)})
	}
}

func (r *raw) readZone(l *line) {
	node, zone, rest, ok := zoneName(l.msg)
	if ok && len(r.zones) < 512 {
		r.zones = append(r.zones, zoneLine{node: node, zone: zone, bytes: kbPairs(rest)})
	}
}

func (r *raw) readReserve(l *line) {
	if len(r.zones) == 0 {
		return
	}
	z := &r.zones[len(r.zones)-1]
	_, list, _ := strings.Cut(l.msg, ":")
	for f := range strings.FieldsSeq(list) {
		if n, _, ok := cutInt(f); ok && len(z.reserve) < 8 {
			z.reserve = append(z.reserve, n)
		}
	}
}

// pageLines are the lines that count pages, by what stands behind the number.
var pageLines = []struct {
	text string
	into func(*raw) **int64
}{
	{"pages cma reserved", func(r *raw) **int64 { return &r.cmaReserved }},
	{"pages reserved", func(r *raw) **int64 { return &r.reserved }},
	{"reserved pages", func(r *raw) **int64 { return &r.reserved }},
	{"pages HighMem", func(r *raw) **int64 { return &r.highmem }},
	{"pages RAM", func(r *raw) **int64 { return &r.pagesRAM }},
	{"pages of RAM", func(r *raw) **int64 { return &r.pagesRAM }},
}

func (r *raw) readPages(l *line) {
	n, rest, ok := cutInt(strings.TrimSpace(l.msg))
	if !ok || n < 0 {
		return
	}
	for _, p := range pageLines {
		if into := p.into(r); strings.HasPrefix(strings.TrimSpace(rest), p.text) && *into == nil {
			*into = &n
			return
		}
	}
}

func (r *raw) readSwap(l *line) {
	if n := kbAfter(l.msg, "Free swap  ="); n != nil {
		r.swapFree = n
	} else if n := kbAfter(l.msg, "Free swap ="); n != nil {
		r.swapFree = n
	}
	if n := kbAfter(l.msg, "Total swap ="); n != nil {
		r.swapTotal = n
	}
}

func (r *raw) readHeader(l *line) {
	_, columns, _ := strings.Cut(l.msg, "]")
	r.columns = strings.Fields(columns)
}

// readRow reads one task. The columns after rss differ by kernel; the header names them. Without it
// the last two numbers are swapents and oom_score_adj, as in every kernel since 2.6.36.
func (r *raw) readRow(l *line) {
	if len(r.rows) >= maxRows {
		r.rowsLost++
		return
	}
	t := strings.TrimLeft(l.msg, " \t")
	pid, rest, _ := strings.Cut(strings.TrimPrefix(t, "["), "]")
	x := row{pid: atoi(strings.TrimSpace(pid))}
	var n [12]int64
	want := len(n)
	if c := len(r.columns); c >= 7 && c <= len(n) {
		want = c - 1
	}
	count := 0
	for count < want {
		v, after, ok := cutInt(strings.TrimLeft(rest, " "))
		if !ok || after != "" && after[0] != ' ' {
			break
		}
		n[count], rest = v, after
		count++
	}
	if count < 4 {
		return
	}
	x.uid, x.tgid, x.vm, x.rss = n[0], n[1], n[2], n[3]
	x.comm = strings.TrimSpace(rest)
	r.rowTail(&x, n[:count])
	r.rows = append(r.rows, x)
}

// rowTail sets the columns that differ by kernel.
func (r *raw) rowTail(x *row, n []int64) {
	columns := r.columns
	if len(columns) != len(n)+1 {
		columns = guessColumns(len(n))
	}
	for i, v := range n {
		if i >= len(columns) {
			return
		}
		switch columns[i] {
		case "rss_anon":
			x.anon = &v
		case "rss_file":
			x.file = &v
		case "rss_shmem":
			x.shmem = &v
		case "pgtables_bytes":
			x.tableBytes = &v
		case "swapents":
			x.swap = &v
		case "oom_score_adj":
			x.adj = &v
		}
	}
}

// guessColumns is the table's columns by their number, where the header is lost.
func guessColumns(numbers int) []string {
	c := []string{"uid", "tgid", "total_vm", "rss"}
	if numbers >= 10 {
		c = append(c, "rss_anon", "rss_file", "rss_shmem", "pgtables_bytes")
	}
	for len(c) < numbers-2 {
		c = append(c, "")
	}
	return append(c, "swapents", "oom_score_adj")
}

func (r *raw) readKill(l *line) {
	k, ok := readKill(l.msg)
	if !ok || len(r.kills) >= maxVictims {
		return
	}
	if k.killed && r.killedAt.kind == noStamp {
		r.killedAt = l.head.stamp
	}
	r.kills = append(r.kills, k)
}

// readFailed reads "comm: page allocation failure: order:4, mode:0xcc0(GFP_KERNEL), nodemask=…".
func (r *raw) readFailed(l *line) {
	i := indexFold(l.msg, "page allocation failure")
	r.failed = strings.TrimSpace(l.msg)
	v := invocation{comm: commOf(strings.TrimSuffix(strings.TrimSpace(l.msg[:i]), ":"))}
	if n, ok := intAfter(l.msg, "order:"); ok {
		v.order = &n
	}
	if mask, ok := wordAfter(l.msg, "mode:", " ,"); ok {
		v.mask, v.names, _ = strings.Cut(mask, "(")
		v.names = strings.TrimSuffix(v.names, ")")
	}
	r.invoke = &v
	if strings.Contains(l.msg, "mems_allowed=") {
		r.mems, _ = wordAfter(l.msg, "mems_allowed=", " ")
	}
}
