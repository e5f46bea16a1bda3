package oom

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"highwater/analyze/report"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata/golden")

// TestGolden: every case reads as it did. The figures that matter are also asserted by name below.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(files) < 55 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		t.Run(name, func(t *testing.T) {
			r := NewReader()
			if err := r.Read(name, strings.NewReader(readCase(t, name))); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			e := json.NewEncoder(&got)
			e.SetEscapeHTML(false)
			e.SetIndent("", " ")
			if err := e.Encode(r.Report()); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "golden", name+".json")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s has changed: see the difference after go test ./analyze/oom -run "+
					"TestGolden -update\n%s", golden, got.String())
			}
		})
	}
}

// one is the only event of a case.
func one(t *testing.T, name string) *Event {
	t.Helper()
	r := readText(t, readCase(t, name))
	if len(r.Events) != 1 {
		t.Fatalf("%s has %d events, want 1", name, len(r.Events))
	}
	return r.Events[0]
}

func wantInt(t *testing.T, what string, got *int64, want int64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is null, want %d", what, want)
	} else if *got != want {
		t.Errorf("%s is %d, want %d", what, *got, want)
	}
}

func wantNull(t *testing.T, e *Event, field string, got *int64) {
	t.Helper()
	if got != nil {
		t.Errorf("%s is %d, want null", field, *got)
	}
	if !slices.Contains(e.Missing, field) {
		t.Errorf("%s is not named as missing: %v", field, e.Missing)
	}
}

func wantCause(t *testing.T, e *Event, kind, confidence string, words ...string) {
	t.Helper()
	if e.Cause.Kind != kind || e.Cause.Confidence != confidence {
		t.Errorf("cause is %s, %s; want %s, %s", e.Cause.Kind, e.Cause.Confidence, kind, confidence)
	}
	for _, w := range words {
		if !strings.Contains(e.Cause.Sentence, w) {
			t.Errorf("the cause's sentence does not say %q: %s", w, e.Cause.Sentence)
		}
	}
}

func wantLimit(t *testing.T, e *Event, kind string) {
	t.Helper()
	if e.Limit.Kind != kind {
		t.Errorf("limit is %s, want %s", e.Limit.Kind, kind)
	}
}

func hasNote(e *Event, words string) bool {
	return slices.ContainsFunc(e.Notes, func(n string) bool { return strings.Contains(n, words) })
}

func TestA01(t *testing.T) {
	e := one(t, "A01-global-6.11-full.dmesg")
	wantLimit(t, e, LimitHost)
	wantInt(t, "order", e.Invoker.Order, 0)
	wantInt(t, "ram_bytes", e.RAMBytes, 2097022*4096)
	wantInt(t, "managed_bytes", e.ManagedBytes, 8118624<<10)
	wantInt(t, "limit.bytes", e.Limit.Bytes, 8118624<<10)
	wantInt(t, "swap_total_bytes", e.SwapTotalBytes, 0)
	wantInt(t, "page_bytes", e.PageBytes, 4096)
	wantInt(t, "unexplained_bytes", e.UnexplainedBytes, 18684<<10)
	wantInt(t, "explained_bytes", e.ExplainedBytes, (8118624-18684)<<10)
	v := e.Victims[0]
	wantInt(t, "victim", v.PID, 116)
	wantInt(t, "rss_bytes", v.RSSBytes, 7981192<<10)
	wantInt(t, "anon_bytes", v.AnonBytes, 7980628<<10)
	if v.Share == nil || v.Share.Of != "managed" || v.Share.Ratio < 0.9830 ||
		v.Share.Ratio > 0.9831 {
		t.Errorf("share %+v, want 98.3 %% of managed", v.Share)
	}
	wantCause(t, e, CauseProcess, Shown, "98.3 %")
	normal := e.Zones[2]
	wantInt(t, "free of Normal", normal.FreeBytes, 984<<10)
	wantInt(t, "min of Normal", normal.MinBytes, 8628<<10)
	if !hasNote(e, "largest anyway") || e.UptimeNS == nil || *e.UptimeNS != 30745678000 ||
		len(e.Missing) != 0 {
		t.Errorf("notes %v, uptime %v, missing %v", e.Notes, e.UptimeNS, e.Missing)
	}
}

func TestA03(t *testing.T) {
	e := one(t, "A03-cpuset-movable-node.txt")
	wantLimit(t, e, LimitCpuset)
	wantInt(t, "node", e.Limit.Node, 4)
	wantInt(t, "free of node 4", e.Zones[0].FreeBytes, 130021408<<10)
	wantInt(t, "free_bytes", e.FreeBytes, 159849484*4096)
	wantInt(t, "unexplained_bytes", e.UnexplainedBytes, 276<<10)
	wantCause(t, e, CauseUnusable, Shown, "609.8 GiB", "Killing cannot help", "6 processes")
	var names []string
	for _, v := range e.Victims {
		names = append(names, string(v.Comm))
		if v.WasCause == nil || *v.WasCause {
			t.Errorf("%s is blamed", v.Comm)
		}
	}
	want := []string{"containerd", "docker", "node_exporter", "systemd-journal", "munin-node",
		"runc:[2:INIT]"}
	if !slices.Equal(names, want) {
		t.Errorf("victims %v, want %v", names, want)
	}
	if e.Invoker.Comm != "runc:[2:INIT]" || !strings.Contains(e.Next[0], "cpuset") {
		t.Errorf("invoker %q, next %v", e.Invoker.Comm, e.Next)
	}
	wantNull(t, e, "ram_bytes", e.RAMBytes)
}

func TestA06(t *testing.T) {
	e := one(t, "A06-k8s-memcg-v2-oom-group.dmesg")
	wantLimit(t, e, LimitMemcg)
	wantInt(t, "limit.bytes", e.Limit.Bytes, 4<<30)
	wantInt(t, "failcnt", e.Limit.Failcnt, 1273284)
	if e.Limit.Level != "parent" || e.Limit.Owner != "pod" ||
		!strings.HasSuffix(string(e.Limit.Cgroup), "444455556666.slice") {
		t.Errorf("limit %+v, want the pod's, a parent", e.Limit)
	}
	v := e.Victims[0]
	wantInt(t, "anon_bytes", v.AnonBytes, 4116684<<10)
	if len(e.Victims) != 1 || v.KillLines != 2 || v.Share == nil || v.Share.Ratio < 0.981 ||
		v.Share.Ratio > 0.982 {
		t.Errorf("victims %+v, want one, printed twice, with 98.1 %%", e.Victims)
	}
	wantInt(t, "unexplained_bytes", e.UnexplainedBytes, (4194304-4116684)<<10)
	wantCause(t, e, CauseProcess, Shown, "growth", "1,273,284")
	wantNull(t, e, "ram_bytes", e.RAMBytes)
	if !hasNote(e, "host's RAM is irrelevant") {
		t.Errorf("notes %v", e.Notes)
	}
}

func TestA12(t *testing.T) {
	e := one(t, "A12-locale-ja-filtered.txt")
	wantLimit(t, e, LimitHost)
	if e.Time != "2026-01-26T01:49:41" || e.TimeKind != "local" {
		t.Errorf("time %q, %q: zone unknown", e.Time, e.TimeKind)
	}
	wantInt(t, "anon_bytes", e.Victims[0].AnonBytes, 15096608<<10)
	wantInt(t, "ram_bytes", e.RAMBytes, 15<<30)
	wantInt(t, "swap_total_bytes", e.SwapTotalBytes, 2<<30)
	wantInt(t, "swap_free_bytes", e.SwapFreeBytes, 0)
	wantInt(t, "rss_bytes", e.Victims[0].RSSBytes, 15096608<<10)
	wantNull(t, e, "page_bytes", e.PageBytes)
	wantCause(t, e, CauseProcess, Shown, "14.4 GiB", "not address space")
	if !hasNote(e, "1.17 TiB of chain-collator (pid 1888) is address space") || !hasNote(e,
		"Swap is full (2.00 GiB)") {
		t.Errorf("notes %v", e.Notes)
	}
}

func TestA16(t *testing.T) {
	e := one(t, "A16-lotus-memcg-truncated-syslog.txt")
	wantLimit(t, e, LimitMemcg)
	wantNull(t, e, "limit.bytes", e.Limit.Bytes)
	wantCause(t, e, CauseUnknown, Unknown)
	var lines []string
	for _, f := range e.Fetch {
		lines = append(lines, f.Line)
	}
	for _, want := range []string{"memory: usage", "oom-kill:", "Killed process"} {
		if !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("does not ask for %q: %v", want, lines)
		}
	}
	if len(e.Victims) != 0 || !slices.Contains(e.Missing, "victims") ||
		e.Kernel != "5.4.0-1021-aws" {
		t.Errorf("victims %v, missing %v, kernel %q", e.Victims, e.Missing, e.Kernel)
	}
}

func TestA19(t *testing.T) {
	e := one(t, "A19-iso-grep-oom.txt")
	wantLimit(t, e, LimitHost)
	v := e.Victims[0]
	wantInt(t, "anon_bytes", v.AnonBytes, 60356340<<10)
	wantInt(t, "reaped_after_ns", v.ReapedNS, 5267745000)
	if e.Time != "2024-04-29T14:55:41.678628+02:00" || v.Comm != "perl" || !hasNote(e,
		"host-wide") {
		t.Errorf("time %q, victim %q, notes %v", e.Time, v.Comm, e.Notes)
	}
}

func TestA25(t *testing.T) {
	e := one(t, "A25-single-line-lxc-k8s-pytorch.txt")
	wantLimit(t, e, LimitMemcg)
	wantInt(t, "pid", e.Victims[0].PID, 461754)
	if e.Limit.Level != "parent" || e.Limit.Owner != "pod" || e.Limit.Nodes != "0-1" ||
		e.Victims[0].Comm != "pt_main_thread" {
		t.Errorf("limit %+v, victim %+v", e.Limit, e.Victims[0])
	}
	wantNull(t, e, "limit.bytes", e.Limit.Bytes)
	wantNull(t, e, "victims.anon_bytes", e.Victims[0].AnonBytes)
	if e.Time != "Aug 30 06:58:55.050705" || e.Host != "" {
		t.Errorf("time %q, host %q", e.Time, e.Host)
	}
}

func TestB08(t *testing.T) {
	e := one(t, "B08-array-length-limit-not-oom.log")
	wantCause(t, e, CauseArrayLimit, Shown, "Not out of memory", "More RAM", "2^32")
	wantInt(t, "ram_bytes", e.RAMBytes, 2048<<30)
	if e.OutOfMemory == nil || *e.OutOfMemory || e.Numbers["used_bytes"] != 468e9 {
		t.Errorf("out of memory %v, numbers %v", e.OutOfMemory, e.Numbers)
	}
}

func TestB09(t *testing.T) {
	e := one(t, "B09-supraseal-spdk-alloc-null.log")
	wantCause(t, e, CauseHugepages, Suspected, "no OOM kill", "HugePages_Free")
	wantInt(t, "invoker.pid", e.Invoker.PID, 53222)
	if e.Numbers["slot_bytes"] != 11811160064 || len(e.Victims) != 0 || !slices.Contains(e.Missing,
		"numbers.hugepages_free") {
		t.Errorf("numbers %v, victims %v, missing %v", e.Numbers, e.Victims, e.Missing)
	}
	if got := e.figures(); got != "slot 11.0 GiB" {
		t.Errorf("prints %q, want the slot's size", got)
	}
}

// TestNothing: texts that are about memory and hold no failure give no event.
func TestNothing(t *testing.T) {
	for _, text := range []string{
		"", "\n\n", "partition_workers,gpu_workers,peak_rss_gib\n12,2,373\n",
		"2026-01-26T01:49:41Z INFO prover: allocated 15.5 GiB for a, b, c; RSS 200 GiB of 512 " +
			"GiB\n",
		"MemTotal:       65842100 kB\nHugePages_Total:      36\nHugePages_Free:       36\n",
		"[  1.0] Memory: 32704012K/33554432K available\n[  1.1] zram: Added device: zram0\n",
		"{\"Alloc\": 710580968,\n\"Sys\": 1459456584}\n", "exit code: 0\nexited with code 1\n",
		"$ free -h\n               total        used        free\nMem:            15Gi        " +
			"12Gi       387Mi\n",
		"reading the OOM killer's documentation: a process is killed when memory runs out\n",
		"cudaHostRegister: 32 GiB in 812 ms\n", "ulimit -l unlimited\n",
	} {
		if r := readText(t, text); len(r.Events) != 0 {
			t.Errorf("%q gives %d events: %s", text, len(r.Events), r.Events[0].Cause.Sentence)
		}
	}
}

var reportStyle = report.Style{}
