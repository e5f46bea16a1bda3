package oom

import "strings"

// refusedRules are allocations that were refused at once, in the words of languages and libraries.
// The last are the most general.
var refusedRules = []programRule{
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
