package probe

import "path/filepath"

// file names one of the files (or calls) that metrics are read from.
type file int

const (
	fileStatm file = iota
	fileStatus
	fileStat
	fileRusage
	fileGo
	filePace
	fileCurrent2
	filePeak2
	fileMax2
	fileSwap2
	fileEvents2
	fileCurrent1
	filePeak1
	fileLimit1
	fileFailcnt1
	fileOOM1
	fileLimiter
	fileCPU2
	fileCPU1
	filePSIMem2
	filePSICPU2
	filePSIIO2
	filePSIMem
	filePSICPU
	filePSIIO
	fileMeminfo
	fileVmstat
	fileHostStat
	fileCount
)

// format is the shape of a file's text.
type format int

const (
	columns   format = iota // one line of numbers; what stands in parentheses is one column
	cpuLine                 // columns, the first of them "cpu"
	keyed                   // a line a figure: KEY VALUE, KEY: VALUE kB
	single                  // one number, or "max"
	stalls                  // PSI: some|full avg10=… total=MICROSECONDS
	rusage                  // getrusage(RUSAGE_SELF), no file
	gometrics               // runtime/metrics, no file
	fixedWork               // a computation that is always the same, no file
)

// dir is a folder that depends on the options and on the sampled process.
type dir int

const (
	dirPID  dir = iota // PROC/PID
	dirProc            // PROC
	dirMem2            // the process's cgroup in the v2 tree
	dirMem1            // and in the v1 memory tree
	dirCPU2
	dirCPU1
	dirLimiter // the ancestor cgroup with the effective limit
	dirNone
	dirCount
)

// fileInfo says where a file is, how it reads, and whether it is one of the costly ones.
type fileInfo struct {
	doc    string
	dir    dir
	names  []string // the first that exists
	format format
	slow   bool // read at most slowHz times a second
}

func inPID(name string, f format, slow bool) fileInfo {
	return fileInfo{"/proc/PID/" + name, dirPID, []string{name}, f, slow}
}

func inProc(name string, f format, slow bool) fileInfo {
	return fileInfo{"/proc/" + name, dirProc, []string{name}, f, slow}
}

func inCgroup(version string, d dir, name string, f format, slow bool) fileInfo {
	return fileInfo{"cgroup " + version + " " + name, d, []string{name}, f, slow}
}

var files = [fileCount]fileInfo{
	fileStatm:    inPID("statm", columns, false),
	fileStatus:   inPID("status", keyed, true),
	fileStat:     inPID("stat", columns, true),
	fileRusage:   {"getrusage", dirNone, nil, rusage, false},
	fileGo:       {"runtime/metrics", dirNone, nil, gometrics, true},
	filePace:     {"a fixed computation", dirNone, nil, fixedWork, false},
	fileCurrent2: inCgroup("v2", dirMem2, "memory.current", single, false),
	filePeak2:    inCgroup("v2", dirMem2, "memory.peak", single, true),
	fileMax2:     inCgroup("v2", dirMem2, "memory.max", single, true),
	fileSwap2:    inCgroup("v2", dirMem2, "memory.swap.current", single, true),
	fileEvents2:  inCgroup("v2", dirMem2, "memory.events", keyed, true),
	fileCurrent1: inCgroup("v1", dirMem1, "memory.usage_in_bytes", single, false),
	filePeak1:    inCgroup("v1", dirMem1, "memory.max_usage_in_bytes", single, true),
	fileLimit1:   inCgroup("v1", dirMem1, "memory.limit_in_bytes", single, true),
	fileFailcnt1: inCgroup("v1", dirMem1, "memory.failcnt", single, true),
	fileOOM1:     inCgroup("v1", dirMem1, "memory.oom_control", keyed, true),
	fileLimiter: {
		"an ancestor's memory.current or memory.usage_in_bytes", dirLimiter,
		[]string{"memory.current", "memory.usage_in_bytes"},
		single, false,
	},
	fileCPU2:     inCgroup("v2", dirCPU2, "cpu.stat", keyed, true),
	fileCPU1:     inCgroup("v1", dirCPU1, "cpu.stat", keyed, true),
	filePSIMem2:  inCgroup("v2", dirMem2, "memory.pressure", stalls, true),
	filePSICPU2:  inCgroup("v2", dirMem2, "cpu.pressure", stalls, true),
	filePSIIO2:   inCgroup("v2", dirMem2, "io.pressure", stalls, true),
	filePSIMem:   inProc("pressure/memory", stalls, true),
	filePSICPU:   inProc("pressure/cpu", stalls, true),
	filePSIIO:    inProc("pressure/io", stalls, true),
	fileMeminfo:  inProc("meminfo", keyed, true),
	fileVmstat:   inProc("vmstat", keyed, true),
	fileHostStat: inProc("stat", cpuLine, true),
}

// folders resolves every dir for a process; "" where there is none.
func folders(opts Options) [dirCount]string {
	var d [dirCount]string
	groups := findCgroups(opts)
	d[dirPID] = procDir(opts)
	d[dirProc] = opts.Proc
	d[dirMem2], d[dirMem1] = groups.unified, groups.memory
	d[dirCPU2], d[dirCPU1] = groups.unified, groups.cpu
	if own, limit := groups.memoryChain(), groups.limit(); limit.Path != "" && limit.Path != own[0] {
		d[dirLimiter] = limit.Path
	}
	return d
}

func paths(d [dirCount]string, f fileInfo) []string {
	if d[f.dir] == "" {
		return nil
	}
	all := make([]string, len(f.names))
	for i, name := range f.names {
		all[i] = filepath.Join(d[f.dir], name)
	}
	return all
}
