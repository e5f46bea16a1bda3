package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"highwater/prover"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// benchStages are the stages that a partition goes through, in order.
var benchStages = []string{
	trace.StageWitness, trace.StageSynthesis, trace.StageStageIn, trace.StageProveStart, trace.StageBG2,
	trace.StageFinalise, trace.StageVerify,
}

// proofs times whole proofs: one job of as many partitions as there are repeats, for each size.
func (c *benchCmd) proofs(ctx context.Context, ui *tui, report *benchReport, plan benchPlan) error {
	dir, err := os.MkdirTemp("", "highwater-bench-")
	if err != nil {
		return fmt.Errorf("make folder for traces: %w", err)
	}
	defer os.RemoveAll(dir)
	for _, logSize := range plan.options.Sizes {
		values, err := c.settings(plan, logSize)
		if err != nil {
			return err
		}
		p, err := c.proveOnce(ctx, values, filepath.Join(dir, strconv.Itoa(logSize)+".hw"))
		if err != nil {
			return err
		}
		if report.Backend == "" {
			report.Backend, report.BackendReason = p.backend, p.backendReason
		}
		report.Proofs = append(report.Proofs, p)
		if ui.json {
			continue
		}
		if len(report.Results) == 0 && len(report.Proofs) == 1 {
			report.printHead(ui)
		}
		p.print(ui)
	}
	return nil
}

// settings are those of the proofs of one size.
func (c *benchCmd) settings(plan benchPlan, logSize int) (*setting.Values, error) {
	v := setting.Defaults()
	own := map[string]string{
		"circuit": c.Circuit, "log_size": strconv.Itoa(logSize), "backend": c.Backend,
		"partitions": strconv.Itoa(c.Count), "seed": strconv.FormatUint(c.Seed, 10),
	}
	for _, layer := range []map[string]string{own, plan.set} {
		for _, name := range sortedKeys(layer) {
			if err := v.Set(name, layer[name], "flag"); err != nil {
				return nil, fail(exitUsage, err, "run `highwater prove --help` for every setting and its values")
			}
		}
	}
	return v, nil
}

// proveOnce runs the pipeline and takes each stage's times from its trace.
func (c *benchCmd) proveOnce(ctx context.Context, values *setting.Values, dir string) (p benchProof, err error) {
	result, err := prover.Run(ctx, prover.Config{Settings: values, Dir: dir, CacheDir: c.CacheDir, Program: "highwater"})
	if err != nil {
		return p, err
	}
	if ctx.Err() != nil {
		return p, context.Cause(ctx)
	}
	if result.JobsFailed > 0 {
		return p, errors.New(result.Jobs[slices.IndexFunc(result.Jobs, func(j prover.JobResult) bool {
			return j.State == prover.JobFailed
		})].String())
	}
	p = benchProof{Circuit: result.Circuit.Name, LogSize: int(values.Int("log_size")),
		Constraints: result.Circuit.Constraints, Partitions: int(result.Counters.Verified),
		MakespanNS: *result.MakespanNanos, Stages: []benchStage{},
		backend: result.Backend, backendReason: result.BackendReason}
	p.PartitionNS = p.MakespanNS / max(1, result.Counters.Verified)
	if result.PeakRSS != nil {
		p.PeakRSSBytes = &result.PeakRSS.Bytes
	}
	times, err := stageTimes(dir)
	if err != nil {
		return p, err
	}
	for _, name := range benchStages {
		if len(times[name]) > 0 {
			p.Stages = append(p.Stages, benchStage{Name: name, MedianNS: median(times[name]), TimesNS: times[name]})
		}
	}
	return p, nil
}

// stageTimes are how long each partition spent in each stage.
func stageTimes(dir string) (map[string][]int64, error) {
	t, err := trace.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("read back the trace: %w", err)
	}
	defer t.Close()
	times := map[string][]int64{}
	for s, err := range t.Spans() {
		if err != nil {
			return nil, fmt.Errorf("read back the trace: %w", err)
		}
		if s.Kind == trace.KindStage && s.Partition >= 0 && s.EndNS != trace.Null {
			times[s.Name] = append(times[s.Name], s.EndNS-s.BeginNS)
		}
	}
	return times, nil
}

func median(v []int64) int64 {
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
