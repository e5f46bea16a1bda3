package analyze_test

import (
	"fmt"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

// leakText is a trace in text form: jobs one after another, each of which allocates a (freed) and,
// by left, what stays when it ends.
func leakText(jobs int, left func(job int) int64) *trace.Trace {
	return leakTrace(jobs, left, func(int) int64 { return 64 << 20 }, false)
}

func leakTrace(jobs int, left, demand func(job int) int64, pool bool) *trace.Trace {
	var b strings.Builder
	now, id := 0, 10
	line := func(format string, args ...any) {
		now += 1000
		fmt.Fprintf(&b, "@%d %s\n", now, fmt.Sprintf(format, args...))
	}
	b.WriteString("process_end finished\nsource main\nresource job kind=job unit=job\n")
	var pooled int64
	if pool {
		line("buffer alloc 1 class=pool capacity_bytes=%d", 1)
		pooled = 1
	}
	for j := range jobs {
		line("queue request job job=%d", j)
		line("queue acquire job job=%d", j)
		id++
		line("buffer alloc %d class=a capacity_bytes=%d job=%d partition=0 stage=synthesis", id,
			demand(j), j)
		if n := left(j); n > 0 && pool {
			pooled += n
			line("buffer resize 1 capacity_bytes=%d", pooled)
		} else if n > 0 {
			line("buffer alloc %d class=c capacity_bytes=%d job=%d partition=0 stage=b_g2", id+1000, n,
				j)
		}
		line("queue release job job=%d", j)
		line("buffer free %d", id) // a little after the job's end
	}
	d, err := trace.ParseText(b.String())
	if err != nil {
		panic(err)
	}
	return trace.FromData(d)
}

func TestLeakNamesClassAndStage(t *testing.T) {
	const each = 8 << 20
	found, _ := only(t, leakText(20, func(int) int64 { return each }), "leak")
	if len(found) != 1 {
		t.Fatalf("findings %v, want one", found)
	}
	f := found[0]
	if f.Severity != analyze.Error || !strings.Contains(f.Sentence, "class c, allocated in b_g2") {
		t.Errorf("%s: %q", f.Severity, f.Sentence)
	}
	if got := number(t, f, "growth_per_job_bytes"); got < 0.9*each || got > 1.1*each {
		t.Errorf("growth of %v a job, want %v", got, each)
	}
	if got := number(t, f, "completed_jobs"); got != 20 {
		t.Errorf("%v completed jobs, want 20", got)
	}
}

func TestLeakLeavesCapacityAlone(t *testing.T) {
	steady := func(int) int64 { return 64 << 20 }
	for name, tr := range map[string]*trace.Trace{
		"nothing stays": leakText(20, func(int) int64 { return 0 }),
		"warm-up": leakText(24, func(j int) int64 {
			return int64(max(0, 5-j)) << 20 // the first five jobs
		}),
		"a cache that fills": leakText(24, func(j int) int64 {
			return (32 << 20) >> j
		}),
		"bookkeeping": leakText(24, func(int) int64 { return 1 << 10 }),
		"a pool that follows demand": leakTrace(24,
			func(j int) int64 {
				if j%3 == 0 {
					return 4 << 20
				}
				return 0
			},
			func(j int) int64 { return int64(64+j/3*4+2*boolInt(j%3 == 0)) << 20 }, true),
		"a pool at its size": leakTrace(20, func(j int) int64 { return int64(boolInt(j == 0)) << 24 },
			steady, true),
	} {
		t.Run(name, func(t *testing.T) {
			found, s := only(t, tr, "leak")
			if len(found) != 0 || s.Status != analyze.StatusClean {
				t.Errorf("%+v: %v, want clean", s, found)
			}
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestLeakNeedsJobs(t *testing.T) {
	found, s := only(t, leakText(5, func(int) int64 { return 8 << 20 }), "leak")
	if len(found) != 0 || s.Status != analyze.StatusNotApplicable ||
		!strings.Contains(s.Why, "5 jobs completed") {
		t.Errorf("%+v %v, want not applicable", s, found)
	}
}

// TestLeakOfLongRun: too many floors are joined in pairs, and the growth a job stays.
func TestLeakOfLongRun(t *testing.T) {
	const each = 1 << 20
	found, _ := only(t, leakText(9000, func(int) int64 { return each }), "leak")
	if len(found) != 1 {
		t.Fatalf("findings %v, want one", found)
	}
	if got := number(t, found[0], "growth_per_job_bytes"); got < 0.9*each || got > 1.1*each {
		t.Errorf("growth of %v a job, want %v", got, each)
	}
}
