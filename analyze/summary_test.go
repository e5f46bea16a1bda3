package analyze_test

import (
	"math"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

func summarise(t testing.TB, tr *trace.Trace) *analyze.Summary {
	t.Helper()
	s, err := analyze.Summarise(tr)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t testing.TB, text string) *trace.Trace {
	t.Helper()
	d, err := trace.ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	return trace.FromData(d)
}

func is(t *testing.T, name string, got *int64, want int64) {
	t.Helper()
	if got == nil || *got != want {
		t.Errorf("%s is %v, want %d", name, show(got), want)
	}
}

func show(v *int64) any {
	if v == nil {
		return "null"
	}
	return *v
}

// TestSummaryOfText checks the definitions on a trace small enough to do by hand.
func TestSummaryOfText(t *testing.T) {
	s := summarise(t, parse(t, `
process_end finished
sealed_by close
setting partition_workers 2 source=flag
setting gpu_workers 1 source=default
resource job kind=job unit=job
resource permit kind=permit unit=permit capacity=2
resource channel kind=channel unit=item capacity=1
resource gpu_lock/0 kind=lock unit=permit capacity=1 device=0
@0   buffer alloc 1 class=key capacity_bytes=1000 resident_bytes=1000
@10  buffer alloc 2 class=context capacity_bytes=5000 resident_bytes=5000
@20  buffer free 2
@30  sample process.memory.usage 7000
@100 queue request job job=0
@101 queue acquire job job=0
@110 queue request permit job=0 partition=0
@111 queue acquire permit job=0 partition=0
@120 span begin 1 stage=witness job=0 partition=0
@130 span end 1 status=ok
@130 span begin 2 stage=synthesis job=0 partition=0
@131 buffer alloc 3 class=a capacity_bytes=400 resident_bytes=0 job=0 partition=0
@140 sample process.memory.usage 1600
@170 span end 2 status=ok cpu_ns=35
@171 queue send channel job=0 partition=0
@172 queue sent channel job=0 partition=0
@173 queue recv channel job=0 partition=0
@180 span begin 3 stage=prove_start job=0 partition=0 worker=0
@185 queue request gpu_lock/0 job=0 partition=0
@195 queue acquire gpu_lock/0 job=0 partition=0
@250 span end 3 status=ok
@255 queue release gpu_lock/0 job=0 partition=0
@260 buffer free 3
@270 queue release permit job=0 partition=0
@280 queue release job job=0
@300 buffer free 1
`))
	is(t, "peak live", s.PeakLiveBytes, 1400)
	is(t, "set-up's peak live", s.Setup.PeakLiveBytes, 6000)
	is(t, "set-up's peak RSS", s.Setup.PeakRSSBytes, 7000)
	is(t, "set-up's duration", s.Setup.DurationNS, 100)
	is(t, "peak RSS", s.PeakRSSBytes, 1600)
	is(t, "makespan", s.MakespanNS, 160) // to the partition's free, not the key's
	is(t, "proof interval", s.ProofIntervalNS, 160)
	if s.PeakRSSSource != "sampled" {
		t.Errorf("source %q", s.PeakRSSSource)
	}
	in := s.RhoInputs
	if in == nil || in.SynthesisNS != 50 || in.GPUNS != 60 || in.LockNS == nil || *in.LockNS != 60 {
		t.Fatalf("terms of rho %+v, want S 10+40, g 70-10 (the wait for the lock), l 60", in)
	}
	if s.Rho == nil || math.Abs(*s.Rho-2.0/50*60) > 1e-9 {
		t.Errorf("rho %v, want 2.4", s.Rho)
	}
	if len(s.Stages) != 3 || s.Stages[1].Name != "synthesis" || *s.Stages[1].P50NS != 40 ||
		*s.Stages[1].CPUNS != 35 ||
		s.Stages[0].CPUNS != nil {
		t.Errorf("stages %+v", s.Stages)
	}
	if s.Jobs != (analyze.Jobs{Submitted: 1, Finished: 1}) || s.Partitions != 1 {
		t.Errorf("jobs %+v, partitions %d", s.Jobs, s.Partitions)
	}
}

// TestPeakHoldsAtTheFirstRequest: the level at the first job's request counts even if nothing is
// allocated after it.
func TestPeakHoldsAtTheFirstRequest(t *testing.T) {
	s := summarise(t, parse(t, `
@0  buffer alloc 1 class=key capacity_bytes=1000 resident_bytes=1000
@5  buffer alloc 2 class=d_srs capacity_bytes=70 resident_bytes=70 space=device device=1
@10 queue request job job=0
@20 buffer free 1
@21 buffer free 2
@30 queue release job job=0
`))
	is(t, "peak live", s.PeakLiveBytes, 1000)
	if len(s.DevicePeaks) != 1 ||
		s.DevicePeaks[0] != (analyze.DevicePeak{Device: 1, PeakLiveBytes: 70}) {
		t.Errorf("device peaks %+v", s.DevicePeaks)
	}
}

func TestSummaryWithoutJobs(t *testing.T) {
	s := summarise(t, parse(t, `
@0  buffer alloc 1 class=x capacity_bytes=1000 resident_bytes=1000
@10 buffer free 1
@20 sample process.memory.usage 9000
`))
	if s.PeakLiveBytes != nil || s.PeakRSSBytes != nil || s.MakespanNS != nil ||
		s.ProofIntervalNS != nil ||
		s.Rho != nil {
		t.Errorf("figures %v %v %v %v %v without a job, want null", s.PeakLiveBytes, s.PeakRSSBytes,
			s.MakespanNS, s.ProofIntervalNS, s.Rho)
	}
	is(t, "set-up's peak live", s.Setup.PeakLiveBytes, 1000)
	is(t, "set-up's peak RSS", s.Setup.PeakRSSBytes, 9000)
}

func TestSummaryOfEmptyTrace(t *testing.T) {
	s := summarise(t, trace.FromData(&trace.Data{}))
	if s.ObservedNS != nil || s.Setup.PeakLiveBytes != nil || s.Setup.DurationNS != nil {
		t.Errorf("an empty trace has figures: %+v", s)
	}
	r := run(t, trace.FromData(&trace.Data{}), analyze.Options{})
	if len(r.NotApplicable) != len(analyze.All()) {
		t.Errorf("not applicable %v, want all %d", r.NotApplicable, len(analyze.All()))
	}
}

// TestVmHWM: VmHWM counts where it is known to be of the job phase.
func TestVmHWM(t *testing.T) {
	for _, c := range []struct {
		name, samples, source string
		want                  int64
	}{
		{"reset", "@5 sample process.memory.hwm 900\n@10 queue request job job=0\n@11 sample " +
			"process.memory.hwm 300\n@12 sample process.memory.hwm 500\n", "vmhwm", 500},
		{"rose", "@5 sample process.memory.hwm 400\n@10 queue request job job=0\n@11 sample " +
			"process.memory.hwm 500\n", "vmhwm", 500},
		{"a sample within the kernel's batching above it", "@5 sample process.memory.hwm " +
			"900\n@10 queue request job job=0\n@11 sample process.memory.hwm 445\n", "vmhwm", 445},
		{"set-up's", "@5 sample process.memory.hwm 900\n@10 queue request job job=0\n@11 sample " +
			"process.memory.hwm 900\n", "sampled", 450},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := summarise(
				t,
				parse(t,
					c.samples+"@20 sample process.memory.usage 450\n@30 queue release job job=0\n"),
			)
			is(t, "peak RSS", s.PeakRSSBytes, c.want)
			if string(s.PeakRSSSource) != c.source {
				t.Errorf("source %q, want %q", s.PeakRSSSource, c.source)
			}
		})
	}
}

func TestJobsByEnd(t *testing.T) {
	s := summarise(t, parse(t, `
@0 queue request job job=0
@1 queue request job job=1
@2 queue request job job=2
@3 queue request job job=3
@4 queue acquire job job=0
@5 queue acquire job job=1
@6 span begin 1 kind=job name=job-1 job=1
@7 span end 1 status=error
@8 queue release job job=0
@9 queue release job job=1
@10 queue cancel job job=2
@11 queue request job job=4
@12 queue acquire job job=4
@13 span begin 2 kind=job name=job-4 job=4
@14 queue release job job=4
@15 span end 2 status=error attributes="{\"prover.job.cancelled\":true}"
`))
	want := analyze.Jobs{Submitted: 5, Finished: 1, Failed: 1, Cancelled: 2, Open: 1}
	if s.Jobs != want {
		t.Errorf("jobs %+v, want %+v", s.Jobs, want)
	}
	if s.MakespanNS != nil ||
		!strings.Contains(strings.Join(s.Warnings, " "), "1 of 5 jobs had not ended") {
		t.Errorf("makespan %v, warnings %v: one job is open", show(s.MakespanNS), s.Warnings)
	}
}

// TestNoMakespanWhereNothingRan: a job that is refused at its admission ends at once, which is no
// makespan.
func TestNoMakespanWhereNothingRan(t *testing.T) {
	s := summarise(t, parse(t, `
@0 queue request job job=0
@1 queue acquire job job=0
@2 span begin 1 kind=job name=job-0 job=0
@3 queue release job job=0
@4 span end 1 status=error
`))
	if s.Jobs.Failed != 1 || s.MakespanNS != nil {
		t.Errorf("jobs %+v, makespan %v, want null", s.Jobs, show(s.MakespanNS))
	}
}

func TestRhoWithoutSplitProving(t *testing.T) {
	text := `
setting partition_workers 1
setting split_proving SPLIT
@0 queue request job job=0
@1 span begin 1 stage=synthesis job=0 partition=0
@101 span end 1
@102 span begin 2 stage=prove_start job=0 partition=0 worker=0
@142 span end 2
@143 span begin 3 stage=b_g2 job=0 partition=0 worker=0
@153 span end 3
`
	for split, want := range map[string]float64{"true": 0.4, "false": 0.5} {
		s := summarise(t, parse(t, strings.Replace(text, "SPLIT", split, 1)))
		if s.Rho == nil || math.Abs(*s.Rho-want) > 1e-9 {
			t.Errorf("split_proving=%s: rho %v, want %v", split, s.Rho, want)
		}
	}
}

// TestRhoCountsAllThatAWorkerDoes: from one receive to the next, while a partition waits, a GPU worker
// also does what no stage shows; what it waits for the lock, or for a partition, is not its own time.
func TestRhoCountsAllThatAWorkerDoes(t *testing.T) {
	s := summarise(t, parse(t, `
setting partition_workers 1
setting gpu_workers 1
resource channel kind=channel unit=item capacity=4
resource gpu_lock/0 kind=lock unit=permit capacity=1 device=0
@0 queue request job job=0
@1 span begin 1 stage=synthesis job=0 partition=0
@101 span end 1
@101 queue send channel job=0 partition=0 worker=0
@101 queue sent channel job=0 partition=0 worker=0
@101 queue recv channel job=0 partition=0 worker=0
@102 span begin 2 stage=synthesis job=0 partition=1
@105 queue request gpu_lock/0 job=0 partition=0 worker=0
@115 queue acquire gpu_lock/0 job=0 partition=0 worker=0
@115 span begin 3 stage=prove_start job=0 partition=0 worker=0
@202 span end 2
@202 queue send channel job=0 partition=1 worker=0
@202 queue sent channel job=0 partition=1 worker=0
@215 span end 3
@225 queue release gpu_lock/0 job=0 partition=0 worker=0
@231 queue recv channel job=0 partition=1 worker=0
@231 span begin 4 stage=synthesis job=0 partition=2
@231 span begin 5 stage=prove_start job=0 partition=1 worker=0
@331 span end 4
@331 span end 5
@400 queue send channel job=0 partition=2 worker=0
@400 queue sent channel job=0 partition=2 worker=0
@400 queue recv channel job=0 partition=2 worker=0
@400 span begin 6 stage=prove_start job=0 partition=2 worker=0
@500 span end 6
`))
	// 130 from receive to receive, less 10 for the lock: 100 of prove_start and 20 besides. Before the
	// third receive the worker waited for a partition.
	if in := s.RhoInputs; in == nil || in.GPUNS != 120 || in.SynthesisNS != 100 {
		t.Fatalf("terms of rho %+v, want g 120 and S 100", in)
	}
	if s.Rho == nil || math.Abs(*s.Rho-1.2) > 1e-9 {
		t.Errorf("rho %v, want 1.2", s.Rho)
	}
}
