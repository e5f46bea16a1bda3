package analyze_test

import (
	"math"
	"strings"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

func TestPileupOfTheIncident(t *testing.T) {
	found, _ := only(t, incident().run(t), "queue-pileup")
	if len(found) != 1 {
		t.Fatalf("findings %v, want one", found)
	}
	f := found[0]
	if f.Severity != analyze.Error {
		t.Errorf("severity %s, want error", f.Severity)
	}
	// 16 partitions; synthesis makes 2 a second, the GPU side takes one in 2 s: when the last is
	// synthesised at 8 s, the GPU worker holds its fourth, and 12 wait.
	for name, want := range map[string]float64{
		"waiting_max_partitions": 12, "waiting_at_peak_partitions": 10,
		"waiting_at_peak_bytes": 10 * 4 * vectorBytes, "allowed_partitions": 1,
		"in_flight_held_bound_partitions": 4,
	} {
		if got := number(t, f, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if rho := number(t, f, "rho"); rho < 3.9 || rho > 4.1 {
		t.Errorf("rho %v, want 2/1 s times 2 s = 4", rho)
	}
	if f.WhatIf["permit_release"] != "send_accepted" || len(f.WhatIf) != 1 {
		t.Errorf("what if %v, want the permit held until the send is accepted", f.WhatIf)
	}
	if w := f.Evidence.Window; w == nil || w.BeginNS < 3e9 || w.BeginNS > 4e9 || w.EndNS < 30e9 ||
		w.EndNS > 32e9 {
		t.Errorf("window %+v, want from 3 s (the third partition waits) to about 31 s", w)
	}
	if !strings.Contains(f.Sentence, "Up to 12 partitions") {
		t.Errorf("sentence %q", f.Sentence)
	}
}

// TestPileupTimeToLimit: the growth is not drawn out beyond the jobs there were.
func TestPileupTimeToLimit(t *testing.T) {
	under := func(limit int64, jobs string) float64 {
		p := incident()
		p.mutate = func(d *trace.Data) {
			d.Manifest.Memory.EffectiveBytes = limit
			d.Manifest.Settings["jobs"] = trace.Setting{Value: jobs}
			d.Manifest.Settings["partitions"] = trace.Setting{Value: "4"}
		}
		found, _ := only(t, p.run(t), "queue-pileup")
		return number(t, found[0], analyze.TimeToLimit)
	}
	if ns := under(4<<30, "4"); !math.IsNaN(ns) {
		t.Errorf("reached in %v ns, with every partition synthesised", ns)
	}
	if ns := under(4<<30, "1000"); !(ns > 1e9) {
		t.Errorf("reached in %v ns, want a time: 4000 partitions of 32 MiB exceed it", ns)
	}
}

func TestPileupNumbersArePlain(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 2.4: "2.4", 30.13: "30.1", 312.7: "313",
		1_234_567: "1234567", 0.000123: "0.000123", 4: "4", 0.05: "0.05"} {
		if got := analyze.Plain(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

func TestPileupIsSilent(t *testing.T) {
	quick := incident()
	quick.gpuNS = 4e8 // rho 0.8
	burst := incident()
	// a herd that drains at once
	burst.jobs, burst.partitions, burst.permits, burst.gpuNS = 1, 4, 4, 2e8
	pickup, freed := incident(), incident()
	pickup.release, freed.release = "gpu_pickup", "freed"
	wide := held()
	wide.capacity = 6
	for name, p := range map[string]pipe{
		"held until the send is accepted": held(), "rho below 1": quick,
		"a burst that drains": burst, "a wide channel with held permits": wide,
	} {
		t.Run(name, func(t *testing.T) {
			if found, s := only(t, p.run(t), "queue-pileup"); len(found) != 0 ||
				s.Status != analyze.StatusClean {
				t.Errorf("%s: %v, want clean", s.Status, found)
			}
		})
	}
}

func TestPileupInUnboundedChannel(t *testing.T) {
	p := held()
	p.capacity = trace.Null
	found, _ := only(t, p.run(t), "queue-pileup")
	if len(found) != 1 {
		t.Fatalf("findings %v, want one", found)
	}
	if got := found[0].WhatIf["channel_capacity"]; got != "2" {
		t.Errorf("what if %v, want the channel bounded", found[0].WhatIf)
	}
	if !strings.Contains(found[0].Remedy, "Bound the channel") {
		t.Errorf("remedy %q", found[0].Remedy)
	}
}

func TestPileupNotApplicable(t *testing.T) {
	without := func(resource string) pipe {
		p := incident()
		p.mutate = func(d *trace.Data) {
			var kept []trace.QueueEvent
			for _, e := range d.Queues {
				if e.Resource != resource {
					kept = append(kept, e)
				}
			}
			d.Queues = kept
		}
		return p
	}
	for resource, want := range map[string]string{"channel": "no channel", "permit": "no permit " +
		"events"} {
		t.Run(resource, func(t *testing.T) {
			found, s := only(t, without(resource).run(t), "queue-pileup")
			if len(found) != 0 || s.Status != analyze.StatusNotApplicable ||
				!strings.Contains(s.Why, want) {
				t.Errorf("%+v %v, want not applicable: %s", s, found, want)
			}
		})
	}
}

func TestPileupThreshold(t *testing.T) {
	tr := incident().run(t)
	r := run(
		t,
		tr,
		analyze.Options{
			Only:       []string{"queue-pileup"},
			Thresholds: map[string]float64{"queue-pileup.min_partitions": 12},
		},
	)
	if len(r.Findings) != 0 {
		t.Errorf("findings %v although 11 partitions are below the threshold", r.Findings)
	}
	r = run(
		t,
		tr,
		analyze.Options{
			Thresholds: map[string]float64{
				"queue-pileup.error_share": 2,
				"queue-pileup.error_rho":   9,
			},
		},
	)
	if r.Worst() != analyze.Warning {
		t.Errorf("worst %q, want warning", r.Worst())
	}
	if x := r.Findings[0].Thresholds[2]; x.Value != 2 || x.Default != 0.25 {
		t.Errorf("threshold %+v, want the value in effect beside its default", x)
	}
}

// TestPileupWhileKilled cuts the trace in the middle, as a kill does.
func TestPileupWhileKilled(t *testing.T) {
	p := incident()
	p.mutate = func(d *trace.Data) { cut(d, 200) }
	tr := p.run(t)
	r := run(t, tr, analyze.Options{})
	if r.MakespanNS != nil || r.ProofIntervalNS != nil || r.Jobs.Open == 0 || r.OpenSpans == 0 {
		t.Errorf("makespan %v, jobs %+v, open spans %d of a killed run", r.MakespanNS, r.Jobs,
			r.OpenSpans)
	}
	if r.Worst() != analyze.Error || r.Findings[0].ID != "queue-pileup" || len(r.Findings) != 1 {
		t.Errorf("findings %v, want the pile-up alone", r.Findings)
	}
}

// cut drops everything after seq and leaves spans open.
func cut(d *trace.Data, seq int64) {
	for len(d.Buffers) > 0 && d.Buffers[len(d.Buffers)-1].Seq > seq {
		d.Buffers = d.Buffers[:len(d.Buffers)-1]
	}
	for len(d.Queues) > 0 && d.Queues[len(d.Queues)-1].Seq > seq {
		d.Queues = d.Queues[:len(d.Queues)-1]
	}
	for len(d.Spans) > 0 && d.Spans[len(d.Spans)-1].BeginSeq > seq {
		d.Spans = d.Spans[:len(d.Spans)-1]
	}
	for i := range d.Spans {
		if s := &d.Spans[i]; s.EndSeq > seq {
			s.EndSeq, s.EndNS, s.Status = trace.Null, trace.Null, ""
		}
	}
	end := d.Buffers[len(d.Buffers)-1].TimeNS
	for len(d.Samples) > 0 && d.Samples[len(d.Samples)-1].TimeNS > end {
		d.Samples = d.Samples[:len(d.Samples)-1]
	}
	d.Manifest.SealedBy, d.Manifest.ProcessEnd = trace.SealedByRecover, trace.EndUnknown
}
