package analyze

import (
	"fmt"
	"math"
	"strconv"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// gpuStarvation finds a GPU side that waits for partitions while there are some upstream (check
// starved), and a device that gets none of the work (check uneven_devices).
//
//  1. The GPU side works while a stage_in or prove_start span is open (b_g2 too where it runs under
//     the lock). Only the time between its first begin and its last end counts.
//  2. It starves while it does not work and a partition is between admission and its worker.
//  3. A finding needs min_share of that time, and min_partitions that were started.
//  4. Apart from that, of several devices each must get min_device_share of what an even split of
//     prove_start's time would give it.
//  5. The place where most partitions were meanwhile says what it waited for.
type gpuStarvation struct{}

const starveName = "gpu-starvation"

// Doc implements Analyzer.
func (gpuStarvation) Doc() Doc {
	return Doc{
		Name: starveName,
		Summary: "The GPU side stood idle although partitions were under way: what comes before " +
			"it does not deliver fast enough.",
		RefutedBy: "Device work outside of the recorded stages in the idle time (the device's own " +
			"utilisation samples); or partitions that could not be started for another reason.",
		Remedy: "Where it waited for synthesis: more partition_workers, as long as memory and " +
			"CPUs allow. Where partitions waited for admission, budget or permits: raise that " +
			"bound.",
		Thresholds: []Threshold{
			{
				Name: starveName + ".min_share", Default: 0.4,
				Meaning: "idle with work upstream, as a share of the GPU side's time",
				Source: "rho below 0.6: a fifth idle is the price of a safe margin, two fifths " +
					"are worth a worker",
			},
			{
				Name: starveName + ".min_device_share", Default: 0.25,
				Meaning: "a device's share of prove_start's time, over an even split",
				Source: "the reference system once sent all partitions to the first of its devices: " +
					"0; uneven devices still get a quarter",
			},
			{
				Name: starveName + ".min_partitions", Default: 8,
				Meaning: "partitions that the GPU side started",
				Source:  "fewer are start-up and drain",
			},
		},
	}
}

// Start implements Analyzer.
func (gpuStarvation) Start(in *Input) Pass {
	p := &starvePass{in: in, stages: map[string]bool{
		trace.StageStageIn: true, trace.StageProveStart: true,
	}}
	if in.Trace.Manifest.Settings["split_proving"].Value == "false" {
		p.stages[trace.StageBG2] = true
	}
	return p
}

type starvePass struct {
	in      *Input
	stages  map[string]bool
	working int
	started int64 // prove_start spans
	firstNS int64 // trace.Null before the first
	lastNS  int64 // of the last step taken in
	endNS   int64 // of the last work

	// since the GPU side stopped working; added to the totals when it works again
	idleNS   float64
	starved  starving
	total    starving
	allIdle  float64
	gaps     int64
	longest  Window
	gapBegin int64
}

// starving is partition-nanoseconds by place, and the time in which there were any.
type starving struct {
	ns      float64
	byPlace [memory.Pickup]float64
}

func (*starvePass) wants() memory.Kinds {
	return memory.KindsOf(memory.StepBuffer, memory.StepQueue, memory.StepSpanBegin,
		memory.StepSpanEnd)
}

// Observe implements memory.Observer.
func (p *starvePass) Observe(s *memory.Step) {
	if p.started > 0 && p.working == 0 {
		p.integrate(s.TimeNS)
	}
	p.lastNS = s.TimeNS
	switch s.Kind {
	case memory.StepSpanBegin:
		if p.isWork(s.Span) {
			p.begin(s)
		}
	case memory.StepSpanEnd:
		if p.isWork(s.Span) && p.working > 0 {
			p.working--
			p.endNS, p.gapBegin = s.TimeNS, s.TimeNS
		}
	}
}

func (p *starvePass) isWork(s *trace.Span) bool {
	return s.Kind == trace.KindStage && s.Job >= 0 && s.Partition >= 0 && p.stages[s.Stage] &&
		s.EndNS != trace.Null
}

func (p *starvePass) begin(s *memory.Step) {
	if p.started == 0 {
		p.firstNS = s.TimeNS
	}
	if s.Span.Stage == trace.StageProveStart || p.started == 0 {
		p.started++
	}
	p.working++
	if p.working > 1 {
		return
	}
	p.allIdle += p.idleNS
	p.total.ns += p.starved.ns
	for i, v := range p.starved.byPlace {
		p.total.byPlace[i] += v
	}
	if p.starved.ns > 0 {
		p.gaps++
		if s.TimeNS-p.gapBegin > p.longest.EndNS-p.longest.BeginNS {
			p.longest = Window{BeginNS: p.gapBegin, EndNS: s.TimeNS}
		}
	}
	p.idleNS, p.starved = 0, starving{}
}

// integrate adds the time since the last step, in the state that it left.
func (p *starvePass) integrate(timeNS int64) {
	dt := float64(timeNS - p.lastNS)
	if dt <= 0 {
		return
	}
	p.idleNS += dt
	l := p.in.Memory.Ledger
	work := false
	for place := memory.Budget; place < memory.Pickup; place++ {
		if n := l.At(place).Partitions; n > 0 {
			p.starved.byPlace[place] += dt * float64(n)
			work = true
		}
	}
	if work {
		p.starved.ns += dt
	}
}

// Finish implements Pass.
func (p *starvePass) Finish(s *Summary, _ *memory.Report) Outcome {
	limit := func(name string) float64 { return p.in.Threshold(starveName, name) }
	if float64(p.started) < limit("min_partitions") {
		return Outcome{
			NotApplicable: fmt.Sprintf("%s started on the GPU side: start-up and drain are all "+
				"there is", count(int(p.started), "partition")),
		}
	}
	var found []Finding
	span := float64(p.endNS - p.firstNS)
	if share := ratio(p.total.ns, span); share >= limit("min_share") {
		found = append(found, p.finding(s, span, share))
	}
	if f := p.unevenDevices(limit("min_device_share")); f != nil {
		found = append(found, *f)
	}
	return Outcome{Findings: found}
}

// unevenDevices finds a device that gets hardly any work while others do.
func (p *starvePass) unevenDevices(least float64) *Finding {
	devices := max(p.in.facts.setting("devices"), lockDevices(&p.in.Trace.Manifest))
	if devices < 2 || devices > 1024 {
		return nil
	}
	busy, runs := make([]float64, devices), make([]int64, devices)
	total := 0.0
	for _, r := range p.in.facts.of(trace.StageProveStart) {
		if r.device >= 0 && int64(r.device) < devices {
			busy[r.device] += float64(r.ownNS)
			runs[r.device]++
			total += float64(r.ownNS)
		}
	}
	idlest := 0
	t := Table{Name: "by device", Columns: []string{"device", "prove_starts", "busy_ns"}}
	for d := range busy {
		if busy[d] < busy[idlest] {
			idlest = d
		}
		t.Rows = append(t.Rows, []any{int64(d), runs[d], int64(busy[d])})
	}
	share := ratio(busy[idlest]*float64(devices), total)
	if total == 0 || share >= least {
		return nil
	}
	return &Finding{
		Check: "uneven_devices", Severity: Warning,
		Sentence: fmt.Sprintf("Device %d got %s of prove_start out of %s on %d devices: %.0f %% of "+
			"an even share.", idlest, units.Nanos(int64(busy[idlest])), units.Nanos(int64(total)),
			devices, 100*share),
		Remedy: "Look at how partitions are sent to devices: a worker must use the device that it " +
			"belongs to.",
		Evidence: Evidence{
			Numbers: Numbers{
				{"devices", float64(devices)}, {"idlest_device", float64(idlest)},
				{"of_even_share_ratio", share},
			},
			Tables: []Table{t},
		},
	}
}

// lockDevices is how many devices have a lock of their own.
func lockDevices(m *trace.Manifest) int64 {
	n := int64(0)
	for _, r := range m.Resources {
		if r.Kind == trace.ResourceLock && r.Device >= 0 {
			n++
		}
	}
	return n
}

// causes says, by place, what the partitions there waited for and how to help it.
var causes = [memory.Pickup]struct{ text, remedy string }{
	memory.Budget: {
		"for the byte budget", "Raise byte_budget, or free early so that it is given back sooner.",
	},
	memory.Permit: {
		"for synthesis permits", "More partition_workers, as long as memory and CPUs allow.",
	},
	memory.Synthesis: {
		"in synthesis", "More partition_workers, as long as memory and CPUs allow; or a faster " +
			"synthesis.",
	},
	memory.BlockedSend: {
		"to send, with no worker receiving", "Look at what the GPU workers did: they were idle " +
			"and did not receive.",
	},
	memory.Channel: {
		"in the channel, with no worker receiving", "Look at what the GPU workers did: they were " +
			"idle and did not receive.",
	},
}

func (p *starvePass) finding(s *Summary, span, share float64) Finding {
	most := memory.Synthesis
	for place := memory.Budget; place < memory.Pickup; place++ {
		if p.total.byPlace[place] > p.total.byPlace[most] {
			most = place
		}
	}
	// Permits are waited for because synthesis holds them all.
	if most == memory.Permit && p.total.byPlace[memory.Synthesis] > 0 {
		most = memory.Synthesis
	}
	f := Finding{
		Check: "starved", Severity: Warning,
		Sentence: fmt.Sprintf(
			"The GPU side was idle for %s of %s (%.0f %%) while partitions were on their way, "+
				"%s at most at once; most of them were %s.",
			units.Nanos(int64(p.total.ns)), units.Nanos(int64(span)), 100*share,
			units.Nanos(p.longest.EndNS-p.longest.BeginNS), causes[most].text),
		Remedy: causes[most].remedy,
		Evidence: Evidence{Numbers: Numbers{
			{"starved_ns", p.total.ns},
			{"starved_ratio", share},
			{"idle_ns", p.allIdle},
			{"gpu_side_ns", span},
			{"gaps", float64(p.gaps)},
			{"started_partitions", float64(p.started)},
		}, Window: &p.longest},
		WhatIf: p.whatIf(s, most),
	}
	if s.Rho != nil {
		f.Evidence.Numbers = append(f.Evidence.Numbers, Number{"rho", *s.Rho})
	}
	t := Table{Name: "partitions upstream", Columns: []string{"place", "mean_partitions"}}
	for place := memory.Budget; place < memory.Pickup; place++ {
		if mean := ratio(p.total.byPlace[place], p.total.ns); mean >= 0.01 {
			t.Rows = append(t.Rows, []any{place.String(), mean})
		}
	}
	f.Evidence.Tables = []Table{t}
	return f
}

// whatIf asks for the workers that bring rho to 1, or for the bound to be lifted.
func (p *starvePass) whatIf(s *Summary, place memory.Place) map[string]string {
	switch place {
	case memory.Budget:
		return map[string]string{"byte_budget": "unbounded"}
	case memory.Synthesis:
		if s.Rho == nil || s.RhoInputs == nil || *s.Rho <= 0 || *s.Rho >= 1 {
			return nil
		}
		pw := s.RhoInputs.PartitionWorkers
		want := min(2*pw, int64(math.Ceil(float64(pw) / *s.Rho)))
		if want <= pw {
			return nil
		}
		return map[string]string{"partition_workers": strconv.FormatInt(want, 10)}
	}
	return nil
}
