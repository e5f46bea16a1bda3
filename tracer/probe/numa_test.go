package probe

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryNodes: which nodes a process may take memory from, and what leaves the others out.
func TestMemoryNodes(t *testing.T) {
	const nodes = 4
	for name, c := range map[string]struct {
		present, mems, policy string
		want                  Nodes
		ok                    bool
	}{
		"all":            {"0-3", "0-3", "default file=/x", Nodes{"0-3", "0-3", 40 << 20, ""}, true},
		"cpuset":         {"0-3", "1,3", "default", Nodes{"0-3", "1,3", 20 << 20, NodesByCpuset}, true},
		"membind":        {"0-3", "0-3", "bind:0-2", Nodes{"0-3", "0-2", 30 << 20, NodesByPolicy}, true},
		"with flags":     {"0-3", "0-3", "bind=static:2", Nodes{"0-3", "2", 10 << 20, NodesByPolicy}, true},
		"both":           {"0-3", "0-1", "bind:1-2", Nodes{"0-3", "1", 10 << 20, NodesByPolicy}, true},
		"preferred":      {"0-3", "0-3", "prefer:2", Nodes{"0-3", "0-3", 40 << 20, ""}, true},
		"node without":   {"0,2", "0-3", "default", Nodes{"0,2", "0,2", 20 << 20, ""}, true},
		"size unknown":   {"0-4", "3-4", "default", Nodes{"0-4", "3-4", 0, NodesByCpuset}, true},
		"no NUMA":        {"", "0", "default", Nodes{}, false},
		"not said":       {"0-3", "", "default", Nodes{}, false},
		"nonsense":       {"0-99999999", "0", "bind", Nodes{}, false},
		"nothing common": {"0", "3", "default", Nodes{Present: "0", SetBy: NodesByCpuset}, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(path, text string) {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			write("sys/devices/system/node/has_memory", c.present+"\n")
			write("proc/4242/status", "Name:\tx\nMems_allowed_list:\t"+c.mems+"\n")
			write("proc/4242/numa_maps", "5617529ef000 "+c.policy+" mapped=2\n561752a00000 default\n")
			for i := range nodes {
				n := string(rune('0' + i))
				write("sys/devices/system/node/node"+n+"/meminfo",
					"Node "+n+" MemFree: 1 kB\nNode "+n+" MemTotal:       10240 kB\n")
			}
			opts := Options{PID: 4242, Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}
			got, ok := MemoryNodes(opts)
			if got != c.want || ok != c.ok {
				t.Errorf("got %+v, %v; want %+v, %v", got, ok, c.want, c.ok)
			}
			limited := c.want.SetBy != "" && c.want.AllowedBytes > 0
			if l := EffectiveLimit(opts); limited != (l.Kind == LimitNUMA) ||
				limited && l.Bytes != c.want.AllowedBytes {
				t.Errorf("limit %+v of %+v", l, c.want)
			}
		})
	}
}
