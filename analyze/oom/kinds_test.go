package oom

import "testing"

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
