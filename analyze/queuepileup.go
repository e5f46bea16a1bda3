package analyze

import (
	"fmt"
	"math"
	"strconv"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// queuePileup finds partitions that finished synthesis and wait for a GPU worker while holding no
// permit.
//
//  1. A partition waits unpermitted when its channel send was seen and its receive was not, and it
//     holds no permit.
//  2. The policy itself allows as many of them as the channel has slots (an unbounded channel: as
//     many as there are permits). The excess is what goes beyond.
//  3. The excess must reach min_partitions and last for min_window synthesis times: a burst that
//     drains is no pile-up.
//  4. It is an error when these partitions own error_share of the peak or rho is above 1, else a
//     warning.
type queuePileup struct{}

const pileup = "queue-pileup"

// Doc implements Analyzer.
func (queuePileup) Doc() Doc {
	return Doc{
		Name: pileup,
		Summary: "Partitions finished synthesis and piled up before the GPU workers without a " +
			"permit, so nothing bounds them.",
		RefutedBy: "The same run with the permit held until the send is accepted peaking as " +
			"high; or permits still held by the waiting partitions (level of the permit " +
			"resource at the peak).",
		Remedy: "Hold the synthesis permit until the channel has accepted the partition " +
			"(permit_release=send_accepted): then at most partition_workers + " +
			"channel_capacity + gpu_workers partitions are in flight. A larger channel does " +
			"not bound memory while the permit is released early.",
		Thresholds: []Threshold{
			{
				Name:    pileup + ".min_partitions",
				Default: 2,
				Meaning: "partitions beyond what the policy allows, at the least",
				Source: "one more than a hand-over between two workers can leave waiting for a " +
					"moment",
			},
			{
				Name:    pileup + ".min_window",
				Default: 1,
				Meaning: "how long the excess lasts, in mean synthesis times",
				Source:  "a burst that drains while the next partitions are made is no backlog",
			},
			{
				Name:    pileup + ".error_share",
				Default: 0.25,
				Meaning: "share of the peak that these partitions own, from which it is an error",
				Source:  "a quarter of the peak is more than any worker count gives back",
			},
			{
				Name:    pileup + ".error_rho",
				Default: 1,
				Meaning: "rho above which it is an error: the backlog grows as long as the run " +
					"lasts",
				Source: "growth is pw/S - gw/g a second: positive exactly above 1",
			},
		},
	}
}

// Start implements Analyzer.
func (queuePileup) Start(in *Input) Pass {
	p := &pileupPass{in: in, capacity: trace.Null}
	for _, r := range in.Trace.Manifest.Resources {
		switch {
		case r.Kind == trace.ResourceChannel && r.Capacity != nil:
			p.capacity = *r.Capacity
		case r.Kind == trace.ResourcePermit && r.Capacity != nil:
			p.permits = *r.Capacity
		}
	}
	return p
}

type pileupPass struct {
	in        *Input
	capacity  int64 // of the channel, trace.Null where unbounded or unknown
	permits   int64 // 0 where unknown
	sends     int64
	permitted int64 // permit acquires seen

	waiting     int64 // unpermitted, after the last step
	max         backlog
	run         backlog // the current stretch above the allowance
	inFlightMax int64
	lastNS      int64
}

// backlog is one stretch of time in which more partitions waited than the policy allows.
type backlog struct {
	beginNS, endNS int64 // end is trace.Null while it lasts
	peak           memory.Waiting
	peakNS         int64
	peakSends      int64 // partitions synthesised until then
}

func (p *pileupPass) allowance() int64 {
	if p.capacity != trace.Null {
		return p.capacity
	}
	return p.permits
}

// Observe implements memory.Observer.
func (p *pileupPass) Observe(s *memory.Step) {
	if s.Kind == memory.StepSample {
		return
	}
	p.lastNS = s.TimeNS
	if s.Kind == memory.StepQueue {
		p.count(s.Queue)
	}
	l := p.in.Memory.Ledger
	p.inFlightMax = max(p.inFlightMax, l.InFlight())
	if l.Unpermitted.Partitions != p.waiting {
		p.waiting = l.Unpermitted.Partitions
		p.change(s.TimeNS, l.Unpermitted)
	}
}

func (p *pileupPass) count(e *trace.QueueEvent) {
	switch e.Event {
	case trace.EventSend:
		p.sends++
	case trace.EventAcquire:
		if p.in.Memory.Ledger.KindOf(e.Resource) == trace.ResourcePermit {
			p.permitted++
		}
	}
}

// change follows the stretches above the allowance and keeps the highest.
func (p *pileupPass) change(timeNS int64, w memory.Waiting) {
	above := w.Partitions > p.allowance()
	inRun := p.run.peak.Partitions > 0
	switch {
	case above && !inRun:
		p.run = backlog{beginNS: timeNS, endNS: trace.Null, peak: w, peakNS: timeNS,
			peakSends: p.sends}
	case above && w.Partitions > p.run.peak.Partitions:
		p.run.peak, p.run.peakNS, p.run.peakSends = w, timeNS, p.sends
	case !above && inRun:
		p.run.endNS = timeNS
		p.keep()
		p.run = backlog{}
	}
}

func (p *pileupPass) keep() {
	if p.run.peak.Partitions > p.max.peak.Partitions {
		p.max = p.run
	}
}

// Finish implements Pass.
func (p *pileupPass) Finish(s *Summary, m *memory.Report) Outcome {
	if p.run.peak.Partitions > 0 {
		p.run.endNS = p.lastNS
		p.keep()
	}
	switch {
	case p.sends == 0:
		return Outcome{
			NotApplicable: "the trace has no channel: no partition was seen to wait between " +
				"synthesis and a GPU worker",
		}
	case p.permitted == 0:
		return Outcome{
			NotApplicable: "the trace has no permit events: whether a waiting partition holds " +
				"one is not known",
		}
	case p.max.peak.Partitions-p.allowance() < int64(p.limit("min_partitions")):
		return Outcome{}
	case s.RhoInputs != nil &&
		float64(p.max.endNS-p.max.beginNS) < p.limit("min_window")*float64(s.RhoInputs.SynthesisNS):
		return Outcome{}
	}
	return Outcome{Findings: []Finding{p.finding(s, m)}}
}

func (p *pileupPass) limit(name string) float64 { return p.in.Threshold(pileup, name) }

func (p *pileupPass) finding(s *Summary, m *memory.Report) Finding {
	f := Finding{Severity: Warning, Evidence: p.evidence(s, m), WhatIf: p.whatIf(s)}
	share, _ := f.Evidence.Numbers.Value("share_of_peak_ratio")
	if share >= p.limit("error_share") || s.Rho != nil && *s.Rho > p.limit("error_rho") {
		f.Severity = Error
	}
	f.Sentence = p.sentence(s, m)
	if p.capacity == trace.Null && f.WhatIf["channel_capacity"] != "" {
		f.Remedy = "Bound the channel (channel_capacity=" + f.WhatIf["channel_capacity"] + "): a " +
			"send to an unbounded one is accepted " +
			"at once, so holding the permit until then holds nothing back."
	}
	return f
}

// growth is how fast the backlog rose to its peak, 0 where it took no time.
func (p *pileupPass) growth() float64 {
	seconds := float64(p.max.peakNS-p.max.beginNS) / 1e9
	if seconds <= 0 {
		return 0
	}
	return float64(p.max.peak.Partitions-p.allowance()) / seconds
}

func (p *pileupPass) evidence(s *Summary, m *memory.Report) Evidence {
	n := Numbers{
		{"waiting_max_partitions", float64(p.max.peak.Partitions)},
		{"waiting_max_bytes", float64(p.max.peak.Bytes)},
		{"allowed_partitions", float64(p.allowance())},
		{"growth_partitions_per_s", p.growth()},
		{"in_flight_max_partitions", float64(p.inFlightMax)},
	}
	if s.RhoInputs != nil && p.capacity != trace.Null {
		in := s.RhoInputs
		n = append(n, Number{
			"in_flight_held_bound_partitions",
			float64(in.PartitionWorkers + p.capacity + in.GPUWorkers*in.Devices),
		})
	}
	if a := m.Peak; a != nil {
		n = append(n,
			Number{"waiting_at_peak_partitions", float64(a.UnpermittedPartitions)},
			Number{"waiting_at_peak_bytes", float64(a.UnpermittedBytes)},
			Number{"peak_live_bytes", float64(a.LiveBytes)},
			Number{
				"share_of_peak_ratio",
				float64(a.UnpermittedBytes) / math.Max(float64(a.LiveBytes), 1),
			},
		)
	}
	if s.Rho != nil {
		n = append(n,
			Number{"rho", *s.Rho},
			Number{"synthesis_ns", float64(s.RhoInputs.SynthesisNS)},
			Number{"gpu_ns", float64(s.RhoInputs.GPUNS)},
		)
	}
	if ns, ok := p.timeToLimit(s); ok {
		n = append(n,
			Number{"memory_limit_bytes", float64(s.Memory.EffectiveBytes)},
			Number{TimeToLimit, ns},
		)
	}
	return Evidence{Numbers: n, Window: &Window{BeginNS: p.max.beginNS, EndNS: p.max.endNS}}
}

// TimeToLimit is the number that says how long the backlog, had it gone on growing, would take from
// the peak to the memory limit. It is not a number where the jobs there were could not reach it.
const TimeToLimit = "time_to_limit_ns"

// timeToLimit computes TimeToLimit; false where the trace lacks what it needs.
func (p *pileupPass) timeToLimit(s *Summary) (float64, bool) {
	at := s.PeakRSSBytes
	if at == nil {
		at = s.PeakLiveBytes
	}
	if at == nil || s.Memory == nil || s.Memory.EffectiveBytes <= 0 || p.growth() <= 0 {
		return 0, false
	}
	each := float64(p.max.peak.Bytes) / float64(p.max.peak.Partitions)
	room := math.Max(0, float64(s.Memory.EffectiveBytes-*at))
	if room > each*float64(partitionsOf(s)-p.max.peakSends) {
		return math.NaN(), true
	}
	return room / (p.growth() * each) * 1e9, true
}

// partitionsOf is how many partitions the run had to do: those of its settings, which a run that
// was cut short has not all begun, or those that were seen.
func partitionsOf(s *Summary) int64 {
	jobs, err1 := strconv.ParseInt(s.Settings["jobs"].Value, 10, 32)
	partitions, err2 := strconv.ParseInt(s.Settings["partitions"].Value, 10, 32)
	if err1 != nil || err2 != nil {
		return int64(s.Partitions)
	}
	return max(int64(s.Partitions), jobs*partitions)
}

func (p *pileupPass) sentence(s *Summary, m *memory.Report) string {
	room := "an unbounded channel"
	if p.capacity != trace.Null {
		room = "a channel of " + count(int(p.capacity), "slot")
	}
	text := fmt.Sprintf(
		"Up to %s had finished synthesis and waited for a GPU worker without a permit (%s)",
		count(int(p.max.peak.Partitions), "partition"),
		room,
	)
	if a := m.Peak; a != nil && a.UnpermittedBytes > 0 {
		text += fmt.Sprintf("; at the peak they held %s of %s (%.0f %%)",
			units.Bytes(a.UnpermittedBytes), units.Bytes(a.LiveBytes),
			100*float64(a.UnpermittedBytes)/float64(a.LiveBytes))
	}
	if p.growth() > 0 {
		text += fmt.Sprintf("; the backlog grew by %s partitions/s for %s", Plain(p.growth()),
			units.Nanos(p.max.peakNS-p.max.beginNS))
	}
	if s.Rho != nil && *s.Rho > 1 {
		text += fmt.Sprintf(
			", because synthesis offers %s times what the GPU side can take (rho %.2f)",
			Plain(*s.Rho), *s.Rho)
	}
	return text + "."
}

// whatIf asks for the policy that bounds the backlog.
func (p *pileupPass) whatIf(s *Summary) map[string]string {
	held := s.Settings["permit_release"].Value == "send_accepted"
	if p.capacity == trace.Null {
		slots := "1"
		if p.permits > 0 {
			slots = strconv.FormatInt(p.permits, 10)
		}
		return map[string]string{"permit_release": "send_accepted", "channel_capacity": slots}
	}
	if held {
		return nil
	}
	return map[string]string{"permit_release": "send_accepted"}
}
