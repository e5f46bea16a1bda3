package analyze

import (
	"fmt"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// measurementArtefact finds a peak RSS that is an artefact of how it was measured. Checks:
//
//   - after_the_run: every RSS sample of the job phase was taken when no job held a buffer any more
//     (or before any did): the peak was over.
//   - too_few_samples: the peak is the highest sample, and a partition's life fits between two of
//     them, or there are fewer than min_samples.
//   - below_ledger: the peak RSS is below what the ledger says was touched at its own peak, by more
//     than max_short.
type measurementArtefact struct{}

const artefactName = "measurement-artefact"

// Doc implements Analyzer.
func (measurementArtefact) Doc() Doc {
	return Doc{
		Name: artefactName,
		Summary: "The peak RSS of this trace is an artefact: sampled too seldom, or read when the " +
			"peak was over.",
		RefutedBy: "VmHWM of the same phase, or samples at 1 Hz and more, that agree with it.",
		Remedy: "Take VmHWM, reset at the first job (Highwater's prover does), or sample at least " +
			"twice in a partition's life; do not compare this peak with others until then.",
		Thresholds: []Threshold{
			{
				Name: artefactName + ".min_samples", Default: 10,
				Meaning: "samples of RSS in the job phase",
				Source:  "reasoned: fewer miss the order of a peak that lasts a tenth of the run",
			},
			{
				Name: artefactName + ".max_gap_ratio", Default: 1,
				Meaning: "mean gap between samples, over the mean time that a partition holds its " +
					"buffers",
				Source: "a peak as long as a partition's life is then missed as often as not",
			},
			{
				Name: artefactName + ".max_short", Default: 0.1,
				Meaning: "share by which the peak RSS may lie below the ledger's touched bytes",
				Source:  "readings and records are not of the same instant; estimates are left out",
			},
		},
	}
}

// Start implements Analyzer.
func (measurementArtefact) Start(in *Input) Pass { return &artefactPass{in: in} }

type artefactPass struct {
	in        *Input
	samples   int64 // of RSS, of the source that ran the jobs, from the first request on
	busy      int64 // of these, while jobs held buffers
	firstNS   int64
	lastNS    int64
	highest   float64
	owned     bool  // a job held a buffer at some time
	lives     int64 // frees of partitions' buffers
	livedNS   float64
	ownedPeak int64
}

func (*artefactPass) wants() memory.Kinds {
	return memory.KindsOf(memory.StepBuffer, memory.StepSample)
}

// Observe implements memory.Observer.
func (p *artefactPass) Observe(s *memory.Step) {
	l := p.in.Memory.Ledger
	if s.Kind == memory.StepBuffer {
		p.owned = p.owned || l.OwnedBytes() > 0
		p.ownedPeak = max(p.ownedPeak, l.OwnedBytes())
		if b := l.Freed; b != nil && b.Owner.Job >= 0 && b.Owner.Partition >= 0 && !b.OnDevice() {
			p.lives++
			p.livedNS += float64(s.TimeNS - b.AllocNS)
		}
		return
	}
	if s.Sample.Metric != probe.RSS || l.FirstRequestSeq == trace.Null ||
		s.Sample.Source != l.JobSource {
		return
	}
	if p.samples == 0 {
		p.firstNS = s.TimeNS
	}
	p.samples++
	p.lastNS = s.TimeNS
	p.highest = max(p.highest, s.Sample.Value)
	if l.OwnedBytes() > 0 {
		p.busy++
	}
}

func (p *artefactPass) limit(name string) float64 { return p.in.Threshold(artefactName, name) }

// Finish implements Pass.
func (p *artefactPass) Finish(s *Summary, m *memory.Report) Outcome {
	switch {
	case s.Origin == trace.OriginSimulated:
		return Outcome{NotApplicable: "the trace is simulated: its peak RSS is predicted, not measured"}
	case p.in.Memory.Ledger.FirstRequestSeq == trace.Null:
		return Outcome{NotApplicable: "the trace has no job: no phase whose peak could be missed"}
	case s.PeakRSSBytes == nil:
		return Outcome{NotApplicable: "the trace has no peak RSS to judge"}
	}
	var found []Finding
	if f := p.afterTheRun(s); f != nil {
		found = append(found, *f)
	} else if f := p.tooFew(s); f != nil {
		found = append(found, *f)
	}
	if f := p.belowLedger(s, m); f != nil {
		found = append(found, *f)
	}
	return Outcome{Findings: found}
}

func (p *artefactPass) numbers(s *Summary) Numbers {
	n := Numbers{
		{"peak_rss_bytes", float64(*s.PeakRSSBytes)},
		{"samples", float64(p.samples)},
		{"samples_while_busy", float64(p.busy)},
	}
	if p.samples > 1 {
		n = append(n, Number{"mean_gap_ns", p.gap()})
	}
	if p.lives > 0 {
		n = append(n, Number{"mean_buffer_life_ns", p.livedNS / float64(p.lives)})
	}
	return n
}

func (p *artefactPass) gap() float64 {
	return float64(p.lastNS-p.firstNS) / float64(p.samples-1)
}

// afterTheRun finds samples that all came while no job held anything.
func (p *artefactPass) afterTheRun(s *Summary) *Finding {
	if s.PeakRSSSource == "vmhwm" || p.samples == 0 || p.busy > 0 || !p.owned {
		return nil
	}
	return &Finding{
		Check: "after_the_run", Severity: Error,
		Sentence: fmt.Sprintf(
			"The peak RSS of %s was read when no job held a buffer (%s, none while jobs held up to "+
				"%s): it is what is left after the run, not its peak.",
			units.Bytes(*s.PeakRSSBytes), count(int(p.samples), "sample"),
			units.Bytes(p.ownedPeak)),
		Evidence: Evidence{
			Numbers: append(p.numbers(s), Number{"jobs_held_bytes", float64(p.ownedPeak)}),
			Window:  &Window{BeginNS: p.firstNS, EndNS: p.lastNS},
		},
	}
}

// tooFew finds a peak that is the highest of too few samples.
func (p *artefactPass) tooFew(s *Summary) *Finding {
	if s.PeakRSSSource != "sampled" || !p.owned {
		return nil
	}
	seldom := p.samples > 1 && p.lives > 0 &&
		p.gap() > p.limit("max_gap_ratio")*p.livedNS/float64(p.lives)
	if float64(p.samples) >= p.limit("min_samples") && !seldom {
		return nil
	}
	why := fmt.Sprintf("%s in the whole phase", count(int(p.samples), "sample"))
	if seldom {
		why = fmt.Sprintf("one sample in %s, while a partition's buffer lives %s",
			units.Nanos(int64(p.gap())), units.Nanos(int64(p.livedNS/float64(p.lives))))
	}
	return &Finding{
		Check: "too_few_samples", Severity: Warning,
		Sentence: fmt.Sprintf("The peak RSS of %s is the highest of too few samples (%s): the true "+
			"peak may have passed between two of them.", units.Bytes(*s.PeakRSSBytes), why),
		Evidence: Evidence{
			Numbers: p.numbers(s), Window: &Window{BeginNS: p.firstNS, EndNS: p.lastNS},
		},
	}
}

// belowLedger finds a peak RSS that the ledger's touched bytes contradict.
func (p *artefactPass) belowLedger(s *Summary, m *memory.Report) *Finding {
	if m.Remainder == nil || m.Remainder.Smallest == nil || p.samples == 0 {
		return nil
	}
	touched := m.Remainder.ResidentPeak - m.Remainder.Smallest.EstimatedBytes
	short := touched - *s.PeakRSSBytes
	if float64(short) <= p.limit("max_short")*float64(touched) {
		return nil
	}
	return &Finding{
		Check: "below_ledger", Severity: Warning,
		Sentence: fmt.Sprintf("The peak RSS (%s, %s) lies %s below what the ledger says was touched "+
			"at once (%s): the peak was missed, or the ledger counts too much.",
			units.Bytes(*s.PeakRSSBytes), s.PeakRSSSource, units.Bytes(short),
			units.Bytes(touched)),
		Evidence: Evidence{
			Numbers: append(p.numbers(s), Number{"ledger_resident_peak_bytes", float64(touched)}),
		},
	}
}
