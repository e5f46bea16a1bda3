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
// decides. Each part of the table has a file of its own.
var programRules = slices.Concat(runtimeRules, gpuRules, limitRules, refusedRules)

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
