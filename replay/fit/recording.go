package fit

import (
	"fmt"
	"math"
	"slices"

	"highwater/replay/pipeline"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// recording is one of the traces that a model is fitted to.
type recording struct {
	*timeline
	parts  []*part // complete ones
	offset int64   // what its times are moved by, so that recordings do not overlap
	others []load  // what other programs used, ascending
	// its CPU's pace over that of all recordings: above 1 its services took longer than they would
	// have in another
	slowness float64
}

// load is the cores that other programs used from a time on.
type load struct {
	from  int64
	cores float64
}

// readAll sorts the rows of all traces. The error says which trace cannot be fitted.
func readAll(ds []*trace.Data) ([]*recording, error) {
	var out []*recording
	end := int64(0)
	for i, d := range ds {
		t, err := read(d)
		if err != nil {
			return nil, ofTrace(i, len(ds), err)
		}
		r := &recording{timeline: t, parts: t.complete(), others: t.otherLoad(), slowness: 1}
		if len(r.parts) == 0 {
			return nil, ofTrace(i, len(ds), fmt.Errorf(
				"fit: none of the trace's %d partitions went all the way: %w", len(t.parts),
				&TooFewError{0, 1}))
		}
		first, last := r.window()
		r.offset = end - first
		end = last + r.offset + 1
		out = append(out, r)
	}
	return out, nil
}

// minInner is how many partitions a recording must have for its ends to be left out of the pool.
const minInner = 16

// inner is a pool of the recording's partitions without the first and the last that a GPU worker
// received: the one began with nothing behind it, the other ended with nothing after it, company that
// services in between never have. A simulated run meets such ends where it has them.
func (r *recording) inner(pool []pipeline.Partition) []pipeline.Partition {
	if len(r.parts) < minInner || len(pool) != len(r.parts) {
		return pool
	}
	first, last := 0, 0
	for i, p := range r.parts {
		if p.recv < r.parts[first].recv {
			first = i
		}
		if p.recv >= r.parts[last].recv {
			last = i
		}
	}
	var out []pipeline.Partition
	for i := range pool {
		if i != first && i != last {
			out = append(out, pool[i])
		}
	}
	return out
}

// mayDiffer are settings that change neither the work nor the memory of a partition, besides those
// that a replay can vary.
var mayDiffer = []string{"seed", "sample_hz", "memory_limit_bytes"}

// MayDiffer says whether recordings that differ in a setting may still be fitted together, although
// a replay cannot vary it.
func MayDiffer(name string) bool { return slices.Contains(mayDiffer, name) }

// alike says what keeps traces from being recordings of the same work.
func alike(ds []*trace.Data) error {
	of := func(d *trace.Data, name string) string { return d.Manifest.Settings[name].Value }
	first := ds[0]
	for i, d := range ds[1:] {
		for _, s := range setting.Table() {
			a, b := of(first, s.Name), of(d, s.Name)
			if s.Replay || a == "" || b == "" || a == b || slices.Contains(mayDiffer, s.Name) {
				continue
			}
			return fmt.Errorf("trace 1 has %s=%s, trace %d has %s: such traces are not fitted "+
				"together: give traces that differ in nothing but settings that replay can vary",
				s.Name, a, i+2, b)
		}
		if a, b := first.Manifest.Host.CPUs, d.Manifest.Host.CPUs; a != b {
			return fmt.Errorf("trace 1 is of a machine with %d CPUs, trace %d of one with %d: "+
				"give traces of one machine", a, i+2, b)
		}
	}
	return nil
}

// ofTrace says which of several traces an error is about.
func ofTrace(i, n int, err error) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("trace %d of %d: %w", i+1, n, err)
}

// window is from the first to the last end of a stage.
func (r *recording) window() (first, last int64) {
	first, last = r.start, r.start
	for _, s := range r.stages {
		first, last = min(first, s.BeginNS), max(last, s.EndNS)
	}
	return first, last
}

// Counters of CPU time, in seconds since some start. What others use is what is neither idle nor
// the program's: not all kinds of use (nice, interrupts) are sampled.
var (
	machineFree = []string{"system.cpu.time.idle", "system.cpu.time.iowait"}
	programBusy = []string{"process.cpu.time.user", "process.cpu.time.system"}
)

// otherLoad is how many cores other programs used (and the hypervisor withheld), between samples of
// the machine's idle time; nil where it was not sampled.
func (t *timeline) otherLoad() []load {
	free, program := t.counters(machineFree), t.counters(programBusy)
	cpus := float64(t.data.Manifest.Host.CPUs)
	if len(free) < 2 || len(program) < 2 || cpus == 0 {
		return nil
	}
	var out []load
	for i := 1; i < len(free); i++ {
		from, to := free[i-1], free[i]
		if to.at-from.at < minLoadSpan {
			continue
		}
		own := at(program, to.at) - at(program, from.at)
		cores := cpus - (to.seconds-from.seconds+own)/(float64(to.at-from.at)/1e9)
		out = append(out, load{from.at, min(max(cores, 0), cpus)})
	}
	return out
}

// minLoadSpan is the shortest time over which counters of 10 ms ticks say a rate.
const minLoadSpan = 200e6

// reading is a counter's value at a time.
type reading struct {
	at      int64
	seconds float64
}

// counters sums counters that are sampled together. One that was never sampled counts nothing, if
// another was.
func (t *timeline) counters(metrics []string) []reading {
	last := map[string]float64{}
	var out []reading
	for i := range t.data.Samples {
		s := &t.data.Samples[i]
		if !slices.Contains(metrics, s.Metric) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) ||
			slices.Contains(programBusy, s.Metric) && s.Source != t.source {
			continue
		}
		last[s.Metric] = s.Value
		sum := 0.0
		for _, m := range metrics { // in one order, so that the sum is the same each time
			sum += last[m]
		}
		if n := len(out); n > 0 && s.TimeNS-out[n-1].at < together {
			out[n-1].seconds = sum
			continue
		}
		out = append(out, reading{s.TimeNS, sum})
	}
	return out
}

// together is how far apart the samples of one look at the counters are at most.
const together = 20e6

// at reads a counter between its readings.
func at(r []reading, t int64) float64 {
	i, _ := slices.BinarySearchFunc(r, t, func(x reading, t int64) int {
		switch {
		case x.at < t:
			return -1
		case x.at > t:
			return 1
		}
		return 0
	})
	switch {
	case i == 0:
		return r[0].seconds
	case i == len(r):
		return r[len(r)-1].seconds
	}
	a, b := r[i-1], r[i]
	return a.seconds + (b.seconds-a.seconds)*float64(t-a.at)/float64(b.at-a.at)
}

// OtherCores is the mean of the cores that other programs used while jobs ran; nil where it was not
// sampled, or the trace has no job.
func OtherCores(d *trace.Data) *float64 {
	t, err := read(d)
	if err != nil {
		return nil
	}
	r := &recording{timeline: t, others: t.otherLoad()}
	if mean, known := r.meanLoad(); known {
		return &mean
	}
	return nil
}

// Cores is what a program has of a machine of which others use so much.
func Cores(cpus, others float64) float64 {
	if others < minLoad {
		return cpus
	}
	return max(leastCores, cpus-others)
}

// meanLoad is the mean of others over the stages' time; 0 where it is not known.
func (r *recording) meanLoad() (cores float64, known bool) {
	first, last := r.window()
	sum, span := 0.0, 0.0
	for i, l := range r.others {
		to := last
		if i+1 < len(r.others) {
			to = r.others[i+1].from
		}
		if d := float64(min(to, last) - max(l.from, first)); d > 0 {
			sum, span = sum+d*l.cores, span+d
		}
	}
	if span == 0 {
		return 0, false
	}
	return sum / span, true
}
