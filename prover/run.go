package prover

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"highwater/prover/circuit"
	"highwater/prover/groth16"
	"highwater/tracer"
	"highwater/tracer/probe"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// run is one call of Run.
type run struct {
	cfg      Config
	settings *setting.Values
	policy   policy
	circuit  circuit.Circuit
	cacheDir string
	rec      *tracer.Recorder // nil records nothing
	probe    *probe.Probe     // nil samples nothing
	peak     *peakMeter
	memory   probe.Limit // on this process, at the start
	choice   backendChoice
	// pinnedBytes is page-locked memory that the backend holds from its start to its end.
	pinnedBytes int64
	env         groth16.Env
	report      *reporter
	result      *Result
	warned      map[string]bool
}

// Run sets up keys where the cache has none, proves the jobs and seals the trace. An error means
// that the run as a whole could not be done; a job that fails, and a cancelled context, are in the
// result instead.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	r, err := prepare(cfg)
	if err != nil {
		return nil, err
	}
	if err := r.startRecording(); err != nil {
		return nil, err
	}
	err = r.keysAndProofs(ctx)
	if ctx.Err() != nil && (r.result.JobsSkipped > 0 || stopped(ctx, err)) {
		r.interrupted()
		err = nil
	}
	if closeErr := r.stopRecording(err); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	r.report.phase(PhaseDone, "")
	return r.result, nil
}

// prepare checks everything that can be known before anything is created.
func prepare(cfg Config) (*run, error) {
	v := cfg.Settings
	if v == nil {
		v = setting.Defaults()
	}
	choice, err := chooseBackend(v)
	if err != nil {
		return nil, err
	}
	c, err := circuit.New(v.Text("circuit"), int(v.Int("log_size")))
	if err != nil {
		return nil, err
	}
	p := policyOf(v)
	for _, bad := range cfg.BadWitness {
		if bad.Job < 0 || bad.Job >= p.jobs || bad.Partition < 0 || bad.Partition >= p.partitions {
			return nil, fmt.Errorf(
				"make witness of job %d partition %d bad: there are %d jobs of %d partitions",
				bad.Job, bad.Partition, p.jobs, p.partitions)
		}
	}
	dir, err := cacheDir(cfg)
	if err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, settings: v, policy: p, circuit: c, cacheDir: dir,
		memory: probe.EffectiveLimit(probe.Options{}), report: newReporter(cfg.Progress, p),
		result: &Result{InEffect: map[string]string{}}, warned: map[string]bool{}}
	r.take(choice)
	return r, nil
}

// keysAndProofs is the run itself.
func (r *run) keysAndProofs(ctx context.Context) error {
	k, err := r.obtainKeys(ctx)
	if err != nil {
		return err
	}
	gc := setCollector(r.settings, safetyNet(r.memory.Bytes, k.system.Bytes()+k.key.Bytes()))
	defer gc.restore()
	if gc.limitBytes != setting.Unbounded {
		r.result.InEffect["memory_limit_bytes"] = strconv.FormatInt(gc.limitBytes, 10)
	}
	r.env.AfterMSM = gc.afterMSM
	b, err := r.openBackend(ctx, k.key)
	if err != nil {
		return errors.Join(err, k.free())
	}
	e := newEngine(engineSpec{circuit: r.circuit, system: k.system, key: k.key, env: r.env,
		backend: b, bad: r.cfg.BadWitness}, r.settings)
	if err := r.describe(k); err != nil {
		return errors.Join(err, e.close())
	}
	r.prove(ctx, e)
	return e.close()
}

// describe puts circuit and base memory into the result and the manifest, once both are known.
func (r *run) describe(k keys) error {
	r.result.Circuit = trace.Circuit{
		Name: r.circuit.Name(), Constraints: int64(k.system.Constraints()),
		DomainSize: int64(k.system.DomainSize()), KeyBytes: k.key.Bytes(), Wires: int64(k.system.Wires()),
	}
	// The ledger at this moment, all of it resident.
	base, err := measureBase(k.system.Bytes() + k.key.Bytes() + r.rec.Stats().MappedBytes +
		r.pinnedBytes)
	if err != nil {
		r.warn(err.Error())
	} else {
		r.result.BaseBytes = &base
	}
	return r.updateManifest(func(m *trace.Manifest) {
		c := r.result.Circuit
		m.Circuit, m.BaseBytes = &c, r.result.BaseBytes
		m.Settings = r.settingsInEffect()
	})
}

// prove runs the pipeline and takes its measures.
func (r *run) prove(ctx context.Context, e engine) {
	r.report.phase(PhaseProve, "")
	pl := newPipeline(r.policy, r.rec, e, r.report)
	r.peak.begin()
	if r.probe != nil {
		r.probe.Tick() // counts for the peak: a short run may end before the next
	}
	pl.run(ctx)
	peak, doubt := r.peak.end()
	if doubt != "" {
		r.warn(doubt)
	}
	r.result.PeakRSS = peak
	r.tally(pl)
}

// tally turns the pipeline's outcome into the result's.
func (r *run) tally(pl *pipeline) {
	res := r.result
	res.Jobs, res.Counters = pl.results, pl.counters()
	for _, j := range res.Jobs {
		switch j.State {
		case JobFinished:
			res.JobsFinished++
		case JobFailed:
			res.JobsFailed++
		default:
			res.JobsSkipped++
		}
	}
	res.ProofsSHA256 = digest(res.Jobs)
	if pl.lastFree.IsZero() {
		return
	}
	makespan := pl.lastFree.Sub(pl.firstSubmit).Nanoseconds()
	res.MakespanNanos = &makespan
	if res.JobsFinished > 0 {
		interval := makespan / int64(res.JobsFinished)
		res.ProofIntervalNanos = &interval
	}
}

// interrupted fills in what an interrupt before the proving phase left out.
func (r *run) interrupted() {
	r.result.End = trace.EndInterrupted
	if r.result.Jobs != nil {
		return
	}
	for i := range r.policy.jobs {
		r.result.Jobs = append(r.result.Jobs, skippedJob(i))
	}
	r.result.JobsSkipped = r.policy.jobs
	r.result.ProofsSHA256 = digest(nil)
}

func (r *run) warn(text string) {
	r.result.Warnings = append(r.result.Warnings, text)
	r.report.change(func(p *Progress) { p.Message = text })
}
