package oom

import (
	"cmp"
	"slices"
)

// hostCounters are the counters, in pages, that add up to managed memory. Those that are parts of
// others are not among them: shmem and swap cache are in the LRU lists, mapped, dirty and writeback
// too, free_cma is in free.
var hostCounters = []struct{ name, holder string }{
	{"active_anon", holdAnon}, {"inactive_anon", holdAnon}, {"isolated_anon", holdAnon},
	{"active_file", holdFile}, {"inactive_file", holdFile}, {"isolated_file", holdFile},
	{"unevictable", holdLocked},
	{"slab_reclaimable", holdSlabReclaimable}, {"slab_unreclaimable", holdSlab}, {"slab", holdSlab},
	{"kernel_misc_reclaimable", holdKernel}, {"bounce", holdKernel},
	{"pagetables", holdTables}, {"sec_pagetables", holdTables},
	{"zspages", holdZswap}, {"balloon_pages", holdBalloon},
	{"gpu_active", holdGPU}, {"gpu_reclaim", holdGPU},
	{"free", holdFree}, {"free_pcp", holdFree},
}

// What holds memory, as Holder.Name.
const (
	holdAnon            = "anonymous"
	holdFile            = "page_cache"
	holdShmem           = "shared_memory"
	holdLocked          = "unevictable"
	holdSlab            = "slab_unreclaimable"
	holdSlabReclaimable = "slab_reclaimable"
	holdKernel          = "kernel"
	holdTables          = "page_tables"
	holdZswap           = "zspages"
	holdBalloon         = "balloon"
	holdGPU             = "gpu"
	holdHuge            = "hugepage_pool"
	holdFree            = "free"
	holdUnexplained     = "unexplained"
)

// Ways to explain memory, as Event.ExplainedBy.
const (
	byCounters     = "counters"
	byNodeCounters = "node_counters"
	byMemcgStats   = "memcg_stats"
	byVictims      = "victims"
)

// account adds up what the counters explain of the memory that ran out, and what they do not.
func (j *judgement) account() {
	h := holders{}
	var whole, explained *int64
	switch kind := j.Event.Limit.Kind; {
	case j.Event.Limit.cgroupKind() || kind == LimitUnknown && len(j.stats) > 0:
		whole, explained = j.accountMemcg(h)
	case kind != LimitHost && len(j.zones) > 0 && !j.complete && kind != LimitZone &&
		kind != LimitCMA:
		whole, explained = j.accountNodes(h)
	default:
		whole, explained = j.accountHost(h)
	}
	if whole == nil || explained == nil {
		return
	}
	j.AccountedBytes, j.ExplainedBytes = whole, explained
	j.UnexplainedBytes = ptr(*whole - *explained)
	if *j.UnexplainedBytes > 0 {
		h.add(holdUnexplained, *j.UnexplainedBytes)
	}
	j.Holders = h.list(*whole)
}

// holders are sums by name.
type holders map[string]int64

func (h holders) add(name string, bytes int64) { h[name] += bytes }

// move takes a part out of one holder and shows it as another.
func (h holders) move(from, to string, bytes int64) int64 {
	bytes = min(bytes, h[from])
	if bytes > 0 {
		h[from] -= bytes
		h[to] += bytes
	}
	return max(bytes, 0)
}

func (h holders) list(whole int64) []Holder {
	list := []Holder{}
	for name, bytes := range h {
		if bytes == 0 {
			continue
		}
		x := Holder{Name: name, Bytes: bytes}
		if whole > 0 {
			x.Ratio = ptr(float64(bytes) / float64(whole))
		}
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (h holders) sum() (bytes int64) {
	for _, n := range h {
		bytes += n
	}
	return bytes
}

// accountHost explains managed memory by the host's counters.
func (j *judgement) accountHost(h holders) (whole, explained *int64) {
	if _, ok := j.counters["free"]; !ok || j.PageBytes == nil || j.ManagedBytes == nil {
		return nil, nil
	}
	for _, c := range hostCounters {
		h.add(c.holder, value(times(j.counters[c.name], j.PageBytes)))
	}
	h.add(holdKernel, j.kernelStacks())
	j.hugePools(h)
	explained = ptr(h.sum())
	// Shared memory is in the lists of anonymous or of unevictable pages.
	shmem := value(times(j.counters["shmem"], j.PageBytes))
	shmem -= h.move(holdAnon, holdShmem, shmem)
	h.move(holdLocked, holdShmem, shmem)
	j.ExplainedBy = byCounters
	return j.ManagedBytes, explained
}

// kernelStacks is on the nodes' lines, before 4.8 and on some kernels on the zones'.
func (j *judgement) kernelStacks() (bytes int64) {
	for _, n := range j.nodes {
		bytes += n.kb["kernel_stack"]
	}
	if bytes == 0 {
		bytes = j.zoneSum("kernel_stack")
	}
	return bytes
}

// hugePools adds the pools of huge pages: they are taken from managed memory, used or not.
func (j *judgement) hugePools(h holders) {
	for _, p := range j.huge {
		if p.total > 0 && p.total < 1<<32 && p.size < 1<<40 {
			h.add(holdHuge, p.total*p.size)
		}
	}
}

// zoneCounters are the counters of a zone's line, nodeCounters those of a node's that are not also
// on its zones'.
var (
	zoneCounters = []struct{ name, holder string }{
		{"active_anon", holdAnon}, {"inactive_anon", holdAnon},
		{"active_file", holdFile}, {"inactive_file", holdFile}, {"unevictable", holdLocked},
		{"slab_reclaimable", holdSlabReclaimable}, {"slab_unreclaimable", holdSlab},
		{"kernel_stack", holdKernel}, {"pagetables", holdTables}, {"bounce", holdKernel},
		{"free", holdFree}, {"free_pcp", holdFree},
	}
	nodeCounters = []struct{ name, holder string }{
		{"isolated(anon)", holdAnon}, {"isolated(file)", holdFile},
		{"kernel_stack", holdKernel}, {"pagetables", holdTables}, {"sec_pagetables", holdTables},
	}
)

// accountNodes explains what the zones shown manage, by their own counters: the host's are of more
// nodes than those.
func (j *judgement) accountNodes(h holders) (whole, explained *int64) {
	if j.shown == 0 {
		return nil, nil
	}
	onZones := map[string]bool{}
	for _, z := range j.raw.zones {
		for _, c := range zoneCounters {
			if n, ok := z.bytes[c.name]; ok {
				onZones[c.name] = true
				h.add(c.holder, n)
			}
		}
	}
	for _, n := range j.nodes {
		for _, c := range nodeCounters {
			if !onZones[c.name] {
				h.add(c.holder, n.kb[c.name])
			}
		}
	}
	j.hugePools(h)
	j.ExplainedBy = byNodeCounters
	return ptr(j.shown), ptr(h.sum())
}

// memcgCounters add up to a cgroup's usage: in version 1 rss and cache with kmem's usage, in
// version 2 anon and file with kernel, or before 5.18 with the parts of kernel.
var (
	memcgV2 = []struct{ name, holder string }{
		{"anon", holdAnon}, {"file", holdFile}, {"sock", "sockets"},
	}
	memcgKernelParts = []struct{ name, holder string }{
		{"kernel_stack", holdKernel}, {"pagetables", holdTables}, {"sec_pagetables", holdTables},
		{"percpu", holdKernel}, {"vmalloc", holdKernel},
		{"slab_reclaimable", holdSlabReclaimable}, {"slab_unreclaimable", holdSlab},
	}
)

// accountMemcg explains the usage of a cgroup by its statistics; where they are missing, what the
// victims held in it.
func (j *judgement) accountMemcg(h holders) (whole, explained *int64) {
	whole = j.memcgUsage()
	_, v1 := j.stats["rss"]
	_, v2 := j.stats["anon"]
	switch {
	case whole == nil:
		return nil, nil
	case v2:
		for _, c := range memcgV2 {
			h.add(c.holder, j.stats[c.name])
		}
		j.memcgKernel(h)
	case v1:
		h.add(holdAnon, j.stats["rss"])
		h.add(holdFile, j.stats["cache"])
		for _, u := range j.usage {
			if u.counter == "kmem" {
				h.add(holdKernel, u.usage)
			}
		}
	default:
		return j.accountVictims(h, whole)
	}
	j.ExplainedBy = byMemcgStats
	explained = ptr(h.sum())
	shmem := j.stats["shmem"]
	if v1 { // which counts shared memory in cache, and lists it as anonymous
		shmem = max(shmem, j.stats["active_anon"]+j.stats["inactive_anon"]-j.stats["rss"])
	}
	h.move(holdFile, holdShmem, shmem)
	return whole, explained
}

// memcgUsage is the usage of memory, which the statistics are of, whichever limit was met.
func (j *judgement) memcgUsage() *int64 {
	for _, u := range j.usage {
		if u.counter == "memory" {
			return ptr(u.usage)
		}
	}
	return nil
}

func (j *judgement) memcgKernel(h holders) {
	kernel, ok := j.stats["kernel"]
	parts := holders{}
	for _, c := range memcgKernelParts {
		parts.add(c.holder, j.stats[c.name])
	}
	if _, split := j.stats["slab_unreclaimable"]; !split {
		parts.add(holdSlab, j.stats["slab"])
	}
	for name, n := range parts {
		h.add(name, n)
	}
	if ok && kernel > parts.sum() {
		h.add(holdKernel, kernel-parts.sum())
	}
}

// accountVictims explains a cgroup's usage by the anonymous and shared memory of its victims.
func (j *judgement) accountVictims(h holders, whole *int64) (*int64, *int64) {
	known := false
	for i := range j.Event.Victims {
		v := &j.Event.Victims[i]
		if v.AnonBytes != nil {
			known = true
			h.add(holdAnon, *v.AnonBytes)
			h.add(holdShmem, value(v.ShmemBytes))
		}
	}
	if !known {
		return nil, nil
	}
	j.ExplainedBy = byVictims
	return whole, ptr(h.sum())
}
