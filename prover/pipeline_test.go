package prover

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"highwater/tracer"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// values are the defaults with changes given as name, text, name, text …
func values(t interface{ Fatal(...any) }, changes ...string) *setting.Values {
	v := setting.Defaults()
	for i := 0; i < len(changes); i += 2 {
		if err := v.Set(changes[i], changes[i+1], "set"); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// drawSettings draws every scheduling setting.
func drawSettings(t *rapid.T) *setting.Values {
	number := func(name string, low, high int) string {
		return fmt.Sprint(rapid.IntRange(low, high).Draw(t, name))
	}
	word := func(name string, words ...string) string { return rapid.SampledFrom(words).Draw(t, name) }
	return values(t,
		"jobs", number("jobs", 1, 5), "partitions", number("partitions", 1, 5),
		"partition_workers", number("partition_workers", 1, 4), "gpu_workers", number("gpu_workers", 1, 3),
		"jobs_in_flight", word("jobs_in_flight", "1", "2", "unbounded"),
		"channel_capacity", word("channel_capacity", "0", "1", "2", "unbounded"),
		"permit_release", word("permit_release", "synth_end", "send_accepted", "gpu_pickup", "freed"),
		"early_free", word("early_free", "true", "false"),
		"split_proving", word("split_proving", "true", "false"),
		"queue_order", word("queue_order", "fifo", "priority"),
		// Room for one partition, for one and a half, and for many. (The setting's lower bound is
		// above a fake partition's size: see budgetOf.)
		"byte_budget", "unbounded")
}

// underTest is a pipeline on the fake engine whose resources are watched by models.
type underTest struct {
	*pipeline
	fake   *fakeEngine
	models []*queueModel
}

func newUnderTest(p policy, seed uint64, rec *tracer.Recorder) *underTest {
	fake := newFake(seed, rec)
	fake.stages = seed%2 == 0
	u := &underTest{fake: fake, pipeline: newPipeline(p, rec, fake, newReporter(nil, p))}
	if rec == nil {
		u.resources = newResources(p, func(r trace.Resource) queueLog {
			capacity := setting.Unbounded
			if r.Capacity != nil {
				capacity = *r.Capacity
			}
			m := newModel(capacity, order(r.Order))
			u.models = append(u.models, m)
			return m
		})
	}
	return u
}

// runWithin runs the pipeline and fails the test, with every goroutine's stack, if it does not end.
func (u *underTest) runWithin(t interface{ Fatalf(string, ...any) }, ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.run(ctx)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		t.Fatalf("deadlock:\n%s", buf[:runtime.Stack(buf, true)])
	}
}

// checkAtRest checks that nothing is held, mapped or waiting, and that nothing impossible happened.
func (u *underTest) checkAtRest(t *rapid.T) {
	for _, m := range u.models {
		m.atRest(t)
	}
	all := map[string]*semaphore{"job": u.jobSlots, "budget": u.budget, "permit": u.permits}
	for i, lock := range u.locks {
		all[fmt.Sprintf("gpu_lock/%d", i)] = lock
	}
	for name, s := range all {
		if s.held != 0 || s.waiters.len() != 0 {
			t.Fatalf("%s: %d held, %d waiting at the end", name, s.held, s.waiters.len())
		}
	}
	if n := u.fake.mem.LiveBytes(); n != 0 {
		t.Fatalf("%d bytes are still mapped at the end", n)
	}
	if u.fake.wrong != nil {
		t.Fatal(u.fake.wrong)
	}
	if got := u.fake.peakStarting.Load(); got > int64(u.devices) {
		t.Fatalf("%d starts at once on %d devices", got, u.devices)
	}
	if got := u.fake.peakSynthesising.Load(); got > u.partitionWorkers {
		t.Fatalf("%d partitions in synthesis at once with %d permits", got, u.partitionWorkers)
	}
}

// drawPolicy draws a policy with a budget that suits the fake partitions.
func drawPolicy(t *rapid.T) policy {
	p := policyOf(drawSettings(t))
	p.devices = rapid.IntRange(1, 3).Draw(t, "devices")
	p.byteBudget = rapid.SampledFrom([]int64{setting.Unbounded, 4 * pageBytes, 7 * pageBytes, 30 * pageBytes}).
		Draw(t, "byte_budget")
	return p
}

// TestPipelineProperties runs the pipeline under random settings, with random failures.
func TestPipelineProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		u := newUnderTest(p, rapid.Uint64().Draw(t, "seed"), nil)
		if rapid.Bool().Draw(t, "some fail") {
			at := JobPartition{rapid.IntRange(0, p.jobs-1).Draw(t, "job"), rapid.IntRange(0, p.partitions-1).Draw(t, "partition")}
			u.fake.fail[at] = rapid.SampledFrom([]string{trace.StageWitness, trace.StageSynthesis, trace.StageProveStart,
				trace.StageBG2, trace.StageFinalise, trace.StageVerify}).Draw(t, "stage")
		}
		u.runWithin(t, context.Background())
		u.checkAtRest(t)
		u.checkOutcome(t)
	})
}

// checkOutcome checks that exactly the jobs that were made to fail have, and that the others have
// all their proofs.
func (u *underTest) checkOutcome(t *rapid.T) {
	for _, j := range u.results {
		want := JobFinished
		for at, stage := range u.fake.fail {
			if at.Job != j.Job {
				continue
			}
			want = JobFailed
			if j.Partition != at.Partition || j.Stage != stage || !strings.Contains(j.Reason, errFake.Error()) {
				t.Fatalf("job %d failed at %d/%s (%s), want %d/%s", j.Job, j.Partition, j.Stage, j.Reason, at.Partition, stage)
			}
		}
		if j.State != want {
			t.Fatalf("job %d is %s (%s), want %s", j.Job, j.State, j.Reason, want)
		}
		if want == JobFailed {
			continue
		}
		for i, proof := range j.Proofs {
			if string(proof) != fmt.Sprintf("proof of %d/%d", j.Job, i) {
				t.Fatalf("proof %d of job %d is %q", i, j.Job, proof)
			}
		}
	}
}

// TestPipelineInterrupted cancels at a random stage: everything is given back and no job is half
// told.
func TestPipelineInterrupted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := newUnderTest(drawPolicy(t), rapid.Uint64().Draw(t, "seed"), nil)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		left := make(chan struct{}, rapid.IntRange(0, 60).Draw(t, "stages before the cancel"))
		u.fake.seen = func(string) {
			select {
			case left <- struct{}{}:
			default:
				cancel()
			}
		}
		u.runWithin(t, ctx)
		u.checkAtRest(t)
		for _, j := range u.results {
			if j.State != JobFinished && j.State != JobSkipped {
				t.Fatalf("job %d is %q (%s)", j.Job, j.State, j.Reason)
			}
			if ctx.Err() == nil && j.State != JobFinished {
				t.Fatalf("job %d is %s without a cancel", j.Job, j.State)
			}
		}
	})
}

// TestPipelineTurnsAway: jobs that get their slots when no more are admitted are skipped, as
// the trace tells, too.
func TestPipelineTurnsAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run.hw")
	rec, err := tracer.Create(dir, tracer.Options{Manifest: trace.Manifest{Origin: trace.OriginRecorded}})
	if err != nil {
		t.Fatal(err)
	}
	u := newUnderTest(policyOf(values(t, "jobs", "3", "partitions", "2")), 1, rec)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	u.runWithin(t, ctx)
	if err := rec.Close(trace.EndInterrupted, ""); err != nil {
		t.Fatal(err)
	}
	d := checkTrace(t, dir)
	checkCancelled(t, d, &Result{Jobs: u.results})
	if got := u.counters().Skipped; got != 6 || len(u.fake.calls) != 0 || len(d.Spans) != 3 {
		t.Errorf("%d partitions skipped, stages %v, spans %v; want 6, none, and one span a job",
			got, u.fake.calls, d.Spans)
	}
}

// TestTraceOfPipeline records runs under random settings: the traces are valid and end with nothing
// live.
func TestTraceOfPipeline(t *testing.T) {
	parent := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		if runs++; runs > 12 { // sealing costs too much for a hundred
			return
		}
		p := drawPolicy(t)
		dir := filepath.Join(parent, fmt.Sprintf("%d.hw", runs))
		rec, err := tracer.Create(dir, tracer.Options{Manifest: trace.Manifest{Origin: trace.OriginRecorded}})
		if err != nil {
			t.Fatal(err)
		}
		u := newUnderTest(p, rapid.Uint64().Draw(t, "seed"), rec)
		if rapid.Bool().Draw(t, "some fail") {
			u.fake.fail[JobPartition{0, 0}] = trace.StageProveStart
		}
		u.runWithin(t, context.Background())
		u.checkAtRest(t)
		if err := rec.Close(trace.EndFinished, ""); err != nil {
			t.Fatal(err)
		}
		checkTrace(t, dir)
	})
}

// checkTrace fails the test on any violation of the trace in dir.
func checkTrace(t interface{ Fatalf(string, ...any) }, dir string) *trace.Data {
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatalf("open trace: %v", err)
	}
	defer tr.Close()
	violations, err := trace.Validate(tr, 10)
	if err != nil || len(violations) > 0 {
		t.Fatalf("validate %s: %v, violations %v", dir, err, violations)
	}
	data, err := tr.Load()
	if err != nil {
		t.Fatalf("load %s: %v", dir, err)
	}
	return data
}

// TestPermitReleaseBounds checks how many partitions pile up before a GPU worker that is stuck: the
// incident, and what each release point makes of it. 12 partitions, 2 permits, 1 slot, 1 GPU
// worker.
func TestPermitReleaseBounds(t *testing.T) {
	for _, c := range []struct {
		release string
		want    int64
	}{
		{"synth_end", 12},    // nothing holds them back
		{"send_accepted", 4}, // 1 at the worker, 1 in the slot, 2 that wait to send with their permits
		{"gpu_pickup", 3},    // 1 at the worker, 2 with permits
		{"freed", 2},         // 2 with permits
	} {
		t.Run(c.release, func(t *testing.T) {
			v := values(t, "jobs", "3", "partitions", "4", "permit_release", c.release)
			u := newUnderTest(policyOf(v), 1, nil)
			u.fake.gate = make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				u.run(context.Background())
			}()
			waitFor(t, func() bool { return u.count.synthesised.Load() == c.want && u.idleSynthesis(12-c.want) })
			close(u.fake.gate)
			<-done
			if got := u.count.verified.Load(); got != 12 {
				t.Fatalf("%d verified, want 12", got)
			}
		})
	}
}

// idleSynthesis says whether nobody is in synthesis and want partitions wait for a permit, so that
// nothing can change.
func (u *underTest) idleSynthesis(want int64) bool {
	u.permits.mu.Lock()
	defer u.permits.mu.Unlock()
	return u.permits.waiters.len() == want && u.fake.synthesising.Load() == 0
}

const (
	pollInterval = 200 * time.Microsecond // how often a condition is looked at
	patience     = 5 * time.Minute        // for what takes a moment on an idle machine
)

// waitFor polls until cond holds.
func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); !cond(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatal("condition did not come true")
		}
	}
}

// TestDevices: each device proves one partition at a time, a partition is staged before it has the
// lock, and what is started by one device waits for no other.
func TestDevices(t *testing.T) {
	p := policyOf(values(t, "jobs", "2", "partitions", "3", "partition_workers", "6",
		"channel_capacity", "unbounded"))
	p.devices = 3
	u := newUnderTest(p, 2, nil)
	u.fake.gate = make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.run(context.Background())
	}()
	waitFor(t, func() bool { return u.fake.starting.Load() == 3 }) // three at once
	for i, lock := range u.locks {
		lock.mu.Lock()
		if lock.held != 1 {
			t.Errorf("the lock of device %d is not held", i)
		}
		lock.mu.Unlock()
	}
	close(u.fake.gate)
	<-done
	if got := u.count.verified.Load(); got != 6 {
		t.Errorf("%d verified, want 6", got)
	}
	calls := u.fake.callsOf(JobPartition{1, 2})
	if want := []string{trace.StageStageIn, trace.StageProveStart}; !slices.Equal(calls[2:4], want) {
		t.Errorf("stages %v, want %v after synthesis", calls, want)
	}
}

// TestStageOrder checks which stages run in which order, and that b_g2 runs under the lock exactly
// without split_proving.
func TestStageOrder(t *testing.T) {
	const (
		w, s, p, e = trace.StageWitness, trace.StageSynthesis, trace.StageProveStart, "free_abc"
		g, f, d, v = trace.StageBG2, trace.StageFinalise, trace.StageDealloc, trace.StageVerify
	)
	for _, c := range []struct {
		early, split string
		want         []string
	}{
		{"true", "true", []string{w, s, p, e, g, f, d, v}},
		{"true", "false", []string{w, s, p, e, g, f, d, v}},
		{"false", "true", []string{w, s, p, g, f, d, v}},
		{"false", "false", []string{w, s, p, g, f, d, v}},
	} {
		t.Run("early_free="+c.early+" split_proving="+c.split, func(t *testing.T) {
			u := newUnderTest(policyOf(values(t, "early_free", c.early, "split_proving", c.split)), 1, nil)
			locked := map[string]bool{}
			u.fake.seen = func(stage string) {
				lock := u.locks[0]
				lock.mu.Lock()
				defer lock.mu.Unlock()
				locked[stage] = lock.held == 1
			}
			u.run(context.Background())
			if got := u.fake.callsOf(JobPartition{0, 0}); !slices.Equal(got, c.want) {
				t.Errorf("stages %v, want %v", got, c.want)
			}
			if !locked[p] || locked[g] != (c.split == "false") || locked[f] {
				t.Errorf("lock held at %v, want it at %s, and at %s only without split_proving", locked, p, g)
			}
		})
	}
}

// TestBudgetTooSmall checks that jobs whose partitions could never fit fail at once and say both
// sizes.
func TestBudgetTooSmall(t *testing.T) {
	p := policyOf(values(t, "jobs", "2", "partitions", "3"))
	p.byteBudget = 4*pageBytes - 1
	u := newUnderTest(p, 1, nil)
	u.run(context.Background())
	for _, j := range u.results {
		if j.State != JobFailed || !strings.Contains(j.Reason, fmt.Sprint(4*pageBytes)) ||
			!strings.Contains(j.Reason, fmt.Sprint(p.byteBudget)) {
			t.Errorf("job %d: %s: %s, want it failed with both sizes", j.Job, j.State, j.Reason)
		}
	}
	if len(u.fake.calls) != 0 {
		t.Errorf("stages ran: %v", u.fake.calls)
	}
}

// TestBudgetBounds checks that reserved bytes hold partitions back before synthesis.
func TestBudgetBounds(t *testing.T) {
	p := policyOf(values(t, "jobs", "1", "partitions", "6", "permit_release", "synth_end", "partition_workers", "6"))
	p.byteBudget = 9 * pageBytes // two partitions of four pages
	u := newUnderTest(p, 1, nil)
	u.fake.gate = make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		u.run(context.Background())
	}()
	budget := func() (held, waiting int64) {
		u.budget.mu.Lock()
		defer u.budget.mu.Unlock()
		return u.budget.held, u.budget.waiters.len()
	}
	waitFor(t, func() bool {
		_, waiting := budget()
		return waiting == 4 && u.count.synthesised.Load() == 2 && u.fake.synthesising.Load() == 0
	})
	if held, _ := budget(); held != 8*pageBytes {
		t.Errorf("%d bytes held, want 8 pages", held)
	}
	close(u.fake.gate)
	<-done
	if got := u.count.verified.Load(); got != 6 {
		t.Errorf("%d verified, want 6", got)
	}
}
