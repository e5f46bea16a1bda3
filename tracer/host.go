package tracer

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

const procRoot = "/proc"

// hostFacts describes the machine from a proc tree; what cannot be read stays empty.
func hostFacts(proc string) trace.Host {
	h := trace.Host{CPUs: runtime.NumCPU()}
	h.Name, _ = os.Hostname()
	if b, err := os.ReadFile(filepath.Join(proc, "sys/kernel/osrelease")); err == nil {
		h.Kernel = strings.TrimSpace(string(b))
	}
	if v, ok := field(filepath.Join(proc, "cpuinfo"), "model name"); ok {
		h.CPUModel = v
	}
	h.RAMBytes, _ = memField(proc, "MemTotal")
	return h
}

// field finds the first line "key : value" of a file.
func field(path, key string) (string, bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if k, v, ok := strings.Cut(sc.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// memField is a line of meminfo, in bytes.
func memField(proc, key string) (int64, bool) {
	v, ok := field(filepath.Join(proc, "meminfo"), key)
	if !ok {
		return 0, false
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(v, "kB")), 10, 64)
	if err != nil || kib < 0 || kib > 1<<52 {
		return 0, false
	}
	return kib << 10, true
}

// limitRoots are the trees that memoryLimit reads.
type limitRoots struct {
	proc, cgroup, sys string
}

// memoryLimit is the smallest bound on this process's memory: its cgroup and that one's ancestors
// (v2 and v1), the address-space and data limits, the NUMA nodes it may use, and what the machine had
// available at the start.
func memoryLimit(roots limitRoots) trace.MemoryLimit {
	var least trace.MemoryLimit
	consider := func(bytes int64, kind, path string) {
		if bytes > 0 && (least.EffectiveBytes == 0 || bytes < least.EffectiveBytes) {
			least = trace.MemoryLimit{EffectiveBytes: bytes, Kind: kind, Path: path}
		}
	}
	for _, g := range cgroupChain(roots) {
		consider(readLimit(g), "cgroup", filepath.Dir(g))
	}
	for _, r := range []struct {
		which int
		name  string
	}{{unix.RLIMIT_AS, "RLIMIT_AS"}, {unix.RLIMIT_DATA, "RLIMIT_DATA"}} {
		var l unix.Rlimit
		if err := unix.Getrlimit(r.which, &l); err == nil && l.Cur < 1<<62 {
			consider(int64(l.Cur), "rlimit", r.name)
		}
	}
	if b, ok := memField(roots.proc, "MemAvailable"); ok {
		consider(b, "mem_available", "")
	}
	n, ok := probe.MemoryNodes(probe.Options{Proc: roots.proc, Sys: roots.sys})
	if !ok {
		return least
	}
	if n.SetBy != "" {
		consider(n.AllowedBytes, probe.LimitNUMA, n.SetBy+" "+n.Allowed)
	}
	least.Nodes = &trace.MemoryNodes{
		Present: n.Present, Allowed: n.Allowed, AllowedBytes: n.AllowedBytes, SetBy: n.SetBy,
	}
	return least
}

// cgroupChain lists the limit files of the process's cgroup and all its ancestors, in both
// versions.
func cgroupChain(roots limitRoots) []string {
	b, err := os.ReadFile(filepath.Join(roots.proc, "self/cgroup"))
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			files = append(files, ancestors(roots.cgroup, parts[2], "memory.max")...)
		case strings.Contains(","+parts[1]+",", ",memory,"):
			v1 := filepath.Join(roots.cgroup, "memory")
			files = append(files, ancestors(v1, parts[2], "memory.limit_in_bytes")...)
		}
	}
	return files
}

func ancestors(root, path, file string) []string {
	var files []string
	for p := filepath.Clean("/" + path); ; p = filepath.Dir(p) {
		files = append(files, filepath.Join(root, p, file))
		if p == "/" {
			return files
		}
	}
}

// readLimit is a cgroup limit in bytes, 0 for none.
func readLimit(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n >= 1<<62 { // "max", and v1's way to say it
		return 0
	}
	return n
}
