package analyze_test

import (
	"fmt"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

// TestArenaHighWater is shared/cases D05: a daemon's RSS over 90 minutes, without any buffer event.
// Retention is likely, and a leak is not proven by four points.
func TestArenaHighWater(t *testing.T) {
	rss := func(points ...float64) *trace.Trace {
		text := "source main\nmetric process.memory.usage unit=By kind=gauge\n"
		for i, gb := range points {
			minutes := []int64{65, 125, 131, 155}[i]
			text += fmt.Sprintf("@%d sample process.memory.usage %.0f\n", minutes*60e9, gb*1e9)
		}
		return parse(t, text)
	}
	found, s := only(t, rss(6.8, 8.5, 8.3, 8.9), "allocator-retention")
	if len(found) != 1 {
		t.Fatalf("%+v: findings %v, want one", s, found)
	}
	f := found[0]
	if f.Check != "rss_high_water" || f.Severity != analyze.Warning ||
		!strings.Contains(f.Sentence, "a leak is not proven by 4 samples") ||
		!strings.Contains(f.Remedy, "MALLOC_ARENA_MAX") {
		t.Errorf("%s %s: %q, remedy %q", f.Check, f.Severity, f.Sentence, f.Remedy)
	}
	for name, want := range map[string]float64{
		"samples": 4, "falls": 1, "growth_bytes": 2.1e9, "span_ns": 90 * 60e9,
	} {
		if got := number(t, f, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if number(t, f, "first_third_growth_bytes") <= number(t, f, "last_third_growth_bytes") {
		t.Errorf("numbers %v: want more growth in the first third than in the last", f.Evidence.Numbers)
	}

	found, _ = only(t, rss(4, 6.2, 6.5, 8), "allocator-retention")
	if len(found) != 1 || found[0].Check != "rss_growth" {
		t.Errorf("steady growth: %v, want rss_growth", found)
	}
	if found, _ = only(t, rss(8.5, 8.6, 8.4, 8.5), "allocator-retention"); len(found) != 0 {
		t.Errorf("steady RSS: %v, want nothing", found)
	}
	if _, s := only(t, rss(6.8, 8.5, 8.3, 8.9), "leak"); s.Status != analyze.StatusNotApplicable {
		t.Errorf("leak is %s, want not applicable without buffers", s.Status)
	}
}

// TestLockConvoy: with four workers behind one lock three wait; with two, one is by design.
func TestLockConvoy(t *testing.T) {
	run := func(workers int) *trace.Trace {
		var b strings.Builder
		b.WriteString("source main\nresource gpu_lock/0 kind=lock unit=permit capacity=1\n")
		now := 0
		event := func(event string, partition int) {
			now++
			fmt.Fprintf(&b, "@%d queue %s gpu_lock/0 job=0 partition=%d\n", now, event, partition)
		}
		for i := range workers {
			event(trace.EventRequest, i)
		}
		for i := range 20 {
			event(trace.EventAcquire, i)
			now += 1000
			event(trace.EventRelease, i)
			event(trace.EventRequest, i+workers)
		}
		return parse(t, b.String())
	}
	found, _ := only(t, run(4), "lock-convoy")
	if len(found) != 1 {
		t.Fatalf("findings %v, want one", found)
	}
	if got := number(t, found[0], "mean_waiting_workers"); got < 2.9 || got > 3.1 {
		t.Errorf("%v workers wait in the mean, want 3", got)
	}
	if got := number(t, found[0], "max_waiting_workers"); got != 4 {
		t.Errorf("%v workers wait at most, want 4", got)
	}
	if found, s := only(t, run(2), "lock-convoy"); len(found) != 0 ||
		s.Status != analyze.StatusClean {
		t.Errorf("two workers: %+v %v, want clean", s, found)
	}
}

// TestHiddenLimit: a limit counts when it was hit or nearly so, not because it is there.
func TestHiddenLimit(t *testing.T) {
	run := func(limit, usage int64, ooms int) *trace.Trace {
		d := &trace.Data{Manifest: trace.Manifest{
			Host:   trace.Host{CPUs: 4, RAMBytes: 100 << 30},
			Memory: trace.MemoryLimit{EffectiveBytes: limit, Kind: "cgroup", Path: "/pod"},
		}}
		for i := range int64(3) {
			for metric, v := range map[string]float64{
				"container.memory.usage":       float64(usage),
				"container.memory.events.oom":  float64(int64(ooms) * i),
				"container.cpu.throttled.time": 0,
			} {
				d.Samples = append(d.Samples, trace.Sample{
					TimeNS: i * 1e9, Source: "main", Metric: metric, Value: v,
				})
			}
		}
		return trace.FromData(d)
	}
	for name, c := range map[string]struct {
		tr   *trace.Trace
		want analyze.Severity
	}{
		"far below":         {run(64<<30, 20<<30, 0), ""},
		"near":              {run(64<<30, 58<<30, 0), analyze.Warning},
		"at it":             {run(64<<30, 63<<30, 0), analyze.Error},
		"hit":               {run(64<<30, 20<<30, 1), analyze.Error},
		"as large as RAM":   {run(100<<30, 99<<30, 0), ""},
		"larger than a RAM": {run(200<<30, 99<<30, 0), ""},
	} {
		found, s := only(t, c.tr, "hidden-limit")
		var got analyze.Severity
		if len(found) > 0 {
			got = found[0].Severity
		}
		if got != c.want || len(found) > 1 || s.Status == analyze.StatusNotApplicable {
			t.Errorf("%s: %+v %v, want %q", name, s, found, c.want)
		}
	}
}

// hiddenRun is a run of 3 s on a machine of 100 GiB, with metrics that rise evenly to the given values.
func hiddenRun(limit trace.MemoryLimit, from, to map[string]float64) *trace.Trace {
	d := &trace.Data{Manifest: trace.Manifest{
		Host: trace.Host{CPUs: 4, RAMBytes: 100 << 30}, Memory: limit,
		PeakRSS: &trace.PeakRSS{Bytes: 48 << 30, Source: "vmhwm"},
		Resources: []trace.Resource{
			{Name: "job", Kind: trace.ResourceJob, Unit: "job", Device: trace.None},
		},
	}}
	for i, event := range []string{trace.EventRequest, trace.EventAcquire, trace.EventRelease} {
		d.Queues = append(d.Queues, trace.QueueEvent{
			Seq: int64(i + 1), TimeNS: int64(i) * 1e9, Source: "main", Resource: "job", Event: event,
			Partition: trace.None, Worker: trace.None, Amount: 1,
		})
	}
	for i := range int64(4) {
		for metric, v := range to {
			d.Samples = append(d.Samples, trace.Sample{
				TimeNS: i * 1e9, Source: "main", Metric: metric,
				Value: from[metric] + float64(i)/3*(v-from[metric]),
			})
		}
	}
	return trace.FromData(d)
}

// TestHiddenLimitKinds: each kind of bound is compared with what counts against it, and what the trace
// does not tell of is said.
func TestHiddenLimitKinds(t *testing.T) {
	const gib = 1 << 30
	nodes := func(bytes int64) *trace.MemoryNodes {
		return &trace.MemoryNodes{Present: "0-1", Allowed: "1", AllowedBytes: bytes, SetBy: "cpuset"}
	}
	all := &trace.MemoryNodes{Present: "0-1", Allowed: "0-1", AllowedBytes: 100 * gib}
	one := func(name string, v float64) map[string]float64 { return map[string]float64{name: v} }
	for name, c := range map[string]struct {
		limit         trace.MemoryLimit
		from, to      map[string]float64
		check, says   string
		notSeen, none string
	}{
		"nodes of a cpuset": {
			limit: trace.MemoryLimit{EffectiveBytes: 40 * gib, Kind: "mem_available", Nodes: nodes(50 * gib)},
			check: "memory", says: "50.0 GiB (NUMA nodes 1, by a cpuset)",
		},
		"far from the nodes' memory": {limit: trace.MemoryLimit{Nodes: nodes(90 * gib)}},
		"nodes whose memory is not known": {
			limit:   trace.MemoryLimit{EffectiveBytes: 64 * gib, Kind: "cgroup", Nodes: nodes(0)},
			notSeen: "how much memory NUMA nodes 1 have",
		},
		"nodes not recorded": {
			limit:   trace.MemoryLimit{EffectiveBytes: 64 * gib, Kind: "cgroup", Path: "/pod"},
			notSeen: "from which NUMA nodes",
		},
		"address space": {
			limit: trace.MemoryLimit{EffectiveBytes: 80 * gib, Kind: "rlimit", Path: "RLIMIT_AS", Nodes: all},
			to:    one("process.memory.virtual", 79*gib), check: "memory", says: "Address space reached 79.0 GiB",
		},
		"a cgroup's OOM events are none of an rlimit's": {
			limit: trace.MemoryLimit{EffectiveBytes: 80 * gib, Kind: "rlimit", Path: "RLIMIT_DATA", Nodes: all},
			to:    one("container.memory.events.oom", 3),
		},
		"charge of the ancestor that limits": {
			limit: trace.MemoryLimit{EffectiveBytes: 64 * gib, Kind: "cgroup", Path: "/pod", Nodes: all},
			to:    one("container.memory.limiter.usage", 63*gib), check: "memory", says: "charge reached 63.0 GiB",
		},
		"a peak from before the run": {
			limit: trace.MemoryLimit{EffectiveBytes: 64 * gib, Kind: "cgroup", Path: "/pod", Nodes: all},
			from:  one("container.memory.peak", 63*gib), to: one("container.memory.peak", 63*gib),
		},
		"a peak of the run": {
			limit: trace.MemoryLimit{EffectiveBytes: 64 * gib, Kind: "cgroup", Path: "/pod", Nodes: all},
			from:  one("container.memory.peak", 9*gib), to: one("container.memory.peak", 63*gib),
			check: "memory", says: "charge reached 63.0 GiB",
		},
		"memory.high": {
			limit: trace.MemoryLimit{Nodes: all}, to: one("container.memory.events.high", 12),
			check: "memory_high", says: "throttled 12 times",
		},
		"memory.high not met": {
			limit: trace.MemoryLimit{Nodes: all}, to: one("container.memory.events.high", 0),
		},
		"nothing is known": {none: "neither a limit of a cgroup, rlimit or NUMA nodes"},
	} {
		found, s := only(t, hiddenRun(c.limit, c.from, c.to), "hidden-limit")
		if c.none != "" {
			if s.Status != analyze.StatusNotApplicable || !strings.Contains(s.Why, c.none) {
				t.Errorf("%s: %+v, want not applicable: %q", name, s, c.none)
			}
			continue
		}
		if (c.check == "") != (len(found) == 0) || len(found) > 1 ||
			len(found) == 1 && (found[0].Check != c.check || !strings.Contains(found[0].Sentence, c.says)) {
			t.Errorf("%s: %+v, want %q with %q", name, found, c.check, c.says)
		}
		if s.Status == analyze.StatusNotApplicable || (c.notSeen == "") != (s.Why == "") ||
			!strings.Contains(s.Why, c.notSeen) {
			t.Errorf("%s: status %+v, want %q not seen", name, s, c.notSeen)
		}
	}
}

// TestMeasurementArtefact: RSS read when the work is over is no peak.
func TestMeasurementArtefact(t *testing.T) {
	text := "source main\nresource job kind=job unit=job\n@1 queue request job job=0\n" +
		"@2 queue acquire job job=0\n" +
		"@10 buffer alloc 1 class=a capacity_bytes=1073741824 job=0 partition=0\n"
	during := "@20 sample process.memory.usage 1173741824\n"
	after := "@30 buffer free 1\n@40 queue release job job=0\n" +
		"@50 sample process.memory.usage 9999999\n"
	found, _ := only(t, parse(t, text+after), "measurement-artefact")
	if len(found) == 0 || found[0].Check != "after_the_run" || found[0].Severity != analyze.Error {
		t.Errorf("read after the run: %v", found)
	}
	found, _ = only(t, parse(t, text+during+after), "measurement-artefact")
	if len(found) != 1 || found[0].Check != "too_few_samples" {
		t.Errorf("one sample while busy: %v, want too few", found)
	}
}

// TestSilentOnNonsense: counters that fall, run backwards or are no numbers name no cause.
func TestSilentOnNonsense(t *testing.T) {
	text := "source main\n"
	for i := range 50 {
		text += fmt.Sprintf("@%d sample process.paging.faults.minor %d\n", i, 50-i)
		text += fmt.Sprintf("@%d sample process.cpu.time.system NaN\n", i)
		text += fmt.Sprintf("@%d sample process.cpu.time.user -1\n", i)
		text += fmt.Sprintf("@%d sample process.memory.usage %d\n", i, i)
	}
	found, _ := only(t, parse(t, text), "page-fault-storm")
	if len(found) != 0 {
		t.Errorf("findings %v", found)
	}
}

// TestUnevenDevices: all partitions on the first of two devices, whoever proved them.
func TestUnevenDevices(t *testing.T) {
	run := func(device func(i int) int) *trace.Trace {
		var b strings.Builder
		b.WriteString("source main\nresource gpu_lock/0 kind=lock unit=permit capacity=1 device=0\n" +
			"resource gpu_lock/1 kind=lock unit=permit capacity=1 device=1\n")
		for i := range 12 {
			fmt.Fprintf(&b, "@%d span begin %d stage=prove_start job=0 partition=%d device=%d\n",
				1000*i+1, i+1, i, device(i))
			fmt.Fprintf(&b, "@%d span end %d status=ok\n", 1000*i+900, i+1)
		}
		return parse(t, b.String())
	}
	found, s := only(t, run(func(int) int { return 0 }), "gpu-starvation")
	if len(found) != 1 || found[0].Check != "uneven_devices" ||
		!strings.HasPrefix(found[0].Sentence, "Device 1 got 0 ns") {
		t.Errorf("%+v %v, want device 1 idle", s, found)
	}
	if found, _ := only(t, run(func(i int) int { return i % 2 }), "gpu-starvation"); len(found) > 0 {
		t.Errorf("evenly spread: %v", found)
	}
}
