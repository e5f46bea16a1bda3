package oom

import (
	"strings"
	"testing"
)

// TestPhrases: what a few lines, each said in another way, are about.
func TestPhrases(t *testing.T) {
	for _, c := range []struct{ text, limit, cause string }{
		{"2024-05-01T10:00:00.12Z container oom 3f2a (image=prover:1.2, name=prover-1)\n" +
			"2024-05-01T10:00:00.62Z container die 3f2a (exitCode=137, name=prover-1)\n",
			LimitMemcg, CauseContainer},
		{"slurmstepd: error: Detected 1 oom_kill event in StepId=991.batch.\n" +
			"srun: error: node17: task 3: Out Of Memory\n", LimitUnknown, CauseUnit},
		{"991.batch  batch  OUT_OF_ME+  0:125\n", LimitUnknown, CauseUnit},
		{"child ended: wait status 0x0009\n", LimitUnknown, CauseKilled},
		{"process 4411 killed by SIGKILL\n", LimitUnknown, CauseKilled},
		{"pthread_create failed: Resource temporarily unavailable\n", LimitUnknown,
			CauseThreadLimit},
		{"RuntimeError: can't start new thread\n", LimitUnknown, CauseThreadLimit},
		{"mmap: cannot allocate memory: vm.max_map_count=65530, 65530 in use\n", LimitUnknown,
			CauseMapLimit},
		{"mmap: Cannot allocate memory\nhugetlb.1GB.events max 4\nHugePages_Total: 100\n" +
			"HugePages_Free: 60\nHugePages_Rsvd: 0\n", LimitHugetlb, CauseHugepages},
		{"mmap: Cannot allocate memory\nhugetlb.1GB.events max 0\n", LimitUnknown, CauseMalloc},
		{"[99.0] SLUB: Unable to allocate memory on node -1, gfp=0xcc0(GFP_KERNEL)\n",
			LimitUnknown, CauseRefused},
		{"max locked memory  (kbytes, -l) 65536\nvirtual memory  (kbytes, -v) 33554432\n" +
			"memory allocation of 42949672960 bytes failed\n", LimitUnknown, CauseAddressSpace},
		{"virtual memory  (kbytes, -v) unlimited\nmemory allocation of 42949672960 bytes failed\n",
			LimitUnknown, CauseMalloc},
		{"ContainerStateTerminated{ExitCode:137,Signal:0,Reason:OOMKilled,StartedAt:2024-05-01 " +
			"10:00:00 +0000 UTC}\n", LimitMemcg, CauseContainer},
		{"System.OutOfMemoryException: Array dimensions exceeded supported range.\n",
			LimitUnknown, CauseArrayLimit},
		{"cudaHostRegister(0x7f00, 549755813888) returned 2: out of memory\n", LimitUnknown,
			CausePinned},
		{"Feb 10 04:02:01 db kernel: Out of memory: Kill process 1200 (httpd) score 300 or " +
			"sacrifice child\nFeb 10 04:02:01 db kernel: Killed process 1255 (php-cgi) " +
			"total-vm:400000kB, anon-rss:300000kB, file-rss:120kB\n", LimitHost, CauseUnknown},
	} {
		r := readText(t, c.text)
		if len(r.Events) != 1 {
			t.Errorf("%q gives %d events, want 1", c.text, len(r.Events))
			continue
		}
		e := r.Events[0]
		if e.Cause.Kind != c.cause || e.Limit.Kind != c.limit {
			t.Errorf("%q: limit %s, cause %s; want %s, %s", c.text, e.Limit.Kind, e.Cause.Kind,
				c.limit, c.cause)
		}
		if v := e.victim(); v != nil && v.Comm == "by" {
			t.Errorf("%q: the victim is %q", c.text, v.Comm)
		}
	}
}

// TestStamps: the time that a line's prefix gives.
func TestStamps(t *testing.T) {
	for _, c := range []struct{ prefix, time, kind string }{
		{"[Mar15 10:11] ", "Mar15 10:11", "partial"},
		{"[Mon Apr 29 02:55:41 PM 2024] ", "2024-04-29T14:55:41", "local"},
		{"<3>1 2024-04-29T14:55:41.678Z node-7 kernel - - - ", "2024-04-29T14:55:41.678Z", "zoned"},
		{"/var/log/kern.log.1:Apr 29 14:55:41 node-7 kernel: ", "Apr 29 14:55:41", "partial"},
		{"04/29/2024 14:55:41 node-7 kernel: ", "2024-04-29T14:55:41", "local"},
		{"[4/29/2024, 2:55:41 PM] ", "2024-04-29T14:55:41", "local"},
		{"4/29/2024 2:55:41\u202fPM node-7 kernel: ", "2024-04-29T14:55:41", "local"},
		{"29/04/2024 14:55:41 UTC node-7 kernel: ", "2024-04-29T14:55:41Z", "zoned"},
		{"29-04-2024 12:00:01.250 am node-7 kernel: ", "2024-04-29T00:00:01.250", "local"},
		{"05/05/2024 12:00:01 PM ", "2024-05-05T12:00:01", "local"},
		{"07.09.2020 15:49:31 node-7 kernel: ", "2020-09-07T15:49:31", "local"},
		{"04/29/24 02:55:41 PM ", "2024-04-29T14:55:41", "local"},
		{"kern.log:04/29/2024 14:55:41 node-7 kernel: ", "2024-04-29T14:55:41", "local"},
		{"09/07/2020 03:49:31 PM node-7 kernel: ", "09/07/2020 03:49:31 PM", "text"},
		{"[9/7/2020, 3:49:31 PM] ", "9/7/2020, 3:49:31 PM", "text"},
		{"24/04/29 14:55:41 ", "24/04/29 14:55:41", "text"},
		{"[29/Apr/2024:14:55:41 +0200] ", "2024-04-29T14:55:41+02:00", "zoned"},
		{"29-Apr-2024 02:55:41 PM node-7 kernel: ", "2024-04-29T14:55:41", "local"},
		{"Sep 7, 2020 @ 15:49:31.000 node-7 kernel: ", "2020-09-07T15:49:31.000", "local"},
		{"Sep 7, 2020 3:49:31 PM node-7 kernel: ", "2020-09-07T15:49:31", "local"},
		{"Mon 07 Sep 2020 03:49:31 PM UTC node-7 kernel: ", "2020-09-07T15:49:31Z", "zoned"},
		{"kern.log-12-2024-04-29T14:55:41Z node-7 kernel: ", "2024-04-29T14:55:41Z", "zoned"},
	} {
		e := readText(t, c.prefix+"runc:[2:INIT] invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), "+
			"order=0, oom_score_adj=0\n").Events[0]
		if e.Time != Text(c.time) || e.TimeKind != Text(c.kind) || e.Invoker.Comm != "runc:[2:INIT]" {
			t.Errorf("%q: time %q, %s, of %q; want %q, %s", c.prefix, e.Time, e.TimeKind,
				e.Invoker.Comm, c.time, c.kind)
		}
	}
}

// TestDoubtfulDates: a date that can be two is kept as written, and the event says so; times that a
// collector wrote as numbers are read.
func TestDoubtfulDates(t *testing.T) {
	const invoked = "a invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0"
	for _, c := range []struct{ prefix, note string }{
		{"09/07/2020 03:49:31 PM host kernel: ", "9 July"},
		{"9-7-2020 15:49:31 host kernel: ", "9 July"},
		{"24/04/29 14:55:41 host kernel: ", "can begin with the day or with the year"},
		{"05/05/24 14:55:41 host kernel: ", "can begin or end with the year"},
		{"09/17/2020 03:49:31 PM host kernel: ", ""},
		{"[xxx yyy 26 01:49:41 2026] ", ""},
	} {
		e := readText(t, c.prefix+invoked+"\n").Events[0]
		if got := hasNote(e, "it is kept as written"); got != (c.note != "") ||
			c.note != "" && !hasNote(e, c.note) {
			t.Errorf("%q: notes %q, want one with %q", c.prefix, e.Notes, c.note)
		}
	}
	for _, c := range []struct{ time, want string }{
		{"1714395341.678628", "2024-04-29T12:55:41.678628Z"},
		{"1714395341678", "2024-04-29T12:55:41.678000Z"},
		{"1714395341678628000", "2024-04-29T12:55:41.678628Z"},
		{`"4/29/2024 2:55:41 PM"`, "2024-04-29T14:55:41"},
		{"12", ""},
	} {
		e := readText(t, `{"ts":`+c.time+`,"msg":"`+invoked+"\"}\n").Events[0]
		if string(e.Time) != c.want {
			t.Errorf("ts %s: time %q, want %q", c.time, e.Time, c.want)
		}
	}
}

// TestKinds: limit, cause and confidence of every further case, with the figures that it turns on.
// A number of 0 is not asserted.
func TestKinds(t *testing.T) {
	const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30
	for _, c := range []struct {
		name, limit, cause, confidence string
		bytes, page, unexplained       int64
	}{
		{"host-3.10-rhel7-two-nodes.log", LimitHost, CauseProcess, Shown,
			(16678438 - 334767) * 4 * kib, 4096, 0},
		{"rhel6-2.6.32.log", LimitHost, CauseShmem, Shown, (4194303 - 127001) * 4 * kib, 4096, 0},
		{"memcg-v1-docker-4.4.log", LimitMemcg, CauseProcess, Shown, 102400 * kib, 4096, 0},
		{"memcg-swap-v1.log", LimitMemcgSwap, CauseProcess, Shown, 71303168 * kib, 4096,
			3952 * kib},
		{"memcg-kmem-v1.log", LimitKernel, CauseKernelMemory, Shown, 51200 * kib, 0, 0},
		{"memcg-v2-stats-6.8.log", LimitMemcg, CauseShmem, Shown, 100 * gib, 4096, 214748160},
		{"cma-armv7-rpi.log", LimitCMA, CauseCMA, Shown, (663836 - 131072*4) * kib, 4096, 0},
		{"lowmem-pae-squid.log", LimitZone, CauseZone, Shown, (15968 + 587000) * kib, 4096, 0},
		{"sparc64-8k-pipes.log", LimitHost, CauseUncounted, Suspected, 16539000 * kib, 8192,
			8468537344},
		{"hugepage-pool-host.log", LimitHost, CauseHugePool, Shown, (33519104 - 688312) * 4 * kib,
			4096, 0},
		{"mempolicy-5.15.log", LimitMempolicy, CauseProcess, Shown, 66060288 * kib, 4096, 0},
		{"mempolicy-4.15.log", LimitMempolicy, CauseProcess, Suspected, 0, 0, 0},
		{"cpuset-full-6.1.log", LimitCpuset, CauseNodeFull, Shown, 66060288 * kib, 4096, 0},
		{"no-killable-panic.log", LimitHost, CauseUnknown, Unknown, 0, 0, 0},
		{"arm64-64k.log", LimitHost, CauseProcess, Shown, (7340032 - 262144) * 64 * kib, 65536, 0},
		{"order2-2.6.31.log", LimitHost, CauseFragmented, Shown, 0, 4096, 0},
		{"sysrq-manual.log", LimitHost, CauseManual, Shown, 0, 0, 0},
		{"page-allocation-failure.log", LimitUnknown, CauseRefused, Shown, 0, 0, 0},
		{"k8s-describe-oomkilled.txt", LimitMemcg, CauseContainer, Suspected, 256 * gib, 0, 0},
		{"k8s-pod-status.yaml", LimitMemcg, CauseContainer, Suspected, 64 * gib, 0, 0},
		{"k8s-pod-status.json", LimitMemcg, CauseContainer, Suspected, 64 * gib, 0, 0},
		{"kubectl-get-pods.txt", LimitMemcg, CauseContainer, Suspected, 0, 0, 0},
		{"docker-inspect-oomkilled.json", LimitMemcg, CauseContainer, Suspected, 64 * gib, 0, 0},
		{"docker-inspect-not-oomkilled.json", LimitUnknown, CauseNotKilled, Suspected, 0, 0, 0},
		{"ecs-oom.txt", LimitMemcg, CauseContainer, Suspected, 0, 0, 0},
		{"exit-137-only.log", LimitUnknown, CauseKilled, Unknown, 0, 0, 0},
		{"shell-killed.log", LimitUnknown, CauseKilled, Unknown, 0, 0, 0},
		{"go-signal-killed.log", LimitUnknown, CauseKilled, Unknown, 0, 0, 0},
		{"systemd-oom-kill-unit.log", LimitUnknown, CauseUnit, Suspected, 0, 0, 0},
		{"memory-events.txt", LimitUnknown, CauseUnit, Suspected, 0, 0, 0},
		{"slurm.log", LimitUnknown, CauseUnit, Suspected, 0, 0, 0},
		{"evicted.txt", LimitUnknown, CauseEvicted, Shown, 0, 0, 0},
		{"earlyoom.log", LimitUnknown, CauseOomd, Shown, 0, 0, 0},
		{"lmkd.log", LimitUnknown, CauseOomd, Shown, 0, 0, 0},
		{"rust-alloc-failed.log", LimitUnknown, CauseMalloc, Shown, 0, 0, 0},
		{"rust-alloc-overflow.log", LimitUnknown, CauseSizeOverflow, Shown, 0, 0, 0},
		{"malloc-size.log", LimitUnknown, CauseMalloc, Shown, 0, 0, 0},
		{"bad-alloc.log", LimitUnknown, CauseMalloc, Shown, 0, 0, 0},
		{"go-runtime.log", LimitUnknown, CauseMalloc, Shown, 0, 0, 0},
		{"python-numpy.log", LimitUnknown, CauseMalloc, Shown, 0, 0, 0},
		{"os-error-12.log", LimitUnknown, CauseMalloc, Shown, 0, 0, 0},
		{"java-native.log", LimitUnknown, CauseMalloc, Shown, 0, 0, 0},
		{"java-heap.log", LimitUnknown, CauseHeapLimit, Shown, 0, 0, 0},
		{"java-threads.log", LimitUnknown, CauseThreadLimit, Shown, 0, 0, 0},
		{"node-heap-limit.log", LimitUnknown, CauseHeapLimit, Shown, 0, 0, 0},
		{"php.log", LimitUnknown, CauseHeapLimit, Shown, 128 * mib, 0, 0},
		{"fork-refused.log", LimitUnknown, CauseFork, Suspected, 0, 0, 0},
		{"memlock.log", LimitUnknown, CauseMemlock, Shown, 0, 0, 0},
		{"cudahostregister-512g.log", LimitUnknown, CausePinned, Shown, 0, 0, 0},
		{"cudahostregister-many.log", LimitUnknown, CausePinned, Suspected, 0, 0, 0},
		{"torch-cuda-oom.log", LimitUnknown, CauseDevice, Shown, 0, 0, 0},
		{"sppark-cuda.log", LimitUnknown, CauseDevice, Suspected, 0, 0, 0},
		{"opencl-alloc.log", LimitUnknown, CauseDevice, Shown, 0, 0, 0},
		{"hugepages-stale.log", LimitHugetlb, CauseStale, Shown, 0, 0, 0},
		{"hugepages-none-free.log", LimitHugetlb, CauseHugepages, Shown, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := one(t, c.name)
			wantLimit(t, e, c.limit)
			wantCause(t, e, c.cause, c.confidence)
			if c.bytes != 0 {
				wantInt(t, "limit.bytes", e.Limit.Bytes, c.bytes)
			}
			if c.page != 0 {
				wantInt(t, "page_bytes", e.PageBytes, c.page)
			}
			if c.unexplained != 0 {
				wantInt(t, "unexplained_bytes", e.UnexplainedBytes, c.unexplained)
			}
		})
	}
}

// TestNumbers: the figures of programs' messages.
func TestNumbers(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name, number string
		want         int64
	}{
		{"rust-alloc-failed.log", "requested_bytes", 8606711792},
		{"malloc-size.log", "requested_bytes", 461239222272},
		{"python-numpy.log", "requested_bytes", 116 * gib},
		{"java-native.log", "requested_bytes", 12582912000},
		{"go-runtime.log", "requested_bytes", 4194304},
		{"cudahostregister-512g.log", "requested_bytes", 558345748480},
		{"torch-cuda-oom.log", "requested_bytes", 2 * gib},
		{"torch-cuda-oom.log", "allocated_bytes", 70 * gib},
		{"torch-cuda-oom.log", "device_free_bytes", 5 * gib / 4},
		{"hugepages-stale.log", "hugepages_reserved", 12},
		{"hugepages-stale.log", "hugepage_bytes", gib},
		{"memory-events.txt", "oom_kills", 3},
		{"exit-137-only.log", "exit_code", 137},
		{"hugepage-pool-host.log", "hugepage_pool_bytes", 120 * gib},
	} {
		if got := one(t, c.name).Numbers[c.number]; got != c.want {
			t.Errorf("%s: %s is %d, want %d", c.name, c.number, got, c.want)
		}
	}
}

// TestContainersOfAPod: each container's end has its own reason, limit and time.
func TestContainersOfAPod(t *testing.T) {
	r := readText(t, `Containers:
  prover:
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    137
      Finished:     Mon, 26 Jan 2026 01:49:41 +0900
    Limits:
      memory:  64Gi
  sidecar:
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Mon, 26 Jan 2026 02:49:41 +0900
    Limits:
      memory:  128Mi
`)
	if len(r.Events) != 2 {
		t.Fatalf("%d events, want 2", len(r.Events))
	}
	first, second := r.Events[0], r.Events[1]
	if first.Cause.Kind != CauseKilled || first.Time != "2026-01-26T01:49:41+09:00" {
		t.Errorf("prover: %s at %s", first.Cause.Kind, first.Time)
	}
	if second.Cause.Kind != CauseContainer || second.Time != "2026-01-26T02:49:41+09:00" {
		t.Errorf("sidecar: %s at %s", second.Cause.Kind, second.Time)
	}
	wantInt(t, "the sidecar's limit", second.Limit.Bytes, 128<<20)
}

// TestFirstLineCut: a report whose first line lost its stamp is one event still.
func TestFirstLineCut(t *testing.T) {
	for _, c := range []struct{ name, prefix string }{
		{"A01-global-6.11-full.dmesg", "] "}, {"memcg-v2-stats-6.8.log", "kernel: "},
		{"A06-k8s-memcg-v2-oom-group.dmesg", "] Thread"},
	} {
		name, text := c.name, readCase(t, c.name)
		whole := readText(t, text).Events[0]
		r := readText(t, text[strings.Index(text, c.prefix)+2:])
		if len(r.Events) != 1 || r.Events[0].Limit.Kind != whole.Limit.Kind ||
			r.Events[0].Invoker == nil || r.Events[0].Invoker.Comm != whole.Invoker.Comm {
			t.Errorf("%s: %d events: %+v", name, len(r.Events), r.Events[0].Invoker)
		}
	}
}

// TestExitsInLargeLog: of many lines that say how something exited, the one that was killed is
// found, with what stands beside it.
func TestExitsInLargeLog(t *testing.T) {
	filler := strings.Repeat("2024-04-29T14:55:40Z node-7 runner: job exited with code 0\n", 100_000)
	r := readText(t, filler+"2024-04-29T14:55:41Z node-7 runner: prover exited with code 137\n"+filler)
	if len(r.Events) != 1 || r.Events[0].Cause.Kind != CauseKilled ||
		r.Events[0].Time != "2024-04-29T14:55:41Z" {
		t.Errorf("%d events: %+v", len(r.Events), r.Events)
	}
}
