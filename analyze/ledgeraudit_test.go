package analyze_test

import (
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

// check finds the one finding of ledger-audit with that check, and fails on others.
func check(t *testing.T, tr *trace.Trace, want string, also ...string) analyze.Finding {
	t.Helper()
	found, _ := only(t, tr, "ledger-audit")
	var match []analyze.Finding
	for _, f := range found {
		known := f.Check == want
		for _, x := range also {
			known = known || f.Check == x
		}
		if !known {
			t.Errorf("unexpected finding %s: %s", f.Check, f.Sentence)
		}
		if f.Check == want {
			match = append(match, f)
		}
	}
	if len(match) != 1 {
		t.Fatalf("%d findings of %s in %v, want one", len(match), want, found)
	}
	return match[0]
}

// find is the index of the nth event of that kind and class.
func find(t *testing.T, d *trace.Data, event, class string, nth int) int {
	t.Helper()
	for i, e := range d.Buffers {
		if e.Event == event && e.Class == class {
			if nth == 0 {
				return i
			}
			nth--
		}
	}
	t.Fatalf("no %s of %s", event, class)
	return -1
}

func TestAuditOfImpossibleLedgers(t *testing.T) {
	for _, c := range []struct {
		check    string
		also     []string
		severity analyze.Severity
		mutate   func(t *testing.T, d *trace.Data)
	}{
		{"double_free", []string{}, analyze.Error, func(t *testing.T, d *trace.Data) {
			i := find(t, d, trace.EventFree, "c", 3)
			again := d.Buffers[i]
			again.DeltaBytes, again.DeltaResidentBytes = 0, 0
			again.Seq, again.TimeNS = d.Buffers[len(d.Buffers)-1].Seq+1,
				d.Buffers[len(d.Buffers)-1].TimeNS+1
			d.Buffers = append(d.Buffers, again)
		}},
		{
			"unmatched_free",
			[]string{"unmatched_event", "negative_live"},
			analyze.Error,
			func(t *testing.T, d *trace.Data) {
				i := find(t, d, trace.EventAlloc, "key", 0)
				d.Buffers = append(d.Buffers[:i:i], d.Buffers[i+1:]...)
			},
		},
		{
			"negative_live",
			[]string{"unmatched_free"},
			analyze.Error,
			func(t *testing.T, d *trace.Data) {
				i := find(t, d, trace.EventAlloc, "key", 0)
				d.Buffers = append(d.Buffers[:i:i], d.Buffers[i+1:]...)
			},
		},
		{
			"reused_id",
			[]string{"delta_mismatch", "never_freed", "double_free", "event_after_free"},
			analyze.Error, func(t *testing.T, d *trace.Data) {
				d.Buffers[find(t, d, trace.EventAlloc, "aux", 1)].BufferID = d.Buffers[find(t, d,
					trace.EventAlloc, "aux", 0)].BufferID
				d.Buffers[find(t, d, trace.EventFree, "aux", 1)].BufferID = d.Buffers[find(t, d,
					trace.EventAlloc, "aux", 0)].BufferID
				for i := range d.Buffers {
					if e := &d.Buffers[i]; e.Class == "aux" && e.BufferID == 9 {
						e.BufferID = 5
					}
				}
			},
		},
		{"resident_over_capacity", []string{}, analyze.Error, func(t *testing.T, d *trace.Data) {
			e := &d.Buffers[find(t, d, trace.EventReclass, "h", 2)]
			e.ResidentBytes++
			d.Buffers[find(t, d, trace.EventLastUse, "h", 2)].ResidentBytes = e.ResidentBytes - 1
		}},
		{"delta_mismatch", []string{}, analyze.Error, func(t *testing.T, d *trace.Data) {
			d.Buffers[find(t, d, trace.EventFree, "b", 0)].DeltaBytes++
		}},
		{"event_after_free", []string{}, analyze.Error, func(t *testing.T, d *trace.Data) {
			e := d.Buffers[find(t, d, trace.EventLastUse, "c", 0)]
			e.Seq, e.TimeNS = d.Buffers[len(d.Buffers)-1].Seq+1,
				d.Buffers[len(d.Buffers)-1].TimeNS+1
			d.Buffers = append(d.Buffers, e)
		}},
		{"missing_parent", []string{}, analyze.Error, func(t *testing.T, d *trace.Data) {
			for i := range d.Buffers {
				if d.Buffers[i].BufferID == 3 {
					d.Buffers[i].ParentID = 1 << 30
				}
			}
		}},
		{"impossible_level", []string{}, analyze.Error, func(t *testing.T, d *trace.Data) {
			d.Queues[len(d.Queues)-1].LevelAfter = -1
		}},
	} {
		t.Run(c.check, func(t *testing.T) {
			p := held()
			p.mutate = func(d *trace.Data) { c.mutate(t, d) }
			f := check(t, p.run(t), c.check, c.also...)
			if f.Severity != c.severity || f.Sentence == "" || len(f.Evidence.Seqs) == 0 {
				t.Errorf("finding %+v, want %s with the events named", f, c.severity)
			}
		})
	}
}

func TestAuditOfLoss(t *testing.T) {
	p := held()
	p.mutate = func(d *trace.Data) {
		d.Manifest.Loss = []trace.Loss{
			{Writer: "main/3", FromNS: 5e9, ToNS: 6e9, Count: 7, Reason: "disk full"},
		}
		i := find(t, d, trace.EventAlloc, "key", 0)
		d.Buffers = append(d.Buffers[:i:i], d.Buffers[i+1:]...)
	}
	tr := p.run(t)
	f := check(t, tr, "loss", "unmatched_free", "unmatched_event", "negative_live")
	if f.Severity != analyze.Warning ||
		!strings.Contains(f.Sentence, "7 events were not recorded (disk full)") {
		t.Errorf("finding %+v", f)
	}
	if f := check(t, tr, "unmatched_free", "loss", "negative_live"); f.Severity != analyze.Warning {
		t.Errorf("severity %s of a flaw that the loss explains, want warning", f.Severity)
	}
}

func TestAuditOfLeftovers(t *testing.T) {
	p := held()
	p.keepBuffers = true
	f := check(t, p.run(t), "never_freed")
	if got := number(t, f, "bytes"); got != 16*vectorBytes || f.Severity != analyze.Error {
		t.Errorf("%s, %v bytes never freed, want an error with 16 vectors", f.Severity, got)
	}
	if row := f.Evidence.Tables[0].Rows[0]; row[0] != "c" {
		t.Errorf("by class %v, want c", row)
	}
	// killed early: what its open jobs hold is no leak
	p.mutate = func(d *trace.Data) { cut(d, 150) }
	if found, _ := only(t, p.run(t), "ledger-audit"); len(found) != 0 {
		t.Errorf("findings %v in a killed run, want none", found)
	}
}

func TestAuditOfRSS(t *testing.T) {
	for _, c := range []struct {
		name, check string
		base        int64
		rss         func(live int64) float64
		peak        *trace.PeakRSS
	}{
		{
			"unexplained", "remainder_large", 8 << 20,
			func(live int64) float64 { return float64(live)*1.5 + 8<<20 }, nil,
		},
		{
			"explained by the " +
				"base", "", 200 << 20, func(live int64) float64 { return float64(live) + 200<<20 },
			nil,
		},
		{
			"follows the ledger", "", 8 << 20,
			func(live int64) float64 { return float64(live)*1.02 + 8<<20 },
			nil,
		},
		{
			"below the ledger", "remainder_negative", 0,
			func(live int64) float64 { return float64(live) * 0.7 }, nil,
		},
		{
			"peak read after the run", "peak_below_sample", 8 << 20,
			func(live int64) float64 { return float64(live) + 8<<20 },
			&trace.PeakRSS{Bytes: 72 << 20, Source: "vmhwm"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := held()
			p.rss = c.rss
			p.mutate = func(d *trace.Data) {
				d.Manifest.BaseBytes, d.Manifest.PeakRSS = &c.base,
					c.peak
			}
			tr := p.run(t)
			if c.check != "" {
				check(t, tr, c.check)
			} else if found, _ := only(t, tr, "ledger-audit"); len(found) != 0 {
				t.Errorf("findings %v, want none", found)
			}
		})
	}
}

func TestAuditOfCounters(t *testing.T) {
	p := held()
	p.mutate = func(d *trace.Data) {
		for i, v := range []float64{10, 20, 5} {
			d.Samples = append(d.Samples, trace.Sample{
				TimeNS: int64(i+2) * 1e9,
				Source: "main",
				Metric: "process.paging.faults.minor",
				Value:  v,
			})
		}
	}
	f := check(t, p.run(t), "impossible_counter")
	if f.Severity != analyze.Warning || !strings.Contains(f.Sentence, "fell once") {
		t.Errorf("finding %+v", f)
	}
}

func TestAuditNotApplicable(t *testing.T) {
	p := held()
	p.mutate = func(d *trace.Data) { d.Buffers = nil }
	if _, s := only(t, p.run(t), "ledger-audit"); s.Status != analyze.StatusNotApplicable {
		t.Errorf("%+v, want not applicable", s)
	}
}
