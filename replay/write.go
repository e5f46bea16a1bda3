package replay

import (
	"fmt"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// write records the draw that attains the median peak as a trace in opts.Out.
func (r *run) write(index int) error {
	plan := &drawPlan{seed: r.opts.Seed, bootstrap: !r.frozen()}
	data, err := r.simulated(plan.draw(index))
	if err != nil {
		return err
	}
	broken, err := trace.Validate(trace.FromData(data), 1)
	if err != nil {
		return fmt.Errorf("validate simulated trace: %w", err)
	}
	if len(broken) > 0 {
		return fmt.Errorf("the simulated trace is not valid: %s: this is a fault of highwater",
			broken[0])
	}
	if err := trace.Write(r.opts.Out, data); err != nil {
		return fmt.Errorf("write simulated trace: %w", err)
	}
	return nil
}

// simulated is one draw as a trace, with where it came from.
func (r *run) simulated(d sim.Draw) (*trace.Data, error) {
	data, _, err := sim.Record(r.model, d)
	if err != nil {
		return nil, err
	}
	from := &r.trace.Manifest
	m := &data.Manifest
	m.Seed, m.Settings = r.opts.Seed, r.settings()
	m.Host, m.Memory, m.Circuit, m.RunGroup = from.Host, from.Memory, from.Circuit, from.RunGroup
	m.Program, m.Commit, m.Dirty, m.Versions = from.Program, from.Commit, from.Dirty, from.Versions
	m.BaseBytes, m.Fit = from.BaseBytes, r.fitFigures()
	if r.trace.Dir != "" {
		sum, err := trace.Hash(r.trace.Dir)
		if err != nil {
			return nil, fmt.Errorf("name source trace: %w", err)
		}
		m.DerivedFrom = []trace.Derivation{{Path: r.trace.Dir, SHA256: sum}}
	}
	return data, nil
}

// fitFigures are the laws and their residuals for the manifest.
func (r *run) fitFigures() map[string]any {
	rep := &r.fit.Report
	out := map[string]any{
		"durations": DurationsRecorded, "partitions": rep.Partitions,
		"remainder": rep.Remainder.Law,
	}
	if rep.Remainder.Law != pipeline.LawNone {
		out["calibrated_base_bytes"] = rep.Remainder.BaseBytes
	}
	if e := rep.Remainder.ErrorBytes; e != nil {
		out["remainder_error_bytes"] = *e
	}
	if e := rep.Remainder.ErrorRatio; e != nil {
		out["remainder_error_ratio"] = *e
	}
	if r.frozen() {
		return out
	}
	out["durations"], out["service"] = DurationsFitted, rep.Law
	out["cpus"], out["residual_ratio"] = rep.CPUs, rep.Misfit
	stages := map[string]any{}
	for _, s := range rep.Stages {
		stages[s.Name] = map[string]any{
			"parallelism_cores": s.Parallelism,
			"weight_cores":      s.Weight, "services": s.Services,
		}
	}
	out["stages"] = stages
	return out
}
