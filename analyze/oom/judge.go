package oom

import (
	"cmp"
	"slices"
	"strings"
)

// judge turns an event's lines into an Event.
func (r *raw) judge() *Event {
	e := &Event{
		Source: SourceKernel, OutOfMemory: ptr(true), Input: r.input, Lines: r.lines,
		Host: Text(r.host), Kernel: Text(r.kernel), Victims: []Victim{}, Holders: []Holder{},
		Programs: []Program{}, Usage: []Usage{}, Zones: []ZoneFree{}, Numbers: map[string]int64{},
		Missing: []string{}, Fetch: []Fetch{}, Next: []string{}, Notes: []string{},
	}
	e.setTime(&r.first)
	j := &judgement{raw: r, Event: e}
	j.pageSize()
	j.memory()
	j.invoker()
	j.zoneList()
	j.limit()
	j.victims()
	j.programs()
	j.account()
	j.cause()
	j.notes()
	e.missing(kernelMissing)
	return e
}

func (e *Event) setTime(s *stamp) {
	e.Time, e.TimeKind = Text(s.String()), stampWords[s.kind]
	if s.boot >= 0 {
		e.UptimeNS = ptr(s.boot)
	}
	if doubt := s.doubt(); doubt != "" {
		e.Notes = append(e.Notes, doubt)
	}
}

// judgement is an event while it is judged.
type judgement struct {
	*raw
	*Event
	complete bool // the zones shown are all there are
	shown    int64
	gfp      gfp
}

// pageSizes are those that Linux runs with.
var pageSizes = []int64{4096, 8192, 16384, 65536}

// snap is the page size that a quotient stands for; nil where it is none.
func snap(bytes, pages int64) *int64 {
	if pages <= 0 || bytes <= 0 {
		return nil
	}
	q := float64(bytes) / float64(pages)
	for _, p := range pageSizes {
		if d := q/float64(p) - 1; d > -0.03 && d < 0.03 {
			return ptr(p)
		}
	}
	return nil
}

// pageSize derives the page size from figures that the text gives twice, in pages and in kB.
func (j *judgement) pageSize() {
	for _, way := range []struct {
		source string
		of     func() *int64
	}{
		{"total-vm of the victim over its total_vm", j.pageByVictim},
		{"memory present in all zones over pages RAM", j.pageByRAM},
		{"active_anon of the nodes over active_anon of the host", j.pageByNodes},
		{"smallest block of the free lists", j.pageByBlocks},
	} {
		if p := way.of(); p != nil {
			j.PageBytes, j.PageSource = p, Text(way.source)
			return
		}
	}
}

func (j *judgement) pageByVictim() *int64 {
	for i := range j.kills {
		if x := j.row(j.kills[i].pid); x != nil {
			if p := snap(value(j.kills[i].vm), x.vm); p != nil {
				return p
			}
		}
	}
	return nil
}

func (r *raw) row(pid int64) *row {
	for i := range r.rows {
		if r.rows[i].pid == pid {
			return &r.rows[i]
		}
	}
	return nil
}

func (j *judgement) pageByRAM() *int64 {
	return snap(j.zoneSum("present"), value(j.pagesRAM))
}

func (j *judgement) pageByNodes() *int64 {
	var bytes int64
	for _, n := range j.nodes {
		bytes += n.kb["active_anon"]
	}
	if j.counters["active_anon"] < 1000 {
		return nil
	}
	return snap(bytes, j.counters["active_anon"])
}

func (j *judgement) pageByBlocks() *int64 {
	for _, b := range j.buddies {
		if slices.Contains(pageSizes, b.first) {
			return ptr(b.first)
		}
	}
	return nil
}

// zoneSum adds a counter over the zones shown, in bytes.
func (r *raw) zoneSum(key string) (bytes int64) {
	for _, z := range r.zones {
		bytes += z.bytes[key]
	}
	return bytes
}

// memory sets what the host has: RAM, what the kernel manages, what is free, swap.
func (j *judgement) memory() {
	j.shown = j.zoneSum("managed")
	if j.pagesRAM != nil {
		j.RAMBytes = times(*j.pagesRAM, j.PageBytes)
		if j.RAMBytes != nil {
			j.RAMSource = "pages RAM"
		}
	}
	j.complete = j.zonesComplete()
	switch {
	case j.complete && j.shown > 0:
		j.ManagedBytes = ptr(j.shown)
	case j.pagesRAM != nil && j.reserved != nil && *j.pagesRAM >= *j.reserved:
		j.ManagedBytes = times(*j.pagesRAM-*j.reserved, j.PageBytes)
	}
	if free, ok := j.counters["free"]; ok {
		j.FreeBytes = times(free, j.PageBytes)
	}
	j.SwapTotalBytes, j.SwapFreeBytes = j.swapTotal, j.swapFree
}

// zonesComplete says whether the zones shown are the whole host's: a report leaves out nodes and
// zones that the request could not use.
func (j *judgement) zonesComplete() bool {
	if len(j.zones) == 0 {
		return false
	}
	if j.RAMBytes != nil {
		return near(j.zoneSum("present"), *j.RAMBytes, 0.03)
	}
	free, ok := j.counters["free"]
	host := times(free, j.PageBytes)
	return ok && host != nil && near(j.zoneSum("free"), *host, 0.05)
}

func near(a, b int64, ratio float64) bool {
	d := float64(a - b)
	return d <= ratio*float64(b)+1<<20 && -d <= ratio*float64(b)+1<<20
}

func (j *judgement) invoker() {
	if j.raw.invoke == nil && j.invokerPID == nil {
		return
	}
	v := &Invoker{PID: j.invokerPID}
	if in := j.raw.invoke; in != nil {
		v.Comm, v.GFPMask, v.GFP = Text(in.comm), Text(in.mask), Text(in.names)
		v.Order, v.OOMScoreAdj = in.order, in.adj
		j.gfp = readGFP(in.mask, in.names)
	}
	j.Event.Invoker = v
}

// gfp is what a request's flags say of the memory that it may use.
type gfp struct {
	known   bool
	highest int // zone, as in zoneOrder
	movable bool
}

// Bits of gfp_mask that are the same in every kernel since 2.6.23.
const (
	gfpDMA     = 0x01
	gfpHighmem = 0x02
	gfpDMA32   = 0x04
	gfpMovable = 0x08
)

func readGFP(mask, names string) gfp {
	digits, ok := strings.CutPrefix(mask, "0x")
	var bits uint64
	if !ok || digits == "" {
		return gfp{}
	}
	for _, c := range []byte(digits) {
		i := strings.IndexByte("0123456789abcdef", lower[c])
		if i < 0 {
			return gfp{}
		}
		bits = bits<<4 | uint64(i)
	}
	g := gfp{known: true, movable: bits&gfpMovable != 0}
	zone := "Normal"
	switch {
	case bits&gfpDMA != 0:
		zone = "DMA"
	case bits&gfpDMA32 != 0:
		zone = "DMA32"
	case bits&gfpHighmem != 0 && g.movable:
		zone = "Movable"
	case bits&gfpHighmem != 0:
		zone = "HighMem"
	}
	g.highest = slices.Index(zoneOrder, zone)
	return g
}

// usable says whether the request may take memory of a zone.
func (g gfp) usable(zone string) bool { return slices.Index(zoneOrder, zone) <= g.highest }

// maxZones bounds Event.Zones.
const maxZones = 64

func (j *judgement) zoneList() {
	for _, z := range j.raw.zones[:min(len(j.raw.zones), maxZones)] {
		f := ZoneFree{Node: z.node, Zone: z.zone}
		f.FreeBytes, f.MinBytes = z.get("free"), z.get("min")
		f.ManagedBytes, f.CMABytes = z.get("managed"), z.get("free_cma")
		if j.gfp.known {
			f.Usable = ptr(j.gfp.usable(z.zone))
		}
		j.Event.Zones = append(j.Event.Zones, f)
	}
}

func (z *zoneLine) get(key string) *int64 {
	if n, ok := z.bytes[key]; ok {
		return &n
	}
	return nil
}

// victims merges kill lines, reaper's lines, the task that the constraint names, and the table.
func (j *judgement) victims() {
	for i := range j.kills {
		j.killed(&j.kills[i])
	}
	if c := j.constraint; c != nil && c.pid != nil {
		v := j.victim(*c.pid)
		v.Comm, v.UID, v.Cgroup = orText(v.Comm, c.comm), or(v.UID, c.uid), Text(c.taskMemcg)
	}
	for i := range j.reaps {
		j.reaped(&j.reaps[i])
	}
	for i := range j.Event.Victims {
		j.fromTable(&j.Event.Victims[i])
	}
}

func or(a, b *int64) *int64 {
	if a != nil {
		return a
	}
	return b
}

func orText(a Text, b string) Text {
	if a != "" {
		return a
	}
	return Text(b)
}

// victim is the one of that pid, made where there is none yet.
func (j *judgement) victim(pid int64) *Victim {
	for i := range j.Event.Victims {
		if v := &j.Event.Victims[i]; v.PID != nil && *v.PID == pid {
			return v
		}
	}
	j.Event.Victims = append(j.Event.Victims, Victim{PID: &pid})
	return &j.Event.Victims[len(j.Event.Victims)-1]
}

func (j *judgement) killed(k *killLine) {
	if !k.killed && j.sacrificed(k.pid) {
		return
	}
	v := j.victim(k.pid)
	v.Comm, v.UID, v.Killed = orText(v.Comm, k.comm), or(v.UID, k.uid), true
	if k.killed {
		v.KillLines++
	}
	v.OOMScore, v.OOMScoreAdj = or(v.OOMScore, k.score), or(v.OOMScoreAdj, k.adj)
	v.AnonBytes, v.FileBytes = or(v.AnonBytes, k.anon), or(v.FileBytes, k.file)
	v.ShmemBytes, v.VirtualBytes = or(v.ShmemBytes, k.shmem), or(v.VirtualBytes, k.vm)
	v.PgtableBytes = or(v.PgtableBytes, k.table)
}

// sacrificed says whether the kernel chose pid and killed a child of it instead.
func (r *raw) sacrificed(pid int64) bool {
	other := false
	for _, k := range r.kills {
		if k.killed && k.pid == pid {
			return false
		}
		other = other || k.killed
	}
	return other
}

func (j *judgement) reaped(p *reaped) {
	v := j.victim(p.pid)
	v.Comm = orText(v.Comm, p.comm)
	v.Reaped = v.Reaped || !p.failed
	if ns, ok := p.at.since(&j.killedAt); ok && v.Killed && ns >= 0 {
		v.ReapedNS = &ns
	}
}

func (j *judgement) fromTable(v *Victim) {
	if x := j.row(*v.PID); x != nil {
		v.Comm, v.UID = orText(v.Comm, x.comm), or(v.UID, &x.uid)
		v.OOMScoreAdj, v.PgtableBytes = or(v.OOMScoreAdj, x.adj), or(v.PgtableBytes, x.tableBytes)
		v.RSSBytes, v.VirtualBytes = times(x.rss, j.PageBytes), or(v.VirtualBytes, times(x.vm,
			j.PageBytes))
		for _, c := range []struct{ into, pages *(*int64) }{
			{&v.AnonBytes, &x.anon}, {&v.FileBytes, &x.file}, {&v.ShmemBytes, &x.shmem},
			{&v.SwapBytes, &x.swap},
		} {
			if *c.into == nil && *c.pages != nil {
				*c.into = times(**c.pages, j.PageBytes)
			}
		}
	}
	if v.RSSBytes == nil {
		v.RSSBytes = sum(v.AnonBytes, v.FileBytes, v.ShmemBytes)
	}
	v.Share = j.share(v)
}

// share is how much of the limit a victim held: of a cgroup without its file pages, which may be
// charged to another.
func (j *judgement) share(v *Victim) *Share {
	own := sum(v.AnonBytes, v.ShmemBytes)
	if own != nil && j.Event.Limit.Kind == LimitMemcgSwap {
		own = sum(own, v.SwapBytes)
	}
	switch limit := &j.Event.Limit; {
	case limit.cgroupKind():
		if own != nil && limit.Bytes != nil && *limit.Bytes > 0 {
			return &Share{"limit", float64(*own) / float64(*limit.Bytes)}
		}
	case limit.Kind == LimitHost && v.RSSBytes != nil && value(j.ManagedBytes) > 0:
		return &Share{"managed", float64(*v.RSSBytes) / float64(*j.ManagedBytes)}
	case limit.Kind != LimitUnknown && v.RSSBytes != nil && value(limit.Bytes) > 0:
		return &Share{"limit", float64(*v.RSSBytes) / float64(*limit.Bytes)}
	}
	return nil
}

// cgroupKind says whether the limit is a cgroup's.
func (l *Limit) cgroupKind() bool {
	return l.Kind == LimitMemcg || l.Kind == LimitMemcgSwap || l.Kind == LimitKernel
}

// maxPrograms bounds Event.Programs.
const maxPrograms = 10

// programs adds the table up by name.
func (j *judgement) programs() {
	byName := map[string]*Program{}
	for i := range j.rows {
		x := &j.rows[i]
		p := byName[x.comm]
		if p == nil {
			p = &Program{Comm: x.comm}
			byName[x.comm] = p
		}
		p.Processes++
		p.RSSBytes = sum(p.RSSBytes, times(x.rss, j.PageBytes))
		if x.swap != nil {
			p.SwapBytes = sum(p.SwapBytes, times(*x.swap, j.PageBytes))
		}
	}
	for _, p := range byName {
		j.Event.Programs = append(j.Event.Programs, *p)
	}
	slices.SortFunc(j.Event.Programs, func(a, b Program) int {
		return cmp.Or(cmp.Compare(value(b.RSSBytes), value(a.RSSBytes)), cmp.Compare(a.Comm,
			b.Comm))
	})
	j.Event.Programs = j.Event.Programs[:min(len(j.Event.Programs), maxPrograms)]
}
