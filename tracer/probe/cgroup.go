package probe

import (
	"math"
	"os"
	"path/filepath"
	"strings"
)

// cgroups are the folders of the cgroups a process is in; "" where it is in none or none is visible.
type cgroups struct {
	unified     string // v2
	unifiedRoot string // where that tree is mounted
	memory      string // v1 memory controller
	memoryRoot  string
	cpu         string // v1 cpu controller
}

// findCgroups reads /proc/PID/cgroup, and /proc/PID/mountinfo for what part of each tree is mounted: in a container
// it is often only the container's own.
func findCgroups(opts Options) cgroups {
	var g cgroups
	text, err := os.ReadFile(filepath.Join(procDir(opts), "cgroup"))
	if err != nil {
		return g
	}
	mounts, _ := os.ReadFile(filepath.Join(procDir(opts), "mountinfo"))
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // id:controllers:path
		if len(part) != 3 {
			continue
		}
		controllers := strings.Split(part[1], ",")
		switch {
		case part[1] == "":
			g.unifiedRoot = firstFolder(opts.Cgroup, "cgroup.controllers", ".", "unified")
			g.unified = groupFolder(g.unifiedRoot, part[2], mountRoot(string(mounts), "cgroup2", ""))
		case contains(controllers, "memory"):
			g.memoryRoot = firstFolder(opts.Cgroup, "memory.usage_in_bytes", "memory")
			g.memory = groupFolder(g.memoryRoot, part[2], mountRoot(string(mounts), "cgroup", "memory"))
		case contains(controllers, "cpu"):
			root := firstFolder(opts.Cgroup, "cpu.stat", "cpu", "cpu,cpuacct", "cpuacct,cpu")
			g.cpu = groupFolder(root, part[2], mountRoot(string(mounts), "cgroup", "cpu"))
		}
	}
	return g
}

func contains(words []string, word string) bool {
	for _, w := range words {
		if w == word {
			return true
		}
	}
	return false
}

// firstFolder is the first of root's sub-folders that holds a file called witness, or "".
func firstFolder(root, witness string, names ...string) string {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(root, name, witness)); err == nil {
			return filepath.Join(root, name)
		}
	}
	return ""
}

// groupFolder is where the cgroup with the given path lies under its tree's mount point. mounted is the part of
// the tree that is mounted there. A path that is not visible (a process seen from another container) falls back to
// the mount point: the nearest cgroup that can be read.
func groupFolder(mount, path, mounted string) string {
	if mount == "" {
		return ""
	}
	path = filepath.Clean("/" + path) // "/../x" names a cgroup outside of the namespace
	for _, rel := range []string{path, strings.TrimPrefix(path, mounted)} {
		folder := filepath.Join(mount, rel)
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder
		}
	}
	return mount
}

// mountRoot is the part of a cgroup tree that is mounted, "" where unknown or all of it. Fields of mountinfo: id, parent,
// device, root, mount point, options, optional fields, "-", type, source, super options.
func mountRoot(mountinfo, fstype, controller string) string {
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 || r[0] != fstype {
			continue
		}
		if controller == "" || contains(strings.Split(r[2], ","), controller) {
			return strings.TrimSuffix(l[3], "/")
		}
	}
	return ""
}

// memoryChain is the process's memory cgroup and its ancestors up to the mount point: the v2 one if memory is
// accounted there, else v1.
func (g cgroups) memoryChain() []string {
	if chain := ancestors(g.unified, g.unifiedRoot); len(chain) > 0 {
		for _, folder := range chain {
			if _, err := os.Stat(filepath.Join(folder, "memory.max")); err == nil {
				return chain
			}
		}
	}
	return ancestors(g.memory, g.memoryRoot)
}

func ancestors(folder, root string) []string {
	if folder == "" {
		return nil
	}
	chain := []string{folder}
	for folder != root && len(folder) > len(root) {
		folder = filepath.Dir(folder)
		chain = append(chain, folder)
	}
	return chain
}

// limit is the lowest limit on the chain; Path is "" where there is none. v1 also tells of ancestors that are not
// mounted here, in memory.stat.
func (g cgroups) limit() Limit {
	low := Limit{Bytes: math.MaxInt64}
	for _, folder := range g.memoryChain() {
		for _, name := range []string{"memory.max", "memory.limit_in_bytes"} {
			if n, ok := readFigure(filepath.Join(folder, name), single, ""); ok && n < low.Bytes {
				low = Limit{Bytes: n, Kind: LimitCgroup, Path: folder}
			}
		}
		n, ok := readFigure(filepath.Join(folder, "memory.stat"), keyed, "hierarchical_memory_limit")
		if ok && n < low.Bytes {
			low = Limit{Bytes: n, Kind: LimitCgroup, Path: folder}
		}
	}
	if low.Path == "" {
		return Limit{}
	}
	return low
}

// readFigure reads one number of a small file; values that mean "no limit" are none.
func readFigure(name string, f format, key string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, ok := figure(text, f, key)
	return int64(n), ok && n < unlimited
}
