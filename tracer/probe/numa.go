package probe

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Words of Nodes.SetBy.
const (
	NodesByCpuset = "cpuset"    // the cgroup's cpuset.mems
	NodesByPolicy = "mempolicy" // MPOL_BIND: numactl --membind
)

// Nodes says from which of the machine's NUMA nodes a process may take memory. Lists are the kernel's:
// "0-1,4".
type Nodes struct {
	Present      string // nodes that have memory
	Allowed      string // of them, those that the process may use
	AllowedBytes int64  // what the kernel manages on the allowed ones (their MemTotal); 0 where unknown
	SetBy        string // NodesByCpuset | NodesByPolicy: what leaves nodes out; "" where nothing does
}

// MemoryNodes reads them as they are now; ok is false where the kernel does not tell. A policy is seen
// where the process's first mapping has it, which is so for one that was set before the program
// started; what a program binds by itself later (mbind) is not.
func MemoryNodes(opts Options) (n Nodes, ok bool) {
	opts = opts.withDefaults()
	present := listed(readLine(filepath.Join(opts.Sys, "devices/system/node/has_memory")))
	allowed := listed(statusText(opts, "Mems_allowed_list"))
	if len(present) == 0 || len(allowed) == 0 {
		return n, false
	}
	n.Present = list(present)
	allowed = common(present, allowed)
	if len(allowed) < len(present) {
		n.SetBy = NodesByCpuset
	}
	bound := common(allowed, boundNodes(firstBytes(filepath.Join(procDir(opts), "numa_maps"))))
	if len(bound) > 0 && len(bound) < len(allowed) {
		allowed, n.SetBy = bound, NodesByPolicy
	}
	n.Allowed = list(allowed)
	for _, node := range allowed {
		bytes, ok := nodeBytes(opts, node)
		if !ok {
			n.AllowedBytes = 0
			break
		}
		n.AllowedBytes += bytes
	}
	return n, len(allowed) > 0
}

// limit is the bound that the nodes are, the zero Limit where they are none.
func (n Nodes) limit() Limit {
	if n.SetBy == "" || n.AllowedBytes == 0 {
		return Limit{}
	}
	return Limit{Bytes: n.AllowedBytes, Kind: LimitNUMA, Path: n.SetBy + " " + n.Allowed}
}

// maxNodes bounds the nodes of a list; kernels are built for 1,024 at most.
const maxNodes = 1 << 12

// listed are the members of a kernel list in order; none where it is no list.
func listed(text string) []int {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(hi)
		}
		if err != nil || first < 0 || last < first || last >= maxNodes {
			return nil
		}
		for i := first; i <= last; i++ {
			all = append(all, i)
		}
		if len(all) > maxNodes {
			return nil
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// list writes members, which are in order, as the kernel does.
func list(members []int) string {
	var parts []string
	for i := 0; i < len(members); {
		j := i
		for j+1 < len(members) && members[j+1] == members[j]+1 {
			j++
		}
		part := strconv.Itoa(members[i])
		if j > i {
			part += "-" + strconv.Itoa(members[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// common are the members of both.
func common(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return !slices.Contains(b, n) })
}

// boundNodes are the nodes that the first line of /proc/PID/numa_maps is bound to: "55d0c0a0 bind:0-1
// file=…", with flags "bind=static:0"; none for every other policy, which prefers and does not bound.
func boundNodes(numaMaps string) []int {
	line, _, _ := strings.Cut(numaMaps, "\n")
	f := strings.Fields(line)
	if len(f) < 2 {
		return nil
	}
	policy, nodes, _ := strings.Cut(f[1], ":")
	if mode, _, _ := strings.Cut(policy, "="); mode != "bind" {
		return nil
	}
	return listed(nodes)
}

// firstBytes is the begin of a file that may be long to write for the kernel.
func firstBytes(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	var buf [512]byte
	n, _ := io.ReadFull(f, buf[:])
	return string(buf[:n])
}

// nodeBytes is MemTotal of a node, whose meminfo begins each line with "Node 0".
func nodeBytes(opts Options, node int) (int64, bool) {
	name := "devices/system/node/node" + strconv.Itoa(node) + "/meminfo"
	text, _ := os.ReadFile(filepath.Join(opts.Sys, name))
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 5 && f[2] == "MemTotal:" && f[4] == "kB" {
			n, err := strconv.ParseInt(f[3], 10, 64)
			return n * kib, err == nil && n >= 0 && n < unlimited/kib
		}
	}
	return 0, false
}
