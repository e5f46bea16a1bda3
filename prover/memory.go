package prover

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"

	"highwater/tracer"
	"highwater/tracer/probe"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// collector is the garbage collector's policy of the proving phase.
type collector struct {
	// afterMSM collects after each MSM while gogc is off: MSM scratch is nearly all the garbage
	// there is, and RSS then follows the ledger within a few per cent at no cost in time
	// (docs/prover.md). nil otherwise.
	afterMSM func()
	// limitBytes is Go's soft memory limit as in effect, setting.Unbounded for none.
	limitBytes int64
	restore    func()
}

// Without a limit of its own, a run with gogc off may use this share of the memory there is, less
// what it holds outside the Go heap, before the runtime collects by itself.
const (
	safetyShare = 0.9
	safetyLeast = 64 << 20 // the least that memory_limit_bytes takes
)

// safetyNet is the soft memory limit of a process that may use available bytes (0: unknown) and
// holds outside bytes beside the Go heap.
func safetyNet(available, outside int64) int64 {
	if available <= 0 {
		return setting.Unbounded
	}
	return max(safetyLeast, int64(safetyShare*float64(available))-outside)
}

// setCollector puts gogc and memory_limit_bytes into effect until restore is called. net is the
// limit for a run with gogc off and without a limit.
func setCollector(v *setting.Values, net int64) collector {
	percent := -1
	var c collector
	if v.Text("gogc") == "off" {
		c.afterMSM = runtime.GC
	} else {
		percent = int(v.Int("gogc"))
	}
	collecting.Lock()
	defer collecting.Unlock()
	old := debug.SetGCPercent(percent)
	if collecting.runs++; collecting.runs == 1 {
		collecting.percent, collecting.limit = old, debug.SetMemoryLimit(-1) // reads
	}
	limit := v.Int("memory_limit_bytes")
	if limit == setting.Unbounded && percent < 0 && net != setting.Unbounded {
		limit = min(net, collecting.limit) // GOMEMLIMIT may have set a lower one
	}
	if limit != setting.Unbounded {
		debug.SetMemoryLimit(limit)
	}
	c.limitBytes, c.restore = limit, sync.OnceFunc(restoreCollector)
	return c
}

// collecting is what the process's collector was set to before the runs that are under way: where
// several overlap, the last one restores it.
var collecting struct {
	sync.Mutex
	runs    int
	percent int
	limit   int64
}

func restoreCollector() {
	collecting.Lock()
	defer collecting.Unlock()
	if collecting.runs--; collecting.runs == 0 {
		debug.SetGCPercent(collecting.percent)
		debug.SetMemoryLimit(collecting.limit)
	}
}

// measureBase is what the program occupies besides its buffers: RSS, once the runtime has given
// back what it can, minus the ledger's resident bytes.
func measureBase(residentLedgerBytes int64) (int64, error) {
	debug.FreeOSMemory()
	rss, err := exactRSS()
	if err != nil {
		return 0, fmt.Errorf("measure base memory: %w", err)
	}
	return rss - residentLedgerBytes, nil
}

// exactRSS is the resident set from the page tables: the counters behind VmRSS are batched a CPU
// and off by MiB. It takes 10 ms per GiB, so it is for single readings only; without smaps_rollup
// (Linux 4.14) it is VmRSS.
func exactRSS() (int64, error) {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return probe.ReadRSS(0)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) < 2 || string(fields[0]) != "Rss:" {
			continue
		}
		kib, err := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read Rss of smaps_rollup: %w", err)
		}
		return kib << 10, nil
	}
	return probe.ReadRSS(0)
}

// peakMeter tells the highest resident set from a moment on: the kernel's own mark where it may be
// reset, the highest sample otherwise.
type peakMeter struct {
	rec      *tracer.Recorder
	counting atomic.Bool // samples count from begin on
	sampled  atomic.Int64
	resetErr error
}

// Sample passes one reading on to the recorder. It implements probe.Sink.
func (m *peakMeter) Sample(metric string, value float64) {
	m.rec.Sample(metric, value)
	if metric == probe.RSS && m.counting.Load() {
		m.sampled.Store(max(m.sampled.Load(), int64(value))) // one sampler goroutine
	}
}

// begin starts the measurement.
func (m *peakMeter) begin() {
	m.resetErr = probe.ResetHWM(0)
	m.counting.Store(true)
}

// end is the peak since begin, nil where it could not be had, with a doubt about it or "".
func (m *peakMeter) end() (*trace.PeakRSS, string) {
	m.counting.Store(false)
	if m.resetErr == nil {
		hwm, err := probe.ReadHWM(0)
		if err == nil {
			return &trace.PeakRSS{Bytes: hwm, Source: "vmhwm"}, ""
		}
		m.resetErr = err
	}
	if n := m.sampled.Load(); n > 0 {
		return &trace.PeakRSS{Bytes: n, Source: "sampled"},
			fmt.Sprintf("peak RSS is the highest sample, not the kernel's mark: %v", m.resetErr)
	}
	return nil, fmt.Sprintf("peak RSS is not known: %v, and nothing was sampled", m.resetErr)
}

func roundToPages(n int64) int64 {
	page := int64(os.Getpagesize())
	return (n + page - 1) / page * page
}
