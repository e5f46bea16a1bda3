package memory_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

func parse(t testing.TB, text string) *trace.Trace {
	t.Helper()
	d, err := trace.ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	return trace.FromData(d)
}

func build(t testing.TB, text string) *memory.Report {
	t.Helper()
	r, err := memory.Build(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// journey is one partition's way, step by step; each prefix of it is a trace whose peak is at the
// end.
var journey = []struct{ line, place string }{
	{"queue request budget job=0 partition=0 amount=90", "budget"},
	{"queue request permit job=0 partition=0", "permit"},
	{"queue acquire permit job=0 partition=0", "synthesis"},
	{"span begin 1 stage=synthesis job=0 partition=0", "synthesis"},
	{"span end 1", "synthesis"},
	{"queue send channel job=0 partition=0", "blocked_send"},
	{"queue release permit job=0 partition=0", "blocked_send"},
	{"queue sent channel job=0 partition=0", "channel"},
	{"queue recv channel job=0 partition=0", "pickup"},
	{"queue request gpu_lock/0 job=0 partition=0", "lock_wait"},
	{"queue acquire gpu_lock/0 job=0 partition=0", "gpu"},
	{"span begin 2 stage=prove_start job=0 partition=0", "gpu"},
	{"span end 2", "finalise"},
	{"queue release gpu_lock/0 job=0 partition=0", "finalise"},
}

// TestPlaces checks the place of a buffer after every step of its partition.
func TestPlaces(t *testing.T) {
	text := "resource permit kind=permit unit=permit capacity=1\nresource gpu_lock/0 kind=lock unit=permit capacity=1\n" +
		"@0 queue request job job=0\n@1 buffer alloc 1 class=a capacity_bytes=10 resident_bytes=10 job=0 partition=0\n"
	at := func(text string) string {
		a := build(t, text+"@99 buffer resize 1 capacity_bytes=20\n").Peak
		if len(a.ByPlace) != 1 {
			t.Fatalf("by place %v, want one place", a.ByPlace)
		}
		return a.ByPlace[0].Name
	}
	if got := at(text); got != "admission" {
		t.Errorf("at first in %s, want admission", got)
	}
	for i, step := range journey {
		text += "@" + string(rune('1'+i/10)) + string(rune('0'+i%10)) + " " + step.line + "\n"
		if got := at(text); got != step.place {
			t.Errorf("after %q in %s, want %s", step.line, got, step.place)
		}
	}
}

// TestPlacesWithoutLockOrPermit: synthesis is entered by the budget, and the device by the span of
// prove_start.
func TestPlacesWithoutLockOrPermit(t *testing.T) {
	a := build(t, `
@0 queue request job job=0
@1 queue request budget job=0 partition=0 amount=10
@2 queue acquire budget job=0 partition=0 amount=10
@3 queue request budget job=0 partition=1 amount=10
@4 queue acquire budget job=0 partition=1 amount=10
@5 span begin 1 stage=prove_start job=0 partition=1
@6 buffer alloc 1 class=a capacity_bytes=1 job=0 partition=0
@7 buffer alloc 2 class=a capacity_bytes=2 job=0 partition=1
@8 buffer alloc 3 class=c1 capacity_bytes=4 job=0
@9 buffer alloc 4 class=srs capacity_bytes=8
`).Peak
	want := []memory.PlaceCount{
		{"synthesis", 1, 1},
		{"gpu", 1, 2},
		{"job", 0, 4},
		{"resident", 0, 8},
	}
	if !reflect.DeepEqual(a.Partitions, want) {
		t.Errorf("at places %+v, want %+v", a.Partitions, want)
	}
}

// TestPools: a child counts under its own class and owner, its pool for the rest, and sums count
// the pool alone.
func TestPools(t *testing.T) {
	a := build(t, `
@0 queue request job job=0
@1 buffer alloc 1 class=pinned_pool capacity_bytes=100 resident_bytes=100 space=pinned
@2 buffer alloc 2 class=a capacity_bytes=30 resident_bytes=30 space=pinned parent_id=1 job=0 partition=0
@3 buffer alloc 3 class=b capacity_bytes=20 resident_bytes=20 space=pinned parent_id=1 job=0 partition=1
@4 buffer free 3
@5 buffer alloc 4 class=key capacity_bytes=1 resident_bytes=1
@6 buffer free 2
`).Peak
	got := map[string]int64{}
	for _, s := range a.ByClass {
		got[s.Name] = s.Bytes
	}
	if want := map[string]int64{"pinned_pool": 70, "a": 30, "key": 1}; a.LiveBytes != 101 ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("live %d by class %v, want 101 and %v", a.LiveBytes, got, want)
	}
}

// TestUnpermittedAtPeak counts partitions that wait without a permit, and no longer once they gave
// up or were freed.
func TestUnpermittedAtPeak(t *testing.T) {
	text := `
@0 queue request job job=0
@1 queue acquire permit job=0 partition=0
@2 queue acquire permit job=0 partition=1
@3 buffer alloc 1 class=a capacity_bytes=10 job=0 partition=0
@4 buffer alloc 2 class=a capacity_bytes=20 job=0 partition=1
@5 queue send channel job=0 partition=0
@6 queue send channel job=0 partition=1
@7 queue release permit job=0 partition=1
`
	for _, c := range []struct {
		more              string
		partitions, bytes int64
	}{
		{"", 1, 20},
		{"@8 queue cancel channel job=0 partition=1\n", 0, 0},
		{"@8 queue release permit job=0 partition=0\n", 2, 30},
		{"@8 queue release permit job=0 partition=0\n@9 buffer free 1\n", 1, 20},
	} {
		a := build(t, text+c.more+"@20 buffer alloc 9 class=key capacity_bytes=1000\n").Peak
		if a.UnpermittedPartitions != c.partitions || a.UnpermittedBytes != c.bytes {
			t.Errorf("after %q: %d partitions with %d bytes, want %d with %d", c.more,
				a.UnpermittedPartitions, a.UnpermittedBytes, c.partitions, c.bytes)
		}
	}
}

// TestRemainder checks which sample stands for which moment, and that each process is compared with
// its own ledger.
func TestRemainder(t *testing.T) {
	r := build(t, `
base_bytes 40
source main
source child
@0   buffer alloc 1 class=key capacity_bytes=100 resident_bytes=100
@1   buffer alloc 2 class=key capacity_bytes=500 resident_bytes=500 source=child
@5   sample process.memory.usage 640 source=child
@10  queue request job job=0 source=main
@20  sample process.memory.usage 150 source=main
@30  buffer alloc 3 class=a capacity_bytes=1000 resident_bytes=300 job=0 partition=0 source=main
@34  sample process.memory.usage 470 source=main
@50  buffer fill 3 resident_bytes=900 source=main
@60  sample process.memory.usage 990 source=main
@70  buffer free 3 source=main
@80  sample process.memory.usage 145 source=main
`).Remainder
	if r == nil || r.Source != "main" || r.Samples != 4 || *r.SampleGapNS != 20 ||
		*r.BaseBytes != 40 ||
		r.ResidentPeak != 1000 {
		t.Fatalf("remainder %+v", r)
	}
	for name, c := range map[string]struct{ got, want *memory.Point }{
		"at the live peak": {r.AtLivePeak, &memory.Point{TimeNS: 34, RSSBytes: 470, ResidentBytes: 400, RemainderBytes: 70, DistanceNS: 4}},
		"at the RSS peak":  {r.AtRSSPeak, &memory.Point{TimeNS: 60, RSSBytes: 990, ResidentBytes: 1000, RemainderBytes: -10}},
		"largest":          {r.Largest, &memory.Point{TimeNS: 34, RSSBytes: 470, ResidentBytes: 400, RemainderBytes: 70}},
		"smallest":         {r.Smallest, &memory.Point{TimeNS: 60, RSSBytes: 990, ResidentBytes: 1000, RemainderBytes: -10}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
	if *r.OfPeakBytes != -10 || r.PeakRSSSource != "sampled" {
		t.Errorf("peak RSS - peak ledger %d (%s)", *r.OfPeakBytes, r.PeakRSSSource)
	}
}

func TestNearestSampleMayComeBefore(t *testing.T) {
	r := build(t, `
@0  queue request job job=0
@8  sample process.memory.usage 5
@10 buffer alloc 1 class=a capacity_bytes=10 resident_bytes=10
@30 sample process.memory.usage 15
`).Remainder
	if p := r.AtLivePeak; p == nil || p.DistanceNS != -2 {
		t.Errorf("at the live peak %+v, want the sample 2 ns before", r.AtLivePeak)
	}
}

// TestWalkOrder: one sequence by seq, samples by time after the events of the same time, ends of
// spans in their place.
func TestWalkOrder(t *testing.T) {
	var seen []memory.StepKind
	tr := parse(t, `
@0 sample m 1
@1 span begin 1 stage=a
@1 sample m 2
@2 span begin 2 stage=b
@3 queue request job job=0
@4 span end 1
@4 buffer alloc 1 class=a capacity_bytes=1
@5 span end 2
@9 sample m 3
`)
	last := int64(-1)
	err := memory.Walk(tr, observe(func(s *memory.Step) {
		seen = append(seen, s.Kind)
		if s.TimeNS < last {
			t.Errorf("time falls to %d", s.TimeNS)
		}
		last = s.TimeNS
	}))
	want := []memory.StepKind{
		memory.StepSample, memory.StepSpanBegin, memory.StepSample, memory.StepSpanBegin, memory.StepQueue, memory.StepSpanEnd,
		memory.StepBuffer, memory.StepSpanEnd, memory.StepSample,
	}
	if err != nil || !reflect.DeepEqual(seen, want) {
		t.Errorf("steps %v (%v), want %v", seen, err, want)
	}
}

type observe func(*memory.Step)

func (o observe) Observe(s *memory.Step) { o(s) }

func TestProfile(t *testing.T) {
	p, err := memory.Profile(parse(t, `
@0 queue request job job=0
@1 buffer alloc 1 class=key capacity_bytes=100 stage=key_load
@2 buffer alloc 2 class=a capacity_bytes=30 job=0 partition=0 stage=synthesis
@3 buffer alloc 3 class=a capacity_bytes=50 job=0 partition=1 stage=synthesis
@4 buffer free 2
`))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		t.Fatal(err)
	}
	back, err := profile.Parse(&file)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, s := range back.Sample {
		var stack []string
		for _, l := range s.Location {
			stack = append(stack, l.Line[0].Function.Name)
		}
		sums[strings.Join(stack, ";")] += s.Value[0]
	}
	want := map[string]int64{"key;key_load;no job": 100, "a;synthesis;job 0": 80}
	if !reflect.DeepEqual(sums, want) {
		t.Errorf("stacks %v, want %v", sums, want)
	}
	if _, err := memory.Profile(trace.FromData(&trace.Data{})); !errors.Is(
		err,
		memory.ErrNothingLive,
	) {
		t.Errorf("profile of nothing: %v", err)
	}
}

func TestWalkOfNothing(t *testing.T) {
	tr := trace.FromData(&trace.Data{})
	if err := memory.Walk(tr, observe(func(*memory.Step) { t.Error("a step of nothing") })); err != nil {
		t.Fatal(err)
	}
}
