// Package bench times the prover's heavy operations, NTTs and MSMs, on a device or on the CPU, with
// the inputs already where they are computed with.
//
// A device times itself, by hw_bench of the native library, and compares each result with what is
// known of its inputs. The CPU's times are gnark-crypto's.
package bench

import (
	"context"
	"fmt"
	"slices"

	"highwater/prover/device"
)

// Words of a case.
const (
	OpNTT    = "ntt"
	OpMSM    = "msm"
	OpUpload = "upload" // page-locked host memory to the device

	Uniform  = "uniform"   // scalars of full size
	Label    = "label"     // as of a SHA-256 circuit: mostly 0 and 1
	OneValue = "one-value" // one dense value for all

	G1 = "g1"
	G2 = "g2"
)

// Profiles lists the scalar profiles.
func Profiles() []string { return []string{Uniform, Label, OneValue} }

// Case is one thing to time.
type Case struct {
	Op      string `json:"op"`
	LogSize int    `json:"log_size"`
	Group   string `json:"group,omitempty"`   // of an MSM
	Profile string `json:"profile,omitempty"` // of an MSM's scalars
	// By is who wrote the code: "" for this program's, sppark for that library's own entry.
	By string `json:"by,omitempty"`
}

// Name is the case as a Go benchmark's name, for benchstat.
func (c Case) Name() string {
	name := map[string]string{OpNTT: "NTT", OpMSM: "MSM", OpUpload: "Upload"}[c.Op]
	for _, part := range []struct{ key, value string }{
		{"by", c.By}, {"group", c.Group}, {"profile", c.Profile},
		{"log_size", fmt.Sprint(c.LogSize)},
	} {
		if part.value != "" {
			name += "/" + part.key + "=" + part.value
		}
	}
	return name
}

// Result is how long a case took.
type Result struct {
	Case
	Nanos   []int64         // of each repeat
	Checked bool            // results were compared with what is known of the inputs
	MSM     device.MSMStats // of a device's MSM
}

// Median is the median of the repeats.
func (r *Result) Median() int64 {
	v := slices.Sorted(slices.Values(r.Nanos))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Options say what is timed.
type Options struct {
	Sizes    []int // logarithms
	Profiles []string
	Groups   []string
	NTT, MSM bool
	Upload   bool
	Sppark   bool // also sppark's own entries, on the device
	Count    int  // repeats
	Seed     uint64
}

// Cases lists what the options ask for, in the order in which it runs.
func (o Options) Cases() (cases []Case) {
	add := func(c Case) { cases = append(cases, c) }
	for _, lg := range o.Sizes {
		if o.NTT {
			add(Case{Op: OpNTT, LogSize: lg})
			if o.Sppark {
				add(Case{Op: OpNTT, LogSize: lg, By: "sppark"})
			}
		}
		if o.Upload {
			add(Case{Op: OpUpload, LogSize: lg})
		}
		if !o.MSM {
			continue
		}
		for _, group := range o.Groups {
			for _, profile := range o.Profiles {
				add(Case{Op: OpMSM, LogSize: lg, Group: group, Profile: profile})
			}
			if o.Sppark && group == G1 {
				add(Case{Op: OpMSM, LogSize: lg, Group: group, Profile: Uniform, By: "sppark"})
			}
		}
	}
	return cases
}

// Timer times cases: a device, or the CPU.
type Timer interface {
	// Time runs the case count times after a warm-up.
	Time(ctx context.Context, c Case, count int, seed uint64) (Result, error)
}

// Run times every case and hands each result to each as it comes.
func Run(ctx context.Context, t Timer, o Options, each func(Result) error) error {
	for _, c := range o.Cases() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		r, err := t.Time(ctx, c, o.Count, o.Seed)
		if err != nil {
			return fmt.Errorf("time %s: %w", c.Name(), err)
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

// Device times on a device.
type Device struct{ Context *device.Context }

// Time implements Timer.
func (d Device) Time(_ context.Context, c Case, count int, seed uint64) (Result, error) {
	spec := device.BenchSpec{LogSize: c.LogSize, Warmups: 1, Repeats: min(count, device.MaxBenchRepeats),
		Order: device.OrderNR, Seed: seed, Group: device.G1}
	switch {
	case c.Op == OpNTT && c.By == "":
		spec.What = device.BenchNTT
	case c.Op == OpNTT:
		spec.What = device.BenchSpparkNTT
	case c.Op == OpUpload:
		spec.What = device.BenchUpload
	case c.By == "":
		spec.What = device.BenchMSM
	default:
		spec.What = device.BenchSpparkMSM
	}
	if c.Group == G2 {
		spec.Group = device.G2
	}
	spec.Profile = max(0, slices.Index(Profiles(), c.Profile))
	r, err := d.Context.Bench(spec)
	if err != nil {
		return Result{}, err
	}
	return Result{Case: c, Nanos: r.Nanos, Checked: r.Checked, MSM: r.MSM}, nil
}
