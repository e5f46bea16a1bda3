// Command overhead measures what recording costs a proving run: CPU time (user + system) of `highwater prove` with
// recording against the same run without, as the median of the paired ratios with its 95 % upper bound.
//
//	go run ./internal/overhead -highwater bin/highwater -pairs 20 -- --circuit label --log-size 16 --jobs 2 --partitions 4
//
// The two runs of a pair go at the same time on the same CPU, started in ABBA order, so that whatever else happens to
// that CPU happens to both: on a virtual machine CPU time of equal runs one after another differs by 10 %, of equal
// runs sharing a CPU by 0.3 % (docs/bench/overhead.txt). As many pairs run side by side as there are CPUs.
//
// It exits with 1 if the bound is above -limit. The bound is distribution-free: the order statistic of the ratios whose
// binomial coverage is at least 95 %.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

type options struct {
	highwater string
	pairs     int
	limit     float64
	dir       string
	args      []string
}

func main() {
	var o options
	flag.StringVar(&o.highwater, "highwater", "bin/highwater", "the binary to measure")
	flag.IntVar(&o.pairs, "pairs", 20, "pairs of runs, at least 20")
	flag.Float64Var(&o.limit, "limit", 1.01, "largest accepted upper bound of the ratio")
	flag.StringVar(&o.dir, "dir", "", "where traces and keys go (default: a temporary folder)")
	flag.Parse()
	o.args = flag.Args()
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, o options) error {
	if o.pairs < 20 {
		return errors.New("fewer than 20 pairs give no usable bound: raise -pairs")
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "overhead-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		return fmt.Errorf("ask which CPUs there are: %w", err)
	}
	if _, err := o.prove(side{name: "warm"}); err != nil { // fills the key cache, warms the files
		return err
	}
	pairs, err := o.allPairs(w, cpus)
	if err != nil {
		return err
	}
	return summarise(w, pairs, o.limit)
}

// allPairs runs the pairs, one at a time on each CPU.
func (o options) allPairs(w io.Writer, cpus unix.CPUSet) ([]pair, error) {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		next  int
		pairs []pair
		errs  []error
	)
	lane := func(cpu int) {
		for {
			mu.Lock()
			i := next
			next++
			mu.Unlock()
			if i >= o.pairs {
				return
			}
			p, err := o.pair(i, cpu)
			mu.Lock()
			errs = append(errs, err)
			pairs = append(pairs, p)
			fmt.Fprintf(w, "pair %2d  cpu %d  with %7.3f s  without %7.3f s  ratio %.4f\n",
				i+1, cpu, p.with.cpu.Seconds(), p.without.cpu.Seconds(), p.ratio())
			mu.Unlock()
		}
	}
	for cpu := range len(cpus) * 64 {
		if cpus.IsSet(cpu) {
			wg.Go(func() { lane(cpu) })
		}
	}
	wg.Wait()
	return pairs, errors.Join(errs...)
}

type pair struct{ with, without runCost }

func (p pair) ratio() float64 { return p.with.cpu.Seconds() / p.without.cpu.Seconds() }

func summarise(w io.Writer, pairs []pair, limit float64) error {
	var ratios []float64
	for _, p := range pairs {
		ratios = append(ratios, p.ratio())
	}
	slices.Sort(ratios)
	last := pairs[len(pairs)-1].with
	mid, upper := median(ratios), ratios[upperRank(len(ratios), 0.95)]
	fmt.Fprintf(w, "\nCPU time with / without recording, %d pairs, ABBA: "+
		"median %.4f, 95%% upper bound %.4f (limit %.2f)\n", len(ratios), mid, upper, limit)
	events := time.Duration(float64(last.events) * last.eventNS)
	samples := time.Duration(float64(last.ticks) * last.sampleNS)
	fmt.Fprintf(w, "by unit cost: %d events x %.1f ns = %v; %d samples x %.1f us = %v; "+
		"together %.4f %% of %.2f s of CPU\n",
		last.events, last.eventNS, events, last.ticks, last.sampleNS/1e3, samples,
		100*(events+samples).Seconds()/last.cpu.Seconds(), last.cpu.Seconds())
	if upper > limit {
		return fmt.Errorf("upper bound %.4f is above %.4f", upper, limit)
	}
	return nil
}

// pair runs both sides at once on one CPU. Which of them starts first alternates, as in ABBA.
func (o options) pair(i, cpu int) (pair, error) {
	with := side{name: fmt.Sprintf("run-%d.hw", i), record: true}
	order := [2]side{with, {}}
	if i%2 == 1 {
		order[0], order[1] = order[1], order[0]
	}
	var costs [2]runCost
	var errs [2]error
	var wg sync.WaitGroup
	for k, s := range order {
		started := make(chan struct{})
		s.cpu, s.pinned, s.started = cpu, true, started
		wg.Go(func() { costs[k], errs[k] = o.prove(s) })
		<-started
	}
	wg.Wait()
	if order[0].record {
		return pair{costs[0], costs[1]}, errors.Join(errs[:]...)
	}
	return pair{costs[1], costs[0]}, errors.Join(errs[:]...)
}

// side is one run of a pair.
type side struct {
	name    string // of the trace
	record  bool
	pinned  bool
	cpu     int
	started chan<- struct{} // closed when the process runs, or could not
}

// start starts cmd, pinned if asked: a child has the affinity of the thread that forks it.
func (s side) start(cmd *exec.Cmd) error {
	if s.started != nil {
		defer close(s.started)
	}
	if s.pinned {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		var one unix.CPUSet
		one.Set(s.cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return fmt.Errorf("pin to CPU %d: %w", s.cpu, err)
		}
	}
	return cmd.Start()
}

type runCost struct {
	cpu           time.Duration
	events, ticks int64
	eventNS       float64
	sampleNS      float64
}

func (o options) prove(s side) (runCost, error) {
	args := append([]string{
		"prove", "--quiet", "--json", "--cache-dir", filepath.Join(o.dir, "keys"),
	}, o.args...)
	out := filepath.Join(o.dir, s.name)
	if s.record {
		defer os.RemoveAll(out)
		args = append(args, "--out", out)
	} else {
		args = append(args, "--no-record")
	}
	cmd := exec.Command(o.highwater, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := s.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return runCost{}, fmt.Errorf("%v: %w\n%s", cmd.Args, err, stderr.String())
	}
	cost := runCost{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if !s.record {
		return cost, nil
	}
	err = cost.readManifest(out)
	return cost, err
}

func (c *runCost) readManifest(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		return err
	}
	var m struct {
		Recorder struct {
			EventNS     float64 `json:"event_ns"`
			SampleNS    float64 `json:"sample_ns"`
			Events      int64   `json:"events"`
			SampleTicks int64   `json:"sample_ticks"`
		} `json:"recorder"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	c.events, c.ticks = m.Recorder.Events, m.Recorder.SampleTicks
	c.eventNS, c.sampleNS = m.Recorder.EventNS, m.Recorder.SampleNS
	return nil
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// upperRank is the smallest 0-based rank k with P(median <= k-th order statistic) >= level:
// sum of C(n,i)/2^n for i <= k.
func upperRank(n int, level float64) int {
	p := 0.0
	for k := range n {
		lg, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		p += math.Exp(lg - a - b - float64(n)*math.Ln2)
		if p >= level {
			return min(k, n-1)
		}
	}
	return n - 1
}
