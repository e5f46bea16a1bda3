package main

import (
	"fmt"
	"runtime"
	"strings"

	"highwater/prover/bench"
	"highwater/prover/device"
	"highwater/tracer/probe"
)

// benchReport is the --json output of `highwater bench`.
type benchReport struct {
	Backend       string        `json:"backend"`
	BackendReason string        `json:"backend_reason"`
	Host          benchHost     `json:"host"`
	Device        *benchDevice  `json:"device"` // null on the CPU, and where only proofs were timed
	Results       []benchResult `json:"results"`
	Proofs        []benchProof  `json:"proofs"`
}

type benchHost struct {
	CPUModel string `json:"cpu_model"`
	CPUs     int    `json:"cpus"`
	RAMBytes int64  `json:"ram_bytes"`
	Kernel   string `json:"kernel"`
}

type benchDevice struct {
	Number          int    `json:"number"`
	Name            string `json:"name"`
	TotalBytes      int64  `json:"total_bytes"`
	Multiprocessors int    `json:"multiprocessors"`
	ClockHz         int64  `json:"clock_hz"` // 0 where unknown
	DriverVersion   int    `json:"driver_version"`
	RuntimeVersion  int    `json:"runtime_version"`
	Library         string `json:"library"`
	Build           string `json:"build"`
}

type benchResult struct {
	bench.Case
	MedianNS int64     `json:"median_ns"`
	TimesNS  []int64   `json:"times_ns"`
	Checked  bool      `json:"checked"`
	MSM      *benchMSM `json:"msm"` // null where it is no MSM of ours on a device
}

type benchMSM struct {
	Digits       int64 `json:"digits"`
	Pairs        int64 `json:"pairs"`
	XYZZ         int64 `json:"xyzz"`
	ScratchBytes int64 `json:"scratch_bytes"`
	WindowBits   int   `json:"window_bits"`
	Windows      int   `json:"windows"`
	Groups       int   `json:"groups"`
	Rounds       int   `json:"rounds"`
}

type benchProof struct {
	Circuit      string       `json:"circuit"`
	LogSize      int          `json:"log_size"`
	Constraints  int64        `json:"constraints"`
	Partitions   int          `json:"partitions"`
	MakespanNS   int64        `json:"makespan_ns"`
	PartitionNS  int64        `json:"partition_ns"` // makespan / partitions
	PeakRSSBytes *int64       `json:"peak_rss_bytes"`
	Stages       []benchStage `json:"stages"`

	backend, backendReason string
}

type benchStage struct {
	Name     string  `json:"name"`
	MedianNS int64   `json:"median_ns"`
	TimesNS  []int64 `json:"times_ns"`
}

func benchHostOf(h probe.Host) benchHost {
	return benchHost{CPUModel: h.CPUModel, CPUs: h.AllowedCPUs, RAMBytes: h.RAMBytes, Kernel: h.Kernel}
}

func benchDeviceOf(i device.Info, l *device.Library) *benchDevice {
	return &benchDevice{Number: i.Number, Name: i.Name, TotalBytes: i.TotalBytes,
		Multiprocessors: i.Multiprocessors, ClockHz: int64(i.ClockMHz) * 1e6,
		DriverVersion: i.DriverVersion, RuntimeVersion: i.RuntimeVersion, Library: l.Path(),
		Build: l.BuildInfo()}
}

func benchResultOf(r bench.Result) benchResult {
	out := benchResult{Case: r.Case, MedianNS: r.Median(), TimesNS: r.Nanos, Checked: r.Checked}
	if r.MSM.WindowBits > 0 {
		out.MSM = &benchMSM{Digits: r.MSM.Digits, Pairs: r.MSM.Pairs, XYZZ: r.MSM.XYZZ,
			ScratchBytes: r.MSM.ScratchBytes, WindowBits: r.MSM.WindowBits, Windows: r.MSM.Windows,
			Groups: r.MSM.Groups, Rounds: r.MSM.Rounds}
	}
	return out
}

// printHead prints the lines by which benchstat tells hardware apart.
func (r *benchReport) printHead(ui *tui) {
	lines := [][2]string{{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"cpu", r.Host.CPUModel},
		{"cpus", fmt.Sprint(r.Host.CPUs)}, {"kernel", r.Host.Kernel}, {"backend", r.Backend}}
	if d := r.Device; d != nil {
		lines = append(lines, [2]string{"gpu", d.Name}, [2]string{"native", d.Build})
	}
	lines = append(lines, [2]string{"pkg", "highwater/prover/bench"})
	for _, l := range lines {
		if l[1] != "" {
			fmt.Fprintf(ui.out, "%s: %s\n", l[0], strings.ReplaceAll(l[1], "\n", " "))
		}
	}
}

// printBenchLines prints a benchmark's repeats, one a line.
func printBenchLines(ui *tui, name string, nanos []int64) {
	for _, ns := range nanos {
		fmt.Fprintf(ui.out, "Benchmark%s\t1\t%d ns/op\n", name, ns)
	}
}

// print prints the stages of a proof and what a partition takes through the pipeline.
func (p *benchProof) print(ui *tui) {
	where := fmt.Sprintf("circuit=%s/log_size=%d", p.Circuit, p.LogSize)
	for _, s := range p.Stages {
		printBenchLines(ui, "Prove/"+where+"/stage="+s.Name, s.TimesNS)
	}
	printBenchLines(ui, "Pipeline/"+where, []int64{p.PartitionNS})
}
