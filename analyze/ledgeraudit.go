package analyze

import (
	"fmt"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// ledgerAudit finds out whether the ledger can be believed: events that contradict each other,
// levels and counters that cannot be, buffers that were never freed, losses, and RSS that departs
// from the ledger. It reports at most one finding a check.
type ledgerAudit struct{}

const audit = "ledger-audit"

// Doc implements Analyzer.
func (ledgerAudit) Doc() Doc {
	return Doc{
		Name: audit,
		Summary: "The ledger contradicts itself, or departs from what the kernel saw: figures " +
			"that rest on it are in doubt.",
		RefutedBy: "The events named here being right after all: look them up by seq in the " +
			"Parquet files; " +
			"or, for the remainder, VmHWM and smaps of the same moment explaining it.",
		Remedy: "Mend the instrumentation before the pipeline: until then take peaks and " +
			"predictions of this trace with doubt.",
		Thresholds: []Threshold{
			{
				Name:    audit + ".max_remainder",
				Default: 0.15,
				Meaning: "share of peak RSS that ledger and base may leave unexplained",
				Source:  "the bar that the prover's own runs are held to (docs/bars.md)",
			},
			{
				Name:    audit + ".min_remainder_bytes",
				Default: 32 << 20,
				Meaning: "bytes below which an unexplained remainder is not reported",
				Source: "a Go program's runtime, stacks and mapped files; small runs consist of " +
					"little else",
			},
			{
				Name:    audit + ".max_negative",
				Default: 0.05,
				Meaning: "share of the resident ledger by which RSS may fall short of it",
				Source:  "a reading and the records around it are not of the same instant",
			},
			{
				Name:    audit + ".max_peak_short",
				Default: 0.02,
				Meaning: "share by which the peak RSS may lie below the highest sample",
				Source:  "the kernel batches RSS counters a CPU: single readings are off by MiB",
			},
		},
	}
}

// Start implements Analyzer.
func (ledgerAudit) Start(in *Input) Pass {
	p := &auditPass{
		in: in, levels: newLevels(&in.Trace.Manifest), counters: newCounters(&in.Trace.Manifest),
		ended: map[int64]bool{},
	}
	return p
}

type auditPass struct {
	in       *Input
	buffers  int64
	ended    map[int64]bool // jobs released
	levels   levels
	counters counters
}

// Observe implements memory.Observer.
func (p *auditPass) Observe(s *memory.Step) {
	switch s.Kind {
	case memory.StepBuffer:
		p.buffers++
	case memory.StepQueue:
		p.levels.observe(s.Queue)
		if s.Queue.Event == trace.EventRelease &&
			p.in.Memory.Ledger.KindOf(s.Queue.Resource) == trace.ResourceJob {
			p.ended[s.Queue.Job] = true
		}
	case memory.StepSample:
		p.counters.observe(s.Sample)
	}
}

// Finish implements Pass.
func (p *auditPass) Finish(s *Summary, m *memory.Report) Outcome {
	if p.buffers == 0 {
		return Outcome{NotApplicable: "the trace has no buffer events: there is no ledger to audit"}
	}
	var found []Finding
	found = append(found, p.flaws(s)...)
	found = append(found, p.levels.findings()...)
	found = append(found, p.counters.findings()...)
	for _, f := range []*Finding{
		p.leftovers(s), lost(s), p.shortPeak(m), p.remainder(m),
		p.negative(m),
	} {
		if f != nil {
			found = append(found, *f)
		}
	}
	return Outcome{Findings: found}
}

func (p *auditPass) limit(name string) float64 { return p.in.Threshold(audit, name) }

// flawText says what each kind of flaw is, and whether events that were not recorded can bring it
// about.
var flawText = []struct {
	kind   memory.FlawKind
	text   string
	byLoss bool
}{
	{memory.FlawDoubleFree, "freed a second time", false},
	{memory.FlawUnmatchedFree, "freed without ever having been allocated", true},
	{memory.FlawUnmatchedEvent, "used without ever having been allocated", true},
	{memory.FlawEventAfterFree, "used after its free", false},
	{memory.FlawReusedID, "allocated under an id that was taken", false},
	{memory.FlawNegativeLive, "which made live bytes fall below zero", true},
	{memory.FlawNegativeSize, "with a size below zero", false},
	{memory.FlawDeltaMismatch, "with delta_bytes that are not the change of its capacity", true},
	{memory.FlawResidentOver, "with more bytes touched than reserved", true},
	{memory.FlawMissingParent, "cut from a pool that was not alive", true},
	{memory.FlawChildrenOver, "with children that hold more than it does", true},
	{memory.FlawParentFreedLive, "a pool freed while its children lived", true},
}

// flaws are the contradictions that the ledger met.
func (p *auditPass) flaws(s *Summary) []Finding {
	var found []Finding
	for _, t := range flawText {
		x := p.in.Memory.Ledger.Flaws[t.kind]
		if x == nil {
			continue
		}
		f := Finding{
			Check: string(t.kind), Severity: Error,
			Sentence: fmt.Sprintf("%s of a buffer %s; the first is buffer %d at seq %d.",
				count(int(x.Count), "event"), t.text, x.Buffers[0], x.Seqs[0]),
			Evidence: Evidence{
				Numbers: Numbers{{"events", float64(x.Count)}, {"bytes", float64(x.Bytes)}},
				Buffers: x.Buffers, Seqs: x.Seqs,
			},
		}
		if t.byLoss && s.LostEvents > 0 {
			f.Severity = Warning
			f.Sentence += fmt.Sprintf(" The %s that were not recorded may explain it.",
				count(int(s.LostEvents), "event"))
		}
		found = append(found, f)
	}
	return found
}

// leftovers are jobs' buffers that outlived their job, or the run.
func (p *auditPass) leftovers(s *Summary) *Finding {
	over := !s.Live && s.ProcessEnd != "" && s.ProcessEnd != trace.EndUnknown &&
		s.ProcessEnd != trace.EndKilled
	byClass := map[string]*lateClass{}
	var n, bytes int64
	var ids []int64
	p.in.Memory.Ledger.Leftovers(func(x memory.Leftover) {
		if !over && !p.ended[x.Buffer.Owner.Job] {
			return
		}
		c := byClass[x.Class]
		if c == nil {
			c = &lateClass{class: x.Class}
			byClass[x.Class] = c
		}
		c.buffers++
		c.deadArea += float64(x.Buffer.CapacityBytes)
		n++
		bytes += x.Buffer.CapacityBytes
		ids = append(ids, x.Buffer.ID)
	})
	if n == 0 {
		return nil
	}
	table := byClassTable("never freed, by class", byClass)
	f := &Finding{
		Check: "never_freed", Severity: Error,
		Sentence: fmt.Sprintf("%s of jobs that had ended (%s, most of it %s) were never freed.",
			count(int(n), "buffer"), units.Bytes(bytes), table.Rows[0][0]),
		Evidence: Evidence{
			Numbers: Numbers{{"buffers", float64(n)}, {"bytes", float64(bytes)}},
			Tables:  []Table{table},
			Buffers: firstIDs(ids),
		},
		Remedy: "Free them when the job ends, on its failure paths too; if they were freed, " +
			"record it.",
	}
	if s.LostEvents > 0 {
		f.Severity = Warning
		f.Sentence += fmt.Sprintf(" The %s that were not recorded may be their frees.",
			count(int(s.LostEvents), "event"))
	}
	return f
}

func byClassTable(name string, classes map[string]*lateClass) Table {
	t := Table{Name: name, Columns: []string{"class", "buffers", "bytes"}}
	for _, c := range byBytes(classes) {
		t.Rows = append(t.Rows, []any{c.class, c.buffers, int64(c.deadArea)})
	}
	return t
}

// lost says how many events the recorder could not write.
func lost(s *Summary) *Finding {
	if s.LostEvents == 0 {
		return nil
	}
	table := Table{
		Name:    "losses",
		Columns: []string{"writer", "reason", "from_ns", "to_ns", "events"},
	}
	begin, end := s.Loss[0].FromNS, s.Loss[0].ToNS
	for _, x := range s.Loss {
		table.Rows = append(table.Rows, []any{x.Writer, x.Reason, x.FromNS, x.ToNS, x.Count})
		begin, end = min(begin, x.FromNS), max(end, x.ToNS)
	}
	return &Finding{
		Check: "loss", Severity: Warning,
		Sentence: fmt.Sprintf("%s were not recorded (%s).", count(int(s.LostEvents), "event"),
			s.Loss[0].Reason),
		Evidence: Evidence{
			Numbers: Numbers{{"lost_events", float64(s.LostEvents)}},
			Tables:  []Table{table},
			Window:  &Window{BeginNS: begin, EndNS: end},
		},
		Remedy: "Give the recorder disk space where its trace lies; the losses say which writer " +
			"lacked what, and when.",
	}
}
