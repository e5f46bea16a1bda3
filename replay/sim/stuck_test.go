package sim_test

import (
	"errors"
	"strings"
	"testing"

	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// stops runs m and wants it to stop with an explanation that has all parts.
func stops(t *testing.T, m *pipeline.Model, parts ...string) {
	t.Helper()
	s, err := sim.New(m)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(sim.Draw{})
	var dead *sim.DeadlockError
	if !errors.As(err, &dead) {
		t.Fatalf("got %v, want a deadlock", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

// TestHoldAndWaitIsExplained: two jobs' partitions hold bytes of the budget and wait for a lock
// whose
// holder waits for bytes: cuzk's multi-sector path reserved its working memory before the SRS.
func TestHoldAndWaitIsExplained(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions, m.Policy.PartitionWorkers = 2, 1, 2
	m.Policy.ByteBudget = 9 << 20 // two partitions fit, the object and one do not
	m.Cached = []pipeline.Cached{{
		Class: trace.ClassSRS, Space: trace.SpacePinned, Bytes: 6 << 20, Budgeted: true, LoadNS: 1e6,
	}}
	stops(t, m, "wait for the byte budget", "of 9.00 MiB, 6.00 MiB reserved, 4.00 MiB asked for",
		"held by cached objects (6.00 MiB)", "first job 0 partition 0")
}

// TestAWaitForALockIsExplained: a lock that is never given back stops the pipeline.
func TestAWaitForALockIsExplained(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions = 1, 4
	m.Locks = []pipeline.Lock{
		{Name: "tracker", Capacity: 1, From: trace.StageBG2, To: trace.StageFinalise},
		{Name: "dealloc", Capacity: 1, From: trace.StageFinalise, To: trace.StageFinalise},
	}
	s, err := sim.New(m)
	if err != nil {
		t.Fatal(err)
	}
	sim.BreakLocks(s)
	_, err = s.Run(sim.Draw{})
	var dead *sim.DeadlockError
	if !errors.As(err, &dead) || !strings.Contains(err.Error(), "a lock of the model (tracker)") {
		t.Errorf("got %v, want a deadlock on the lock tracker", err)
	}
}

// TestStarvationIsFound: with the budget given to whoever wakes first, small requests pass a large
// one again and again.
func TestStarvationIsFound(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions, m.Policy.PartitionWorkers = 8, 4, 32
	m.Policy.ByteBudget = 9 << 20
	m.Admission.BudgetOrder = pipeline.BudgetRace
	m.Partitions[0].ReserveBytes = 9 << 20 // only alone
	st := run(t, m, sim.Draw{Seed: 1})
	w := st.Starved
	if w.Overtaken < 10 || w.WaitNS <= 0 || !strings.HasPrefix(w.Who, "job ") ||
		!strings.Contains(w.For, "byte budget") {
		t.Errorf("starved: %+v", w)
	}
	m.Admission.BudgetOrder = pipeline.BudgetFIFO
	if st := run(t, m, sim.Draw{Seed: 1}); st.Starved.Overtaken != 0 {
		t.Errorf("by arrival nobody is overtaken: %+v", st.Starved)
	}
}

func TestEvictionMakesRoom(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions = 1, 4
	m.Policy.ByteBudget = 10 << 20
	m.Cached = []pipeline.Cached{{
		Class: trace.ClassSRS, Space: trace.SpacePinned, Bytes: 7 << 20, Budgeted: true, Preloaded: true,
		Evictable: true, LoadNS: 1e6,
	}}
	stops(t, m, "held by cached objects (7.00 MiB)") // the job uses it while it needs bytes
	m.Cached[0].Bytes = 5 << 20
	if st := run(t, m, sim.Draw{}); st.Evictions != 0 || st.JobsDone != 1 {
		t.Errorf("%d evictions of what the job uses", st.Evictions)
	}
	// Every second job is of another circuit: while the third needs it, it is there again.
	m.Policy.Jobs, m.Policy.JobsInFlight = 3, 1
	m.Cached[0].Every = 2
	st := run(t, m, sim.Draw{})
	if st.Evictions != 1 || st.JobsDone != 3 || st.QueueMax.BudgetBytes > 10<<20 {
		t.Errorf("%d evictions, want that of the second job; %d jobs done, %d bytes reserved",
			st.Evictions, st.JobsDone, st.QueueMax.BudgetBytes)
	}
	data, _, err := sim.Record(m, sim.Draw{})
	if err != nil {
		t.Fatal(err)
	}
	broken, err := trace.Validate(trace.FromData(data), 3)
	if err != nil || len(broken) > 0 {
		t.Errorf("the trace of an eviction: %v %v", broken, err)
	}
	m.Cached[0].IdleNS = 1e18
	if st := run(t, m, sim.Draw{}); st.Evictions != 0 {
		t.Errorf("%d evictions of what has not been idle for long enough", st.Evictions)
	}
}

func TestPoolKeepsWhatIsFreed(t *testing.T) {
	m := pipeline.Example()
	m.Pools = []pipeline.Pool{{
		Class: trace.ClassPinnedPool, Space: trace.SpacePinned,
		Classes: []string{trace.ClassB, trace.ClassC},
	}}
	st := run(t, m, sim.Draw{})
	if kept := st.FinalLiveBytes - 28<<20; kept < 2<<20 {
		t.Errorf("the pool keeps %d bytes at the end, a partition alone needs 2 MiB of it", kept)
	}
}

func TestLimitIsPassedWhenThePeakPassesIt(t *testing.T) {
	m := pipeline.Example()
	st := run(t, m, sim.Draw{})
	peak := st.PeakRSSBytes(&m.Memory)
	if at := run(t, m, sim.Draw{LimitBytes: peak}).OverLimitNS; at != -1 {
		t.Errorf("the peak itself is not above the limit, but was passed at %v", at)
	}
	over := run(t, m, sim.Draw{LimitBytes: peak - 1}).OverLimitNS
	if over <= 0 || over > st.MakespanNS {
		t.Errorf("one byte below the peak is passed at %v of %v", over, st.MakespanNS)
	}
}

func TestPacerHoldsTheQueue(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.PermitRelease = 10, pipeline.ReleaseSynthEnd
	free := run(t, m, sim.Draw{})
	m.Pacer = pipeline.Pacer{Target: 3, IntervalMinNS: 1e6, BootstrapNS: 50e6, RebootstrapNS: 50e6}
	paced := run(t, m, sim.Draw{})
	if paced.QueueMax.Backlog > 8 || free.QueueMax.Backlog < 25 {
		t.Errorf("backlog %d with the pacer at 3, %d without", paced.QueueMax.Backlog,
			free.QueueMax.Backlog)
	}
	if paced.MakespanNS > 1.25*free.MakespanNS {
		t.Errorf("makespan %v with the pacer, %v without", paced.MakespanNS, free.MakespanNS)
	}
}

func TestUncertaintyIsDrawnOnceADraw(t *testing.T) {
	m := pipeline.Example()
	for i := range m.Stages {
		m.Stages[i].Uncertainty = 0.1
	}
	m.Machine.CPUs = 0
	m.Memory.Uncertainty = 0.05
	a := run(t, m, sim.Draw{Seed: 1, Bootstrap: true})
	b := run(t, m, sim.Draw{Seed: 2, Bootstrap: true})
	if a.RSSFactor == b.RSSFactor || a.RSSFactor == 1 || a.MakespanNS == b.MakespanNS {
		t.Errorf("two draws have the errors %v and %v", a.RSSFactor, b.RSSFactor)
	}
	if st := run(t, m, sim.Draw{Seed: 1}); st.RSSFactor != 1 {
		t.Errorf("without bootstrap the law errs by %v", st.RSSFactor)
	}
	longer := *m
	longer.Policy.Jobs *= 2
	if c := run(t, &longer, sim.Draw{Seed: 1, Bootstrap: true}); c.RSSFactor != a.RSSFactor {
		t.Errorf("a longer run of the same draw has another error: %v, %v", c.RSSFactor, a.RSSFactor)
	}
}

// TestABackgroundLoadIsKeptOnce: three jobs find the object missing and load it at the same time;
// nobody waits for it, one load is kept and the others are dropped.
func TestABackgroundLoadIsKeptOnce(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions = 3, 2
	without := run(t, m, sim.Draw{})
	m.Cached = []pipeline.Cached{{
		Class: trace.ClassPCE, Space: trace.SpaceHost, Bytes: 64 << 20, LoadNS: 1e6, Background: true,
	}}
	with := run(t, m, sim.Draw{})
	if with.MakespanNS != without.MakespanNS {
		t.Errorf("makespan %v with a load in the background, %v without", with.MakespanNS,
			without.MakespanNS)
	}
	if got := with.FinalLiveBytes - without.FinalLiveBytes; got != 64<<20 {
		t.Errorf("%d bytes more at the end, want one object", got)
	}
	if with.PeakLiveBytes < 3*64<<20 {
		t.Errorf("peak %d: three jobs load at once", with.PeakLiveBytes)
	}
	m.Policy.JobsInFlight = 1 // the later jobs find it
	if got := run(t, m, sim.Draw{}).PeakLiveBytes; got >= 2*64<<20 {
		t.Errorf("peak %d: jobs after each other load one object", got)
	}
}

// TestABackgroundLoadTakesOnlyWhatIsFree: it looks for bytes each poll_ns, passes nobody's bytes, and
// where it holds what partitions wait for the run stops and says so (cuzk.md 6, pathology 21).
func TestABackgroundLoadTakesOnlyWhatIsFree(t *testing.T) {
	m := pipeline.Example()
	m.Policy.Jobs, m.Policy.Partitions, m.Policy.PartitionWorkers = 1, 4, 4
	m.Policy.ByteBudget = 16 << 20 // four partitions
	m.Cached = []pipeline.Cached{{
		Class: trace.ClassPCE, Space: trace.SpaceHost, Bytes: 6 << 20, LoadNS: 1e6, Background: true,
		Budgeted: true, LoadReserveBytes: 4 << 20, PollNS: 0.7e6, SaveNS: 2e6,
	}}
	data, st, err := sim.Record(m, sim.Draw{})
	if err != nil || st.JobsDone != 1 {
		t.Fatalf("%d jobs done: %v", st.JobsDone, err)
	}
	broken, err := trace.Validate(trace.FromData(data), 3)
	if err != nil || len(broken) > 0 {
		t.Errorf("the trace of a background load: %v %v", broken, err)
	}
	left := int64(0)
	for _, q := range data.Queues {
		if q.Resource == "budget" {
			left = q.LevelAfter
		}
	}
	if left != 6<<20 {
		t.Errorf("%d bytes stay reserved, want the object's", left)
	}
	m.Policy.ByteBudget = 7 << 20 // a load and a partition do not fit
	stops(t, m, "wait for the byte budget", "held by the load of pce for job 0 (4.00 MiB reserved)",
		"1 wait for bytes of the byte budget, in the background (6.00 MiB of 7.00 MiB, 4.00 MiB reserved)")
}
