package oom

import (
	"slices"
	"strings"
)

// Kinds of cause of a program's failure.
const (
	CauseArrayLimit   = "array_limit"   // a language's limit on one array, string or buffer
	CauseHeapLimit    = "heap_limit"    // a runtime's own limit on its heap
	CauseThreadLimit  = "thread_limit"  // threads or processes, called out of memory
	CauseMapLimit     = "map_limit"     // mappings or address space
	CauseSizeOverflow = "size_overflow" // the size was computed wrong
	// the allocation was refused at once; nobody was killed
	CauseMalloc       = "malloc_refused"
	CauseFork         = "fork_refused"        // overcommit: a copy of the process was not promised
	CauseDevice       = "device_memory"       // the GPU's memory
	CausePinned       = "pinned_limit"        // pinning host memory was refused
	CauseMemlock      = "memlock_limit"       // RLIMIT_MEMLOCK
	CauseAddressSpace = "address_space_limit" // RLIMIT_AS
	CauseHugepages    = "hugepages"           // too few free huge pages
	CauseStale        = "stale_reservation"   // huge pages held by nobody alive
)

// programRule is one kind of message that a program prints when an allocation fails. A line is of
// the first rule of which it holds one of words, all of also and none of without.
type programRule struct {
	words      []string // in lower case, at least minWord long
	also       []string
	without    []string
	counts     []string // a number above 0 must stand behind one of these
	kind       string
	oom        *bool // whether memory ran out; nil where the message does not decide
	limit      string
	confidence string
	sentence   string
	next       string
	read       func(*Event, string) // figures of the line; may be nil
}

var (
	yes = ptr(true)
	no  = ptr(false)
)

// programRules go from the particular to the general: of the lines of one failure the first rule's
// decides.
var programRules = []programRule{
	{
		words: []string{"invalid array length", "invalid typed array length"},
		kind:  CauseArrayLimit, oom: no, confidence: Shown,
		sentence: "Not out of memory: JavaScript's limit on the length of one array (2^32 - 1 " +
			"elements) was met. More RAM or a larger --max-old-space-size does not help.",
		next: "Use a tool that does not hold the data in one JavaScript array (a native " +
			"implementation), or split it.",
	},
	{
		words: []string{"invalid string length", "cannot create a string longer than",
			"err_string_too_long"},
		kind: CauseArrayLimit, oom: no, confidence: Shown,
		sentence: "Not out of memory: JavaScript's limit on the length of one string was met. " +
			"More RAM does not help.",
		next: "Read or write the data as a stream, not as one string.",
	},
	{
		words: []string{
			"map maximum size exceeded", "set maximum size exceeded", "invalid table size",
			"err_fs_file_too_large", "err_buffer_too_large", "larger than maximum size",
		},
		kind: CauseArrayLimit, oom: no, confidence: Shown,
		sentence: "Not out of memory: a limit of the JavaScript engine on one object was met. " +
			"More RAM does not help.",
		next: "Split the object, or use a native implementation.",
	},
	{
		words: []string{"requested array size exceeds vm limit"},
		kind:  CauseArrayLimit, oom: no, confidence: Shown,
		sentence: "Not out of memory: Java's limit on the length of one array (2^31 - 1 " +
			"elements) was met. More RAM or a larger -Xmx does not help.",
		next: "Split the array.",
	},
	{
		words: []string{"array dimensions exceeded supported range"},
		kind:  CauseArrayLimit, oom: no, confidence: Shown,
		sentence: "Not out of memory: .NET's limit on the size of one array was met. More RAM " +
			"does not help.",
		next: "Split the array, or allow larger ones (gcAllowVeryLargeObjects).",
	},
	{
		words: []string{"array buffer allocation failed"},
		kind:  CauseMalloc, confidence: Unknown,
		sentence: "An ArrayBuffer could not be allocated: it is outside V8's heap, so that " +
			"--max-old-space-size does not help; whether its size or memory was the bound is " +
			"not in the text.",
		next: "Compare the size asked for with the engine's limit on one buffer and with " +
			"free memory.",
	},
	{
		words: []string{
			"reached heap limit", "ineffective mark-compacts near heap limit",
			"call_and_retry_last",
			"javascript heap out of memory", "committing semi space failed",
		},
		kind: CauseHeapLimit, oom: no, confidence: Shown,
		sentence: "V8's own heap limit was met (--max-old-space-size), not the machine's memory.",
		next: "Raise --max-old-space-size below what the machine or cgroup has, or hold " +
			"less in JavaScript.",
		read: readV8,
	},
	{
		words: []string{"java.lang.outofmemoryerror"}, also: []string{"unable to create", "thread"},
		kind: CauseThreadLimit, oom: no, confidence: Shown,
		sentence: "Not out of memory: a thread could not be made. The bound is one on threads " +
			"(ulimit -u, pids.max, kernel.threads-max) or on mappings (vm.max_map_count).",
		next: "Compare the number of threads with ulimit -u, the cgroup's pids.max and " +
			"vm.max_map_count.",
	},
	{
		words: []string{"java.lang.outofmemoryerror"}, also: []string{"map failed"},
		kind: CauseMapLimit, oom: no, confidence: Suspected,
		sentence: "A file could not be mapped: address space or the number of mappings " +
			"(vm.max_map_count) was the bound, not RAM.",
		next: "Compare the lines of /proc/PID/maps with vm.max_map_count; see ulimit -v.",
	},
	{
		words: []string{"java.lang.outofmemoryerror"}, also: []string{"direct buffer memory"},
		kind: CauseHeapLimit, oom: no, confidence: Shown,
		sentence: "Java's limit on direct buffers was met (-XX:MaxDirectMemorySize, by default " +
			"as large as -Xmx), not the machine's memory.",
		next: "Raise -XX:MaxDirectMemorySize, or release direct buffers earlier.",
	},
	{
		words: []string{"cannot reserve"}, also: []string{"direct buffer memory"},
		kind: CauseHeapLimit, oom: no, confidence: Shown,
		sentence: "Java's limit on direct buffers was met (-XX:MaxDirectMemorySize), not the " +
			"machine's memory.",
		next: "Raise -XX:MaxDirectMemorySize, or release direct buffers earlier.",
		read: readRequested,
	},
	{
		words: []string{"java.lang.outofmemoryerror"}, also: []string{"metaspace"},
		kind: CauseHeapLimit, oom: no, confidence: Shown,
		sentence: "Java's limit on class metadata was met (-XX:MaxMetaspaceSize), not the " +
			"machine's memory.",
		next: "Raise -XX:MaxMetaspaceSize, or find who loads classes without end.",
	},
	{
		words: []string{"java.lang.outofmemoryerror"}, also: []string{"out of swap space"},
		kind: CauseMalloc, confidence: Shown,
		sentence: "An allocation of the Java VM outside its heap was refused by the system.",
		next: "Look at free memory, ulimit -v and vm.overcommit_memory; -Xmx may leave too " +
			"little beside the heap.",
		read: readRequested,
	},
	{
		words: []string{"outofmemoryerror"}, also: []string{"java heap space"},
		kind: CauseHeapLimit, oom: no, confidence: Shown,
		sentence: "Java's own heap limit was met (-Xmx), not the machine's memory.",
		next: "Raise -Xmx below what the machine or cgroup has, or see what the heap holds " +
			"(-XX:+HeapDumpOnOutOfMemoryError).",
	},
	{
		words: []string{"allowed memory size of"}, also: []string{"exhausted"},
		kind: CauseHeapLimit, oom: no, confidence: Shown,
		sentence: "PHP's own limit was met (memory_limit), not the machine's memory.",
		next:     "Raise memory_limit, or hold less at once.",
		read:     readPHP,
	},
	{
		words: []string{"oom command not allowed", "circuitbreakingexception"},
		kind:  CauseHeapLimit, oom: no, confidence: Shown,
		sentence: "The server's own limit was met (maxmemory of Redis, a circuit breaker of " +
			"Elasticsearch), not the machine's memory.",
		next: "Raise that limit, or store less.",
	},
	{
		words: []string{"java.lang.outofmemoryerror", "gc overhead limit exceeded"},
		kind:  CauseHeapLimit, oom: no, confidence: Shown,
		sentence: "Java's own heap limit was met (-Xmx), not the machine's memory.",
		next: "Raise -Xmx below what the machine or cgroup has, or see what the heap holds " +
			"(-XX:+HeapDumpOnOutOfMemoryError).",
	},
	{
		words: []string{"insufficient memory for the java runtime", "native memory allocation ("},
		kind:  CauseMalloc, confidence: Shown,
		sentence: "An allocation of the Java VM was refused by the system (errno 12); nobody " +
			"was killed.",
		next: "Look at free memory, ulimit -v and vm.overcommit_memory.",
		read: readRequested,
	},
	{
		words: []string{"nvrm: failed to allocate page table"},
		kind:  CausePinned, oom: no, confidence: Shown,
		sentence: "The NVIDIA driver could not make its table for one registration of host " +
			"memory: from 512 GiB a call on, drivers since r580 refuse it, however much memory " +
			"is free.",
		next: "Register in pieces below 512 GiB.",
		read: readRequested,
	},
	{
		words: []string{
			"cudahostregister", "cudahostalloc", "cudamallochost", "cumemhostregister",
			"cumemhostalloc",
			"failed to register pinned memory",
		},
		kind: CausePinned, oom: no, confidence: Suspected,
		sentence: "Pinning host memory was refused. Its \"out of memory\" is neither the GPU's " +
			"memory nor, as a rule, the host's: suspect a limit on one call's size (512 GiB), " +
			"on mappings (vm.max_map_count), or on locked memory.",
		next: "Register in smaller pieces; compare with ulimit -l, vm.max_map_count (cat " +
			"/proc/PID/maps | wc -l) and the kernel log (NVRM).",
		read: readPinned,
	},
	{
		words: []string{
			"cuda out of memory", "cudaerrormemoryallocation", "cuda_error_out_of_memory",
			"cuda error: out of memory",
			"cublas_status_alloc_failed", "cl_mem_object_allocation_failure", "hip out of memory",
			"hiperroroutofmemory", "out of memory@", "cuda error 2", "error_out_of_device_memory",
		},
		kind: CauseDevice, oom: no, confidence: Shown,
		sentence: "The GPU's memory ran out, not the host's; the kernel's OOM killer has no " +
			"part in it.",
		next: "Lower what is on the device at once (fewer GPU workers, smaller batches), " +
			"and see who else uses it: nvidia-smi.",
		read: readDevice,
	},
	{
		words: []string{"out of memory", "outofmemory"}, also: []string{"cuda"},
		kind: CauseDevice, oom: no, confidence: Suspected,
		sentence: "CUDA reports out of memory: that is the GPU's memory, unless the call pins " +
			"host memory; the kernel's OOM killer has no part in it.",
		next: "Lower what is on the device at once (fewer GPU workers, smaller batches), " +
			"and see who else uses it: nvidia-smi.",
		read: readDevice,
	},
	{
		words: []string{"rlimit_memlock", "max locked memory", "mlock()", "mlock: ", "mlockall",
			"failed to mlock", "failed to lock", "ibv_reg_mr", "ulimit -l", "locked-in-memory"},
		kind: CauseMemlock, oom: no, confidence: Shown,
		sentence: "Not out of memory: the limit on locked memory was met (RLIMIT_MEMLOCK, " +
			"ulimit -l).",
		next: "Raise it: ulimit -l, LimitMEMLOCK= of the service, --ulimit memlock= of the " +
			"container.",
		read: nil,
	},
	{
		words: []string{"rlimit_as", "rlimit_data", "address space limit", "virtual memory exhausted",
			"ulimit -v"},
		kind: CauseAddressSpace, oom: no, confidence: Suspected,
		sentence: "The limit on address space was met (RLIMIT_AS, ulimit -v), or the allocation " +
			"was refused; nobody was killed, and RAM need not be short.",
		next: "See ulimit -v, LimitAS= of the service, and vm.overcommit_memory.",
	},
	{
		words: []string{"max_map_count"},
		kind:  CauseMapLimit, oom: no, confidence: Suspected,
		sentence: "The number of mappings was the bound (vm.max_map_count), not RAM.",
		next:     "Compare the lines of /proc/PID/maps with vm.max_map_count.",
	},
	{
		words:  []string{"hugetlb.1gb.", "hugetlb.2mb.", "hugetlb.512mb.", "hugetlb.64kb."},
		counts: []string{"events max ", "events.local max ", "failcnt ", "failcnt:"},
		kind:   CauseHugepages, oom: no, limit: LimitHugetlb, confidence: Suspected,
		sentence: "The cgroup's limit on huge pages was met before (its counter of refused " +
			"requests is above 0), whatever the host's pool has free.",
		next: "Compare hugetlb.SIZE.max (limit_in_bytes in version 1) of the cgroup and of its " +
			"parents with what the program maps.",
	},
	{
		words: []string{"slub: unable to allocate", "slab: unable to allocate", "vmalloc error"},
		kind:  CauseRefused, confidence: Shown,
		sentence: "The kernel refused an allocation of its own; nobody was killed for it. A " +
			"cgroup's limit on kernel memory, address space or free memory can be the bound.",
		next: "Look at the lines below it for the cache, its cgroup and the counters of memory.",
	},
	{
		words: []string{"hugetlb: allocating", "map_hugetlb", "hugepages but only",
			"could not allocate huge"},
		kind: CauseHugepages, oom: no, limit: LimitHugetlb, confidence: Shown,
		sentence: "Huge pages were refused: too few could be made, or none is free. Ordinary " +
			"memory may be plenty.",
		next: "See grep Huge /proc/meminfo; reserve them at boot (hugepagesz=1G " +
			"hugepages=N), before memory is in pieces.",
	},
	{
		words: []string{"not enough memory available on socket", "not enough free hugepages"},
		kind:  CauseHugepages, oom: no, limit: LimitHugetlb, confidence: Shown,
		sentence: "DPDK found fewer free huge pages than it needs. Ordinary memory may be plenty.",
		next: "See grep Huge /proc/meminfo and each node's " +
			"/sys/devices/system/node/node*/hugepages.",
	},
	{
		words: []string{
			"spdk_ptr_t", "spdk_malloc", "spdk_zmalloc", "spdk_dma_malloc", "spdk_dma_zmalloc",
			"rte_malloc",
			"rte_zmalloc", "eal_memalloc", "couldn't get fd on hugepage",
			"cannot get hugepage information",
			"cannot init memory", "no free hugepages", "no available hugepages",
			"no free 1048576 kb hugepages",
			"no free 2048 kb hugepages",
		},
		kind: CauseHugepages, oom: no, confidence: Suspected,
		sentence: "A buffer that SPDK or DPDK takes from huge pages could not be had; no OOM " +
			"kill. Suspect too few free huge pages (HugePages_Free): the text does not confirm it.",
		next: "See grep Huge /proc/meminfo before starting (SupraSeal needs 36 pages of 1 " +
			"GiB for a batch); pages left by a dead process stay in /dev/hugepages.",
	},
	{
		words: []string{"memory allocation of"}, also: []string{"failed"},
		kind: CauseMalloc, confidence: Shown,
		sentence: "One allocation was refused at once, and the program (Rust) ended itself; the " +
			"OOM killer has no part in it.",
		next: "Compare the size with free memory, ulimit -v and vm.overcommit_memory.",
		read: readRequested,
	},
	{
		words: []string{"capacity overflow", "std::bad_array_new_length",
			"makeslice: len out of range", "larger than max_size", "std::length_error"},
		kind: CauseSizeOverflow, oom: no, confidence: Shown,
		sentence: "Not out of memory: the program computed a size that no machine has. More RAM " +
			"does not help.",
		next: "Report it as a bug, with the input that leads there.",
	},
	{
		words: []string{"cannot fork", "fork: cannot allocate", "fork: retry", "fork/exec"},
		also:  nil,
		kind:  CauseFork, oom: no, confidence: Suspected,
		sentence: "A process could not be copied: with vm.overcommit_memory 0 or 2 the kernel " +
			"must promise as much memory again, even where the copy never uses it; or the " +
			"number of processes was the bound.",
		next: "See vm.overcommit_memory, CommitLimit and Committed_AS in /proc/meminfo, and " +
			"ulimit -u.",
	},
	{
		words: []string{"failed to create new os thread", "newosproc", "pthread_create failed",
			"pthread_create: resource", "failed to spawn thread", "can't start new thread"},
		kind: CauseThreadLimit, oom: no, confidence: Shown,
		sentence: "Not out of memory: a thread could not be made; the bound is one on threads " +
			"(ulimit -u, pids.max).",
		next: "Compare the number of threads with ulimit -u and the cgroup's pids.max.",
	},
	{
		words: []string{"runtime: out of memory", "runtime: cannot allocate memory",
			"fatal error: out of memory"},
		kind: CauseMalloc, confidence: Shown,
		sentence: "The Go runtime was refused memory by the system and ended the program; the " +
			"OOM killer has no part in it.",
		next: "See ulimit -v, vm.overcommit_memory and vm.max_map_count besides free memory.",
		read: readRequested,
	},
	{
		words: []string{
			"std::bad_alloc", "outofmemoryexception", "nomemoryerror", "eheap_alloc",
			"unable to allocate", "calling malloc()", "malloc failed", "calloc failed",
			"malloc() failed", "failed on request of size", "memory exhausted",
			"cannot allocate memory",
			"mmap failed", "failed to allocate", "out of memory allocating", "enomem)", "(enomem",
			" enomem",
		},
		kind: CauseMalloc, confidence: Shown,
		sentence: "One allocation was refused at once (ENOMEM); nobody was killed. Overcommit, " +
			"a limit on address space or its sheer size can be the reason, with RAM to spare.",
		next: "Compare the size with free memory, ulimit -v, and with CommitLimit in " +
			"/proc/meminfo where vm.overcommit_memory is 2.",
		read: readRequested,
	},
	{
		words: []string{"memoryerror"}, without: []string{"outofmemoryerror"},
		kind: CauseMalloc, confidence: Shown,
		sentence: "One allocation was refused at once (MemoryError); nobody was killed. " +
			"Overcommit, a limit on address space or its sheer size can be the reason, with RAM " +
			"to spare.",
		next: "Compare the size with free memory, ulimit -v, and with CommitLimit in " +
			"/proc/meminfo where vm.overcommit_memory is 2.",
		read: readRequested,
	},
	{
		words: []string{"out of memory"}, without: []string{"srun: error"},
		kind: CauseMalloc, confidence: Unknown,
		sentence: "A program says that it is out of memory: its allocation was refused, by the " +
			"system or by a limit of its own; no kill is in the text.",
		next: "Look at the lines before it for the size, and in the kernel log for that " +
			"moment.",
		read: readRequested,
	},
}

// fits says whether a line that holds one of the rule's words is of the rule.
func (p *programRule) fits(msg string) bool {
	for _, a := range p.also {
		if !hasFold(msg, a) {
			return false
		}
	}
	for _, w := range p.without {
		if hasFold(msg, w) {
			return false
		}
	}
	if len(p.counts) > 0 && !slices.ContainsFunc(p.counts, func(key string) bool {
		n, ok := intAfter(msg, key)
		return ok && n > 0
	}) {
		return false
	}
	if p.kind == CauseMalloc && p.confidence == Unknown { // "out of memory" alone is also prose
		return p.words[0] != "out of memory" ||
			soundsFailed(strings.ToLower(strings.ReplaceAll(strings.ToLower(msg), "out of memory",
				"")))
	}
	return p.kind != CausePinned && p.kind != CauseMemlock && p.kind != CauseFork &&
		p.kind != CauseMapLimit ||
		soundsFailed(msg)
}

// failures are words without which a line that names a call or a limit is no failure.
var failures = []string{"fail", "error", "out of memory", "cannot", "can't", "unable", "exceed",
	"refus", "too low", "too small", "denied", "retry", "fatal", "panic", "abort", "exception"}

func soundsFailed(msg string) bool {
	for _, f := range failures {
		if hasFold(msg, f) {
			return true
		}
	}
	return false
}

// maxMachine is more than any process can address: a larger size is a mistake in computing it.
const maxMachine = 1 << 47

// readRequested takes the size asked for: "allocation of 8606711792 bytes failed", "malloc() of
// size 461239222272", "cannot allocate 4194304-byte block", "Unable to allocate 12.0 GiB for an
// array".
func readRequested(e *Event, msg string) {
	n := sizeIn(msg, "allocation of ", "malloc() of size ", "request of size ", "cannot allocate ",
		"unable to allocate ", "failed to map ", "requested ", "failed to allocate ", "reserve ",
		"allocate ", "size ", "for ")
	if n == nil {
		n = largestArgument(msg)
	}
	if n == nil || e.Numbers["requested_bytes"] > 0 {
		return
	}
	e.Numbers["requested_bytes"] = *n
	if *n >= maxMachine {
		e.OutOfMemory = no
		e.Cause = Cause{Kind: CauseSizeOverflow, Confidence: Shown,
			Sentence: "Not out of memory: the size asked for is more than any process can " +
				"address, so it was computed wrong. More RAM does not help."}
		e.Next = []string{"Report it as a bug, with the input that leads there."}
	}
}

// largestArgument is the largest number between a call's brackets, as in "mmap(NULL, 8589934592, …)"
// or "cudaHostRegister(0x7f00, 549755813888)"; nil where none is of a mebibyte or more.
func largestArgument(msg string) (n *int64) {
	open := strings.IndexByte(msg, '(')
	end := strings.IndexByte(msg[open+1:], ')')
	if open < 1 || end < 0 {
		return nil
	}
	for arg := range strings.SplitSeq(msg[open+1:open+1+end], ",") {
		d, rest, ok := cutDigits(strings.TrimSpace(arg), 1, 18)
		if v := atoi(d); ok && rest == "" && v >= 1<<20 && (n == nil || v > *n) {
			n = &v
		}
	}
	return n
}

// sizeIn is the size behind the first of keys that has one.
func sizeIn(msg string, keys ...string) *int64 {
	for _, key := range keys {
		if i := indexFold(msg, key); i >= 0 {
			if n, ok := cutSize(msg[i+len(key):]); ok {
				return &n
			}
		}
	}
	return nil
}

// readPinned tells a registration that is too large from one that is refused for another reason.
func readPinned(e *Event, msg string) {
	readRequested(e, msg)
	const oneCall = 512 << 30
	if n := e.Numbers["requested_bytes"]; n >= oneCall && n < maxMachine {
		e.Cause.Confidence = Shown
		e.Cause.Sentence = "Pinning host memory was refused for the size of one call: from 512 " +
			"GiB on, NVIDIA drivers since r580 refuse a registration, however much memory is free."
	}
	if hasFold(msg, "invalid") || hasFold(msg, "already") {
		e.Cause.Sentence = "Pinning host memory was refused for its arguments: an empty, " +
			"unaligned or already registered range. No memory ran out."
		e.Cause.Confidence = Suspected
	}
}

// deviceFigures are the figures in PyTorch's message, by what stands before or behind each.
var deviceFigures = []struct{ key, name string }{
	{"tried to allocate ", "requested_bytes"},
	{"total capacity of ", "capacity_bytes"},
	{"of which ", "device_free_bytes"},
	{"this process has ", "device_used_bytes"},
	{"of the allocated memory ", "allocated_bytes"},
}

var deviceBehind = []struct{ key, name string }{
	{" total capacity", "capacity_bytes"},
	{" already allocated", "allocated_bytes"},
	{" free;", "device_free_bytes"},
	{" reserved in total", "reserved_bytes"},
	{" is reserved by", "reserved_unallocated_bytes"},
}

func readDevice(e *Event, msg string) {
	for _, f := range deviceFigures {
		if n := sizeIn(msg, f.key); n != nil {
			e.Numbers[f.name] = *n
		}
	}
	for _, f := range deviceBehind {
		i := indexFold(msg, f.key)
		if i < 0 || e.Numbers[f.name] > 0 {
			continue
		}
		before := msg[:i]
		start := strings.LastIndexAny(before, ";(,") + 1
		words := strings.Fields(before[start:])
		if len(words) >= 2 {
			if n, ok := cutSize(strings.Join(words[len(words)-2:], " ")); ok {
				e.Numbers[f.name] = n
			}
		}
	}
}

// readPHP takes the limit and the size asked for: "Allowed memory size of 134217728 bytes exhausted
// (tried to allocate 20480 bytes)".
func readPHP(e *Event, msg string) {
	e.Limit.Bytes = sizeIn(msg, "allowed memory size of ")
	if n := sizeIn(msg, "tried to allocate "); n != nil {
		e.Numbers["requested_bytes"] = *n
	}
}

// readV8 takes the heap's size from the last collection: "Mark-sweep 2043.9 (2080.0) -> 2042.9
// (2083.2) MB", and the limit set on the command line.
func readV8(e *Event, msg string) {
	if n, ok := intAfter(msg, "--max-old-space-size="); ok && n > 0 && n < 1<<30 {
		e.Limit.Bytes = ptr(n << 20)
	}
}
