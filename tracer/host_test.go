package tracer

import (
	"os"
	"path/filepath"
	"testing"

	"highwater/tracer/trace"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMemoryLimit(t *testing.T) {
	const meminfo = "MemTotal:       32000000 kB\nMemAvailable:   1000000 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  trace.MemoryLimit // Path relative to the cgroup root
	}{
		"nothing set": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "cg/a/b/memory.max": "max\n",
		}, trace.MemoryLimit{EffectiveBytes: 1000000 << 10, Kind: "mem_available"}},
		"v2, set by an ancestor": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "cg/a/b/memory.max": "9000000\n", "cg/a/memory.max": "8000000\n", "cg/memory.max": "max",
		}, trace.MemoryLimit{EffectiveBytes: 8000000, Kind: "cgroup", Path: "a"}},
		"v1": {map[string]string{
			"proc/self/cgroup":                       "5:cpu,memory:/x/y\n4:pids:/z\n0::/\n",
			"cg/memory/x/y/memory.limit_in_bytes":    "7000000\n",
			"cg/memory/x/memory.limit_in_bytes":      "9223372036854771712\n",
			"cg/memory/memory.limit_in_bytes":        "9223372036854771712\n",
			"cg/memory/z/memory.limit_in_bytes":      "1\n",
			"cg/memory/x/y/z/memory.limit_in_bytes":  "1\n",
			"cg/memory/unrelated/memory.other_bytes": "1\n",
		}, trace.MemoryLimit{EffectiveBytes: 7000000, Kind: "cgroup", Path: "memory/x/y"}},
		"nodes of a cpuset": {map[string]string{
			"proc/self/cgroup": "0::/a\n", "proc/self/status": "Mems_allowed_list:\t1\n",
			"sys/devices/system/node/has_memory":    "0-1\n",
			"sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 900000 kB\n",
		}, trace.MemoryLimit{EffectiveBytes: 900000 << 10, Kind: "numa", Path: "cpuset 1"}},
		"nonsense": {map[string]string{
			"proc/self/cgroup": "rubbish\n0::../../..\n", "cg/memory.max": "-5",
		}, trace.MemoryLimit{EffectiveBytes: 1000000 << 10, Kind: "mem_available"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["proc/meminfo"] = meminfo
			root := tree(t, c.files)
			got := memoryLimit(limitRoots{
				proc: filepath.Join(root, "proc"), cgroup: filepath.Join(root, "cg"), sys: filepath.Join(root, "sys"),
			})
			if nodes := got.Nodes; c.want.Kind == "numa" {
				if nodes == nil || nodes.Present != "0-1" || nodes.Allowed != "1" || nodes.SetBy != "cpuset" {
					t.Errorf("nodes %+v", nodes)
				}
			} else if nodes != nil {
				t.Errorf("nodes %+v of a tree without", nodes)
			}
			got.Nodes = nil
			if c.want.Kind == "cgroup" {
				c.want.Path = filepath.Join(root, "cg", c.want.Path)
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestHostFacts(t *testing.T) {
	root := tree(t, map[string]string{
		"sys/kernel/osrelease": "6.1.0-test\n", "cpuinfo": "processor\t: 0\nmodel name\t: Fast: CPU\n", "meminfo": "MemTotal:  2048 kB\n",
	})
	h := hostFacts(root)
	if h.Kernel != "6.1.0-test" || h.CPUModel != "Fast: CPU" || h.RAMBytes != 2048<<10 || h.CPUs < 1 {
		t.Errorf("host %+v", h)
	}
	if h := hostFacts(t.TempDir()); h.Kernel != "" || h.RAMBytes != 0 {
		t.Errorf("host from an empty tree: %+v", h)
	}
}
