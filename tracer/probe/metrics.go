package probe

import "strings"

// Metric is one row of the table of what can be sampled.
type Metric struct {
	Name   string // OpenTelemetry's where it has one (semconv v1.43), an attribute's value as last part
	Unit   string // UCUM: By, s, {fault} …
	Kind   string // Gauge | Counter
	Doc    string // what the figure measures
	Source string // where it is read, cgroup v2 before v1
}

// Kinds of metrics. A counter only rises while its process or cgroup lives.
const (
	Gauge   = "gauge"
	Counter = "counter"
)

// Names that other packages look for in a trace.
const (
	RSS          = "process.memory.usage"
	RSSAnon      = "process.memory.anon"
	RSSFile      = "process.memory.file"
	RSSShmem     = "process.memory.shmem"
	HWM          = "process.memory.hwm"
	Swap         = "process.memory.swap"
	FaultsMinor  = "process.paging.faults.minor"
	FaultsMajor  = "process.paging.faults.major"
	CPUUser      = "process.cpu.time.user"
	CPUSystem    = "process.cpu.time.system"
	Steal        = "system.cpu.time.steal"
	Pace         = "system.cpu.pace"
	MemAvailable = "system.linux.memory.available"
	CgroupUsage  = "container.memory.usage"
	CgroupPeak   = "container.memory.peak"
	CgroupLimit  = "container.memory.limit"
	CgroupOOMs   = "container.memory.events.oom_kill"
	HostOOMs     = "system.memory.oom_kill"
	GoUsed       = "go.memory.used"
	GoHeapLive   = "go.memory.heap.live"
	GCCycles     = "go.gc.cycles"
)

// Metrics is the table of everything a probe can sample, for a manifest and for docs. What of it this machine
// gives, Start finds out.
func Metrics() []Metric {
	all := make([]Metric, len(table))
	for i, r := range table {
		all[i] = r.Metric
		all[i].Source = r.source()
	}
	return all
}

// source joins the row's places, first choice first.
func (r row) source() string {
	names := make([]string, len(r.places))
	for i, p := range r.places {
		names[i] = p.String()
	}
	return strings.Join(names, " or ")
}

// row is a metric and the places it may be read from; the first that exists is taken.
type row struct {
	Metric
	places []place
}

// place is one figure of one file: under key in a file of keys, at column in a file of columns.
type place struct {
	file   file
	key    string
	column int
	scale  float64 // of the file's unit to the metric's; 0 means 1, pages the page size
}

// pages as a scale is the machine's page size.
const pages = -1

// String names the place as docs show it: /proc/PID/status VmHWM.
func (p place) String() string {
	if p.key != "" {
		return files[p.file].doc + " " + p.key
	}
	return files[p.file].doc
}

func gauge(name, unit, doc string, places ...place) row {
	return row{Metric{Name: name, Unit: unit, Kind: Gauge, Doc: doc}, places}
}

func counter(name, unit, doc string, places ...place) row {
	return row{Metric{Name: name, Unit: unit, Kind: Counter, Doc: doc}, places}
}

// Scales. The kernel counts CPU time of /proc in ticks of 1/100 s on every architecture (USER_HZ).
const (
	kib   = 1024
	ticks = 0.01
	micro = 1e-6
	nano  = 1e-9
)

func status(key string) place  { return place{file: fileStatus, key: key, scale: kib} }
func meminfo(key string) place { return place{file: fileMeminfo, key: key, scale: kib} }
func vmstat(key string) place  { return place{file: fileVmstat, key: key} }
func events(key string) place  { return place{file: fileEvents2, key: key} }
func usage(key string) place   { return place{file: fileRusage, key: key} }
func goRuntime(key string) place {
	return place{file: fileGo, key: key}
}
func psi(f file, key string) place { return place{file: f, key: key, scale: micro} }

// table is the one table of metrics. Order is by subject, and the order in which a tick hands values out.
var table = []row{
	// The process.
	gauge(RSS, "By", "Resident set: anonymous, file and shared pages. The kernel batches it per CPU: off by some MiB, never use its maximum as the peak when VmHWM is there.",
		place{file: fileStatm, column: 1, scale: pages}),
	gauge("process.memory.virtual", "By", "Address space, reserved and not touched included; says nothing about memory in use.",
		place{file: fileStatm, column: 0, scale: pages}),
	gauge(RSSAnon, "By", "Resident anonymous pages: heap, stacks, private mmap. What cannot be dropped without swap.", status("RssAnon")),
	gauge(RSSFile, "By", "Resident pages of files: program text and mapped files; dropped under pressure when clean.", status("RssFile")),
	gauge(RSSShmem, "By", "Resident shared memory: tmpfs, shared anonymous mappings.", status("RssShmem")),
	gauge(HWM, "By", "Highest resident set since start or since the last ResetHWM; exact, between samples too.", status("VmHWM")),
	gauge(Swap, "By", "Anonymous pages of the process in swap.", status("VmSwap")),
	gauge("process.memory.page_tables", "By", "Page tables: charged to the cgroup, not part of the resident set.", status("VmPTE")),
	gauge("process.thread.count", "{thread}", "Threads.", place{file: fileStatus, key: "Threads"}),
	counter(FaultsMinor, "{fault}", "Page faults answered without reading a disk: first touches, mostly.",
		usage("minflt"), place{file: fileStat, key: "minflt", column: 9}),
	counter(FaultsMajor, "{fault}", "Page faults that had to read a disk or swap.",
		usage("majflt"), place{file: fileStat, key: "majflt", column: 11}),
	counter(CPUUser, "s", "CPU time in user mode, all threads.",
		usage("utime"), place{file: fileStat, key: "utime", column: 13, scale: ticks}),
	counter(CPUSystem, "s", "CPU time in the kernel for the process, page faults included.",
		usage("stime"), place{file: fileStat, key: "stime", column: 14, scale: ticks}),
	counter("process.context_switches.voluntary", "{switch}", "Times a thread gave its CPU up to wait.", usage("nvcsw")),
	counter("process.context_switches.involuntary", "{switch}", "Times a thread was taken off its CPU.", usage("nivcsw")),

	// The Go runtime, of this process only.
	gauge(GoUsed, "By", "Memory the Go runtime holds from the system: total less released. RSS less this and less what is mapped outside it is the remainder of the audit.", goRuntime("used")),
	gauge(GoHeapLive, "By", "Heap that the last collection found live.", goRuntime("live")),
	gauge("go.memory.heap.objects", "By", "Heap objects, live or dead and not yet swept.", goRuntime("objects")),
	gauge("go.memory.heap.free", "By", "Free heap that is still resident and could be given back.", goRuntime("free")),
	gauge("go.memory.heap.released", "By", "Heap address space whose pages went back to the system.", goRuntime("released")),
	gauge("go.memory.total", "By", "Everything the Go runtime has mapped, released pages included; not comparable with RSS.", goRuntime("total")),
	gauge("go.memory.gc.goal", "By", "Heap size at which the next collection starts.", goRuntime("goal")),
	counter(GCCycles, "{gc_cycle}", "Garbage collections finished, forced ones included.", goRuntime("cycles")),
	gauge("go.goroutine.count", "{goroutine}", "Goroutines.", goRuntime("goroutines")),

	// The cgroup of the process.
	gauge(CgroupUsage, "By", "Memory charged to the process's cgroup: its processes' anonymous memory, page cache, kernel memory.",
		place{file: fileCurrent2}, place{file: fileCurrent1}),
	gauge(CgroupPeak, "By", "Highest charge since the cgroup was made (v2: Linux 5.19 on).",
		place{file: filePeak2}, place{file: filePeak1}),
	gauge(CgroupLimit, "By", "The cgroup's own limit; not sampled while there is none. An ancestor's may be lower: the manifest has the effective one.",
		place{file: fileMax2}, place{file: fileLimit1}),
	gauge("container.memory.swap.usage", "By", "Swap charged to the cgroup.", place{file: fileSwap2}),
	gauge("container.memory.limiter.usage", "By", "Charge of the ancestor that sets the effective limit, where it is not the process's own cgroup.",
		place{file: fileLimiter}),
	counter("container.memory.events.high", "{event}", "Times the cgroup was throttled at its memory.high.", events("high")),
	counter("container.memory.events.max", "{event}", "Times the charge was about to pass the limit, and reclaim had to run.", events("max")),
	counter("container.memory.events.oom", "{event}", "Times an allocation was about to fail at the limit.", events("oom")),
	counter(CgroupOOMs, "{event}", "Processes of the cgroup killed by any OOM killer.",
		events("oom_kill"), place{file: fileOOM1, key: "oom_kill"}),
	counter("container.memory.failcnt", "{event}", "Times the charge hit the limit (v1).", place{file: fileFailcnt1}),
	counter("container.cpu.throttled.periods", "{period}", "Scheduling periods in which the cgroup ran out of its CPU quota.",
		place{file: fileCPU2, key: "nr_throttled"}, place{file: fileCPU1, key: "nr_throttled"}),
	counter("container.cpu.throttled.time", "s", "Time the cgroup's threads were kept off the CPU by its quota.",
		place{file: fileCPU2, key: "throttled_usec", scale: micro}, place{file: fileCPU1, key: "throttled_time", scale: nano}),

	// Pressure: time in which some, or all, tasks that wanted to run waited for a resource.
	counter("container.pressure.memory.some", "s", "Time some task of the cgroup waited for memory.", psi(filePSIMem2, "some")),
	counter("container.pressure.memory.full", "s", "Time all tasks of the cgroup waited for memory.", psi(filePSIMem2, "full")),
	counter("container.pressure.cpu.some", "s", "Time some task of the cgroup waited for a CPU.", psi(filePSICPU2, "some")),
	counter("container.pressure.io.full", "s", "Time all tasks of the cgroup waited for input or output.", psi(filePSIIO2, "full")),
	counter("system.pressure.memory.some", "s", "Time some task of the host waited for memory.", psi(filePSIMem, "some")),
	counter("system.pressure.memory.full", "s", "Time all tasks of the host waited for memory.", psi(filePSIMem, "full")),
	counter("system.pressure.cpu.some", "s", "Time some task of the host waited for a CPU.", psi(filePSICPU, "some")),
	counter("system.pressure.io.some", "s", "Time some task of the host waited for input or output.", psi(filePSIIO, "some")),
	counter("system.pressure.io.full", "s", "Time all tasks of the host waited for input or output.", psi(filePSIIO, "full")),

	// The host.
	gauge(MemAvailable, "By", "The kernel's estimate of what can be had without swapping.", meminfo("MemAvailable")),
	gauge("system.memory.usage.free", "By", "Pages in no use at all; low on a healthy machine.", meminfo("MemFree")),
	gauge("system.memory.usage.cached", "By", "Page cache, tmpfs included.", meminfo("Cached")),
	gauge("system.memory.usage.anon", "By", "Anonymous pages of all processes.", meminfo("AnonPages")),
	gauge("system.memory.anon_huge_pages", "By", "Anonymous memory in transparent huge pages.", meminfo("AnonHugePages")),
	gauge("system.paging.usage.free", "By", "Free swap.", meminfo("SwapFree")),
	counter("system.memory.thp.fault_alloc", "{page}", "Huge pages handed out at a fault.", vmstat("thp_fault_alloc")),
	counter("system.memory.thp.fault_fallback", "{page}", "Faults that wanted a huge page and got small ones.", vmstat("thp_fault_fallback")),
	counter("system.paging.operations.in", "{page}", "Pages read from swap.", vmstat("pswpin")),
	counter("system.paging.operations.out", "{page}", "Pages written to swap.", vmstat("pswpout")),
	counter(HostOOMs, "{event}", "Processes killed by the OOM killer, anywhere on the host.", vmstat("oom_kill")),
	counter("system.cpu.time.user", "s", "CPU time of the host in user mode, all CPUs.", place{file: fileHostStat, key: "user", column: 1, scale: ticks}),
	counter("system.cpu.time.system", "s", "CPU time of the host in the kernel.", place{file: fileHostStat, key: "system", column: 3, scale: ticks}),
	counter("system.cpu.time.idle", "s", "CPU time of the host with nothing to do.", place{file: fileHostStat, key: "idle", column: 4, scale: ticks}),
	counter("system.cpu.time.iowait", "s", "Idle CPU time with a disk request outstanding.", place{file: fileHostStat, key: "iowait", column: 5, scale: ticks}),
	counter(Steal, "s", "CPU time that the hypervisor gave to others: durations stretch while it grows.", place{file: fileHostStat, key: "steal", column: 8, scale: ticks}),
	gauge(Pace, "ns", "CPU time of 16000 multiplications on the sampling thread, the shortest of three: longer where the CPU runs slower, by its clock, a busy sibling thread or a neighbour on the host. Says nothing of memory.",
		place{file: filePace}),
}
