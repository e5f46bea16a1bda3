package oom

// runtimeRules are limits that languages, runtimes and servers set themselves: on one array or
// string, on their heap, on threads.
var runtimeRules = []programRule{
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
