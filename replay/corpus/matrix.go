package corpus

import (
	"fmt"
	"slices"

	"highwater/analyze"
	"highwater/tracer/trace"
)

// Origins of a trace.
const (
	Simulated = "simulated"
	Recorded  = "recorded"
)

// Verdict is what analyze said of one trace.
type Verdict struct {
	Kind     string   `json:"kind"`
	Origin   string   `json:"origin"` // simulated | recorded
	Run      uint64   `json:"run"`    // the seed, or the number of the run
	Analyzer string   `json:"analyzer"`
	Found    bool     `json:"found"`          // the expected analyzer found something
	Others   []string `json:"others"`         // other analyzers that did
	Looked   int      `json:"looked"`         // analyzers that could look
	False    []string `json:"false_findings"` // of a clean trace: check and sentence
	Silent   []string `json:"-"`              // analyzers of a clean trace that could look
}

// Judge analyzes t, which is of a kind whose analyzer is expected ("" for a clean one). Analyzers
// in unsure are left out: whether a clean recorded run is free of them is not known.
func Judge(t *trace.Trace, kind, expected string, unsure ...string) (Verdict, error) {
	v := Verdict{Kind: kind, Analyzer: expected, Others: []string{}, False: []string{}}
	r, err := analyze.Run(t, analyze.Options{})
	if err != nil {
		return v, fmt.Errorf("judge trace of kind %s: %w", kind, err)
	}
	for _, s := range r.Analyzers {
		if s.Status == analyze.StatusNotApplicable || slices.Contains(unsure, s.Analyzer) {
			continue
		}
		v.Looked++
		v.Silent = append(v.Silent, s.Analyzer)
	}
	for _, f := range r.Findings {
		switch {
		case slices.Contains(unsure, f.ID):
		case f.ID == expected:
			v.Found = true
		case expected == "":
			v.False = append(v.False, f.ID+": "+f.Sentence)
		case !slices.Contains(v.Others, f.ID):
			v.Others = append(v.Others, f.ID)
		}
	}
	return v, nil
}

// Row is one kind of the matrix.
type Row struct {
	Kind     string   `json:"kind"`
	Origin   string   `json:"origin"`
	Analyzer string   `json:"analyzer"`
	Runs     int      `json:"runs"`
	Found    int      `json:"found"`
	Pairs    int      `json:"pairs"` // of clean runs: (run, analyzer that could look)
	False    int      `json:"false_pairs"`
	Others   []string `json:"others"`
	Missed   []uint64 `json:"missed_runs"`
}

// Matrix is the count over a corpus.
type Matrix struct {
	Rows        []Row    `json:"rows"`
	Recall      float64  `json:"recall_ratio"`
	Faulty      int      `json:"faulty_runs"`
	Found       int      `json:"found_runs"`
	FalseRatio  float64  `json:"false_ratio"`
	CleanRuns   int      `json:"clean_runs"`
	CleanPairs  int      `json:"clean_pairs"`
	FalsePairs  int      `json:"false_pairs"`
	FalseTexts  []string `json:"false_findings"`
	Kinds       int      `json:"kinds"` // of faults
	MissedKinds []string `json:"missed_kinds"`
	Origins     []Totals `json:"origins"` // the same, simulated and recorded apart
}

// Totals are the counts of one origin.
type Totals struct {
	Origin     string `json:"origin"`
	Faulty     int    `json:"faulty_runs"`
	Found      int    `json:"found_runs"`
	CleanPairs int    `json:"clean_pairs"`
	FalsePairs int    `json:"false_pairs"`
}

// of is the totals of an origin, made if it is new.
func (m *Matrix) of(origin string) *Totals {
	for i := range m.Origins {
		if m.Origins[i].Origin == origin {
			return &m.Origins[i]
		}
	}
	m.Origins = append(m.Origins, Totals{Origin: origin})
	return &m.Origins[len(m.Origins)-1]
}

// Tally counts verdicts, in their order, by kind and origin.
func Tally(verdicts []Verdict) Matrix {
	m := Matrix{Rows: []Row{}, FalseTexts: []string{}, MissedKinds: []string{}, Origins: []Totals{}}
	at := map[[2]string]int{}
	for _, v := range verdicts {
		key := [2]string{v.Kind, v.Origin}
		i, ok := at[key]
		if !ok {
			i = len(m.Rows)
			at[key] = i
			m.Rows = append(m.Rows, Row{
				Kind: v.Kind, Origin: v.Origin, Analyzer: v.Analyzer, Others: []string{},
				Missed: []uint64{},
			})
		}
		m.take(&m.Rows[i], v)
	}
	for _, r := range m.Rows {
		t := m.of(r.Origin)
		t.CleanPairs += r.Pairs
		t.FalsePairs += r.False
		if r.Analyzer == "" {
			m.CleanRuns += r.Runs
			m.CleanPairs += r.Pairs
			m.FalsePairs += r.False
			continue
		}
		m.Kinds++
		m.Faulty += r.Runs
		m.Found += r.Found
		t.Faulty += r.Runs
		t.Found += r.Found
		if r.Found < r.Runs {
			m.MissedKinds = append(m.MissedKinds, r.Kind)
		}
	}
	if m.Faulty > 0 {
		m.Recall = float64(m.Found) / float64(m.Faulty)
	}
	if m.CleanPairs > 0 {
		m.FalseRatio = float64(m.FalsePairs) / float64(m.CleanPairs)
	}
	return m
}

func (m *Matrix) take(r *Row, v Verdict) {
	r.Runs++
	if v.Analyzer == "" {
		r.Pairs += v.Looked
		// One pair an analyzer, however many findings it has.
		seen := map[string]bool{}
		for _, text := range v.False {
			id := text[:max(0, slices.Index([]byte(text), ':'))]
			if !seen[id] {
				r.False++
			}
			seen[id] = true
			m.FalseTexts = append(m.FalseTexts, fmt.Sprintf("%s %d: %s", v.Kind, v.Run, text))
		}
		return
	}
	if v.Found {
		r.Found++
	} else {
		r.Missed = append(r.Missed, v.Run)
	}
	for _, o := range v.Others {
		if !slices.Contains(r.Others, o) {
			r.Others = append(r.Others, o)
		}
	}
}
