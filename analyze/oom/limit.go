package oom

import (
	"strconv"
	"strings"
)

// constraints are the kernel's words for the bound that an allocation met.
var constraints = map[string]string{
	"CONSTRAINT_NONE": LimitHost, "CONSTRAINT_CPUSET": LimitCpuset,
	"CONSTRAINT_MEMORY_POLICY": LimitMempolicy, "CONSTRAINT_MEMCG": LimitMemcg,
}

// limit says which bound was met, how large it is, and whose.
func (j *judgement) limit() {
	l := &j.Event.Limit
	l.Kind = j.limitKind()
	if l.Kind == LimitMemcg {
		j.memcgLimit()
	} else if l.Kind == LimitHost {
		j.zoneLimit()
	}
	if c := j.constraint; c != nil {
		l.Nodes = Text(c.mems)
		if l.Kind == LimitMempolicy {
			// the cpuset's nodes are not the bound
			l.Nodes = Text(strings.TrimSuffix(c.nodemask, ","))
		}
	} else if j.mems != "" {
		l.Nodes = Text(j.mems)
		if in := j.raw.invoke; in != nil && l.Kind == LimitMempolicy {
			l.Nodes = Text(in.nodemask)
		}
	}
	switch l.Kind {
	case LimitHost:
		l.Bytes = j.ManagedBytes
	case LimitCpuset, LimitMempolicy:
		if n, err := strconv.ParseInt(string(l.Nodes), 10, 64); err == nil {
			l.Node = &n
		}
		if j.shown > 0 {
			l.Bytes = ptr(j.nodeManaged(string(l.Nodes)))
		}
	}
}

// nodeManaged is what the zones of the nodes of a list such as 0-1,4 hold.
func (j *judgement) nodeManaged(list string) (bytes int64) {
	for _, z := range j.raw.zones {
		if z.node == nil || inList(list, *z.node) {
			bytes += z.size()
		}
	}
	return bytes
}

// inList says whether n is in a list such as 0-1,4. What is no list holds everything.
func inList(list string, n int64) bool {
	if list == "" || list[0] < '0' || list[0] > '9' {
		return true
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		if atoi(low) <= n && n <= atoi(high) {
			return true
		}
	}
	return false
}

func (j *judgement) limitKind() string {
	if c := j.constraint; c != nil && constraints[c.kind] != "" {
		return constraints[c.kind]
	}
	if j.memcgSigns() {
		return LimitMemcg
	}
	if kind := j.nodeSigns(); kind != "" {
		return kind
	}
	hostKill := false
	for _, k := range j.kills {
		hostKill = hostKill || k.host
	}
	if j.failed != "" && len(j.zones) == 0 {
		return LimitUnknown
	}
	if hostKill || j.paths[pathPages] || j.paths[pathManual] || j.seen[kindNoVictim] ||
		j.failed != "" && len(j.zones) > 0 ||
		len(j.counters) > 3 && j.seen[kindInvoke] || j.constraint != nil && j.constraint.global {
		return LimitHost
	}
	return LimitUnknown
}

// memcgSigns says whether anything in the report is only there when a cgroup's limit was met.
func (j *judgement) memcgSigns() bool {
	for _, k := range j.kills {
		if k.memcg {
			return true
		}
	}
	return j.seen[kindTaskIn] || j.seen[kindUsage] || j.seen[kindStats] ||
		j.paths[pathMemcg] || j.paths[pathMemcgKernel] && !j.paths[pathPages]
}

// nodeSigns tells cpuset and memory policy in reports before 5.0, which have no constraint: by a
// node mask that holds fewer nodes than the task may use, and by a cpuset whose nodes are not the
// host's.
func (j *judgement) nodeSigns() string {
	if in := j.raw.invoke; in != nil && in.nodemask != "" && in.nodemask[0] >= '0' &&
		in.nodemask[0] <= '9' {
		if in.nodemask != j.mems && j.mems != "" {
			return LimitMempolicy
		}
		if j.pagesRAM != nil && !j.complete && len(j.zones) > 0 && j.PageBytes != nil {
			return LimitMempolicy
		}
	}
	if j.cpuset != "" && j.cpuset != "/" && len(j.zones) > 0 && j.RAMBytes != nil && !j.complete &&
		j.numa() {
		return LimitCpuset
	}
	return ""
}

// numa says whether the zones shown name nodes, and the highest zone of a node is among them: then
// those missing are other nodes.
func (j *judgement) numa() bool {
	for _, z := range j.raw.zones {
		if z.node == nil {
			return false
		}
	}
	return true
}

// memcgLimit tells memory, memory+swap and kernel memory of a cgroup apart, and takes its figures.
func (j *judgement) memcgLimit() {
	l := &j.Event.Limit
	by := map[string]*usageLine{}
	for i := range j.usage {
		u := &j.usage[i]
		if by[u.counter] == nil {
			by[u.counter] = u
		}
		j.Event.Usage = append(j.Event.Usage, Usage{u.counter, u.usage, u.limit, u.failcnt})
	}
	mem, both, kmem := by["memory"], by["memory+swap"], by["kmem"]
	met := mem
	switch {
	case both.atLimit() && (!mem.atLimit() || *both.limit > value(mem.limit)):
		l.Kind, met = LimitMemcgSwap, both
	case kmem.atLimit() && !mem.atLimit():
		l.Kind, met = LimitKernel, kmem
	}
	if met != nil {
		l.Bytes, l.UsageBytes, l.Failcnt = met.limit, ptr(met.usage), ptr(met.failcnt)
	}
	j.memcgOwner()
}

// atLimit says whether a counter is as good as at its limit: charges come in batches.
func (u *usageLine) atLimit() bool {
	if u == nil || u.limit == nil {
		return false
	}
	return u.usage >= *u.limit-min(*u.limit/100, 4<<20)
}

// memcgOwner says whose cgroup it is.
func (j *judgement) memcgOwner() {
	l := &j.Event.Limit
	path, task := j.limitOf, j.taskIn
	if c := j.constraint; c != nil {
		path, task = orString(c.memcg, path), orString(c.taskMemcg, task)
	}
	path = orString(path, j.statsOf)
	l.Cgroup, l.Owner = Text(path), cgroupOwner(path)
	switch {
	case path == "" || task == "":
	case path == task:
		l.Level = "own"
	default:
		l.Level = "parent"
	}
}

func orString(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// cgroupOwners tell by the last part of a path whose cgroup it is; the first that fits counts.
var cgroupOwners = []struct {
	fits  func(last string) bool
	owner Text
}{
	{func(s string) bool {
		return strings.HasPrefix(s, "cri-containerd-") || strings.HasPrefix(s,
			"crio-")
	}, "container"},
	{func(s string) bool {
		return strings.HasPrefix(s, "docker-") || strings.HasPrefix(s,
			"libpod-")
	}, "container"},
	{func(s string) bool { return strings.Contains(s, "-pod") && strings.HasSuffix(s, ".slice") },
		"pod"},
	{func(s string) bool { return strings.HasPrefix(s, "pod") && len(s) > 20 }, "pod"},
	{func(s string) bool { return strings.HasPrefix(s, "job_") || strings.HasPrefix(s, "step_") },
		"job"},
	{func(s string) bool { return strings.HasPrefix(s, "session-") }, "session"},
	{func(s string) bool { return strings.HasSuffix(s, ".service") }, "service"},
	{func(s string) bool { return strings.HasSuffix(s, ".slice") || s == "kubepods" }, "slice"},
	{isContainerID, "container"},
	{func(s string) bool { return strings.HasSuffix(s, ".scope") }, "scope"},
	{func(s string) bool { return strings.HasPrefix(s, "lxc.payload") }, "container"},
}

// isContainerID says whether s is 64 hexadecimal digits.
func isContainerID(s string) bool {
	if len(s) != 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

func cgroupOwner(path string) Text {
	last := path[strings.LastIndexByte(path, '/')+1:]
	for _, o := range cgroupOwners {
		if last != "" && o.fits(last) {
			return o.owner
		}
	}
	if strings.Contains(path, "/lxc/") {
		return "container"
	}
	return ""
}

// zoneLimit finds out whether a host-wide failure was that of the zones which the request may use,
// or of pages outside CMA: then other memory was free and of no use to it.
func (j *judgement) zoneLimit() {
	if !j.gfp.known || len(j.raw.zones) == 0 {
		return
	}
	l := &j.Event.Limit
	var names []string
	var managed, needed, usable int64
	withCMA, withoutCMA := false, false
	for i := range j.raw.zones {
		z := &j.raw.zones[i]
		if !j.gfp.usable(z.zone) {
			continue
		}
		names = append(names, z.zone)
		managed += z.size()
		needed += z.bytes["high"]
		free := z.bytes["free"]
		usable += free
		withCMA = withCMA || j.suffices(z, free)
		withoutCMA = withoutCMA || j.suffices(z, free-z.bytes["free_cma"])
	}
	switch other := j.elsewhere(); {
	case !j.gfp.movable && (withCMA && !withoutCMA || j.blocksAreCMA()):
		l.Kind, l.Zones = LimitCMA, Text(strings.Join(names, " "))
		if j.cmaReserved != nil && j.PageBytes != nil && managed > 0 {
			l.Bytes = ptr(managed - *j.cmaReserved**j.PageBytes)
		}
	case other > max(64<<20, value(j.ManagedBytes)/50) && (!withoutCMA && other > 3*needed ||
		other > 4*usable):
		l.Kind, l.Zones = LimitZone, Text(strings.Join(names, " "))
		if managed > 0 {
			l.Bytes = &managed
		}
	}
}

// size is what a zone holds: what the kernel manages of it, before 3.9 what is present.
func (z *zoneLine) size() int64 {
	if n, ok := z.bytes["managed"]; ok {
		return n
	}
	return z.bytes["present"]
}

// suffices says whether so much free memory would have let a zone serve the request: more than it
// must keep, with what it holds back from requests that prefer a higher zone.
func (j *judgement) suffices(z *zoneLine, free int64) bool {
	keep := z.bytes["low"]
	if class := min(j.gfp.highest, len(z.reserve)-1); class >= 0 {
		keep += value(times(z.reserve[j.classZone(z, class)], j.PageBytes))
	}
	return free > keep
}

// classZone is where in lowmem_reserve[] the request's highest zone stands: the list has the zones
// that the kernel was built with, and ends with the highest.
func (j *judgement) classZone(z *zoneLine, class int) int {
	switch {
	case len(z.reserve) >= 4 && j.raw.zones[0].node != nil: // DMA DMA32 Normal Movable …
		if zoneOrder[j.gfp.highest] == "HighMem" {
			return 2
		}
		if zoneOrder[j.gfp.highest] == "Movable" {
			return 3
		}
	case len(z.reserve) == 4: // DMA Normal HighMem Movable
		return min(map[string]int{"Normal": 1, "HighMem": 2,
			"Movable": 3}[zoneOrder[j.gfp.highest]], 3)
	}
	return class
}

// elsewhere is free memory that the request could not use: in other zones shown, and in those that
// the report leaves out.
func (j *judgement) elsewhere() (bytes int64) {
	shown := int64(0)
	for i := range j.raw.zones {
		z := &j.raw.zones[i]
		shown += z.bytes["free"]
		if !j.gfp.usable(z.zone) {
			bytes += z.bytes["free"]
		}
	}
	if j.FreeBytes != nil && *j.FreeBytes > shown {
		bytes += *j.FreeBytes - shown
	}
	return bytes
}

// blocksAreCMA says whether the free blocks large enough for the request are all CMA's.
func (j *judgement) blocksAreCMA() bool {
	in := j.raw.invoke
	if in == nil || in.order == nil || *in.order < 1 {
		return false
	}
	cma := false
	for _, b := range j.buddies {
		if !j.gfp.usable(b.zone) {
			continue
		}
		for order, n := range b.free {
			if n == 0 || int64(order) < *in.order {
				continue
			}
			if !b.cma[order] {
				return false
			}
			cma = true
		}
	}
	return cma
}
