package oom

import "strings"

// kind is what a line of a report is. Kernel kinds are in the order in which a report has them, so
// that a text whose newest line comes first can be told.
type kind uint8

const (
	kindNone        kind = iota
	kindFailedOrder      // page allocation failure: no kill
	kindInvoke
	kindCpuset // "comm cpuset=/ mems_allowed=0" of kernels before 5.0
	kindCPU    // "CPU: 1 PID: 116 Comm: …": kernel version, invoker's pid
	kindFrame  // of the call trace
	kindTaskIn // "Task in /a killed as a result of limit of /b"
	kindUsage
	kindStats   // head of a cgroup's statistics, in cgroup v1 the whole line
	kindStat    // one of them in cgroup v2
	kindMemInfo // "Mem-Info:"
	kindCounter // host-wide, in pages
	kindNode
	kindZone
	kindReserve // lowmem_reserve[]
	kindBuddy
	kindHuge
	kindPages // "123 pages RAM" and the like
	kindSwap
	kindSlab
	kindHeader
	kindRow
	kindConstraint
	kindScore // "Kill process 1 (x) score 900 or sacrifice child", or no line of figures
	kindKilled
	kindGroup // "Tasks in … are going to be killed due to memory.oom.group set"
	kindNoVictim
	kindReaped
	lastKernelKind

	kindFree    // output of free, /proc/meminfo, prose: facts
	kindProgram // programRules say what it is
	kindStatus  // statusRules
	kindKiller  // killerRules
)

// A word marks lines of a kind. strong words are only ever the kernel's: around them every line is
// read.
type word struct {
	text   string // in lower case
	kind   kind
	strong bool
}

// kernelWords are the reading rules' keys: what a line must hold to be of a kind. Where several
// stand in a line, the first of the table decides.
var kernelWords = []word{
	{"invoked oom-killer", kindInvoke, true},
	{"oom-kill:constraint", kindConstraint, true},
	{"are going to be killed due to memory.oom.group", kindGroup, true},
	{"killed as a result of limit of", kindTaskIn, true},
	{"no killable processes", kindNoVictim, true},
	{"system is deadlocked on memory", kindNoVictim, true},
	{"not syncing: out of memory", kindNoVictim, true},
	{"compulsory panic_on_oom", kindNoVictim, true},
	{"oom_reaper:", kindReaped, true},
	{"killed process ", kindKilled, true},
	{"or sacrifice child", kindScore, true},
	{"out of memory: kill process ", kindScore, true},
	{"memory cgroup stats", kindStats, true},
	{"kb, failcnt ", kindUsage, true},
	{"active_anon:", kindCounter, true}, // kernelKind tells host, node and zone apart
	{"active_file:", kindCounter, false},
	{"unevictable:", kindCounter, false},
	{"slab_reclaimable:", kindCounter, false},
	{"pagetables:", kindCounter, false},
	{"free_pcp:", kindCounter, false},
	{"free_cma:", kindCounter, false},
	{"kernel_misc_reclaimable:", kindCounter, false},
	{"lowmem_reserve[]", kindReserve, false},
	{"hugepages_total=", kindHuge, true},
	{"pages cma reserved", kindPages, false},
	{"pages highmem", kindPages, false},
	{"pages reserved", kindPages, false},
	{"reserved pages", kindPages, false},
	{"pages hwpoisoned", kindPages, false},
	{"pages of ram", kindPages, false},
	{"pages ram", kindPages, true},
	{"free swap ", kindSwap, false},
	{"total swap ", kindSwap, false},
	{"mem-info:", kindMemInfo, true},
	{"total_vm ", kindHeader, true},
	{"tasks state (memory values", kindMemInfo, true},
	{"unreclaimable slab info", kindSlab, false},
	{"mems_allowed=", kindCpuset, false},
	{"page allocation failure", kindFailedOrder, true},
	{"tainted", kindCPU, false},
}

// frames are functions of a call trace that tell which allocator failed.
var frames = []struct{ name, path string }{
	{"mem_cgroup_out_of_memory", pathMemcg},
	{"mem_cgroup_oom_synchronize", pathMemcg},
	{"obj_cgroup_charge", pathMemcgKernel},
	{"memcg_kmem_charge", pathMemcgKernel},
	{"memcg_charge_kmem", pathMemcgKernel},
	{"charge_memcg", pathMemcg},
	{"mem_cgroup_charge", pathMemcg},
	{"mem_cgroup_try_charge", pathMemcg},
	{"__alloc_pages_may_oom", pathPages},
	{"__alloc_pages_slowpath", pathPages},
	{"moom_callback", pathManual},
	{"sysrq_handle_moom", pathManual},
}

// Paths by which an allocation came to the OOM killer.
const (
	pathMemcg       = "memcg"
	pathMemcgKernel = "memcg kernel memory"
	pathPages       = "page allocator"
	pathManual      = "sysrq"
)

// kernelKind settles what a line with a kernel word is, and whether it is one at all: prose may
// hold the word too.
func kernelKind(k kind, msg string) kind {
	switch k {
	case kindCounter:
		return counterKind(msg)
	case kindKilled:
		if _, ok := readKill(msg); !ok {
			return kindNone
		}
	case kindScore:
		if _, ok := readKill(msg); !ok {
			return kindNone
		}
	case kindReaped:
		if _, ok := readReap(msg); !ok {
			return kindNone
		}
	case kindInvoke:
		if !strings.Contains(msg, "invoked oom-killer:") && !strings.Contains(msg, "gfp_mask") {
			return kindNone
		}
	case kindHeader:
		if !strings.Contains(msg, "tgid") && !strings.Contains(msg, "pid") {
			return kindNone
		}
	case kindCPU:
		if !strings.Contains(msg, "PID:") && !strings.Contains(msg, "Pid:") {
			return kindNone
		}
	case kindCpuset:
		if !strings.Contains(msg, " cpuset=") {
			return kindNone
		}
	}
	return k
}

// counterKind tells the three lines apart that list LRU counters: of the host in pages, of a node
// and of a zone in kB.
func counterKind(msg string) kind {
	if strings.Contains(msg, "Memory cgroup stats") {
		return kindStats
	}
	if !strings.Contains(msg, "kB") && !strings.Contains(msg, "KB") {
		return kindCounter
	}
	if strings.Contains(msg, " min:") {
		return kindZone
	}
	if strings.HasPrefix(strings.TrimLeft(msg, " "), "Node ") {
		return kindNode
	}
	if strings.Contains(msg, "rss:") || strings.Contains(msg, "cache:") {
		return kindStats
	}
	return kindNone
}

// wordless is the kind of a line that holds no known word.
func wordless(msg string) (k kind, rule int) {
	t := strings.TrimLeft(msg, " \t")
	if t == "" {
		return kindNone, 0
	}
	if t[0] == '[' {
		if isRow(t) {
			return kindRow, 0
		}
	} else if k := plainKind(t); k != kindNone {
		return k, 0
	}
	if strings.Contains(t, "+0x") {
		if _, ok := readFrame(t); ok {
			return kindFrame, 0
		}
	}
	if factLine(t) {
		return kindFree, 0
	}
	if _, _, ok := field(t); ok {
		return kindStatus, statusField
	}
	if shellKilled(t) {
		return kindStatus, statusKilled
	}
	return kindNone, 0
}

// plainKind tells lines of a report by how they begin.
func plainKind(t string) kind {
	for _, p := range [...]string{"free:", "mapped:", "active:", "sec_pagetables:",
		"inactive_file:"} {
		if strings.HasPrefix(t, p) && !strings.Contains(t, "kB") {
			return kindCounter
		}
	}
	if strings.Contains(t, "kB = ") && strings.Contains(t, "*") || strings.Contains(t, "*4kB ") {
		return kindBuddy
	}
	if key, _, ok := strings.Cut(t, " "); ok && memcgStats[key] {
		return kindStat
	}
	return kindNone
}

// looseField says whether a raw line may be a field of a container's status: "  Exit Code:    137".
func looseField(raw string) bool {
	t := strings.TrimLeft(raw, " \t\"-")
	if t == "" || lower[t[0]] < 'a' || lower[t[0]] > 'z' || len(t) > 200 {
		return false
	}
	colon := strings.IndexByte(t[:min(len(t), 20)], ':')
	if colon < 3 {
		return false
	}
	_, _, ok := field(t)
	return ok
}

// isRow says whether a line is a row of the task table: [  116]  0  116  2628942 …
func isRow(t string) bool {
	end := strings.IndexByte(t, ']')
	if end < 2 || end > 12 {
		return false
	}
	_, rest, ok := cutDigits(strings.TrimSpace(t[1:end]), 1, 10)
	if !ok || rest != "" {
		return false
	}
	fields := 0
	for f := range strings.FieldsSeq(t[end+1:]) {
		if _, rest, ok := cutInt(f); !ok || rest != "" {
			break
		}
		fields++
	}
	return fields >= 6
}

// readFrame is the function of a call trace's line, "oom_kill_process+0x255/0x350"; those with a
// question mark are leftovers of the stack and do not count.
func readFrame(t string) (function string, ok bool) {
	i := strings.Index(t, "+0x")
	if i < 2 {
		return "", false
	}
	if strings.HasPrefix(t, "? ") || strings.Contains(t[:i], " ? ") {
		return "?", true
	}
	function = t[:i]
	if j := strings.LastIndexAny(function, " ]("); j >= 0 {
		function = function[j+1:]
	}
	return function, function != ""
}

// memcgStats are the counters of cgroup v2 that a report prints one a line.
var memcgStats = map[string]bool{
	"anon": true, "file": true, "kernel": true, "kernel_stack": true, "pagetables": true,
	"sec_pagetables": true, "percpu": true, "sock": true, "vmalloc": true, "shmem": true,
	"zswap": true, "zswapped": true, "file_mapped": true, "file_dirty": true,
	"file_writeback": true,
	"swapcached":     true, "anon_thp": true, "file_thp": true, "shmem_thp": true,
	"inactive_anon": true,
	"active_anon":   true, "inactive_file": true, "active_file": true, "unevictable": true,
	"slab_reclaimable": true, "slab_unreclaimable": true, "slab": true, "cache": true, "rss": true,
	"rss_huge": true, "mapped_file": true, "swap": true,
}
