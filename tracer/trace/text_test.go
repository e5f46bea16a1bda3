package trace

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// pileup is a small true story: two partitions, one permit, a channel of one slot, a killed ending
// left out.
const pileup = `
program prove
circuit {"name":"label","constraints":100,"domain_size":128,"key_bytes":4096}
seed 7
setting channel_capacity 1
setting partition_workers 1 source=flag
resource job kind=job unit=job
resource permit kind=permit unit=permit capacity=1 order=fifo
resource channel kind=channel unit=item capacity=1 order=fifo
resource gpu_lock/0 kind=lock unit=permit capacity=1 device=0
source main pid=12
metric process.memory.usage unit=By

@0 buffer alloc 1 class=srs capacity_bytes=8192 resident_bytes=8192
@10 queue request job job=0
@11 queue acquire job job=0
@12 span begin 1 kind=job name=proof-0 track=job/0 job=0
@20 queue request permit job=0 partition=0
@21 queue acquire permit job=0 partition=0 worker=0
@22 span begin 2 parent_id=1 stage=synthesis track=synthesis/0 job=0 partition=0 worker=0 threads=1
@23 buffer alloc 2 class=a capacity_bytes=4096 job=0 partition=0 stage=synthesis span_id=2
@30 sample process.memory.usage 123456
@40 buffer fill 2 resident_bytes=4096
@50 span end 2 cpu_ns=28 status=ok
@51 queue send channel job=0 partition=0
@52 queue sent channel job=0 partition=0
@53 queue release permit job=0 partition=0
@60 queue recv channel job=0 partition=0
@61 queue request gpu_lock/0 job=0 partition=0
@62 queue acquire gpu_lock/0 job=0 partition=0
@70 buffer reclass 2 class=h
@80 buffer free 2
@90 queue release gpu_lock/0 job=0 partition=0
@95 span end 1 status=ok
@96 queue release job job=0
@99 buffer free 1
`

func TestTextRoundTrip(t *testing.T) {
	d, err := ParseText(pileup)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseText(FormatText(d))
	if err != nil {
		t.Fatalf("%v\n%s", err, FormatText(d))
	}
	if diff := cmp.Diff(d, again); diff != "" {
		t.Errorf("the text form changed the trace:\n%s", diff)
	}
	if n := len(d.Buffers); n != 6 || d.Buffers[4].DeltaBytes != -4096 ||
		d.Buffers[2].DeltaResidentBytes != 4096 {
		t.Errorf("buffers are not as written: %+v", d.Buffers)
	}
	if q := d.Queues[4]; q.Resource != "channel" || q.Event != EventSend || q.LevelAfter != 0 ||
		q.WaitingAfter != 1 {
		t.Errorf("a send's expected levels are %+v", q)
	}
}

// TestTextIsCanonical: the sample, formatted, is the sample without its comments and blank lines.
func TestTextIsCanonical(t *testing.T) {
	d, err := ParseText(pileup)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, line := range strings.Split(pileup, "\n") {
		if line != "" {
			want = append(want, line)
		}
	}
	got := strings.Split(strings.TrimSpace(FormatText(d)), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("formatted differently:\n%s", diff)
	}
}

func TestTextErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"column", "@1 buffer alloc 1 size=3", `line 1: unknown column "size"`},
		{"table", "@1 lock take x", `unknown table "lock"`},
		{"directive", "colour blue", `unknown directive "colour"`},
		{"late directive", "@1 queue request permit\nseed 3", "line 2"},
		{
			"number", "@1 buffer alloc 1 capacity_bytes=4k",
			"capacity_bytes=4k is not a value of type int64",
		},
		{"span end", "@1 span end 4", "span 4 ends but is not open"},
		{"twice", "@1 buffer alloc 1 class=a class=b", `"class" stands twice`},
		{"quotes", "@1 buffer alloc 1 class=\"a", "the quotes do not close"},
		{"time", "@x buffer alloc 1", "is not @ and a time"},
		{"manifest type", "seed -1", "seed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseText(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestTextAnyData: any rows, sane or not, come back exactly.
func TestTextAnyData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyData(t)
		text := FormatText(d)
		again, err := ParseText(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Fatalf("the text form changed the trace:\n%s\n%s", diff, text)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add(pileup)
	f.Add("@1 buffer alloc 1 class=\"\\xff\" capacity_bytes=null\n@2 span begin 1 attributes=`{\"a\":1}`")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseText(text)
		if err != nil {
			return
		}
		again, err := ParseText(FormatText(d))
		if err != nil {
			t.Fatalf("%v\n%s", err, FormatText(d))
		}
		if a, b := FormatText(d), FormatText(again); a != b {
			t.Errorf("not stable:\n%s\n---\n%s", a, b)
		}
	})
}

// anyData draws rows of every shape: any numbers, any strings, any order.
func anyData(t *rapid.T) *Data {
	num := rapid.OneOf(rapid.Int64Range(-2, 5), rapid.Int64(), rapid.Just(Null))
	str := rapid.OneOf(rapid.SampledFrom([]string{
		"", "a", "main", "null", `{"k": "v"}`,
		"two words", "`",
	}), rapid.String())
	small := rapid.IntRange(0, 6)
	d := &Data{Manifest: textManifest()}
	d.Manifest.Program = str.Draw(t, "program")
	d.Manifest.Sources = []Source{{Name: str.Draw(t, "source"), Kind: "process"}}
	for range small.Draw(t, "spans") {
		n := func() int64 { return num.Draw(t, "n") }
		s := func() string { return str.Draw(t, "s") }
		d.Spans = append(d.Spans, Span{
			n(), n(), s(), n(), n(), s(), s(), s(), s(), n(), n(), n(),
			n(), n(), n(),
			n(), n(), n(), n(), s(), s(), s(), s(), s(),
		})
	}
	for range small.Draw(t, "buffers") {
		n := func() int64 { return num.Draw(t, "n") }
		s := func() string { return str.Draw(t, "s") }
		d.Buffers = append(d.Buffers, BufferEvent{
			n(), n(), s(), s(), n(), n(), s(), s(), n(), n(),
			n(), n(), n(),
			rapid.Bool().Draw(t, "b"), n(), n(), n(), s(), n(),
		})
	}
	for range small.Draw(t, "queues") {
		n := func() int64 { return num.Draw(t, "n") }
		s := func() string { return str.Draw(t, "s") }
		d.Queues = append(d.Queues, QueueEvent{
			n(), n(), s(), s(), s(), n(), n(), n(), n(), n(),
			n(), n(), n(),
		})
	}
	for range small.Draw(t, "samples") {
		x := rapid.Float64().Draw(t, "x")
		if math.IsNaN(x) {
			x = 0
		}
		d.Samples = append(d.Samples, Sample{
			num.Draw(t, "n"), str.Draw(t, "s"), str.Draw(t, "s"),
			x,
		})
	}
	return d
}
