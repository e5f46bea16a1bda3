package oom

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// summary is the events of a report in short.
func summary(r *Report) []string {
	var out []string
	for _, e := range r.Events {
		s := e.Limit.Kind
		for _, v := range e.Victims {
			s += fmt.Sprintf(" %s/%s", v.Comm, number(v.PID))
		}
		out = append(out, s)
	}
	return out
}

func wantEvents(t *testing.T, r *Report, want ...string) {
	t.Helper()
	if got := summary(r); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestSeveralEvents(t *testing.T) {
	a, b := readCase(t, "A01-global-6.11-full.dmesg"), readCase(t, "A06-k8s-memcg-v2-oom-group.dmesg")
	c := readCase(t, "hugepage-pool-host.log")
	wantEvents(t, readText(t, a+b+c), "host stress-ng-vm/116", "memcg node/22609", "host cloud-init/911")
	wantEvents(t, readText(t, c+a), "host cloud-init/911", "host stress-ng-vm/116")
}

// TestPrefixOfFirstLineOnly: syslog puts its prefix before the first line of a message alone; other hosts'
// events are open meanwhile.
func TestPrefixOfFirstLineOnly(t *testing.T) {
	r := readText(t, readCase(t, "A01-global-6.11-full.dmesg")+readCase(t, "host-3.10-rhel7-two-nodes.log"))
	wantEvents(t, r, "host stress-ng-vm/116", "host loader/20977")
	wantInt(t, "unexplained_bytes", r.Events[1].UnexplainedBytes, 891281408)
}

// TestOneByOne: lines of a grep, without what begins a report.
func TestOneByOne(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"kill lines alone", "Out of memory: Killed process 1 (a) total-vm:8kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB\n" +
			"Out of memory: Killed process 2 (b) total-vm:8kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB\n" +
			"Memory cgroup out of memory: Killed process 3 (c) total-vm:8kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB\n",
			[]string{"host a/1", "host b/2", "memcg c/3"}},
		{"parent and child", "Out of memory: Kill process 10 (parent) score 900 or sacrifice child\n" +
			"Killed process 11 (child) total-vm:8kB, anon-rss:4kB, file-rss:0kB\n", []string{"host child/11"}},
		{"the kernel of RHEL 5", "Out of memory: Killed process 2592, UID 500, (oracle (x)).\n", []string{"host oracle (x)/2592"}},
		{"UID behind", "Killed process 9163 (mysqld), UID 27, total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB\n",
			[]string{"unknown mysqld/9163"}},
		{"name in brackets", "Out of memory: Killed process 7 ((sd-pam)) total-vm:8kB, anon-rss:4kB, file-rss:0kB\n",
			[]string{"host (sd-pam)/7"}},
		{"constraint alone", "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,4,global_oom,task_memcg=/,task=a,b c,pid=5,uid=0\n",
			[]string{"host a,b c/5"}},
		{"reaper alone", "oom_reaper: reaped process 12 (x y), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n", []string{"unknown x y/12"}},
		{"invoked alone", "a:[b] c invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n", []string{"unknown"}},
		{"nobody to kill", "Out of memory and no killable processes...\n", []string{"host"}},
		{"twice", "Memory cgroup out of memory: Killed process 3 (c) total-vm:8kB, anon-rss:4kB, file-rss:0kB\n" +
			"Memory cgroup out of memory: Killed process 3 (c) total-vm:8kB, anon-rss:4kB, file-rss:0kB\n", []string{"memcg c/3"}},
		{"commas lost", "systemd-journal invoked oom-killer: gfp_mask=0x800d0order=0oom_score_adj=0\n" +
			"Out of memory: Kill process 1371 (systemd-journal) score 1 or sacrifice child\n", []string{"host systemd-journal/1371"}},
	} {
		t.Run(c.name, func(t *testing.T) { wantEvents(t, readText(t, c.text), c.want...) })
	}
}

func TestComms(t *testing.T) {
	for _, comm := range []string{"a", "runc:[2:INIT]", "CPU 0/KVM", "kworker/3:1", "Web Content", "(sd-pam)", "node.js: x", "Thread-2", "pool-1-thread-1"} {
		for _, prefix := range []string{"", "[ 12.345678] ", "Sep  7 15:49:31 h kernel: [12.345678] ", "<4>", "x_1 | "} {
			e := readText(t, prefix+comm+" invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=2, oom_score_adj=-5\n").Events[0]
			if string(e.Invoker.Comm) != comm || *e.Invoker.Order != 2 || *e.Invoker.OOMScoreAdj != -5 {
				t.Errorf("%q after %q gives %+v", comm, prefix, e.Invoker)
			}
		}
	}
}

// TestBroken: a terminal or a mail broke the lines.
func TestBroken(t *testing.T) {
	text := `Memory cgroup out of memory: Killed process 22609 (node) total-vm:9923620kB, anon-
rss:4116684kB, file-rss:23132kB, shmem-rss:0kB, UID:0 pgtables:10964kB oom_score_adj:969
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-1f.s
cope,mems_allowed=0,oom_memcg=/kubepods.slice/kubepods-pod0a.slice,task_memcg=/k
ubepods.slice/kubepods-pod0a.slice/cri-containerd-1f.scope,task=node,pid=22609,u
id=0
`
	lines := strings.SplitAfterN(text, "\n", 3)
	e := readText(t, lines[2]+lines[0]+lines[1]).Events[0]
	if e.Limit.Cgroup != "/kubepods.slice/kubepods-pod0a.slice" || e.Victims[0].Cgroup != "/kubepods.slice/kubepods-pod0a.slice/cri-containerd-1f.scope" {
		t.Errorf("limit %+v, victim's cgroup %q", e.Limit, e.Victims[0].Cgroup)
	}
	wantInt(t, "anon_bytes", e.Victims[0].AnonBytes, 4116684<<10)
	wantInt(t, "oom_score_adj", e.Victims[0].OOMScoreAdj, 969)
	wantInt(t, "uid", e.Victims[0].UID, 0)
}

// TestInterleaved: two hosts' reports, line by line.
func TestInterleaved(t *testing.T) {
	stamp := func(host, text string) []string {
		var out []string
		for _, l := range bareLines(text) {
			out = append(out, "Sep  7 15:49:31 "+host+" kernel: "+l)
		}
		return out
	}
	a := stamp("node-a", readCase(t, "A01-global-6.11-full.dmesg"))
	b := stamp("node-b", readCase(t, "hugepage-pool-host.log"))
	var mixed []string
	for i := range max(len(a), len(b)) {
		mixed = append(append(mixed, a[min(i, len(a)):min(i+1, len(a))]...), b[min(i, len(b)):min(i+1, len(b))]...)
	}
	r := readText(t, joinLines(mixed))
	wantEvents(t, r, "host stress-ng-vm/116", "host cloud-init/911")
	if len(r.Events) == 2 && (r.Events[0].Host != "node-a" || r.Events[1].Host != "node-b") {
		t.Errorf("hosts %q, %q", r.Events[0].Host, r.Events[1].Host)
	}
	wantInt(t, "unexplained of a", r.Events[0].UnexplainedBytes, 18684<<10)
}

// TestReaperOfItsHost: two hosts killed processes of one number, and each reaper's line is of its own.
func TestReaperOfItsHost(t *testing.T) {
	const text = "Sep  7 15:49:31 node-a kernel: Out of memory: Killed process 5 (a) total-vm:8kB, anon-rss:4kB, file-rss:0kB\n" +
		"Sep  7 15:49:31 node-b kernel: Out of memory: Killed process 5 (b) total-vm:8kB, anon-rss:4kB, file-rss:0kB\n" +
		"Sep  7 15:49:33 node-b kernel: oom_reaper: reaped process 5 (b), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n"
	for range 50 { // the order of a map's keys is another each time
		r := readText(t, text)
		wantEvents(t, r, "host a/5", "host b/5")
		if t.Failed() {
			return
		}
		if got := r.Events[0].Victims[0].ReapedNS; got != nil {
			t.Fatalf("node-a's process was reaped after %d ns, by node-b's reaper", *got)
		}
		wantInt(t, "reaped_after_ns of node-b's", r.Events[1].Victims[0].ReapedNS, 2e9)
	}
}

// TestCut: a report cut anywhere is read without a made-up number: what it says is what the whole says,
// or null.
func TestCut(t *testing.T) {
	text := readCase(t, "A01-global-6.11-full.dmesg")
	whole := readText(t, text).Events[0]
	check := func(part string) {
		for _, e := range readText(t, part).Events {
			for _, c := range []struct {
				name       string
				got, whole *int64
			}{{"ram_bytes", e.RAMBytes, whole.RAMBytes}, {"page_bytes", e.PageBytes, whole.PageBytes}} {
				if c.got != nil && *c.got != *c.whole {
					t.Fatalf("%s is %d, of the whole report %d, in %q", c.name, *c.got, *c.whole, part)
				}
			}
			if e.RAMBytes == nil && !slices.Contains(e.Missing, "ram_bytes") {
				t.Fatalf("ram_bytes is null and not missing in %q", part)
			}
		}
	}
	lines := strings.SplitAfter(text, "\n")
	for i := range lines {
		check(strings.Join(lines[i:], ""))
		check(strings.Join(lines[:i], ""))
	}
	for i := 0; i < len(text); i += 97 {
		check(text[i:])
	}
}

// TestSameKillTwice: the same report in two logs is one event.
func TestSameKillTwice(t *testing.T) {
	r := NewReader()
	for _, name := range []string{"kern.log", "syslog"} {
		if err := r.Read(name, strings.NewReader(readCase(t, "A01-global-6.11-full.dmesg"))); err != nil {
			t.Fatal(err)
		}
	}
	wantEvents(t, r.Report(), "host stress-ng-vm/116")
}

func TestEncodings(t *testing.T) {
	text := readCase(t, "A19-iso-grep-oom.txt")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		wide = binary.LittleEndian.AppendUint16(wide, u)
	}
	for name, b := range map[string][]byte{"gzip": zipped.Bytes(), "UTF-16": wide} {
		if got := summary(readText(t, string(b))); !slices.Equal(got, []string{"host perl/1440763"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	r := readText(t, zipped.String()[:zipped.Len()-9])
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "damaged") {
		t.Errorf("a cut gzip file gives warnings %q", r.Warnings)
	}
}

// TestTimes: stamps of every form.
func TestTimes(t *testing.T) {
	const kill = "Out of memory: Killed process 1 (a) total-vm:8kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB\n"
	for _, c := range []struct{ stamp, time, kind string }{
		{"", "", ""},
		{"[  30.745678] ", "30.745678", "boot"},
		{"[Mon Jan 26 01:49:41 2026] ", "2026-01-26T01:49:41", "local"},
		{"[月  1月 26 01:49:41 2026] ", "2026-01-26T01:49:41", "local"},
		{"[mar. août 26 01:49:41 2025] ", "2025-08-26T01:49:41", "local"},
		{"[Di Mär  3 01:49:41 2026] ", "2026-03-03T01:49:41", "local"},
		{"[Пн мар  2 01:49:41 2026] ", "2026-03-02T01:49:41", "local"},
		{"[월  1월 26 01:49:41 2026] ", "2026-01-26T01:49:41", "local"},
		{"[xxx yyy 26 01:49:41 2026] ", "xxx yyy 26 01:49:41 2026", "text"},
		{"Sep  7 15:49:31 host kernel: ", "Sep  7 15:49:31", "partial"},
		{"Sep  7 15:49:31.050705 host kernel: [ 12.5] ", "Sep  7 15:49:31.050705", "partial"},
		{"Dec 27 09:19:05 2013 kernel: : [277622.359064] ", "2013-12-27T09:19:05", "local"},
		{"2024-04-29T14:55:41,678628+02:00 ", "2024-04-29T14:55:41.678628+02:00", "zoned"},
		{"2024-04-29T14:55:41+0200 host kernel: ", "2024-04-29T14:55:41+02:00", "zoned"},
		{"2024-04-29 14:55:41.678 ", "2024-04-29T14:55:41.678", "local"},
		{"2024-04-29T14:55:41Z ", "2024-04-29T14:55:41Z", "zoned"},
		{"Mon 2024-04-29 14:55:41 UTC host kernel: ", "2024-04-29T14:55:41Z", "zoned"},
		{"Mon 2024-04-29 14:55:41 CEST host kernel: ", "2024-04-29T14:55:41", "local"},
		{"1714395341.678628 host kernel: ", "2024-04-29T12:55:41.678628Z", "zoned"},
		{"4,100,30745678,-;", "30.745678", "boot"},
		{"04-29 14:55:41.678  1234  1234 I ", "04-29 14:55:41.678", "partial"},
	} {
		e := readText(t, c.stamp+kill).Events[0]
		if string(e.Time) != c.time || string(e.TimeKind) != c.kind {
			t.Errorf("%q gives %q, %q; want %q, %q", c.stamp, e.Time, e.TimeKind, c.time, c.kind)
		}
		if e.Victims[0].Comm != "a" || e.Limit.Kind != LimitHost {
			t.Errorf("%q: victim %+v, limit %+v", c.stamp, e.Victims[0], e.Limit)
		}
	}
}

// TestManyEvents: a log of more kills than are kept is counted.
func TestManyEvents(t *testing.T) {
	var b strings.Builder
	const kills = MaxEvents * 40
	for i := range kills {
		fmt.Fprintf(&b, "[%d.000001] x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n", i)
		fmt.Fprintf(&b, "[%d.000002] Out of memory: Killed process %d (x) total-vm:8kB, anon-rss:4kB, file-rss:0kB\n", i, i+1)
	}
	r := readText(t, b.String())
	if len(r.Events) != MaxEvents || r.DroppedEvents != kills-MaxEvents || len(r.Warnings) == 0 {
		t.Errorf("%d events, %d dropped, of %d; warnings %v", len(r.Events), r.DroppedEvents, kills, r.Warnings)
	}
}

// FuzzRead: no text makes the reader fail, and what it says is consistent.
func FuzzRead(f *testing.F) {
	for _, name := range []string{
		"A01-global-6.11-full.dmesg", "A03-cpuset-movable-node.txt", "A06-k8s-memcg-v2-oom-group.dmesg", "memcg-v1-docker-4.4.log",
		"cma-armv7-rpi.log", "order2-2.6.31.log", "k8s-describe-oomkilled.txt", "docker-inspect-oomkilled.json", "earlyoom.log",
		"hugepages-stale.log", "torch-cuda-oom.log", "B09-supraseal-spdk-alloc-null.log",
	} {
		f.Add(readCase(f, name))
	}
	for _, shape := range shapes {
		if shape.name != "in a large log" {
			f.Add(shape.of(bareLines(readCase(f, "A19-iso-grep-oom.txt"))))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := readText(t, text)
		for _, e := range r.Events {
			if e.Cause.Kind == "" || e.Cause.Sentence == "" || e.Limit.Kind == "" {
				t.Errorf("event without cause or limit: %+v", e)
			}
			if e.UnexplainedBytes != nil && *e.UnexplainedBytes != *e.AccountedBytes-*e.ExplainedBytes {
				t.Errorf("unexplained %d of %d with %d explained", *e.UnexplainedBytes, *e.AccountedBytes, *e.ExplainedBytes)
			}
		}
		var out bytes.Buffer
		if err := Print(&out, r, true, reportStyle); err != nil {
			t.Error(err)
		}
	})
}
