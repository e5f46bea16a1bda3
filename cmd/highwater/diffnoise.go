package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"highwater/analyze/compare"
	"highwater/internal/regular"
)

// learnNoise fills in the noise floor where too few runs are compared for a test.
func (c *diffCmd) learnNoise(ui *tui, opts *compare.Options, base, next int) error {
	switch {
	case c.History == "" && c.Noise == "":
		return nil
	case min(base, next) >= compare.MinTestRuns:
		ui.note("%d and %d runs are enough for the test: the noise floor is not used", base, next)
		return nil
	case c.Noise != "":
		floor, err := readNoise(c.Noise)
		opts.Noise = floor
		return err
	}
	paths, err := findTraces(c.History)
	if err != nil {
		return err
	}
	runs, err := readRuns(ui, paths)
	if err != nil {
		return err
	}
	groups := compare.EqualGroups(runs)
	if len(groups) == 0 {
		return badInput("record some runs of one commit with equal settings",
			"--history %s: no run of it finished", c.History)
	}
	floor, err := compare.LearnNoise(groups[0], base, next)
	if err != nil {
		return fail(exitUsage, fmt.Errorf("--history %s: %w", c.History, err),
			"record more runs of one commit with equal settings, or leave --history out")
	}
	opts.Noise = floor
	return nil
}

// maxNoiseBytes bounds a noise file.
const maxNoiseBytes = 4 << 20

// readNoise reads what writeNoise wrote.
func readNoise(path string) (*compare.NoiseFloor, error) {
	hint := "write one with `highwater history DIR --write-noise FILE`"
	f, _, err := regular.Open(path)
	if err != nil {
		return nil, fail(exitUsage, fmt.Errorf("read noise floor: %w", err), hint)
	}
	defer f.Close()
	floor, err := decodeNoise(f)
	if err != nil {
		return nil, fail(exitUsage, fmt.Errorf("read noise floor %s: %w", path, err), hint)
	}
	return floor, nil
}

func decodeNoise(r io.Reader) (*compare.NoiseFloor, error) {
	floor := &compare.NoiseFloor{}
	d := json.NewDecoder(io.LimitReader(r, maxNoiseBytes))
	d.DisallowUnknownFields()
	if err := d.Decode(floor); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	if floor.Runs <= 0 || len(floor.Floors) == 0 {
		return nil, fmt.Errorf("it holds no floor (%d runs, %d metrics)", floor.Runs,
			len(floor.Floors))
	}
	for _, x := range floor.Floors {
		if err := checkMetrics([]string{x.Name}); err != nil {
			return nil, err
		}
		if !(x.FloorRatio >= 0) || math.IsInf(x.FloorRatio, 0) {
			return nil, fmt.Errorf("floor of %s is %v: it must be 0 or more", x.Metric, x.FloorRatio)
		}
	}
	return floor, nil
}

// writeNoise writes a floor for --noise.
func writeNoise(path string, floor *compare.NoiseFloor) error {
	text, err := json.MarshalIndent(floor, "", "  ")
	if err != nil {
		return fmt.Errorf("write noise floor: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return fail(exitUsage, fmt.Errorf("write noise floor: %w", err), "")
	}
	return nil
}
