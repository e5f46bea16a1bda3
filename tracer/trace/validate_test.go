package trace

import (
	"slices"
	"strings"
	"testing"
)

// check runs the validator over d and returns what it found.
func check(t testing.TB, d *Data) []Violation {
	t.Helper()
	found, err := Validate(FromData(d), 0)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// valid fails the test on any violation.
func valid(t testing.TB, d *Data) {
	t.Helper()
	for _, v := range check(t, d) {
		t.Error(v)
	}
}

// Each case edits one line of the sample trace and says which rules it breaks.
var invalid = []struct{ name, old, new, rules string }{
	{"origin", "program prove", "program prove\norigin invented", "manifest-word"},
	{"process end", "program prove", "program prove\nprocess_end exploded", "manifest-word"},
	{"setting source", "source=flag", "source=rumour", "manifest-word"},
	{"resource kind", "kind=permit", "kind=licence", "manifest-word"},
	{"resource twice", "source main pid=12", "source main pid=12\nresource permit kind=permit", "manifest-name"},
	{"source twice", "source main pid=12", "source main pid=12\nsource main", "manifest-name"},
	{"metric name", "unit=By", "unit=By\nmetric \"\"", "manifest-name"},
	{"negative capacity", "unit=item capacity=1", "unit=item capacity=-1", "manifest-range queue-capacity queue-capacity queue-capacity"},
	{"seq falls", "@99 buffer free 1", "@99 buffer free 1 seq=9", "seq-order"},
	{"seq twice", "@51 queue send channel job=0 partition=0", "@51 queue send channel job=0 partition=0 seq=10", "seq-unique"},
	{"time falls", "@60 queue recv channel", "@45 queue recv channel", "queue-time time-order"},
	{"negative time", "@0 buffer alloc 1", "@-5 buffer alloc 1", "time-range"},
	{"job", "@10 queue request job job=0", "@10 queue request job job=-7", "owner-range queue-pairing"},
	{"buffer event", "@70 buffer reclass 2 class=h", "@70 buffer paint 2", "word"},
	{"space", "class=srs", "class=srs space=cloud", "word word"},
	{"class", "class=h", `class=""`, "word word"},
	{"queue event", "@53 queue release permit", "@53 queue drop permit", "word"},
	{"span kind", "kind=job name=proof-0", "kind=task name=proof-0", "word"},
	{"status", "cpu_ns=28 status=ok", "cpu_ns=28 status=great", "word"},
	{"unlisted source", "class=srs", "class=srs source=other", "source-listed"},
	{"unlisted resource", "resource gpu_lock/0 kind=lock unit=permit capacity=1 device=0\n", "", "resource-listed resource-listed resource-listed"},
	{"unlisted metric", "metric process.memory.usage unit=By\n", "", "metric-listed"},
	{"infinite sample", "usage 123456", "usage +Inf", "sample-finite"},
	{"no number", "usage 123456", "usage NaN", "sample-finite"},
	{"sample time", "@40 buffer", "@29 sample process.memory.usage 1\n@40 buffer", "time-order"},
	{"span id", "@12 span begin 1 ", "@11 span begin 2\n@12 span begin 1 ", "span-id span-open"},
	{"parent missing", "parent_id=1", "parent_id=9", "span-parent"},
	{"parent later", "@12 span begin 1 kind=job", "@12 span begin 1 parent_id=2 kind=job", "span-parent"},
	{"open span", "@95 span end 1 status=ok\n", "", "span-open"},
	{"half an end", "@95 span end 1 status=ok", "@95 span end 1 status=ok end_seq=null", "span-end"},
	{"end before begin", "@50 span end 2 cpu_ns=28 status=ok", "@50 span end 2 end_ns=21", "span-end time-order"},
	{"cpu time", "cpu_ns=28", "cpu_ns=-28", "span-range"},
	{"attributes", "worker=0 threads=1", "worker=0 threads=1 attributes=`[1]`", "span-attributes"},
	{"otel id", "worker=0 threads=1", "worker=0 threads=1 otel_span_id=12xy", "span-otel"},
	{"unknown span", "stage=synthesis span_id=2", "stage=synthesis span_id=7", "span-known span-known span-known span-known"},
	{"buffer id", "@99 buffer free 1\n", "@99 buffer free 1\n@100 buffer alloc 0 class=a", "buffer-id"},
	{"id again", "@99 buffer free 1\n", "@99 buffer free 1\n@100 buffer alloc 1 class=a", "buffer-id"},
	{"no alloc", "@99 buffer free 1\n", "@99 buffer free 1\n@100 buffer fill 8 class=a resident_bytes=1", "buffer-alloc"},
	{"use after free", "@99 buffer free 1\n", "@99 buffer free 1\n@100 buffer fill 1", "buffer-freed"},
	{"double free", "@99 buffer free 1\n", "@99 buffer free 1\n@100 buffer free 1", "double-free"},
	{"same time", "@80 buffer free 2", "@70 buffer free 2", "buffer-time"},
	{"device", "class=srs", "class=srs space=device", "buffer-space buffer-space"},
	{"moves", "@70 buffer reclass 2 class=h", "@70 buffer reclass 2 class=h space=device device=0", "buffer-space buffer-space live-negative"},
	{"resident", "resident_bytes=4096", "resident_bytes=4097", "buffer-range buffer-range"},
	{"negative bytes", "@0 buffer alloc 1 class=srs capacity_bytes=8192 resident_bytes=8192", "@0 buffer alloc 1 class=srs capacity_bytes=8192 resident_bytes=-1", "buffer-range buffer-range"},
	{"delta", "@70 buffer reclass 2 class=h", "@70 buffer reclass 2 class=h delta_bytes=1", "buffer-delta"},
	{"resident delta", "@40 buffer fill 2 resident_bytes=4096", "@40 buffer fill 2 resident_bytes=4096 delta_resident_bytes=1", "buffer-delta"},
	{"silent resize", "@70 buffer reclass 2 class=h", "@70 buffer reclass 2 class=h capacity_bytes=5000", "buffer-delta"},
	{"live bytes", "@80 buffer free 2", "@80 buffer free 2 delta_bytes=-999999", "buffer-delta live-negative live-negative"},
	{"orphan", "class=a capacity", "class=a parent_id=77 capacity", "buffer-parent buffer-parent buffer-parent buffer-parent"},
	{"child too large", "class=a capacity_bytes=4096", "class=a parent_id=1 capacity_bytes=9000", "buffer-children buffer-children buffer-children"},
	{"parent first", "@80 buffer free 2\n", "@80 buffer alloc 5 class=b parent_id=1 capacity_bytes=8\n@81 buffer free 2\n", "buffer-parent"},
	{"queue time", "@21 queue acquire", "@20 queue acquire", "queue-time"},
	{"amount", "@20 queue request permit job=0 partition=0", "@20 queue request permit job=0 partition=0 amount=3", "queue-amount"},
	{"level", "@52 queue sent channel job=0 partition=0", "@52 queue sent channel job=0 partition=0 level_after=0", "queue-level queue-capacity"},
	{"over capacity", "@90 queue release", "@83 queue request gpu_lock/0 job=0 partition=1\n@84 queue acquire gpu_lock/0 job=0 partition=1\n@90 queue release", "queue-capacity"},
	{"waiting", "@53 queue release permit job=0 partition=0", "@53 queue release permit job=0 partition=0 waiting_after=-1", "queue-waiting"},
	{"acquire unasked", "@20 queue request permit job=0 partition=0\n", "", "queue-pairing queue-waiting queue-waiting"},
	{"release of another", "@90 queue release gpu_lock/0 job=0 partition=0", "@90 queue release gpu_lock/0 job=0 partition=3", "queue-pairing"},
	{"recv of another", "@60 queue recv channel job=0 partition=0", "@60 queue recv channel job=0 partition=5", "queue-pairing"},
}

func TestValidate(t *testing.T) {
	valid(t, mustParse(t, pileup))
	broken := map[string]bool{}
	for _, c := range invalid {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(pileup, c.old) == 0 {
				t.Fatalf("the sample has no %q", c.old)
			}
			var got []string
			found := check(t, mustParse(t, strings.Replace(pileup, c.old, c.new, 1)))
			for _, v := range found {
				got = append(got, v.Rule)
				broken[v.Rule] = true
			}
			slices.Sort(got)
			want := strings.Fields(c.rules)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("broke %v, want %v:\n%v", got, want, found)
			}
		})
	}
	for _, r := range Rules() {
		if !broken[r.ID] {
			t.Errorf("no case breaks the rule %s", r.ID)
		}
	}
}

// TestValidateLoss: what lost events explain is a warning in a trace that counts them, and nothing
// else is.
func TestValidateLoss(t *testing.T) {
	lossy := strings.Replace(pileup, "source main pid=12", "source main pid=12\nloss writer=main count=3 reason=no_space", 1)
	for _, c := range []struct {
		name, old, new string
		want           Severity
	}{
		{"acquire lost", "@21 queue acquire permit job=0 partition=0 worker=0\n", "", SeverityWarning},
		{"alloc lost", "@0 buffer alloc 1 class=srs capacity_bytes=8192 resident_bytes=8192\n", "", SeverityWarning},
		{"unknown word", "class=srs", "class=srs space=cloud", SeverityError},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := check(t, mustParse(t, strings.Replace(lossy, c.old, c.new, 1)))
			if len(found) == 0 {
				t.Fatal("nothing found")
			}
			for _, v := range found {
				if v.Rule != "word" && v.Severity != c.want || v.Rule == "word" && v.Severity != SeverityError {
					t.Errorf("%v, want a %s", v, c.want)
				}
			}
		})
	}
}

func TestValidateStops(t *testing.T) {
	text := strings.ReplaceAll(pileup, "job=0", "job=-3")
	for _, n := range []int{1, 3} {
		found, err := Validate(FromData(mustParse(t, text)), n)
		if err != nil || len(found) != n {
			t.Errorf("max %d: %d violations, error %v", n, len(found), err)
		}
	}
}
