package replay

import (
	"fmt"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// write records the draw that attains the median peak as a trace in dir.
func (a *answer) write(dir string) error {
	data, err := a.simulated()
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
	if err := trace.Write(dir, data); err != nil {
		return fmt.Errorf("write simulated trace: %w", err)
	}
	return nil
}

// simulated is the draw that attains the median peak as a trace, with where it came from.
func (a *answer) simulated() (*trace.Data, error) {
	model, draw := a.middle()
	data, _, err := sim.Record(model, draw)
	if err != nil {
		return nil, err
	}
	m := &data.Manifest
	m.Seed, m.Settings = a.question.Seed, a.settings()
	if len(a.traces) == 0 {
		m.Model = model.Name
		return data, nil
	}
	from := &a.traces[0].Manifest
	m.Host, m.Memory, m.Circuit, m.RunGroup = from.Host, from.Memory, from.Circuit, from.RunGroup
	m.Program, m.Commit, m.Dirty, m.Versions = from.Program, from.Commit, from.Dirty, from.Versions
	m.BaseBytes, m.Fit = from.BaseBytes, a.fitFigures()
	for _, t := range a.traces {
		if t.Dir == "" {
			continue
		}
		sum, err := trace.Hash(t.Dir)
		if err != nil {
			return nil, fmt.Errorf("name source trace: %w", err)
		}
		m.DerivedFrom = append(m.DerivedFrom, trace.Derivation{Path: t.Dir, SHA256: sum})
	}
	return data, nil
}

// middle is the draw that attains the median peak.
func (a *answer) middle() (*pipeline.Model, sim.Draw) {
	middle, _ := a.figures.of(a.figures.peak)
	plan := &drawPlan{seed: a.question.Seed, bootstrap: !a.frozen}
	return a.models[modelOf(middle.index, len(a.models))], plan.draw(middle.index)
}

// fitFigures are the laws and their residuals for the manifest.
func (a *answer) fitFigures() map[string]any {
	rep := &a.fit.Report
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
	if a.frozen {
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
