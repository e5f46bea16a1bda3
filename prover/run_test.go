package prover

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"highwater/prover/device"
	"highwater/prover/groth16"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// small is the settings of a run that takes a moment, with changes.
func small(t *testing.T, changes ...string) *setting.Values {
	return values(t, append([]string{"circuit", "mimc", "log_size", "10", "jobs", "2", "partitions", "2"}, changes...)...)
}

// sharedCache is one cache for all tests that do not look at set-up.
var sharedCache = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "highwater-prover-test") })

func cache(t *testing.T) string {
	dir, err := sharedCache()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustRun(t *testing.T, cfg Config) *Result {
	t.Helper()
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestProofBytes checks that proofs are the same bytes under every scheduling setting, with and
// without recording, for both circuits.
func TestProofBytes(t *testing.T) {
	circuits := []struct{ name, logSize, jobs string }{{"mimc", "10", "2"}, {"label", "15", "1"}}
	changes := [][]string{
		nil,
		{"partition_workers", "1", "channel_capacity", "0"},
		{"partition_workers", "4", "gpu_workers", "2", "permit_release", "synth_end"},
		{"permit_release", "freed", "early_free", "false", "presize", "false"},
		{"permit_release", "gpu_pickup", "split_proving", "false", "queue_order", "priority"},
		{"channel_capacity", "unbounded", "jobs_in_flight", "1", "gogc", "50", "backend_threads", "1", "gpu_threads", "3"},
	}
	for _, c := range circuits {
		want := ""
		for _, change := range changes {
			base := []string{"circuit", c.name, "log_size", c.logSize, "jobs", c.jobs}
			r := mustRun(t, Config{Settings: small(t, append(base, change...)...), CacheDir: cache(t)})
			if r.JobsFinished != len(r.Jobs) || r.Counters.Verified != int64(2*len(r.Jobs)) {
				t.Fatalf("%s %v: %d jobs finished, %d proofs verified, want all of %+v",
					c.name, change, r.JobsFinished, r.Counters.Verified, r.Jobs)
			}
			if want == "" {
				want = r.ProofsSHA256
			}
			if r.ProofsSHA256 != want {
				t.Errorf("%s %v: proofs differ", c.name, change)
			}
		}
		v := small(t, "circuit", c.name, "log_size", c.logSize, "jobs", c.jobs)
		r := mustRun(t, Config{Settings: v,
			CacheDir: cache(t), Dir: filepath.Join(t.TempDir(), "run.hw")})
		if r.ProofsSHA256 != want {
			t.Errorf("%s: proofs differ with recording on", c.name)
		}
		checkTrace(t, r.TraceDir)
	}
	other := mustRun(t, Config{Settings: small(t, "seed", "2"), CacheDir: cache(t)})
	first := mustRun(t, Config{Settings: small(t), CacheDir: cache(t)})
	if other.ProofsSHA256 == first.ProofsSHA256 {
		t.Error("seeds 1 and 2 give the same proofs")
	}
}

// TestRunRecords checks what a whole run, set-up included, leaves in its trace.
func TestRunRecords(t *testing.T) {
	r := mustRun(t, Config{Settings: small(t), CacheDir: t.TempDir(), Dir: filepath.Join(t.TempDir(), "run.hw"),
		Program: "prover-test", RunGroup: "g"})
	d := checkTrace(t, r.TraceDir)
	stages := map[string]int{}
	sources := map[string]string{}
	for _, s := range d.Spans {
		if s.Kind == trace.KindStage {
			stages[s.Stage]++
			sources[s.Stage] = s.Source
		}
		if s.EndNS == trace.Null {
			t.Errorf("span %s of job %d is still open", s.Name, s.Job)
		}
		if owns := s.Stage == trace.StageSynthesis && s.Kind == trace.KindStage; owns != (s.CPUNS != trace.Null) {
			t.Errorf("span %s %s has cpu_ns %d", s.Kind, s.Name, s.CPUNS)
		}
	}
	for _, stage := range []string{trace.StageWitness, trace.StageSynthesis, trace.StageProveStart, trace.StageBG2,
		trace.StageFinalise, trace.StageDealloc, trace.StageVerify} {
		if stages[stage] != 4 {
			t.Errorf("%d spans of stage %s, want 4", stages[stage], stage)
		}
	}
	for _, stage := range []string{trace.StageCompile, trace.StageSetup} {
		if stages[stage] != 1 || sources[stage] != SourceSetup {
			t.Errorf("%d spans of stage %s, of source %q, want 1 of %s", stages[stage], stage, sources[stage], SourceSetup)
		}
	}
	checkManifest(t, r, &d.Manifest)
	checkJobEvents(t, d)
	checkOrderOfSetup(t, d)
}

func checkManifest(t *testing.T, r *Result, m *trace.Manifest) {
	t.Helper()
	if m.ProcessEnd != trace.EndFinished || m.SealedBy != trace.SealedByClose || m.RunGroup != "g" {
		t.Errorf("process_end %q sealed_by %q run_group %q", m.ProcessEnd, m.SealedBy, m.RunGroup)
	}
	if m.BaseBytes == nil || *m.BaseBytes <= 0 || *m.BaseBytes != *r.BaseBytes {
		t.Errorf("base bytes %v, want them measured", m.BaseBytes)
	}
	checkPeak(t, r, m)
	if m.Circuit == nil || m.Circuit.Name != "mimc" || m.Circuit.DomainSize != 1<<10 || m.Circuit.KeyBytes <= 0 {
		t.Errorf("circuit %+v", m.Circuit)
	}
	if got := m.Settings["backend"]; got.Value != "cpu" {
		t.Errorf("backend in effect %+v, want cpu", got)
	}
	if m.Recorder.SampleTicks < 2 || m.Recorder.SampleNS <= 0 {
		t.Errorf("cost of sampling is not told: %+v", m.Recorder)
	}
	names := []string{}
	for _, res := range m.Resources {
		names = append(names, res.Name)
	}
	slices.Sort(names)
	if want := []string{"budget", "channel", "gpu_lock/0", "job", "permit"}; !slices.Equal(names, want) {
		t.Errorf("resources %v, want %v", names, want)
	}
}

// checkPeak checks that the peak is the result's, and above the base but for what the kernel's mark
// may be off; or that a doubt says why there is none.
func checkPeak(t *testing.T, r *Result, m *trace.Manifest) {
	t.Helper()
	if m.PeakRSS == nil {
		if r.PeakRSS != nil || !strings.Contains(strings.Join(r.Warnings, "\n"), "peak RSS is not known") {
			t.Errorf("no peak RSS in the manifest, %v in the result, warnings %q", r.PeakRSS, r.Warnings)
		}
		return
	}
	if m.PeakRSS.Bytes < *m.BaseBytes*3/4 || *m.PeakRSS != *r.PeakRSS {
		t.Errorf("peak RSS %v, want it above the base of %d", m.PeakRSS, *m.BaseBytes)
	}
}

// checkJobEvents checks that each of two jobs was submitted, admitted and done, the last after its
// buffers' last free.
func checkJobEvents(t *testing.T, d *trace.Data) {
	t.Helper()
	done := map[int64]int64{}
	events := map[string]int{}
	for _, q := range d.Queues {
		if q.Resource == "job" {
			events[q.Event]++
			if q.Event == trace.EventRelease {
				done[q.Job] = q.Seq
			}
		}
	}
	if events[trace.EventRequest] != 2 || events[trace.EventAcquire] != 2 || events[trace.EventRelease] != 2 {
		t.Errorf("job events %v, want two of each", events)
	}
	for _, b := range d.Buffers {
		if b.Event == trace.EventFree && b.Job >= 0 && b.Seq > done[b.Job] {
			t.Errorf("buffer %s of job %d is freed after the job was done", b.Class, b.Job)
		}
	}
}

// checkOrderOfSetup checks that nothing of the set-up child is recorded after the key begins to
// load.
func checkOrderOfSetup(t *testing.T, d *trace.Data) {
	t.Helper()
	load := int64(0)
	for _, s := range d.Spans {
		if s.Stage == trace.StageKeyLoad && s.Kind == trace.KindStage {
			load = s.BeginNS
		}
	}
	if load == 0 {
		t.Fatal("no span of stage key_load")
	}
	for _, b := range d.Buffers {
		if b.Source == SourceSetup && b.TimeNS > load {
			t.Errorf("set-up's %s of %s at %d, after key_load began at %d", b.Event, b.Class, b.TimeNS, load)
		}
	}
}

// TestBadWitness checks that a job with a wrong witness fails alone and says where and why.
func TestBadWitness(t *testing.T) {
	for _, name := range []string{"mimc", "label"} {
		logSize := map[string]string{"mimc": "10", "label": "15"}[name]
		r := mustRun(t, Config{Settings: small(t, "circuit", name, "log_size", logSize), CacheDir: cache(t),
			Dir: filepath.Join(t.TempDir(), "run.hw"), BadWitness: []JobPartition{{1, 1}}})
		if r.End != trace.EndFailed || r.JobsFinished != 1 || r.JobsFailed != 1 {
			t.Fatalf("%s: end %s, %d finished, %d failed", name, r.End, r.JobsFinished, r.JobsFailed)
		}
		j := r.Jobs[1]
		if j.State != JobFailed || j.Partition != 1 || j.Stage != trace.StageSynthesis || !strings.Contains(j.Reason, "constraint") {
			t.Errorf("%s: %+v, want job 1 failed by a constraint of partition 1", name, j)
		}
		d := checkTrace(t, r.TraceDir)
		if d.Manifest.ProcessEnd != trace.EndFailed || !strings.Contains(d.Manifest.EndReason, "job 1") {
			t.Errorf("%s: process_end %q: %q", name, d.Manifest.ProcessEnd, d.Manifest.EndReason)
		}
		checkNothingLives(t, d)
	}
}

// checkNothingLives checks that all buffers of jobs were freed.
func checkNothingLives(t *testing.T, d *trace.Data) {
	t.Helper()
	live := int64(0)
	for _, b := range d.Buffers {
		live += b.DeltaBytes
	}
	if live != 0 {
		t.Errorf("%d bytes live at the end", live)
	}
}

// TestInterrupt cancels in the middle: the trace is sealed, nothing lives, and the result tells
// what was done.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := Config{Settings: small(t, "jobs", "20"), CacheDir: cache(t), Dir: filepath.Join(t.TempDir(), "run.hw")}
	var last Progress
	cfg.Progress = func(p Progress) {
		last = p
		if p.PartitionsDone >= 3 {
			cancel()
		}
	}
	r, err := Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if last.JobsDone != r.JobsFinished || int64(last.PartitionsDone) != r.Counters.Verified {
		t.Errorf("progress ends with %d jobs and %d partitions done; %d jobs finished, %d verified",
			last.JobsDone, last.PartitionsDone, r.JobsFinished, r.Counters.Verified)
	}
	if r.End != trace.EndInterrupted || r.JobsSkipped == 0 || r.JobsFailed != 0 || len(r.Jobs) != 20 {
		t.Errorf("end %s, %d skipped, %d failed of %d", r.End, r.JobsSkipped, r.JobsFailed, len(r.Jobs))
	}
	d := checkTrace(t, r.TraceDir)
	if d.Manifest.ProcessEnd != trace.EndInterrupted {
		t.Errorf("process_end %q", d.Manifest.ProcessEnd)
	}
	checkNothingLives(t, d)
	checkCancelled(t, d, r)
}

// checkCancelled checks that the trace tells each skipped job from one that failed: by a cancel of
// its request, or by its span.
func checkCancelled(t *testing.T, d *trace.Data, r *Result) {
	t.Helper()
	cancelled := map[int64]bool{}
	for _, q := range d.Queues {
		if q.Resource == "job" && q.Event == trace.EventCancel {
			cancelled[q.Job] = true
		}
	}
	for _, s := range d.Spans {
		if s.Kind == trace.KindJob &&
			strings.Contains(s.Attributes, `"`+trace.AttrJobCancelled+`":true`) {
			cancelled[s.Job] = true
		}
	}
	for _, j := range r.Jobs {
		if want := j.State == JobSkipped; cancelled[int64(j.Job)] != want {
			t.Errorf("job %d is %s; cancelled in the trace: %v", j.Job, j.State, !want)
		}
	}
}

// TestInterruptSetup cancels while the set-up child runs.
func TestInterruptSetup(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg := Config{Settings: small(t), CacheDir: t.TempDir(), Dir: filepath.Join(t.TempDir(), "run.hw")}
	cfg.Progress = func(p Progress) {
		if p.SetupStage != "" {
			cancel()
		}
	}
	r, err := Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.End != trace.EndInterrupted || r.JobsSkipped != 2 || r.MakespanNanos != nil {
		t.Errorf("end %s, %d skipped, makespan %v", r.End, r.JobsSkipped, r.MakespanNanos)
	}
	checkTrace(t, r.TraceDir)
}

// TestDamagedCache checks that a damaged key file is told, never used and set up anew.
func TestDamagedCache(t *testing.T) {
	dir := t.TempDir()
	first := mustRun(t, Config{Settings: small(t), CacheDir: dir})
	if first.SetupNanos == 0 {
		t.Fatal("no set-up on an empty cache")
	}
	path := filepath.Join(dir, groth16.CacheID{Circuit: "mimc", LogSize: 10, Seed: 1}.FileName())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"truncated": func(b []byte) []byte { return b[:len(b)-100] },
		"empty":     func([]byte) []byte { return nil },
	} {
		if err := os.WriteFile(path, damage(slices.Clone(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
		r := mustRun(t, Config{Settings: small(t), CacheDir: dir})
		told := slices.DeleteFunc(slices.Clone(r.Warnings), func(w string) bool { return !strings.Contains(w, path) })
		if r.SetupNanos == 0 || len(told) != 1 {
			t.Errorf("%s: set-up took %d ns, warnings %q; want a set-up and a warning that names the file", name, r.SetupNanos, r.Warnings)
		}
		if r.ProofsSHA256 != first.ProofsSHA256 {
			t.Errorf("%s: other proofs after the rebuild", name)
		}
		rebuilt, err := os.ReadFile(path)
		if err != nil || !slices.Equal(rebuilt, whole) {
			t.Errorf("%s: the rebuilt file differs (%v)", name, err)
		}
	}
}

// TestOneSetup has several runs meet on an empty cache: one sets up.
func TestOneSetup(t *testing.T) {
	dir := t.TempDir()
	results := make([]*Result, 3)
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			v := setting.Defaults()
			for name, text := range map[string]string{"circuit": "mimc", "log_size": "10"} {
				errs[i] = errors.Join(errs[i], v.Set(name, text, "set"))
			}
			r, err := Run(context.Background(), Config{Settings: v, CacheDir: dir})
			results[i], errs[i] = r, errors.Join(errs[i], err)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	setUps := 0
	for _, r := range results {
		if r.SetupNanos > 0 {
			setUps++
		}
		if r.ProofsSHA256 != results[0].ProofsSHA256 {
			t.Error("proofs differ")
		}
	}
	if setUps != 1 {
		t.Errorf("%d runs set up, want 1", setUps)
	}
}

// TestSetupFails checks that a set-up that fails is told with what the child wrote, and that the
// trace is sealed.
func TestSetupFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run.hw")
	_, err := Run(context.Background(), Config{Settings: small(t), CacheDir: t.TempDir(), Dir: dir,
		SetupCommand: []string{"/bin/sh", "-c", "echo no more memory >&2; exit 3"}})
	var failed *SetupError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "no more memory") {
		t.Fatalf("error %v, want a SetupError with the child's words", err)
	}
	d := checkTrace(t, dir)
	if d.Manifest.ProcessEnd != trace.EndFailed || !strings.Contains(d.Manifest.EndReason, "set up keys") {
		t.Errorf("process_end %q: %q", d.Manifest.ProcessEnd, d.Manifest.EndReason)
	}
}

// TestRefusals checks what is refused before anything is created.
func TestRefusals(t *testing.T) {
	t.Setenv(device.LibraryEnv, filepath.Join(t.TempDir(), "none.so"))
	for _, c := range []struct {
		name     string
		cfg      Config
		noDevice bool
		want     string
	}{
		{"device", Config{Settings: small(t, "backend", "device")}, true, "no device"},
		{"b_g2 device", Config{Settings: small(t, "b_g2", "device")}, true, "no device"},
		{"bad partition", Config{Settings: small(t), BadWitness: []JobPartition{{0, 2}}}, false, "2 jobs of 2 partitions"},
		{"too small", Config{Settings: small(t, "circuit", "label")}, false, "too small"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.CacheDir, c.cfg.Dir = t.TempDir(), filepath.Join(t.TempDir(), "run.hw")
			_, err := Run(context.Background(), c.cfg)
			if err == nil || errors.Is(err, ErrNoDevice) != c.noDevice || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
			if _, err := os.Stat(c.cfg.Dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("trace directory was made: %v", err)
			}
		})
	}
}

// TestBudgetOfRun checks the budget's refusal with a real partition's size.
func TestBudgetOfRun(t *testing.T) {
	r := mustRun(t, Config{Settings: small(t, "log_size", "14", "byte_budget", "1MiB"), CacheDir: cache(t)})
	if r.JobsFailed != 2 || !strings.Contains(r.Jobs[0].Reason, "1.00 MiB") {
		t.Errorf("%d jobs failed: %s", r.JobsFailed, r.Jobs[0].Reason)
	}
	if r.ProofIntervalNanos != nil {
		t.Errorf("proof interval %v without a proof", *r.ProofIntervalNanos)
	}
}
