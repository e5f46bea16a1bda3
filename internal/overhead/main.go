// Command overhead measures what recording costs a proving run: CPU time (user + system) of `highwater prove` with
// recording against the same run without, in ABBA order, as the median of the paired ratios with its 95 % upper bound.
//
//	go run ./internal/overhead -highwater bin/highwater -pairs 24 -- --circuit label --log-size 16 --jobs 2 --partitions 4
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
	"slices"
	"time"
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
	flag.IntVar(&o.pairs, "pairs", 24, "pairs of runs, at least 20")
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
	if _, err := o.prove(true, 0); err != nil { // fills the key cache, warms the files
		return err
	}
	var ratios []float64
	var last runCost
	for i := range o.pairs {
		with, without, err := o.pair(i)
		if err != nil {
			return err
		}
		last = with
		ratios = append(ratios, with.cpu.Seconds()/without.cpu.Seconds())
		fmt.Fprintf(w, "pair %2d  with %7.3f s  without %7.3f s  ratio %.4f\n",
			i+1, with.cpu.Seconds(), without.cpu.Seconds(), ratios[i])
	}
	return summarise(w, ratios, last, o.limit)
}

func summarise(w io.Writer, ratios []float64, last runCost, limit float64) error {
	slices.Sort(ratios)
	mid, upper := median(ratios), ratios[upperRank(len(ratios), 0.95)]
	fmt.Fprintf(w, "\nCPU time with / without recording, %d pairs, ABBA: median %.4f, 95%% upper bound %.4f (limit %.2f)\n",
		len(ratios), mid, upper, limit)
	events := time.Duration(float64(last.events) * last.eventNS)
	samples := time.Duration(float64(last.ticks) * last.sampleNS)
	fmt.Fprintf(w, "by unit cost: %d events x %.1f ns = %v; %d samples x %.1f us = %v; together %.4f %% of %.2f s of CPU\n",
		last.events, last.eventNS, events, last.ticks, last.sampleNS/1e3, samples,
		100*(events+samples).Seconds()/last.cpu.Seconds(), last.cpu.Seconds())
	if upper > limit {
		return fmt.Errorf("upper bound %.4f is above %.4f", upper, limit)
	}
	return nil
}

// pair runs AB or BA by turns, so that a drift of the machine hits both sides.
func (o options) pair(i int) (with, without runCost, err error) {
	first := i%2 == 0
	a, err := o.prove(first, i)
	if err != nil {
		return with, without, err
	}
	b, err := o.prove(!first, i)
	if first {
		return a, b, err
	}
	return b, a, err
}

type runCost struct {
	cpu           time.Duration
	events, ticks int64
	eventNS       float64
	sampleNS      float64
}

func (o options) prove(record bool, i int) (runCost, error) {
	out := filepath.Join(o.dir, fmt.Sprintf("run-%d.hw", i))
	defer os.RemoveAll(out)
	args := append([]string{"prove", "--quiet", "--json", "--cache-dir", filepath.Join(o.dir, "keys")}, o.args...)
	if record {
		args = append(args, "--out", out)
	} else {
		args = append(args, "--no-record")
	}
	cmd := exec.Command(o.highwater, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return runCost{}, fmt.Errorf("%v: %w\n%s", cmd.Args, err, stderr.String())
	}
	cost := runCost{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if !record {
		return cost, nil
	}
	return cost, cost.readManifest(out)
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
