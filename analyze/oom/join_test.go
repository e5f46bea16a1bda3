package oom

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"highwater/tracer/trace"
)

// recorded is a real run in which partitions piled up (replay/testdata).
func recorded(t *testing.T) *trace.Data {
	t.Helper()
	tr, err := trace.Open("../../replay/testdata/pile-15")
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	d, err := tr.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// killedAt is the run as a kill at ns would have left it.
func killedAt(d *trace.Data, ns int64) *trace.Data {
	cut := *d
	cut.Manifest.ProcessEnd, cut.Manifest.SealedBy = "killed", "recover"
	cut.Manifest.PeakRSS = nil
	cut.Buffers = slices.DeleteFunc(slices.Clone(d.Buffers),
		func(b trace.BufferEvent) bool { return b.TimeNS > ns })
	cut.Queues = slices.DeleteFunc(slices.Clone(d.Queues),
		func(q trace.QueueEvent) bool { return q.TimeNS > ns })
	cut.Samples = slices.DeleteFunc(slices.Clone(d.Samples),
		func(s trace.Sample) bool { return s.TimeNS > ns })
	cut.Spans = slices.DeleteFunc(slices.Clone(d.Spans),
		func(s trace.Span) bool { return s.BeginNS > ns })
	for i := range cut.Spans {
		if s := &cut.Spans[i]; s.EndNS > ns {
			s.EndNS, s.EndSeq = trace.Null, trace.Null
		}
	}
	return &cut
}

const rssKB = 130000

// report is a kernel's report of the run's kill, ns after its anchor.
func reportAt(t *testing.T, m *trace.Manifest, pid int, ns int64) *Report {
	at := m.Anchor.MonotonicNS + ns
	return readText(t, fmt.Sprintf("[%d.%06d] memory: usage 131072kB, limit 131072kB, failcnt 12\n"+
		"[%d.%06d] Memory cgroup out of memory: Killed process %d (highwater) "+
		"total-vm:9923620kB, anon-rss:%dkB, file-rss:0kB, shmem-rss:0kB\n",
		at/1e9, at%1e9/1e3, at/1e9, at%1e9/1e3, pid, rssKB))
}

// liveAt is the host bytes alive after the last event up to ns.
func liveAt(d *trace.Data, ns int64) (live, resident int64) {
	for _, b := range d.Buffers {
		if b.TimeNS <= ns && b.ParentID == 0 && b.Space != trace.SpaceDevice {
			live += b.DeltaBytes
			resident += b.DeltaResidentBytes
		}
	}
	return live, resident
}

func TestExplainAKilledRun(t *testing.T) {
	d := recorded(t)
	const kill = 700e6
	pid := d.Manifest.Sources[0].PID
	live, resident := liveAt(d, kill)
	for _, c := range []struct {
		name  string
		run   *trace.Data
		at    string
		words string
	}{
		{"cut by the kill", killedAt(d, kill), AtEnd, "at the end of the run, "},
		{"time in the report", d, AtKill, "at the time of the kill, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reportAt(t, &d.Manifest, pid, kill)
			if err := Explain(trace.FromData(c.run), r); err != nil {
				t.Fatal(err)
			}
			j := r.Join
			if j.Matches == nil || !*j.Matches || j.Event == nil || *j.Event != 0 || j.At != c.at {
				t.Errorf("matches %v, event %v, at %q: %v", j.Matches, j.Event, j.At, j.Warnings)
			}
			wantInt(t, "held_bytes", j.HeldBytes, live)
			wantInt(t, "resident_bytes", j.ResidentBytes, resident)
			wantInt(t, "victim_rss_bytes", j.VictimRSSBytes, rssKB<<10)
			wantInt(t, "unattributed_bytes", j.UnattributedBytes, rssKB<<10-resident)
			wantInt(t, "limit_bytes", j.LimitBytes, 128<<20)
			checkSums(t, j, live)
			if text := j.held(); !strings.Contains(text, c.words) {
				t.Errorf("printed %q, want %q in it", text, c.words)
			}
			if j.Finding == nil || j.Finding.ID != "queue-pileup" {
				t.Errorf("finding %+v, want queue-pileup", j.Finding)
			}
		})
	}
}

// checkSums: the parts add up to the whole.
func checkSums(t *testing.T, j *Join, live int64) {
	t.Helper()
	var classes, stages, places, waiting int64
	for _, h := range j.ByClass {
		classes += h.Bytes
	}
	for _, h := range j.ByStage {
		stages += h.Bytes
	}
	for _, p := range j.ByPlace {
		places += p.Bytes
		waiting += p.Partitions
	}
	if classes != live || stages != live || places != live || waiting == 0 {
		t.Errorf("by class %d, by stage %d, by place %d (%d partitions) of %d", classes, stages,
			places, waiting, live)
	}
}

func TestExplainWarns(t *testing.T) {
	d := recorded(t)
	pid := d.Manifest.Sources[0].PID
	for _, c := range []struct {
		name string
		run  *trace.Data
		pid  int
		ns   int64
		want string
	}{
		{"another process", killedAt(d, 7e8), pid + 1, 7e8, "is not a process of the trace"},
		{"another day", killedAt(d, 7e8), pid, 86400e9, "probably another run"},
		{"before the run", killedAt(d, 7e8), pid, -60e9, "from the trace's start"},
		{"a run that ended well", d, pid, 86400e9, "does not end with a kill"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := reportAt(t, &d.Manifest, c.pid, c.ns)
			if err := Explain(trace.FromData(c.run), r); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(r.Join.Warnings, "\n"), c.want) {
				t.Errorf("warnings %q do not say %q", r.Join.Warnings, c.want)
			}
			if c.pid != pid && r.Join.UnattributedBytes != nil {
				t.Error("a remainder is taken against another process")
			}
		})
	}
	live := trace.FromData(killedAt(d, 7e8))
	live.Live, live.Dir, live.Manifest.ProcessEnd, live.Manifest.SealedBy = true, "run.hw", "", ""
	r := reportAt(t, &d.Manifest, pid, 7e8)
	if err := Explain(live, r); err != nil {
		t.Fatal(err)
	}
	if !r.Join.Live || !strings.Contains(r.Join.Warnings[0], "highwater recover run.hw") ||
		r.Join.At != AtEnd {
		t.Errorf("of a run not recovered: live %v, at %q, warnings %q", r.Join.Live, r.Join.At,
			r.Join.Warnings)
	}
}

func TestExplainWithoutAnEvent(t *testing.T) {
	d := recorded(t)
	r := readText(t, "nothing here\n")
	if err := Explain(trace.FromData(killedAt(d, 7e8)), r); err != nil {
		t.Fatal(err)
	}
	if r.Join.Event != nil || r.Join.HeldBytes == nil ||
		*r.Join.LimitBytes != d.Manifest.Memory.EffectiveBytes {
		t.Errorf("join %+v", r.Join)
	}
}

func TestCandidates(t *testing.T) {
	d := recorded(t)
	j := &Join{Finding: &Finding{WhatIf: map[string]string{"early_free": "false"}}}
	got := fmt.Sprint(j.Candidates(&d.Manifest))
	want := "[map[early_free:false] map[permit_release:send_accepted] map[partition_workers:1 " +
		"permit_release:send_accepted]]"
	if got != want {
		t.Errorf("candidates %s, want %s", got, want)
	}
	d.Manifest.Settings["permit_release"] = trace.Setting{Value: "send_accepted"}
	d.Manifest.Settings["partition_workers"] = trace.Setting{Value: "12"}
	j.Finding = nil
	var workers []string
	for _, set := range j.Candidates(&d.Manifest) {
		workers = append(workers, set["partition_workers"])
	}
	if !slices.Equal(workers, []string{"9", "6", "3", "1"}) {
		t.Errorf("partition_workers tried: %v, want fewer and fewer", workers)
	}
}
