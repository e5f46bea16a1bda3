package analyze_test

import (
	"math"
	"slices"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

// stormRun is a made-up run of 20 s on four CPUs whose process takes 400,000 faults of 2 µs between 5 s
// and 7 s. Its stages are added by the cases.
type stormRun struct {
	d    trace.Data
	next int64
}

func newStormRun() *stormRun {
	r := &stormRun{d: trace.Data{Manifest: trace.Manifest{
		Host: trace.Host{CPUs: 4, RAMBytes: 64 << 30},
	}}}
	const faults, costS = 400_000, 2e-6
	for at := 0.0; at <= 20; at += 0.25 {
		in := math.Min(math.Max(at-5, 0), 2) / 2
		for metric, v := range map[string]float64{
			"process.paging.faults.minor": math.Floor(in * faults),
			"process.cpu.time.system":     0.01*at + in*faults*costS,
			"process.cpu.time.user":       1.0 * at,
			"process.memory.usage":        1<<30 + in*faults*4096,
		} {
			r.d.Samples = append(r.d.Samples, trace.Sample{
				TimeNS: int64(at * 1e9), Source: "main", Metric: metric, Value: v,
			})
		}
	}
	return r
}

// span adds one run of a stage; times in seconds, cpu 0 is not measured, threads 0 is not said.
func (r *stormRun) span(stage string, begin, seconds, cpu float64, threads int64) {
	r.next++
	s := trace.Span{
		Source: "main", SpanID: r.next, Kind: trace.KindStage, Stage: stage, Name: stage,
		Track: stage, Job: r.next, Partition: 0, Worker: trace.None, Device: trace.None,
		Stream: trace.Null, Threads: threads, BeginNS: int64(begin * 1e9),
		EndNS: int64((begin + seconds) * 1e9), CPUNS: trace.Null, Bytes: trace.Null, Status: "ok",
	}
	if cpu > 0 {
		s.CPUNS = int64(cpu * 1e9)
	}
	if threads == 0 {
		s.Threads = trace.Null
	}
	r.d.Spans = append(r.d.Spans, s)
}

// every calls add at 0.1 s, 0.6 s, …, and says whether that is inside the storm.
func every(add func(at float64, inside bool)) {
	for at := 0.1; at < 19; at += 0.5 {
		add(at, at >= 5 && at < 6.8)
	}
}

// trace gives the events their order.
func (r *stormRun) trace() *trace.Trace {
	type edge struct {
		at  int64
		seq *int64
	}
	var edges []edge
	for i := range r.d.Spans {
		s := &r.d.Spans[i]
		edges = append(edges, edge{s.BeginNS, &s.BeginSeq}, edge{s.EndNS, &s.EndSeq})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return int(a.at - b.at) })
	for i, e := range edges {
		*e.seq = int64(i + 1)
	}
	slices.SortFunc(r.d.Spans, func(a, b trace.Span) int { return int(a.BeginSeq - b.BeginSeq) })
	return trace.FromData(&r.d)
}

// pick is a in the storm and b outside of it.
func pick(inside bool, a, b float64) float64 {
	if inside {
		return a
	}
	return b
}

// TestStormNamesWhoLostTheTime: the stage whose threads spent what the faults cost is named; one that
// is short, or waits for a CPU in the crowd, is not, however much longer it takes.
func TestStormNamesWhoLostTheTime(t *testing.T) {
	for name, c := range map[string]struct {
		add   func(r *stormRun)
		found bool
	}{
		"synthesis spent it, as its CPU time shows": {found: true, add: func(r *stormRun) {
			every(func(at float64, in bool) {
				r.span(trace.StageSynthesis, at, 0.45, pick(in, 0.40, 0.2), 1)
			})
		}},
		"a stage of four threads that lost a quarter of it each": {found: true, add: func(r *stormRun) {
			every(func(at float64, in bool) {
				r.span(trace.StageProveStart, at, pick(in, 0.25, 0.2), 0, 4)
			})
		}},
		"how many threads is not said: all there are": {found: true, add: func(r *stormRun) {
			every(func(at float64, in bool) {
				r.span(trace.StageWitness, at, pick(in, 0.25, 0.2), 0, 0)
			})
		}},
		"a short stage lost little of what the faults cost": {add: func(r *stormRun) {
			every(func(at float64, in bool) {
				r.span(trace.StageVerify, at, pick(in, 0.030, 0.005), 0, 1)
			})
		}},
		"a stage that lost far more than the faults cost": {add: func(r *stormRun) {
			every(func(at float64, in bool) {
				r.span(trace.StageBG2, at, pick(in, 0.45, 0.15), 0, 4)
			})
		}},
		"a stage in a crowd, which is as slow in the same crowd elsewhere": {add: func(r *stormRun) {
			every(func(at float64, in bool) {
				crowd := in || at > 10 && at < 14
				if crowd {
					r.span(trace.StageProveStart, at-0.001, 0.3, 0, 4)
				}
				r.span(trace.StageFinalise, at, pick(crowd, 0.25, 0.05), 0, 1)
			})
		}},
		"a stage that has no company elsewhere": {add: func(r *stormRun) {
			every(func(at float64, in bool) {
				if in {
					r.span(trace.StageProveStart, at-0.001, 0.3, 0, 4)
				}
				r.span(trace.StageFinalise, at, pick(in, 0.25, 0.05), 0, 1)
			})
		}},
		"nobody was slower": {add: func(r *stormRun) {
			every(func(at float64, _ bool) { r.span(trace.StageSynthesis, at, 0.45, 0.2, 1) })
		}},
	} {
		r := newStormRun()
		c.add(r)
		found, s := only(t, r.trace(), "page-fault-storm")
		if s.Status == analyze.StatusNotApplicable || (len(found) > 0) != c.found {
			t.Errorf("%s: %+v, findings %+v; want found %v", name, s, found, c.found)
		}
		if c.found && len(found) > 0 {
			if got := number(t, found[0], "lost_of_fault_cpu_ratio"); got < 0.5 || got > 1.5 {
				t.Errorf("%s: %v of the faults' CPU time was lost, want about all of it", name, got)
			}
		}
	}
}
