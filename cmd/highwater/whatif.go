package main

import (
	"fmt"
	"slices"

	"highwater/analyze/report"
	"highwater/replay"
	"highwater/replay/pipeline"
	"highwater/replay/whatif"
)

// whatIfFlags ask what an optimisation would be worth.
type whatIfFlags struct {
	Scale           []string `sep:"none" placeholder:"STAGE=FACTOR" help:"What if a stage took FACTOR times as long (0.5: half)? May be given several times, as may --buffer and --free."`
	Buffer          []string `sep:"none" placeholder:"CLASS=FACTOR" help:"What if buffers allocated as CLASS had FACTOR times their bytes?"`
	Free            []string `sep:"none" placeholder:"CLASS@STAGE" help:"What if what has class CLASS at the end of STAGE were freed there?"`
	GPUs            int64    `name:"gpus" placeholder:"N" help:"What if the machine had N devices?"`
	MemoryBandwidth float64  `placeholder:"FACTOR" help:"What if memory were FACTOR times as fast? Refused where no stage was seen to wait for it."`
}

// changes reads the flags.
func (f *whatIfFlags) changes() (*whatif.Changes, error) {
	c := &whatif.Changes{GPUs: f.GPUs, MemoryBandwidth: f.MemoryBandwidth}
	var err error
	if c.Scale, err = factors("--scale", f.Scale); err != nil {
		return nil, err
	}
	if c.Buffer, err = factors("--buffer", f.Buffer); err != nil {
		return nil, err
	}
	for _, text := range f.Free {
		at, err := whatif.ParseFree(text)
		if err != nil {
			return nil, badInput("", "--free %w", err)
		}
		c.Free = append(c.Free, at)
	}
	if f.GPUs < 0 {
		return nil, badInput("give the number of devices, such as --gpus 2", "--gpus %d: below 0", f.GPUs)
	}
	if b := f.MemoryBandwidth; b != 0 && !(b >= 0.001 && b <= 1000) {
		return nil, badInput("give a factor, such as --memory-bandwidth 1.5",
			"--memory-bandwidth %g: outside 0.001..1000", b)
	}
	return c, nil
}

// given is one of the flags that are, "" without any.
func (f *whatIfFlags) given() string {
	switch {
	case len(f.Scale) > 0:
		return "--scale"
	case len(f.Buffer) > 0:
		return "--buffer"
	case len(f.Free) > 0:
		return "--free"
	case f.GPUs != 0:
		return "--gpus"
	case f.MemoryBandwidth != 0:
		return "--memory-bandwidth"
	}
	return ""
}

// clash refuses settings that say otherwise what a flag says too.
func (f *whatIfFlags) clash(settings ...string) error {
	if f.GPUs != 0 && slices.Contains(settings, "devices") {
		return badInput("give one of them", "--gpus %d, and the setting devices: both say how many devices there are",
			f.GPUs)
	}
	return nil
}

func factors(flag string, texts []string) (map[string]float64, error) {
	out := map[string]float64{}
	for _, text := range texts {
		name, factor, err := whatif.ParseFactor(text)
		if err != nil {
			return nil, badInput("", flag+" %w", err)
		}
		if _, twice := out[name]; twice {
			return nil, badInput("give each name once", "%s %s: %s is given twice", flag, text, name)
		}
		out[name] = factor
	}
	return out, nil
}

// applyChanges is the changes as a predictor takes them; nil where there are none.
func applyChanges(c *whatif.Changes) func(*pipeline.Model) error {
	if c.None() {
		return nil
	}
	return func(m *pipeline.Model) error {
		changed, err := c.Apply(m)
		if err != nil {
			return err
		}
		*m = *changed
		return nil
	}
}

// whatIf is a replay with an optimisation beside the same replay without it.
type whatIf struct {
	Changes string `json:"changes"`
	// the same settings without the changes
	PeakRSSBytes    *int64 `json:"peak_rss_bytes"`
	PeakLiveBytes   *int64 `json:"peak_live_bytes"`
	MakespanNS      *int64 `json:"makespan_ns"`
	ProofIntervalNS *int64 `json:"proof_interval_ns"`
	// with them over without them, minus 1
	PeakRSSRatio       *float64 `json:"peak_rss_change_ratio"`
	PeakLiveRatio      *float64 `json:"peak_live_change_ratio"`
	ProofIntervalRatio *float64 `json:"proof_interval_change_ratio"`
}

func compareWhatIf(changes string, with, without *replay.Prediction) *whatIf {
	return &whatIf{
		Changes: changes, PeakRSSBytes: without.PeakRSSBytes, PeakLiveBytes: without.PeakLiveBytes,
		MakespanNS: without.MakespanNS, ProofIntervalNS: without.ProofIntervalNS,
		PeakRSSRatio:       errorRatio(with.PeakRSSBytes, without.PeakRSSBytes),
		PeakLiveRatio:      errorRatio(with.PeakLiveBytes, without.PeakLiveBytes),
		ProofIntervalRatio: errorRatio(with.ProofIntervalNS, without.ProofIntervalNS),
	}
}

func (w *whatIf) print(ui *tui, with *replay.Prediction) {
	if w == nil {
		return
	}
	fmt.Fprintf(ui.out, "\nWhat %s changes, against the same replay without it:\n", w.Changes)
	for _, f := range []struct {
		name, unit    string
		without, with *int64
		ratio         *float64
	}{
		{"peak RSS", inBytes, w.PeakRSSBytes, with.PeakRSSBytes, w.PeakRSSRatio},
		{"peak live", inBytes, w.PeakLiveBytes, with.PeakLiveBytes, w.PeakLiveRatio},
		{"proof interval", inNanos, w.ProofIntervalNS, with.ProofIntervalNS, w.ProofIntervalRatio},
	} {
		fmt.Fprintf(ui.out, "  %-15s %s -> %s  %s\n", f.name, report.Value(f.unit, f.without),
			report.Value(f.unit, f.with), deviation(f.ratio))
	}
}
