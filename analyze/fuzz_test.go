package analyze_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"highwater/analyze"
	"highwater/analyze/memory"
	"highwater/analyze/report"
	"highwater/tracer/trace"
)

// FuzzRun analyzes whatever the text form can say, however senseless: no panic, a report that can
// be written, and parts of the peak that add up to it.
func FuzzRun(f *testing.F) {
	seeds, err := filepath.Glob("report/testdata/*.txt")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("seeds: %v %v", seeds, err)
	}
	for _, path := range seeds {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(
		"@0 buffer free 1 delta_bytes=-9223372036854775808\n@1 queue request job job=0\n@2 " +
			"buffer alloc 2 class=a capacity_bytes=9223372036854775807 job=0 partition=0\n",
	)
	f.Add(
		"@9 buffer alloc 1 class=a capacity_bytes=1 parent_id=1\n@-5 buffer last_use " +
			"1\n@-9223372036854775807 queue send channel job=0 partition=0\n@9223372036854775807 " +
			"buffer free 1\n",
	)
	f.Add(
		"@0 span begin 1 stage=prove_start job=0 partition=0\n@1 span end 1 seq=1\n@2 sample " +
			"process.memory.usage NaN\n@3 sample process.memory.usage -1\n",
	)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := trace.ParseText(text)
		if err != nil {
			return
		}
		r, err := analyze.Run(trace.FromData(d), analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatalf("write the report as JSON: %v", err)
		}
		if err := report.Analysis(io.Discard, r, report.Style{Width: 60}); err != nil {
			t.Fatal(err)
		}
		if _, err := analyze.Summarise(trace.FromData(d)); err != nil {
			t.Fatal(err)
		}
		checkSum(t, r.Attribution.Peak)
		if _, err := memory.Profile(trace.FromData(d)); err != nil && r.Attribution.Peak != nil {
			t.Fatal(err)
		}
	})
}

// checkSum checks that classes and what is said to be unattributed add up to the peak.
func checkSum(t *testing.T, a *memory.Attribution) {
	if a == nil {
		return
	}
	sum := a.UnattributedBytes
	for _, c := range a.ByClass {
		sum += c.Bytes
	}
	if sum != a.LiveBytes {
		t.Fatalf("classes add up to %d of %d", sum, a.LiveBytes)
	}
}
