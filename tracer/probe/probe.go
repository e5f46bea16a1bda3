// Package probe samples what the kernel and the Go runtime say about memory and CPU: the process, its cgroup
// (v1 and v2), the host, pressure stalls and the Go heap.
//
// A metric is one named figure (Metrics is the table), a tick one reading of all of them. Every file is opened
// once and read again with pread; a tick allocates nothing, and its cost is measured and reported by Stop. A figure
// that this machine does not give is not sampled and stands in Absent: a missing value is never a 0. Every root
// path is an option, so that recorded trees can be read in tests and a host's /proc from inside a container.
//
// probe imports nothing of this module.
package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Sink takes the values of a tick, each within the call of its own reading; *tracer.Recorder is one.
// Sample runs on the probe's goroutine only, except for the first tick, which Start makes.
type Sink interface {
	Sample(metric string, value float64)
}

// DefaultHz is the rate of an Options whose Hz is 0.
const DefaultHz = 20

// slowHz bounds the rate at which all but the cheapest files are read. statm, getrusage and the cgroup's usage take a
// few microseconds and carry the curve of memory and faults; the rest took 180 µs of CPU a tick beside a
// prover, 0.8 % of one that has a CPU to share.
const slowHz = 2

// Options say what to sample, how often, and where the kernel's files are. The zero value samples this process
// 20 times a second, of which the costly files twice (slowHz).
type Options struct {
	Hz     float64 // ticks a second; 0 means DefaultHz
	PID    int     // the process to sample; 0 means this one
	Proc   string  // root of procfs; "" means /proc
	Sys    string  // root of sysfs; "" means /sys
	Cgroup string  // where cgroups are mounted; "" means Sys/fs/cgroup
}

// Validate reports every option that makes no sense, at once.
func (o Options) Validate() error {
	var bad []string
	if !(o.Hz >= 0 && o.Hz <= 10000) {
		bad = append(bad, fmt.Sprintf("Hz %v is outside 0..10000", o.Hz))
	}
	if o.PID < 0 {
		bad = append(bad, fmt.Sprintf("PID %d is negative", o.PID))
	}
	if len(bad) > 0 {
		return fmt.Errorf("probe options: %v", bad)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Hz == 0 {
		o.Hz = DefaultHz
	}
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.Sys == "" {
		o.Sys = "/sys"
	}
	if o.Cgroup == "" {
		o.Cgroup = filepath.Join(o.Sys, "fs/cgroup")
	}
	return o
}

// own says whether the sampled process is the one that samples.
func (o Options) own() bool { return o.PID == 0 || o.PID == os.Getpid() && o.Proc == "/proc" }

// Stats is what a probe did and what it cost.
type Stats struct {
	Ticks      int64 // readings of the whole set, the first (in Start) and the last (in Stop) included
	Late       int64 // ticks that began more than half a period after their time, or were left out for that
	ReadErrors int64 // files that could be read at Start and not at some tick, counted per tick
	// CPU time of a tick on its own thread, mean; 0 where the kernel does not tell it. It is what
	// sampling takes from the program: on a busy machine a tick's wall time is mostly waiting.
	MeanNanos    float64
	MaxWallNanos int64 // from a tick's begin to its end, the longest
}

// Absence is a metric that this machine does not give, and why.
type Absence struct {
	Metric string
	Reason string
}

// Probe is a running sampler. Its methods may be called from any goroutine.
type Probe struct {
	opts   Options
	absent []Absence
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once

	mu     sync.Mutex // one tick at a time; guards what follows
	set    *readers
	sink   Sink
	count  int64
	stats  Stats
	cpuNS  int64 // of all ticks
	stride int64
	closed bool
}

// Start opens the files, makes the first tick, and samples into sink until Stop. Files that are missing are no
// error: their metrics are listed by Absent. Start fails on senseless options and on a process that does not exist.
func Start(sink Sink, opts Options) (*Probe, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	if _, err := os.Stat(procDir(opts)); err != nil {
		return nil, fmt.Errorf("probe process %d: %w", opts.PID, err)
	}
	p := &Probe{
		opts: opts, sink: sink, stop: make(chan struct{}), done: make(chan struct{}),
		stride: max(1, int64(opts.Hz/slowHz)),
	}
	p.set = openReaders(opts)
	p.tick(true)
	p.absent = p.set.absences()
	go p.run()
	return p, nil
}

// Absent lists the metrics that the first tick found no value for, in the order of Metrics. One of them that
// appears later (a limit that is set while the process runs) is sampled from then on.
func (p *Probe) Absent() []Absence { return p.absent }

// Tick makes a reading now, beside the periodic ones: at the start of a phase, say. After Stop it does nothing.
func (p *Probe) Tick() { p.tick(true) }

// Stop makes a last tick, closes the files and says what sampling cost. A second Stop gives the same answer.
func (p *Probe) Stop() Stats {
	p.once.Do(func() {
		close(p.stop)
		<-p.done
		p.tick(true)
		p.mu.Lock()
		p.closed = true
		p.set.close()
		p.mu.Unlock()
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	if s.Ticks > 0 {
		s.MeanNanos = float64(p.cpuNS) / float64(s.Ticks)
	}
	return s
}

// run ticks on a fixed grid: a late tick does not shift the ones after it, and periods that passed
// during a stall are left out, counted as late.
func (p *Probe) run() {
	defer close(p.done)
	period := time.Duration(float64(time.Second) / p.opts.Hz)
	next := time.Now().Add(period)
	timer := time.NewTimer(period)
	defer timer.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-timer.C:
		}
		late := int64(0)
		if over := time.Since(next); over > period/2 {
			late = max(1, int64(over/period))
			next = next.Add(over.Truncate(period))
		}
		p.tick(false)
		p.addLate(late)
		next = next.Add(period)
		timer.Reset(time.Until(next))
	}
}

func (p *Probe) addLate(n int64) {
	p.mu.Lock()
	p.stats.Late += n
	p.mu.Unlock()
}

// tick reads once; all means the slow readings too, whatever the stride.
func (p *Probe) tick(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	runtime.LockOSThread() // for the thread's clock
	defer runtime.UnlockOSThread()
	begin, cpu := time.Now(), threadCPUNanos()
	slow := all || p.count%p.stride == 0
	p.stats.ReadErrors += p.set.read(slow, p.sink)
	p.count++
	p.stats.Ticks++
	p.cpuNS += threadCPUNanos() - cpu
	p.stats.MaxWallNanos = max(p.stats.MaxWallNanos, int64(time.Since(begin)))
}

// threadCPUNanos is the calling thread's CPU time, 0 where the kernel does not tell it.
func threadCPUNanos() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
