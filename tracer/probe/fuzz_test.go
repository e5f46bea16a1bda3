package probe

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

// FuzzParse gives any text to every parser: a figure that comes out must stand in the text as digits, in a whole line.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"1 2 3\n", "4242 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13\n", "VmHWM:\t 1760 kB\nVmSwap: 0 kB\n", "max\n", "-1\n",
		"some avg10=0.00 total=12\nfull total=99999999999999999999\n", "cpu  1 2 3\n", "oom_kill 5", "\x00\n:\n total=\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, form := range []format{columns, cpuLine, keyed, single, stalls} {
			r := newReading(3)
			wants := []want{
				{[]byte("VmHWM"), 1, 1, 0}, {[]byte("some"), 2, 1, 1}, {[]byte("oom_kill"), 13, 1, 2},
			}
			r.parse(text, form, wants)
			for i, v := range r.value {
				if r.ok[i] && !written(text, v) {
					t.Fatalf("format %d found %v in %q", form, v, text)
				}
			}
		}
	})
}

// written says whether v stands in text as a run of digits before the last newline.
func written(text []byte, v float64) bool {
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	for _, run := range bytes.FieldsFunc(text, func(c rune) bool { return c < '0' || c > '9' }) {
		if n, ok := parseUint(run); ok && float64(n) == v {
			return true
		}
	}
	return math.IsNaN(v)
}

// FuzzCgroupText gives any text to the readers of mountinfo, limits, CPU and node lists.
func FuzzCgroupText(f *testing.F) {
	f.Add("41 31 0:32 /docker/0a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
	f.Add("Max address space 68719476736 unlimited bytes\n")
	f.Add("0-3,8,10-11")
	f.Add("9-1,-,1--2,99999999999")
	f.Add("5617529ef000 bind=static:0-2,7 file=/usr/bin/x mapped=2 N0=2\n")
	f.Fuzz(func(t *testing.T, text string) {
		if root := mountRoot(text, "cgroup", "memory"); root != "" && !strings.Contains(text, root) {
			t.Fatalf("mountRoot found %q", root)
		}
		if n := countList(text); n < 0 || n > len(text)<<20 {
			t.Fatalf("countList = %d", n)
		}
		if nodes := listed(text); len(nodes) > 0 && !slices.Equal(listed(list(nodes)), nodes) {
			t.Fatalf("listed = %v, written %q", nodes, list(nodes))
		}
		if nodes := boundNodes(text); len(nodes) > maxNodes {
			t.Fatalf("boundNodes = %d nodes", len(nodes))
		}
		if l, ok := rlimit(text); ok && !strings.HasPrefix(text, "Max ") {
			t.Fatalf("rlimit = %+v", l)
		}
		if word := bracketed(text); !strings.Contains(text, word) {
			t.Fatalf("bracketed = %q", word)
		}
	})
}
