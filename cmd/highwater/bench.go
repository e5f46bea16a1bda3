package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"highwater/prover"
	"highwater/prover/bench"
	"highwater/prover/device"
	"highwater/tracer/probe"
)

type benchCmd struct {
	What     string   `default:"ntt,msm" placeholder:"LIST" help:"What to time, of ntt, msm, upload (page-locked memory to the device) and prove (whole proofs through the pipeline). Default: ntt,msm."`
	Sizes    string   `default:"16" placeholder:"LIST" help:"Base-two logarithms, such as 20,22,24. Default: 16."`
	Profiles string   `name:"profiles" default:"uniform" placeholder:"LIST" help:"Scalars of MSMs, of uniform, label (mostly 0 and 1) and one-value. Default: uniform."`
	Groups   string   `default:"g1" placeholder:"LIST" help:"Groups of MSMs, of g1 and g2. Default: g1."`
	Circuit  string   `default:"label" enum:"label,mimc" help:"What is proved: label or mimc. Default: label."`
	Count    int      `default:"5" placeholder:"N" help:"Repeats of each operation, partitions of each proof. Default: 5."`
	Backend  string   `default:"auto" enum:"auto,cpu,device" help:"Who computes: auto, cpu or device. Default: auto."`
	Device   int      `default:"0" placeholder:"N" help:"Number of the device that ntt, msm and upload run on. Default: 0."`
	Sppark   bool     `help:"Time sppark's own transform and MSM beside ours, on the device."`
	Set      []string `sep:"none" placeholder:"NAME=VALUE" help:"A setting of prove, as in highwater prove --help. May be given several times."`
	CacheDir string   `placeholder:"DIR" env:"HIGHWATER_CACHE_DIR" help:"Where keys are kept (default: highwater in the user's cache directory)."`
	Seed     uint64   `default:"1" placeholder:"N" help:"Seed of the inputs. Default: 1."`
}

// Help says what comes out.
func (*benchCmd) Help() string {
	return "Prints benchstat's format, one line a repeat, headed by the hardware: pipe it to a file and " +
		"compare two with benchstat. Inputs lie where they are computed with (but for upload and " +
		"prove). A device compares each result with what is known of its inputs, and a wrong one is " +
		"an error."
}

// Examples implements exampler.
func (*benchCmd) Examples() string {
	return "  highwater bench --sizes 14,16 --profiles uniform,label\n" +
		"  highwater bench --what ntt,msm,upload --sizes 20,22,24 --groups g1,g2 --sppark > h200.txt\n" +
		"  highwater bench --what prove --sizes 16 --count 4 --set partition_workers=2 --json\n"
}

// benchPlan is the command line, checked.
type benchPlan struct {
	options bench.Options
	prove   bool
	set     map[string]string
}

// Run implements the subcommand.
func (c *benchCmd) Run(ui *tui) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	ctx, stop := ui.interruptible(nil)
	defer stop()
	report := &benchReport{Host: benchHostOf(probe.HostInfo(probe.Options{})),
		Results: []benchResult{}, Proofs: []benchProof{}}
	if len(plan.options.Cases()) > 0 {
		if err := c.operations(ctx, ui, report, plan); err != nil {
			return benchFailure(ctx, err)
		}
	}
	if plan.prove {
		if err := c.proofs(ctx, ui, report, plan); err != nil {
			return benchFailure(ctx, err)
		}
	}
	if ui.json {
		return ui.printJSON(report)
	}
	return nil
}

func benchFailure(ctx context.Context, err error) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		return err
	case ctx.Err() != nil:
		return fail(exitInterrupted, errors.New("interrupted"), "")
	}
	return proveFailure(err)
}

// plan checks the command line.
func (c *benchCmd) plan() (p benchPlan, err error) {
	var faults []error
	words := func(flag, text string, known ...string) []string {
		list := strings.Split(text, ",")
		for _, w := range list {
			if !slices.Contains(known, w) {
				faults = append(faults, fmt.Errorf("--%s: %q is not one of %s", flag, w, strings.Join(known, ", ")))
			}
		}
		return list
	}
	what := words("what", c.What, bench.OpNTT, bench.OpMSM, bench.OpUpload, "prove")
	p.options = bench.Options{
		Profiles: words("profiles", c.Profiles, bench.Profiles()...),
		Groups:   words("groups", c.Groups, bench.G1, bench.G2),
		NTT:      slices.Contains(what, bench.OpNTT), MSM: slices.Contains(what, bench.OpMSM),
		Upload: slices.Contains(what, bench.OpUpload), Sppark: c.Sppark, Count: c.Count, Seed: c.Seed,
	}
	p.prove = slices.Contains(what, "prove")
	for _, text := range strings.Split(c.Sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxBenchLog {
			faults = append(faults, fmt.Errorf("--sizes: %q is not a number from 0 to %d", text, maxBenchLog))
		}
		p.options.Sizes = append(p.options.Sizes, n)
	}
	if c.Count < 1 || c.Count > device.MaxBenchRepeats {
		faults = append(faults, fmt.Errorf("--count: %d is outside 1..%d", c.Count, device.MaxBenchRepeats))
	}
	if p.set, err = parseAssignments("--set", c.Set); err != nil {
		faults = append(faults, err)
	}
	if len(faults) > 0 {
		return p, fail(exitUsage, errors.Join(faults...), "run `highwater bench --help` for its flags and an example")
	}
	return p, nil
}

// maxBenchLog is the largest size that the device library takes.
const maxBenchLog = 26

// timer is what times operations: the device, or the CPU, and how to end it.
func (c *benchCmd) timer(report *benchReport, o bench.Options) (t bench.Timer, end func(), err error) {
	if c.Backend != "cpu" {
		var d bench.Device
		d, err = c.openDevice(report, o)
		if err == nil {
			return d, func() { d.Context.Close() }, nil
		}
		if c.Backend == "device" {
			return nil, nil, &prover.NoDeviceError{Setting: "backend", Value: "device", Err: err}
		}
	}
	report.Backend, report.BackendReason = "cpu", "backend cpu: as asked"
	if err != nil {
		report.BackendReason = fmt.Sprintf("backend auto: no device, took cpu: %v", err)
	}
	return bench.CPU{}, func() {}, nil
}

// openDevice opens the device with room for what is timed.
func (c *benchCmd) openDevice(report *benchReport, o bench.Options) (d bench.Device, err error) {
	library, err := device.Find()
	if err != nil {
		return d, err
	}
	infos, err := library.Devices()
	if err != nil {
		return d, err
	}
	if c.Device < 0 || c.Device >= len(infos) {
		return d, fmt.Errorf("device %d: there are %d", c.Device, len(infos))
	}
	config := device.Config{Device: c.Device}
	if o.Upload {
		config.PoolBytes = 32<<slices.Max(o.Sizes) + 4096
	}
	if d.Context, err = library.NewContext(config); err != nil {
		return d, err
	}
	report.Backend, report.BackendReason = "device", "backend "+c.Backend+": "+library.Path()
	report.Device = benchDeviceOf(infos[c.Device], library)
	return d, nil
}

// operations times NTTs, MSMs and uploads.
func (c *benchCmd) operations(ctx context.Context, ui *tui, report *benchReport, plan benchPlan) error {
	timer, end, err := c.timer(report, plan.options)
	if err != nil {
		return err
	}
	defer end()
	if report.Backend == "cpu" && (plan.options.Sppark || plan.options.Upload) {
		return badInput("name a device library in "+device.LibraryEnv+", or leave them out",
			"--sppark and upload need a device (%s)", report.BackendReason)
	}
	if !ui.json {
		report.printHead(ui)
	}
	return bench.Run(ctx, timer, plan.options, func(r bench.Result) error {
		report.Results = append(report.Results, benchResultOf(r))
		if !ui.json {
			printBenchLines(ui, r.Name(), r.Nanos)
		}
		return nil
	})
}
