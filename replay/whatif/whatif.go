// Package whatif changes what a pipeline model does, as an optimisation would: a stage takes half
// its time, a class of buffers half its bytes, a buffer is freed at the end of an earlier stage, a
// device is added. The changed model is replayed like any other, so that a developer knows what an
// optimisation is worth before writing it.
//
// Settings (tracer/setting) are not its business: pipeline.Model.Apply takes those.
package whatif

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"highwater/replay/pipeline"
)

// Changes are what to change. The zero value changes nothing.
type Changes struct {
	Scale  map[string]float64 // stage: factor on its time alone on the machine
	Buffer map[string]float64 // class as allocated: factor on its bytes
	Free   []FreeAt           // buffers freed at the end of a stage
	// devices of the machine; 0 leaves them
	GPUs int64
	// factor on the machine's memory bandwidth; 0 leaves it
	MemoryBandwidth float64
}

// FreeAt frees what has class Class when a partition's stage Stage ends, if it lives longer.
type FreeAt struct{ Class, Stage string }

// maxFactor bounds the factors, 1/maxFactor from below.
const maxFactor = 1000

// ParseFactor reads NAME=FACTOR, a stage or class and a number above 0.
func ParseFactor(text string) (name string, factor float64, err error) {
	name, number, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", 0, fmt.Errorf("%q: not NAME=FACTOR, such as synthesis=0.5", text)
	}
	factor, err = strconv.ParseFloat(number, 64)
	if err == nil && !(factor >= 1.0/maxFactor && factor <= maxFactor) {
		err = fmt.Errorf("outside %g..%d", 1.0/maxFactor, maxFactor)
	}
	if err != nil {
		return "", 0, fmt.Errorf("%q: factor %q is not a number between %g and %d", text, number,
			1.0/maxFactor, maxFactor)
	}
	return name, factor, nil
}

// ParseFree reads CLASS@STAGE.
func ParseFree(text string) (FreeAt, error) {
	class, stage, ok := strings.Cut(text, "@")
	if !ok || class == "" || stage == "" {
		return FreeAt{}, fmt.Errorf("%q: not CLASS@STAGE, such as a@prove_start", text)
	}
	return FreeAt{class, stage}, nil
}

// None says that there is nothing to change.
func (c *Changes) None() bool {
	return len(c.Scale) == 0 && len(c.Buffer) == 0 && len(c.Free) == 0 && c.GPUs == 0 &&
		c.MemoryBandwidth == 0
}

// Text is the changes as the flags that ask for them.
func (c *Changes) Text() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(c.Scale)) {
		add("--scale %s=%g", name, c.Scale[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.Buffer)) {
		add("--buffer %s=%g", name, c.Buffer[name])
	}
	for _, f := range c.Free {
		add("--free %s@%s", f.Class, f.Stage)
	}
	if c.GPUs != 0 {
		add("--gpus %d", c.GPUs)
	}
	if c.MemoryBandwidth != 0 {
		add("--memory-bandwidth %g", c.MemoryBandwidth)
	}
	return strings.Join(parts, " ")
}

// Apply is a copy of m with the changes made; m stays as it is. The error names every change that m
// has nothing for.
func (c *Changes) Apply(m *pipeline.Model) (*pipeline.Model, error) {
	out := clone(m)
	var errs []error
	for _, stage := range slices.Sorted(maps.Keys(c.Scale)) {
		errs = append(errs, scale(out, stage, c.Scale[stage]))
	}
	for _, class := range slices.Sorted(maps.Keys(c.Buffer)) {
		errs = append(errs, resize(out, class, c.Buffer[class]))
	}
	for _, f := range c.Free {
		errs = append(errs, free(out, f))
	}
	if c.GPUs != 0 {
		out.Policy.Devices = c.GPUs
	}
	if c.MemoryBandwidth != 0 {
		errs = append(errs, widen(out, c.MemoryBandwidth))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := out.Validate(); err != nil {
		return nil, err
	}
	return out, nil
}

// clone copies what the changes write to.
func clone(m *pipeline.Model) *pipeline.Model {
	out := *m
	out.Stages, out.Cached = slices.Clone(m.Stages), slices.Clone(m.Cached)
	out.Memory.Resident = slices.Clone(m.Memory.Resident)
	out.Memory.Later = slices.Clone(m.Memory.Later)
	out.Partitions = slices.Clone(m.Partitions)
	for i := range out.Partitions {
		p := &out.Partitions[i]
		p.EarlyFree = slices.Clone(p.EarlyFree)
		p.Pieces = clonePieces(p.Pieces)
	}
	out.Jobs = slices.Clone(m.Jobs)
	for i := range out.Jobs {
		out.Jobs[i].Before = clonePieces(out.Jobs[i].Before)
		out.Jobs[i].After = clonePieces(out.Jobs[i].After)
	}
	return &out
}

func clonePieces(pieces []pipeline.Piece) []pipeline.Piece {
	out := slices.Clone(pieces)
	for i := range out {
		out[i].Buffers = slices.Clone(out[i].Buffers)
	}
	return out
}

// ways calls f for the pieces of each partition and job.
func ways(m *pipeline.Model, f func(pieces []pipeline.Piece)) {
	for i := range m.Partitions {
		f(m.Partitions[i].Pieces)
	}
	for i := range m.Jobs {
		f(m.Jobs[i].Before)
		f(m.Jobs[i].After)
	}
}

func scale(m *pipeline.Model, stage string, factor float64) error {
	found := false
	ways(m, func(pieces []pipeline.Piece) {
		for i := range pieces {
			if pieces[i].Stage == stage {
				pieces[i].SoloNS *= factor
				found = true
			}
		}
	})
	if !found {
		return fmt.Errorf("scale %s: no such stage; the trace has %s", stage,
			strings.Join(stagesOf(m), ", "))
	}
	return nil
}

func stagesOf(m *pipeline.Model) []string {
	seen := map[string]bool{}
	ways(m, func(pieces []pipeline.Piece) {
		for i := range pieces {
			if pieces[i].Stage != "" {
				seen[pieces[i].Stage] = true
			}
		}
	})
	return slices.Sorted(maps.Keys(seen))
}
