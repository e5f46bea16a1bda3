package probe

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Kinds of limits, as the manifest has them.
const (
	LimitCgroup       = "cgroup"
	LimitRlimit       = "rlimit"
	LimitNUMA         = "numa"
	LimitMemAvailable = "mem_available"
)

// Limit is a bound on a process's memory. The zero Limit is an unknown one.
type Limit struct {
	Bytes int64
	Kind  string // LimitCgroup | LimitRlimit | LimitNUMA | LimitMemAvailable
	Path  string // the cgroup's folder, the name of the rlimit, what sets the nodes and which, or ""
}

// EffectiveLimit is the smallest of what bounds the process now: the limits along its cgroup chain (v2 or v1),
// RLIMIT_AS and RLIMIT_DATA, the NUMA nodes it may use where those are not all, and the host's MemAvailable. A
// cgroup's limit is shared by all in it, and so are nodes.
func EffectiveLimit(opts Options) Limit {
	opts = opts.withDefaults()
	low := findCgroups(opts).limit()
	if avail, ok := meminfoBytes(opts, "MemAvailable"); ok {
		low = lower(low, Limit{Bytes: avail, Kind: LimitMemAvailable})
	}
	if nodes, ok := MemoryNodes(opts); ok && nodes.limit().Kind != "" {
		low = lower(low, nodes.limit())
	}
	limits, _ := os.ReadFile(filepath.Join(procDir(opts), "limits"))
	for line := range strings.Lines(string(limits)) {
		if l, ok := rlimit(line); ok {
			low = lower(low, l)
		}
	}
	return low
}

// rlimit reads the soft limit of a line of /proc/PID/limits that bounds memory and is not "unlimited".
func rlimit(line string) (Limit, bool) {
	name, value := "RLIMIT_AS", ""
	rest, ok := strings.CutPrefix(line, "Max address space")
	if !ok {
		name = "RLIMIT_DATA"
		rest, ok = strings.CutPrefix(line, "Max data size")
	}
	if f := strings.Fields(rest); ok && len(f) > 0 {
		value = f[0]
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return Limit{Bytes: n, Kind: LimitRlimit, Path: name}, err == nil
}

func lower(a, b Limit) Limit {
	if a.Kind == "" || b.Bytes < a.Bytes {
		return b
	}
	return a
}

// Host describes the machine. A field that could not be read is its zero value, which means unknown.
type Host struct {
	Name        string
	Kernel      string
	CPUModel    string
	CPUs        int      // online on the host
	AllowedCPUs int      // those the process may run on
	RAMBytes    int64    // MemTotal: what the kernel manages
	SwapBytes   int64    // SwapTotal; 0 where there is none
	THP         string   // transparent huge pages: always | madvise | never
	GPUs        []string // models that the NVIDIA driver lists
}

// HostInfo reads the machine's description.
func HostInfo(opts Options) Host {
	opts = opts.withDefaults()
	h := Host{
		Name:   readLine(filepath.Join(opts.Proc, "sys/kernel/hostname")),
		Kernel: readLine(filepath.Join(opts.Proc, "sys/kernel/osrelease")),
		THP:    bracketed(readLine(filepath.Join(opts.Sys, "kernel/mm/transparent_hugepage/enabled"))),
		GPUs:   gpuModels(opts.Proc),
	}
	h.RAMBytes, _ = meminfoBytes(opts, "MemTotal")
	h.SwapBytes, _ = meminfoBytes(opts, "SwapTotal")
	h.CPUModel, h.CPUs = cpuModel(opts.Proc)
	h.AllowedCPUs = countList(statusText(opts, "Cpus_allowed_list"))
	if h.CPUs > 0 { // a process that nobody bound is allowed CPUs that could be plugged in, too
		h.AllowedCPUs = min(h.AllowedCPUs, h.CPUs)
	}
	return h
}

func meminfoBytes(opts Options, key string) (int64, bool) {
	n, ok := readFigure(filepath.Join(opts.Proc, "meminfo"), keyed, key)
	return n * kib, ok && n < unlimited/kib
}

func readLine(name string) string {
	text, _ := os.ReadFile(name)
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// bracketed is the chosen word of a sysfs choice: "always [madvise] never".
func bracketed(line string) string {
	_, rest, _ := strings.Cut(line, "[")
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// cpuModel reads the model of the first CPU (ARM gives none) and counts the online ones.
func cpuModel(proc string) (model string, count int) {
	text, _ := os.ReadFile(filepath.Join(proc, "cpuinfo"))
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "processor":
			count++
		case "model name":
			model = strings.TrimSpace(value)
		}
	}
	return model, count
}

func statusText(opts Options, key string) string {
	text, _ := os.ReadFile(filepath.Join(procDir(opts), "status"))
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(key+":")); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// countList counts the members of a kernel list such as "0-3,8"; 0 where it is no list.
func countList(list string) int {
	count := 0
	for part := range strings.SplitSeq(list, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(hi)
		}
		if err != nil || last < first || last > 1<<20 {
			return 0
		}
		count += last - first + 1
	}
	return count
}

// gpuModels lists the "Model:" lines of /proc/driver/nvidia/gpus/*/information.
func gpuModels(proc string) []string {
	names, _ := filepath.Glob(filepath.Join(proc, "driver/nvidia/gpus/*/information"))
	var models []string
	for _, name := range names {
		text, _ := os.ReadFile(name)
		for line := range strings.Lines(string(text)) {
			if model, ok := strings.CutPrefix(line, "Model:"); ok {
				models = append(models, strings.TrimSpace(model))
			}
		}
	}
	return models
}
