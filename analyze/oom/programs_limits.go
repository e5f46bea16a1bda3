package oom

// limitRules are bounds that the system sets: on locked memory, address space and mappings, on huge
// pages, on the kernel's own memory.
var limitRules = []programRule{
	{
		words: []string{"rlimit_memlock", "max locked memory", "mlock()", "mlock: ", "mlockall",
			"failed to mlock", "failed to lock", "ibv_reg_mr", "ulimit -l", "locked-in-memory"},
		kind: CauseMemlock, oom: no, confidence: Shown,
		sentence: "Not out of memory: the limit on locked memory was met (RLIMIT_MEMLOCK, " +
			"ulimit -l).",
		next: "Raise it: ulimit -l, LimitMEMLOCK= of the service, --ulimit memlock= of the " +
			"container.",
		read: nil,
	},
	{
		words: []string{"rlimit_as", "rlimit_data", "address space limit", "virtual memory exhausted",
			"ulimit -v"},
		kind: CauseAddressSpace, oom: no, confidence: Suspected,
		sentence: "The limit on address space was met (RLIMIT_AS, ulimit -v), or the allocation " +
			"was refused; nobody was killed, and RAM need not be short.",
		next: "See ulimit -v, LimitAS= of the service, and vm.overcommit_memory.",
	},
	{
		words: []string{"max_map_count"},
		kind:  CauseMapLimit, oom: no, confidence: Suspected,
		sentence: "The number of mappings was the bound (vm.max_map_count), not RAM.",
		next:     "Compare the lines of /proc/PID/maps with vm.max_map_count.",
	},
	{
		words:  []string{"hugetlb.1gb.", "hugetlb.2mb.", "hugetlb.512mb.", "hugetlb.64kb."},
		counts: []string{"events max ", "events.local max ", "failcnt ", "failcnt:"},
		kind:   CauseHugepages, oom: no, limit: LimitHugetlb, confidence: Suspected,
		sentence: "The cgroup's limit on huge pages was met before (its counter of refused " +
			"requests is above 0), whatever the host's pool has free.",
		next: "Compare hugetlb.SIZE.max (limit_in_bytes in version 1) of the cgroup and of its " +
			"parents with what the program maps.",
	},
	{
		words: []string{"slub: unable to allocate", "slab: unable to allocate", "vmalloc error"},
		kind:  CauseRefused, confidence: Shown,
		sentence: "The kernel refused an allocation of its own; nobody was killed for it. A " +
			"cgroup's limit on kernel memory, address space or free memory can be the bound.",
		next: "Look at the lines below it for the cache, its cgroup and the counters of memory.",
	},
	{
		words: []string{"hugetlb: allocating", "map_hugetlb", "hugepages but only",
			"could not allocate huge"},
		kind: CauseHugepages, oom: no, limit: LimitHugetlb, confidence: Shown,
		sentence: "Huge pages were refused: too few could be made, or none is free. Ordinary " +
			"memory may be plenty.",
		next: "See grep Huge /proc/meminfo; reserve them at boot (hugepagesz=1G " +
			"hugepages=N), before memory is in pieces.",
	},
	{
		words: []string{"not enough memory available on socket", "not enough free hugepages"},
		kind:  CauseHugepages, oom: no, limit: LimitHugetlb, confidence: Shown,
		sentence: "DPDK found fewer free huge pages than it needs. Ordinary memory may be plenty.",
		next: "See grep Huge /proc/meminfo and each node's " +
			"/sys/devices/system/node/node*/hugepages.",
	},
	{
		words: []string{
			"spdk_ptr_t", "spdk_malloc", "spdk_zmalloc", "spdk_dma_malloc", "spdk_dma_zmalloc",
			"rte_malloc",
			"rte_zmalloc", "eal_memalloc", "couldn't get fd on hugepage",
			"cannot get hugepage information",
			"cannot init memory", "no free hugepages", "no available hugepages",
			"no free 1048576 kb hugepages",
			"no free 2048 kb hugepages",
		},
		kind: CauseHugepages, oom: no, confidence: Suspected,
		sentence: "A buffer that SPDK or DPDK takes from huge pages could not be had; no OOM " +
			"kill. Suspect too few free huge pages (HugePages_Free): the text does not confirm it.",
		next: "See grep Huge /proc/meminfo before starting (SupraSeal needs 36 pages of 1 " +
			"GiB for a batch); pages left by a dead process stay in /dev/hugepages.",
	},
}
