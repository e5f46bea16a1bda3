package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"highwater/analyze/memory"
	"highwater/internal/units"
	"highwater/tracer/trace"
)

// Run analyzes t in one pass. An unknown analyzer or threshold name is an error that lists those
// there are; any other error is about reading the trace.
func Run(t *trace.Trace, opts Options) (*Report, error) {
	chosen, values, err := choose(opts)
	if err != nil {
		return nil, err
	}
	b := memory.NewBuilder(&t.Manifest, true)
	f := newFigures(t, b)
	x := newFacts(t, b, f)
	passes := make([]Pass, len(chosen))
	for i, a := range chosen {
		passes[i] = a.Start(&Input{Trace: t, Memory: b, facts: x, threshold: values})
	}
	if err := memory.Walk(t, newFanout(b, f, x, passes)); err != nil {
		return nil, err
	}
	r := &Report{
		Summary:       f.summary(),
		Attribution:   b.Report(),
		Findings:      []Finding{},
		NotApplicable: []Status{},
	}
	for i, a := range chosen {
		r.take(a.Doc(), passes[i].Finish(r.Summary, r.Attribution), values)
	}
	slices.SortStableFunc(r.Findings,
		func(a, b Finding) int { return cmp.Compare(b.Severity.rank(), a.Severity.rank()) })
	r.Verdict = r.verdict()
	return r, nil
}

// take notes one analyzer's answer.
func (r *Report) take(d Doc, o Outcome, values map[string]float64) {
	s := Status{Analyzer: d.Name, Status: StatusClean, Why: o.Unseen}
	switch {
	case len(o.Findings) > 0:
		s.Status = StatusFindings
	case o.NotApplicable != "":
		s.Status, s.Why = StatusNotApplicable, o.NotApplicable
		r.NotApplicable = append(r.NotApplicable, s)
	}
	for _, f := range o.Findings {
		f.complete(d, values)
		r.Findings = append(r.Findings, f)
	}
	r.Analyzers = append(r.Analyzers, s)
}

// verdict is the report in one sentence: the worst finding's, or that there is none.
func (r *Report) verdict() string {
	if len(r.Findings) > 0 {
		return r.Findings[0].Sentence
	}
	v := "Nothing found by " + count(len(r.Analyzers)-len(r.NotApplicable), "analyzer")
	if n := len(r.NotApplicable); n > 0 {
		v += fmt.Sprintf(" (%d not applicable)", n)
	}
	if p := r.Attribution.Peak; p != nil && len(p.ByClass) > 0 {
		v += fmt.Sprintf("; live bytes peaked at %s, most of it %s", units.Bytes(p.LiveBytes),
			p.ByClass[0].Name)
	}
	return v + "."
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
