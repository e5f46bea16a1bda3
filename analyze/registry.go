package analyze

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"highwater/analyze/memory"
	"highwater/tracer/trace"
)

// Analyzer is one detector. It holds no state: each run of it is a Pass.
type Analyzer interface {
	// Doc says what the detector claims, judges by and recommends.
	Doc() Doc
	// Start begins one run over the trace of in.
	Start(in *Input) Pass
}

// Doc describes an analyzer; a page of docs/findings says the same at length.
type Doc struct {
	Name       string // also the id of its findings and the name of its page
	Summary    string // one sentence: what a finding of it means
	RefutedBy  string
	Remedy     string
	Thresholds []Threshold
}

// Pass is one run of an analyzer: it observes the walk, after the memory builder and the figures,
// then answers.
type Pass interface {
	memory.Observer
	Finish(s *Summary, m *memory.Report) Outcome
}

// Outcome is a pass's answer. Findings may leave ID, RefutedBy, Remedy, Page and Thresholds empty:
// they are then the analyzer's. NotApplicable says what the trace lacks, "" where the pass could
// look; Unseen says which part of its question the trace does not answer, "" for none.
type Outcome struct {
	Findings      []Finding
	NotApplicable string
	Unseen        string
}

// Input is what a pass may read during the walk.
type Input struct {
	Trace     *trace.Trace
	Memory    *memory.Builder
	facts     *facts
	threshold map[string]float64
}

// Threshold is the value in effect of the analyzer's threshold; the name is without the analyzer's.
func (in *Input) Threshold(analyzer, name string) float64 {
	v, ok := in.threshold[analyzer+"."+name]
	if !ok {
		panic("analyze: no threshold named " + analyzer + "." + name)
	}
	return v
}

// All lists the analyzers in the order in which they run and are shown.
func All() []Analyzer {
	return []Analyzer{
		queuePileup{}, lateFree{}, ledgerAudit{}, pageFaultStorm{}, largeAllocation{}, leak{},
		allocatorRetention{}, oversubscription{}, gpuStarvation{}, lockConvoy{}, pinThrash{},
		transferStall{}, thunderingHerd{}, hiddenLimit{}, budgetNotABound{}, measurementArtefact{},
	}
}

// choose gives the analyzers that opts asks for and every threshold's value.
func choose(opts Options) ([]Analyzer, map[string]float64, error) {
	all := All()
	values := map[string]float64{}
	names := make([]string, 0, len(all))
	var thresholds []string
	for _, a := range all {
		d := a.Doc()
		names = append(names, d.Name)
		for _, t := range d.Thresholds {
			values[t.Name] = t.Default
			thresholds = append(thresholds, t.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(opts.Thresholds)) { // one error, whatever the map's order
		v := opts.Thresholds[name]
		if _, ok := values[name]; !ok {
			return nil, nil, fmt.Errorf("choose thresholds: no threshold %q: there are %s", name,
				strings.Join(thresholds, ", "))
		}
		values[name] = v
	}
	for _, name := range opts.Only {
		if !slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("choose analyzers: no analyzer %q: there are %s", name,
				strings.Join(names, ", "))
		}
	}
	if len(opts.Only) == 0 {
		return all, values, nil
	}
	unwanted := func(a Analyzer) bool { return !slices.Contains(opts.Only, a.Doc().Name) }
	return slices.DeleteFunc(all, unwanted), values, nil
}

// complete fills what a finding leaves to its analyzer.
func (f *Finding) complete(d Doc, values map[string]float64) {
	f.ID = d.Name
	f.Page = "docs/findings/" + d.Name + ".md"
	if f.RefutedBy == "" {
		f.RefutedBy = d.RefutedBy
	}
	if f.Remedy == "" {
		f.Remedy = d.Remedy
	}
	for _, t := range d.Thresholds {
		t.Value = values[t.Name]
		f.Thresholds = append(f.Thresholds, t)
	}
	if f.Evidence.Numbers == nil {
		f.Evidence.Numbers = Numbers{}
	}
}
