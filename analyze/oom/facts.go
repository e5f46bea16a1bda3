package oom

import (
	"fmt"
	"strings"

	"highwater/internal/units"
)

// factLine says whether a line tells something of the host or the failure outside any report.
func factLine(t string) bool {
	for _, p := range []string{
		"Mem:", "Swap:", "MemTotal:", "MemAvailable:", "MemFree:", "SwapTotal:", "SwapFree:",
		"HugePages_", "Hugepagesize:",
		"CommitLimit:", "Committed_AS:", "Hugetlb:",
	} {
		if strings.HasPrefix(t, p) {
			return true
		}
	}
	return strings.Contains(t, "(kbytes, -v) ") || strings.HasPrefix(t, "Max address space ") ||
		strings.Contains(t, "free -") || strings.Contains(t, "slot_size ") ||
		strings.Contains(t, " Aborted ") ||
		strings.Contains(t, "mem avail:") || strings.Contains(t, "Mark-") && strings.Contains(t,
		" -> ") || strings.Contains(t, "--max-old-space-size=") ||
		(strings.Contains(t, "RAM") || strings.Contains(t, "used")) && strings.ContainsAny(t,
			"0123456789") && strings.Contains(t, "B")
}

// read takes one such line.
func (f *facts) read(msg string) {
	t := strings.TrimSpace(msg)
	if f.meminfo == nil {
		f.meminfo, f.numbers = map[string]int64{}, map[string]int64{}
	}
	switch {
	case strings.HasPrefix(t, "Mem:"), strings.HasPrefix(t, "Swap:"):
		f.readFree(t)
	case strings.Contains(t, "mem avail:"):
		f.readEarlyoom(t)
	case strings.Contains(t, "free -"):
		i := strings.Index(t, "free -")
		f.unit = map[string]int64{"m": 1 << 20, "g": 1 << 30, "k": 1 << 10, "b": 1}[t[i+6:min(i+7,
			len(t))]]
	case strings.Contains(t, "(kbytes, -v) "):
		if n, ok := intAfter(t, "(kbytes, -v) "); ok && n > 0 && n < 1<<50 {
			f.numbers[addressSpace] = n << 10
		}
	case strings.HasPrefix(t, "Max address space "):
		if n, ok := intAfter(t, "Max address space "); ok && n > 0 {
			f.numbers[addressSpace] = n
		}
	case strings.Contains(t, "slot_size "):
		if n, ok := intAfter(t, "slot_size "); ok && n > 0 {
			f.numbers["slot_bytes"] = n
		}
	case strings.Contains(t, " Aborted "):
		f.aborted = readDeath(t, "aborted")
	case strings.Contains(t, "Mark-"):
		f.readV8(t)
	case isMeminfo(t):
		f.readMeminfo(t)
	default:
		f.readProse(t)
	}
}

func isMeminfo(t string) bool {
	key, _, ok := strings.Cut(t, ":")
	return ok && !strings.Contains(key, " ") && len(key) > 5
}

// readFree reads "Mem:  15Gi  12Gi  387Mi …" of free: total, used, free.
func (f *facts) readFree(t string) {
	key, rest, _ := strings.Cut(t, ":")
	var n [3]*int64
	for i, w := range strings.Fields(rest) {
		if i >= len(n) {
			break
		}
		n[i] = f.freeSize(w)
	}
	if key == "Swap" {
		f.swapTotal, f.swapFree = n[0], n[2]
		return
	}
	if n[0] != nil && *n[0] > 0 {
		f.ram, f.ramSource = n[0], "free, rounded"
	}
}

// freeSize reads one number of free. A plain one is in KiB, but for an option that says otherwise.
func (f *facts) freeSize(w string) *int64 {
	if _, rest, ok := cutDigits(w, 1, 18); ok && rest == "" {
		unit := f.unit
		if unit == 0 {
			unit = 1 << 10
		}
		if n := atoi(w); n < (1<<62)/unit {
			return ptr(n * unit)
		}
		return nil
	}
	if n, ok := cutSize(w); ok {
		return &n
	}
	return nil
}

// readEarlyoom reads "mem avail: 234 of 7842 MiB ( 2.99%), swap free: 0 of 0 MiB (0.00%)".
func (f *facts) readEarlyoom(t string) {
	total := func(key string) (left, all *int64) {
		n, ok := intAfter(t, key)
		i := indexFold(t, key)
		m, ok2 := intAfter(t[max(i, 0):], " of ")
		if !ok || !ok2 || n < 0 || m < 0 || m > 1<<40 {
			return nil, nil
		}
		return ptr(n << 20), ptr(m << 20)
	}
	if left, all := total("mem avail: "); all != nil {
		f.ram, f.ramSource = all, "earlyoom"
		f.numbers["available_bytes"] = *left
	}
	f.swapFree, f.swapTotal = total("swap free: ")
}

// readDeath reads a shell's report of how a command ended: its pid and the command behind the word.
func readDeath(t, how string) *deathLine {
	i := indexFold(t, " "+how)
	if i < 0 {
		return nil
	}
	before, after := strings.TrimSpace(t[:i]), strings.Replace(t[i+1+len(how):], "(core dumped)",
		"", 1)
	pid := before[strings.LastIndexByte(before, ' ')+1:]
	if _, rest, ok := cutDigits(pid, 1, 10); !ok || rest != "" {
		return nil
	}
	for i, w := range strings.Fields(after) {
		if i == 0 && w == "by" { // "process 4411 killed by SIGKILL"
			return &deathLine{atoi(pid), ""}
		}
		if w != "sudo" && !strings.HasPrefix(w, "(") && !strings.HasPrefix(w, "-") &&
			!strings.Contains(w, "=") {
			return &deathLine{atoi(pid), w[strings.LastIndexByte(w, '/')+1:]}
		}
	}
	return nil
}

// readV8 reads "Mark-sweep 4043.9 (4130.0) -> 4042.9 (4133.2) MB" of V8's last collections: what
// was used after it, and the heap.
func (f *facts) readV8(t string) {
	_, after, _ := strings.Cut(t, " -> ")
	used, rest, ok := strings.Cut(after, " (")
	heap, rest, ok2 := strings.Cut(rest, ") MB")
	_ = rest
	if !ok || !ok2 {
		return
	}
	if n, ok := cutSize(used + " MiB"); ok {
		f.numbers["heap_used_bytes"] = n
	}
	if n, ok := cutSize(heap + " MiB"); ok {
		f.numbers["heap_bytes"] = n
	}
}

func (f *facts) readMeminfo(t string) {
	key, rest, _ := strings.Cut(t, ":")
	n, unit, ok := cutInt(strings.TrimSpace(rest))
	if !ok || n < 0 || n > 1<<52 || len(f.meminfo) > 64 {
		return
	}
	if strings.HasPrefix(strings.TrimSpace(unit), "kB") {
		n <<= 10
	}
	f.meminfo[key] = n
}

// readProse takes "2048 GiB RAM" and "used 468 GB" out of a sentence.
func (f *facts) readProse(t string) {
	words := strings.Fields(t)
	for i := 0; i+2 < len(words)+1; i++ {
		n, ok := proseSize(words, i)
		if !ok {
			continue
		}
		next, before := "", ""
		if i+2 < len(words) {
			next = strings.Trim(words[i+2], ".,;:)")
		}
		if i > 0 {
			before = strings.ToLower(strings.Trim(words[i-1], ".,;:("))
		}
		switch {
		case next == "RAM" && f.ram == nil:
			f.ram, f.ramSource = &n, "prose"
		case before == "used" || strings.EqualFold(next, "used"):
			f.used = &n
		}
	}
}

// proseSize is a size of two words at i: "468 GB".
func proseSize(words []string, i int) (int64, bool) {
	if i+1 >= len(words) {
		return 0, false
	}
	unit := strings.Trim(words[i+1], ".,;:)")
	if len(unit) < 2 || len(unit) > 3 || unitOf(unit) == 1 {
		return 0, false
	}
	return cutSize(words[i] + " " + unit)
}

// add gives an event the facts that its own lines do not have.
func (f *facts) add(e *Event) {
	filled := e.RAMBytes == nil && f.ram != nil
	if filled {
		e.RAMBytes, e.RAMSource = f.ram, Text(f.ramSource)
	}
	if e.SwapTotalBytes == nil && f.swapTotal != nil {
		e.SwapTotalBytes, e.SwapFreeBytes = f.swapTotal, f.swapFree
	}
	if total, ok := f.meminfo["MemTotal"]; ok && e.ManagedBytes == nil {
		e.ManagedBytes = &total
	}
	if e.Source == SourceKernel {
		if filled && e.Limit.Kind == LimitHost {
			e.withRAM()
		}
		return
	}
	for name, n := range f.numbers {
		e.Numbers[name] = n
	}
	if f.used != nil {
		e.Numbers["used_bytes"] = *f.used
	}
	if e.Source == SourceProgram {
		f.program(e)
	}
}

// withRAM judges a host-wide report again that has no Mem-Info, now that RAM is known from
// elsewhere in the text.
func (e *Event) withRAM() {
	e.Missing = without(e.Missing, "ram_bytes")
	for i := range e.Fetch {
		e.Fetch[i].Gives = without(e.Fetch[i].Gives, "ram_bytes")
	}
	v := e.victim()
	if v == nil || v.RSSBytes == nil || v.Share != nil || *e.RAMBytes <= 0 {
		return
	}
	v.Share = &Share{"ram", float64(*v.RSSBytes) / float64(*e.RAMBytes)}
	if v.Share.Ratio >= mostly {
		v.WasCause = yes
		e.Cause = Cause{CauseProcess, fmt.Sprintf("One process, %s, held %s = %s of RAM (%s, "+
			"%s): really used memory, not address space.",
			v.name(), size(v.RSSBytes), units.Percent(min(v.Share.Ratio, 1)), size(e.RAMBytes),
			e.RAMSource), Shown}
	}
	if t, free := e.SwapTotalBytes, e.SwapFreeBytes; t != nil && free != nil && *t > 0 &&
		*free < *t/50 {
		e.Notes = append(e.Notes, fmt.Sprintf("Swap is full (%s).", units.Bytes(*t)))
	}
}

func without(list []string, s string) []string {
	out := []string{}
	for _, x := range list {
		if x != s {
			out = append(out, x)
		}
	}
	return out
}

// program adds to a program's failure what the text says of the host.
func (f *facts) program(e *Event) {
	if a := f.aborted; a != nil {
		if e.Invoker == nil || string(e.Invoker.Comm) == a.comm {
			e.Invoker = &Invoker{PID: &a.pid, Comm: Text(a.comm)}
		}
		e.Notes = append(e.Notes, fmt.Sprintf("%s (pid %d) aborted itself: no OOM kill.", a.comm,
			a.pid))
	}
	if f.used != nil && e.RAMBytes != nil && *f.used < *e.RAMBytes {
		e.Notes = append(e.Notes, fmt.Sprintf("%s of %s were in use: memory was not short.",
			units.Bytes(*f.used), units.Bytes(*e.RAMBytes)))
	}
	if limit, ok := f.meminfo["CommitLimit"]; ok && e.Cause.Kind == CauseMalloc {
		if committed := f.meminfo["Committed_AS"]; committed+e.Numbers["requested_bytes"] > limit {
			e.Notes = append(e.Notes, fmt.Sprintf("Committed_AS %s with the request is above "+
				"CommitLimit %s: with vm.overcommit_memory=2 that refuses it.",
				units.Bytes(committed), units.Bytes(limit)))
		}
	}
	if limit, asked := e.Numbers[addressSpace], e.Numbers["requested_bytes"]; limit > 0 &&
		asked >= limit && asked < maxMachine && e.Cause.Kind == CauseMalloc {
		e.OutOfMemory = no
		e.Cause = Cause{CauseAddressSpace, fmt.Sprintf("Not out of memory: %s asked for is more "+
			"than the limit on address space, %s (RLIMIT_AS, ulimit -v).", units.Bytes(asked),
			units.Bytes(limit)), Shown}
		e.Next = []string{"Raise it: ulimit -v, LimitAS= of the service."}
	}
	f.hugepages(e)
}

// addressSpace is the number of a limit on address space that the text gives.
const addressSpace = "address_space_limit_bytes"

// hugepages tells an exhausted pool from one that is reserved and not used.
func (f *facts) hugepages(e *Event) {
	total, ok := f.meminfo["HugePages_Total"]
	if !ok || e.Cause.Kind != CauseHugepages {
		return
	}
	free, reserved, page := f.meminfo["HugePages_Free"], f.meminfo["HugePages_Rsvd"],
		f.meminfo["Hugepagesize"]
	e.Numbers["hugepages_total"], e.Numbers["hugepages_free"],
		e.Numbers["hugepages_reserved"] = total, free, reserved
	if page > 0 {
		e.Numbers["hugepage_bytes"] = page
	}
	switch {
	case total == 0:
		e.Limit.Kind, e.Cause.Confidence = LimitHugetlb, Shown
		e.Cause.Sentence = "No huge page is reserved (HugePages_Total: 0); the buffer needs " +
			"them. Ordinary memory may be plenty."
	case free > 0 && reserved >= free:
		e.Limit.Kind = LimitHugetlb
		e.Cause = Cause{CauseStale, fmt.Sprintf("All %d free huge pages of %d are reserved "+
			"(HugePages_Rsvd %d) by mappings that have not touched them: none is left for a new "+
			"one.",
			free, total, reserved), Shown}
		e.Next = []string{"End the process that mapped them, or remove stale files in " +
			"/dev/hugepages (those that fuser names no process for)."}
	case free == 0:
		e.Limit.Kind = LimitHugetlb
		e.Cause = Cause{CauseHugepages, fmt.Sprintf("None of the %d huge pages is free: in use, "+
			"or left by a dead process.", total), Shown}
		e.Next = []string{"See who has them: grep -l hugepages /proc/*/maps; files in " +
			"/dev/hugepages that no process has open are stale: remove them."}
	default:
		e.Notes = append(e.Notes, fmt.Sprintf("%d of %d huge pages are free, of which %d are "+
			"reserved.", free, total, reserved))
	}
}
