package analyze_test

import (
	"math"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

func TestLateFree(t *testing.T) {
	p := held()
	p.earlyFree, p.bg2NS = false, 2e9
	found, _ := only(t, p.run(t), "late-free")
	if len(found) != 1 {
		t.Fatalf("findings %v, want one", found)
	}
	f := found[0]
	// a (as h), b and c of each of 16 partitions stay for the 2 s of b_g2; b and c were dead for
	// 1.5 s before, but their stage still ran.
	gib := 3.0 * vectorBytes / (1 << 30)
	if got, want := number(t, f, "overdue_gib_s"), 16*2*gib; math.Abs(got/want-1) > 1e-3 {
		t.Errorf("overdue %v GiB s, want %v", got, want)
	}
	want := 16*2*gib + 16*1.5*gib*2/3
	if got := number(t, f, "dead_gib_s"); math.Abs(got/want-1) > 1e-3 {
		t.Errorf("dead %v GiB s, want %v", got, want)
	}
	if got := number(t, f, "overdue_at_peak_bytes"); got != 3*vectorBytes {
		t.Errorf("%v bytes overdue at the peak, want those of the partition in b_g2", got)
	}
	if f.WhatIf["early_free"] != "true" || f.Severity != analyze.Warning {
		t.Errorf("severity %s, what if %v", f.Severity, f.WhatIf)
	}
	if rows := f.Evidence.Tables[0].Rows; len(rows) != 4 || rows[3][0] != "aux" {
		t.Errorf("by class %v, want b, c, h and, last, aux (freed in time)", rows)
	}
	if !strings.Contains(f.Sentence, "h stayed allocated past") ||
		!strings.Contains(f.Sentence, "0.75 GiB·s") {
		t.Errorf("sentence %q", f.Sentence)
	}
}

func TestLateFreeIsSilentWhenEarly(t *testing.T) {
	p := held()
	p.bg2NS = 2e9
	if found, s := only(t, p.run(t), "late-free"); len(found) != 0 ||
		s.Status != analyze.StatusClean {
		t.Errorf("%s: %v, want clean", s.Status, found)
	}
}

func TestLateFreeWithoutItsSetting(t *testing.T) {
	p := held()
	p.bg2NS = 2e9
	p.mutate = func(d *trace.Data) { // aux dies with prove_start, and is freed after b_g2
		aux := map[int64]bool{}
		var kept []trace.BufferEvent
		end := map[[2]int64]int64{}
		for _, s := range d.Spans {
			if s.Stage == "prove_start" {
				end[[2]int64{s.Job, s.Partition}] = s.EndNS
			}
		}
		for _, e := range d.Buffers {
			if e.Class == "aux" && e.Event == trace.EventLastUse && !aux[e.BufferID] {
				continue
			}
			kept = append(kept, e)
			if e.Class == "aux" && e.Event == trace.EventAlloc {
				e.Event, e.DeltaBytes, e.DeltaResidentBytes = trace.EventLastUse, 0, 0
				kept = append(kept, e)
			}
		}
		d.Buffers = kept
	}
	found, _ := only(t, p.run(t), "late-free")
	if len(found) != 1 || found[0].WhatIf != nil || !strings.Contains(found[0].Remedy, "free aux") {
		t.Fatalf("findings %+v, want aux named and no replay, since early_free is on", found)
	}
}

func TestLateFreeNotApplicable(t *testing.T) {
	p := held()
	p.mutate = func(d *trace.Data) {
		var kept []trace.BufferEvent
		for _, e := range d.Buffers {
			if e.Event != trace.EventLastUse {
				kept = append(kept, e)
			}
		}
		d.Buffers = kept
	}
	if _, s := only(t, p.run(t), "late-free"); s.Status != analyze.StatusNotApplicable ||
		!strings.Contains(s.Why, "last_use") {
		t.Errorf("%+v, want not applicable", s)
	}
}
