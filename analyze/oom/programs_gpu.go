package oom

import "strings"

// gpuRules are refusals by the GPU: of its own memory, and of pinning the host's.
var gpuRules = []programRule{
	{
		words: []string{"nvrm: failed to allocate page table"},
		kind:  CausePinned, oom: no, confidence: Shown,
		sentence: "The NVIDIA driver could not make its table for one registration of host " +
			"memory: from 512 GiB a call on, drivers since r580 refuse it, however much memory " +
			"is free.",
		next: "Register in pieces below 512 GiB.",
		read: readRequested,
	},
	{
		words: []string{
			"cudahostregister", "cudahostalloc", "cudamallochost", "cumemhostregister",
			"cumemhostalloc",
			"failed to register pinned memory",
		},
		kind: CausePinned, oom: no, confidence: Suspected,
		sentence: "Pinning host memory was refused. Its \"out of memory\" is neither the GPU's " +
			"memory nor, as a rule, the host's: suspect a limit on one call's size (512 GiB), " +
			"on mappings (vm.max_map_count), or on locked memory.",
		next: "Register in smaller pieces; compare with ulimit -l, vm.max_map_count (cat " +
			"/proc/PID/maps | wc -l) and the kernel log (NVRM).",
		read: readPinned,
	},
	{
		words: []string{
			"cuda out of memory", "cudaerrormemoryallocation", "cuda_error_out_of_memory",
			"cuda error: out of memory",
			"cublas_status_alloc_failed", "cl_mem_object_allocation_failure", "hip out of memory",
			"hiperroroutofmemory", "out of memory@", "cuda error 2", "error_out_of_device_memory",
		},
		kind: CauseDevice, oom: no, confidence: Shown,
		sentence: "The GPU's memory ran out, not the host's; the kernel's OOM killer has no " +
			"part in it.",
		next: "Lower what is on the device at once (fewer GPU workers, smaller batches), " +
			"and see who else uses it: nvidia-smi.",
		read: readDevice,
	},
	{
		words: []string{"out of memory", "outofmemory"}, also: []string{"cuda"},
		kind: CauseDevice, oom: no, confidence: Suspected,
		sentence: "CUDA reports out of memory: that is the GPU's memory, unless the call pins " +
			"host memory; the kernel's OOM killer has no part in it.",
		next: "Lower what is on the device at once (fewer GPU workers, smaller batches), " +
			"and see who else uses it: nvidia-smi.",
		read: readDevice,
	},
}

// readPinned tells a registration that is too large from one that is refused for another reason.
func readPinned(e *Event, msg string) {
	readRequested(e, msg)
	const oneCall = 512 << 30
	if n := e.Numbers["requested_bytes"]; n >= oneCall && n < maxMachine {
		e.Cause.Confidence = Shown
		e.Cause.Sentence = "Pinning host memory was refused for the size of one call: from 512 " +
			"GiB on, NVIDIA drivers since r580 refuse a registration, however much memory is free."
	}
	if hasFold(msg, "invalid") || hasFold(msg, "already") {
		e.Cause.Sentence = "Pinning host memory was refused for its arguments: an empty, " +
			"unaligned or already registered range. No memory ran out."
		e.Cause.Confidence = Suspected
	}
}

// deviceFigures are the figures in PyTorch's message, by what stands before or behind each.
var deviceFigures = []struct{ key, name string }{
	{"tried to allocate ", "requested_bytes"},
	{"total capacity of ", "capacity_bytes"},
	{"of which ", "device_free_bytes"},
	{"this process has ", "device_used_bytes"},
	{"of the allocated memory ", "allocated_bytes"},
}

var deviceBehind = []struct{ key, name string }{
	{" total capacity", "capacity_bytes"},
	{" already allocated", "allocated_bytes"},
	{" free;", "device_free_bytes"},
	{" reserved in total", "reserved_bytes"},
	{" is reserved by", "reserved_unallocated_bytes"},
}

func readDevice(e *Event, msg string) {
	for _, f := range deviceFigures {
		if n := sizeIn(msg, f.key); n != nil {
			e.Numbers[f.name] = *n
		}
	}
	for _, f := range deviceBehind {
		i := indexFold(msg, f.key)
		if i < 0 || e.Numbers[f.name] > 0 {
			continue
		}
		before := msg[:i]
		start := strings.LastIndexAny(before, ";(,") + 1
		words := strings.Fields(before[start:])
		if len(words) >= 2 {
			if n, ok := cutSize(strings.Join(words[len(words)-2:], " ")); ok {
				e.Numbers[f.name] = n
			}
		}
	}
}
