package oom

import (
	"fmt"
	"strings"

	"highwater/internal/units"
)

// Kinds of cause of a kernel's report.
const (
	CauseProcess   = "single_process" // one process filled the limit
	CauseProcesses = "many_processes" // several together
	CauseOther     = "other_process"  // the largest process is not the one that was killed
	// the nodes allowed have only zones that the request may not use
	CauseUnusable     = "unusable_node"
	CauseNodeFull     = "node_exhausted" // the nodes allowed are full
	CauseZone         = "zone_exhausted" // so are the zones that the request may use
	CauseCMA          = "cma_reserved"   // what is free is CMA's
	CauseFragmented   = "fragmentation"  // free memory, but no block of that order
	CauseHugePool     = "hugepage_pool"  // the pool of huge pages took it
	CauseKernelMemory = "kernel_memory"  // slab and other memory of the kernel
	// tmpfs or shared memory: killing gives back nothing of it
	CauseShmem      = "shared_memory"
	CausePageTables = "page_tables"
	CausePageCache  = "page_cache"         // that could not be reclaimed
	CauseUncounted  = "uncounted"          // the largest part is in no counter
	CauseNotFull    = "not_exhausted"      // there was usable memory when the counters were read
	CauseManual     = "manual"             // SysRq f
	CauseRefused    = "allocation_refused" // a kernel allocation failed; nobody was killed
	CauseUnknown    = "unknown"
)

// A causeRule says when it is the cause and with which words. The first that fits counts.
type causeRule struct {
	kind string
	fits func(*judgement) (Cause, bool)
}

// causeRules go from what the report states to what its figures suggest.
var causeRules = []causeRule{
	{CauseManual, (*judgement).causeManual},
	{CauseUnusable, (*judgement).causeUnusable},
	{CauseCMA, (*judgement).causeCMA},
	{CauseZone, (*judgement).causeZone},
	{CauseFragmented, (*judgement).causeFragmented},
	{CauseRefused, (*judgement).causeRefused},
	{"", (*judgement).causeHolder},
	{"", (*judgement).causeProcess},
	{CauseUnknown, (*judgement).causeUnknown},
}

func (j *judgement) cause() {
	for _, rule := range causeRules {
		if c, ok := rule.fits(j); ok {
			if c.Kind == "" {
				c.Kind = rule.kind
			}
			j.Event.Cause = c
			j.otherNodes()
			break
		}
	}
	j.Next = append(j.Next, nextSteps[j.Event.Cause.Kind]...)
}

// otherNodes adds to a failure of a cpuset or a policy that memory was free elsewhere; where no
// process is known to fill the nodes, that they are full is the cause.
func (j *judgement) otherNodes() {
	l, c := &j.Event.Limit, &j.Event.Cause
	if l.Kind != LimitCpuset && l.Kind != LimitMempolicy || c.Kind == CauseUnusable ||
		len(j.raw.zones) == 0 || !j.gfp.known {
		return
	}
	if c.Kind == CauseUnknown {
		*c = Cause{CauseNodeFull, fmt.Sprintf("The nodes allowed (%s) are full: %s of %s free.",
			orString(string(l.Nodes), "?"),
			units.Bytes(j.usableSum("free")), size(l.Bytes)), Shown}
	}
	if other := j.elsewhere(); other > 64<<20 && !j.complete {
		c.Sentence += fmt.Sprintf(" On other nodes %s are free.", units.Bytes(other))
		j.Next = append(j.Next, nextSteps[CauseNodeFull]...)
	}
}

func size(n *int64) string {
	if n == nil {
		return "an unknown amount"
	}
	return units.Bytes(*n)
}

func (j *judgement) causeManual() (Cause, bool) {
	in := j.raw.invoke
	manual := j.paths[pathManual] || in != nil && in.order != nil && *in.order == -1
	return Cause{
		Confidence: Shown,
		Sentence: "Somebody asked for it: SysRq f starts the OOM killer whether or not memory " +
			"is short.",
	}, manual
}

// blame says of every victim whether it filled the limit.
func (j *judgement) blame(was bool) {
	for i := range j.Event.Victims {
		j.Event.Victims[i].WasCause = ptr(was)
	}
}

// causeUnusable: the nodes allowed have memory free, in zones that the request may not use.
func (j *judgement) causeUnusable() (Cause, bool) {
	l := &j.Event.Limit
	if l.Kind != LimitCpuset && l.Kind != LimitMempolicy || !j.gfp.known || len(j.raw.zones) == 0 {
		return Cause{}, false
	}
	var free int64
	var names []string
	for i := range j.raw.zones {
		z := &j.raw.zones[i]
		if j.gfp.usable(z.zone) && j.suffices(z, z.bytes["free"]) {
			return Cause{}, false
		}
		if j.gfp.usable(z.zone) && z.bytes["managed"] > 0 {
			free -= z.bytes["managed"]
		}
		if !j.gfp.usable(z.zone) {
			free += z.bytes["free"]
			names = append(names, z.zone)
		}
	}
	if free < 64<<20 {
		return Cause{}, false
	}
	j.blame(false)
	s := fmt.Sprintf("Memory was not short: node %s has %s free, but only in zone %s, which "+
		"this request (%s) may not use",
		orString(string(l.Nodes), "?"), units.Bytes(j.elsewhereShown()), strings.Join(names, ", "),
		j.request())
	if j.FreeBytes != nil {
		s += fmt.Sprintf(", and the host has %s free", units.Bytes(*j.FreeBytes))
	}
	if n := len(j.Event.Victims); n > 0 {
		s += fmt.Sprintf(". Killing cannot help: %s died or were reaped for nothing", count(n,
			"process", "processes"))
	}
	return Cause{Sentence: s + ".", Confidence: Shown}, true
}

// elsewhereShown is what is free in the zones shown that the request may not use.
func (j *judgement) elsewhereShown() (bytes int64) {
	for i := range j.raw.zones {
		if z := &j.raw.zones[i]; !j.gfp.usable(z.zone) {
			bytes += z.bytes["free"]
		}
	}
	return bytes
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// request names the failing request.
func (j *judgement) request() string {
	in := j.raw.invoke
	if in == nil {
		return "unknown"
	}
	name := orString(in.names, in.mask)
	if in.order != nil && *in.order > 0 {
		name += fmt.Sprintf(", order %d", *in.order)
	}
	return name
}

func (j *judgement) causeCMA() (Cause, bool) {
	if j.Event.Limit.Kind != LimitCMA {
		return Cause{}, false
	}
	j.blame(false)
	return Cause{Confidence: Shown, Sentence: fmt.Sprintf(
		"Of %s free in zone %s, %s belong to CMA, which this request (%s) may not use; without "+
			"them the zone is below what it must keep.",
		units.Bytes(j.usableSum("free")), j.Event.Limit.Zones,
		units.Bytes(j.usableSum("free_cma")), j.request(),
	)}, true
}

func (j *judgement) usableSum(key string) (bytes int64) {
	for _, z := range j.raw.zones {
		if j.gfp.usable(z.zone) {
			bytes += z.bytes[key]
		}
	}
	return bytes
}

func (j *judgement) causeZone() (Cause, bool) {
	if j.Event.Limit.Kind != LimitZone {
		return Cause{}, false
	}
	j.blame(false)
	return Cause{Confidence: Shown, Sentence: fmt.Sprintf(
		"The request (%s) may only use zone %s, of which %s are free; %s free elsewhere are of "+
			"no use to it, and killing a process frees mostly memory there.",
		j.request(), j.Event.Limit.Zones, units.Bytes(j.usableSum("free")),
		units.Bytes(j.elsewhere()),
	)}, true
}

// causeFragmented: enough free pages in a usable zone, but no block of the order asked for.
func (j *judgement) causeFragmented() (Cause, bool) {
	in := j.raw.invoke
	if in == nil || in.order == nil || *in.order < 1 || !j.gfp.known || j.Event.Limit.cgroupKind() {
		return Cause{}, false
	}
	enough := false
	for i := range j.raw.zones {
		z := &j.raw.zones[i]
		enough = enough || j.gfp.usable(z.zone) && j.suffices(z, z.bytes["free"])
	}
	if !enough || j.hasBlock(*in.order) {
		return Cause{}, false
	}
	j.blame(false)
	return Cause{Confidence: Shown, Sentence: fmt.Sprintf(
		"%s are free in usable zones, but in pieces: no free block of order %d (%s).",
		units.Bytes(j.usableSum("free")), *in.order, size(times(1<<min(*in.order, 20),
			j.PageBytes)),
	)}, len(j.buddies) > 0
}

func (j *judgement) hasBlock(order int64) bool {
	for _, b := range j.buddies {
		for o, n := range b.free {
			if n > 0 && int64(o) >= order && j.gfp.usable(b.zone) && !(b.cma[o] && !j.gfp.movable) {
				return true
			}
		}
	}
	return false
}

func (j *judgement) causeRefused() (Cause, bool) {
	if j.failed == "" {
		return Cause{}, false
	}
	j.OutOfMemory = nil
	s := "The kernel refused one allocation (" + j.request() + "); this line alone kills nobody."
	if in := j.raw.invoke; in.order != nil && *in.order > 3 {
		s += " Requests above order 3 fail for want of a contiguous block, not of memory."
	}
	return Cause{Confidence: Shown, Sentence: s}, true
}

// holderCauses are causes by what holds most, other than processes.
var holderCauses = map[string]struct{ kind, words string }{
	holdHuge: {CauseHugePool, "the pool of huge pages, which nothing else may use " +
		"and killing does not give back"},
	holdSlab: {CauseKernelMemory, "unreclaimable slab of the kernel, which belongs " +
		"to no process"},
	holdSlabReclaimable: {CauseKernelMemory, "slab of the kernel, which belongs to no process"},
	holdKernel: {CauseKernelMemory, "kernel memory, which belongs to no process in the " +
		"table"},
	holdShmem: {CauseShmem, "shared memory or tmpfs files, which killing does not " +
		"give back unless the last user dies"},
	holdTables: {CausePageTables, "page tables"},
	holdFile:   {CausePageCache, "page cache that was not reclaimed in time"},
	holdLocked: {CauseProcesses, "unevictable (locked or pinned) memory"},
	holdUnexplained: {CauseUncounted, "in no counter of the report: a driver's or GPU's " +
		"pages, pipe buffers, zram, a balloon"},
	holdFree: {CauseNotFull, "free"},
	holdGPU:  {CauseKernelMemory, "memory of a GPU driver"},
	holdBalloon: {CauseKernelMemory, "taken by the balloon driver: the hypervisor took " +
		"it back"},
	holdZswap: {CauseKernelMemory, "compressed swap (zswap or zram)"},
}

// The share from which on a holder other than processes is the cause, whatever processes hold: what
// killing does not give back is then what is wrong.
const (
	holderAlone = 0.40
	holderLeast = 0.15 // of a memory that processes hold less of
)

// reclaimable holders are a cause only where they hold more than processes do.
var reclaimable = map[string]bool{holdFile: true, holdFree: true, holdUnexplained: true,
	holdLocked: true}

// causeHolder: something other than processes holds most.
func (j *judgement) causeHolder() (Cause, bool) {
	if j.ExplainedBy == byVictims || len(j.Holders) == 0 {
		return Cause{}, false
	}
	var processes float64
	for _, h := range j.Holders {
		if h.Name == holdAnon && h.Ratio != nil {
			processes = *h.Ratio
		}
	}
	for _, h := range j.Holders {
		c, known := holderCauses[h.Name]
		if !known || h.Ratio == nil || *h.Ratio < holderLeast {
			continue
		}
		alone := *h.Ratio >= holderAlone && !reclaimable[h.Name]
		if !alone && *h.Ratio <= processes || h.Name == holdShmem && j.victimsShmem() > h.Bytes/2 {
			continue
		}
		cause := Cause{Kind: c.kind, Confidence: Shown, Sentence: fmt.Sprintf(
			"%s of %s (%s) are %s.", units.Bytes(h.Bytes), size(j.AccountedBytes),
			units.Percent(*h.Ratio), c.words)}
		j.qualify(&cause, h.Name)
		j.blame(false)
		return cause, true
	}
	return Cause{}, false
}

// victimsShmem is the shared memory that the victims had mapped.
func (j *judgement) victimsShmem() (bytes int64) {
	for i := range j.Event.Victims {
		bytes += value(j.Event.Victims[i].ShmemBytes)
	}
	return bytes
}

// qualify adds what a holder's figures do not settle.
func (j *judgement) qualify(c *Cause, holder string) {
	switch holder {
	case holdUnexplained, holdFile, holdFree:
		c.Confidence = Suspected
	case holdHuge:
		var total, free int64
		for _, p := range j.huge {
			total += p.total * p.size
			free += p.free * p.size
		}
		c.Sentence += fmt.Sprintf(" Of the pool %s are free: reserved, and used by nobody.",
			units.Bytes(free))
		j.Numbers["hugepage_pool_bytes"], j.Numbers["hugepage_pool_free_bytes"] = total, free
	}
}

func (j *judgement) causeUnknown() (Cause, bool) {
	c := Cause{Confidence: Unknown, Kind: CauseUnknown}
	switch {
	case j.paths[pathMemcg] && j.constraint == nil:
		c.Sentence = "A cgroup's limit was met (the call trace goes through " +
			"mem_cgroup_out_of_memory); what filled it is not in the text."
	case j.Event.Limit.cgroupKind():
		c.Sentence = "A cgroup's limit was met; what filled it is not in the text."
	case j.Event.Limit.Kind == LimitUnknown:
		c.Sentence = "The OOM killer ran; neither the limit nor what filled it is in the text."
	default:
		c.Sentence = "The limit was met; what filled it is not in the text."
	}
	return c, true
}
