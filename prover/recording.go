package prover

import (
	"errors"
	"fmt"
	"strings"

	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// startRecording creates the trace and starts sampling, before set-up begins.
func (r *run) startRecording() error {
	r.peak = &peakMeter{}
	if r.cfg.Dir != "" {
		rec, err := tracer.Create(r.cfg.Dir, tracer.Options{Manifest: r.manifest()})
		if err != nil {
			return err // says what it is about
		}
		r.rec, r.peak.rec, r.result.TraceDir = rec, rec, rec.Dir()
	}
	r.env.Mem = &hostmem.Allocator{Rec: r.rec}
	r.env.NoTables = r.choice.library != nil // the device has its own
	if hz := r.settings.Int("sample_hz"); r.rec != nil && hz > 0 {
		p, err := probe.Start(r.peak, probe.Options{Hz: float64(hz)})
		if err != nil {
			return errors.Join(err, r.rec.Close(trace.EndFailed, err.Error()))
		}
		r.probe = p
	}
	return nil
}

// manifest is what is known at the start.
func (r *run) manifest() trace.Manifest {
	m := trace.Manifest{
		Origin: trace.OriginRecorded, Program: r.cfg.Program, Args: r.cfg.Args, Commit: r.cfg.Commit,
		Dirty: r.cfg.Dirty, Versions: r.cfg.Versions, RunGroup: r.cfg.RunGroup,
		Seed: r.settings.Uint("seed"), Settings: r.settingsInEffect(),
		Circuit: &trace.Circuit{Name: r.circuit.Name()},
	}
	if r.settings.Int("sample_hz") > 0 {
		for _, metric := range probe.Metrics() {
			m.Metrics = append(m.Metrics, trace.Metric{Name: metric.Name, Unit: metric.Unit, Kind: metric.Kind})
		}
		m.Recorder.SampleHz = float64(r.settings.Int("sample_hz"))
	}
	return m
}

// settingsInEffect are the settings with what the run made of those that it chooses by itself.
func (r *run) settingsInEffect() map[string]trace.Setting {
	set := map[string]trace.Setting{}
	for _, name := range r.settings.Names() {
		value := r.settings.Text(name)
		if v, ok := r.result.InEffect[name]; ok {
			value = v
		}
		set[name] = trace.Setting{Value: value, Source: r.settings.Source(name)}
	}
	return set
}

// stopRecording ends sampling and seals the trace. runErr is why the run as a whole failed, if it
// did.
func (r *run) stopRecording(runErr error) error {
	if r.result.End == "" {
		r.result.End = trace.EndFinished
		if r.result.JobsFailed > 0 || runErr != nil {
			r.result.End = trace.EndFailed
		}
	}
	if r.rec == nil {
		return nil
	}
	r.report.phase(PhaseSeal, "")
	var stats probe.Stats
	if r.probe != nil {
		stats = r.probe.Stop()
	}
	err := r.updateManifest(func(m *trace.Manifest) {
		m.PeakRSS = r.result.PeakRSS
		m.Recorder.SampleNS, m.Recorder.SampleTicks = stats.MeanNanos, stats.Ticks
	})
	if closeErr := r.rec.Close(r.result.End, r.endReason(runErr)); closeErr != nil {
		return fmt.Errorf("seal trace %s: %w", r.cfg.Dir, errors.Join(closeErr, err))
	}
	return errors.Join(err, r.readBack())
}

func (r *run) endReason(runErr error) string {
	if runErr != nil {
		return runErr.Error()
	}
	var reasons []string
	for _, j := range r.result.Jobs {
		if j.State == JobFailed {
			reasons = append(reasons, j.String())
		}
	}
	const few = 3
	if over := len(reasons) - few; over > 0 {
		reasons = append(reasons[:few], fmt.Sprintf("and %d more", over))
	}
	return strings.Join(reasons, "; ")
}

// readBack takes from the sealed manifest what only sealing knows: losses and the recorder's cost.
func (r *run) readBack() error {
	t, err := trace.Open(r.cfg.Dir)
	if err != nil {
		return fmt.Errorf("read back sealed trace: %w", err)
	}
	defer t.Close()
	r.result.Loss, r.result.Recorder = t.Manifest.Loss, t.Manifest.Recorder
	return nil
}

func (r *run) updateManifest(change func(*trace.Manifest)) error {
	if r.rec == nil {
		return nil
	}
	if err := r.rec.UpdateManifest(change); err != nil {
		return fmt.Errorf("update manifest: %w", err)
	}
	return nil
}
