package corpus

import (
	"testing"

	"highwater/tracer/trace"
)

// How many of each kind the test makes; make validate-corpus makes ten and more.
const (
	seeds      = uint64(1)
	cleanSeeds = uint64(4)
)

// TestEqualSeedsEqualTraces: the same seed gives the same trace, another one another.
func TestEqualSeedsEqualTraces(t *testing.T) {
	k := Kinds()[0]
	text := func(seed uint64) string {
		d, err := k.Make(seed)
		if err != nil {
			t.Fatal(err)
		}
		return trace.FormatText(d)
	}
	if text(7) != text(7) {
		t.Error("seed 7 gives two traces")
	}
	if text(7) == text(8) {
		t.Error("seeds 7 and 8 give the same trace")
	}
}

// TestTally: recall and false pairs are counted over kinds, a pair once however many findings.
func TestTally(t *testing.T) {
	m := Tally([]Verdict{
		{Kind: "leak", Origin: Simulated, Analyzer: "leak", Found: true, Others: []string{"late-free"}},
		{Kind: "leak", Origin: Simulated, Analyzer: "leak", Run: 2},
		{Kind: "leak", Origin: Recorded, Analyzer: "leak", Found: true},
		{Kind: "clean", Origin: Simulated, Looked: 10, False: []string{"leak: a", "leak: b"}},
		{Kind: "clean", Origin: Simulated, Looked: 10},
	})
	if len(m.Rows) != 3 || m.Faulty != 3 || m.Found != 2 || m.CleanRuns != 2 || m.CleanPairs != 20 ||
		m.FalsePairs != 1 || m.FalseRatio != 0.05 {
		t.Errorf("matrix %+v", m)
	}
	if r := m.Rows[0]; r.Runs != 2 || r.Found != 1 || len(r.Missed) != 1 || r.Missed[0] != 2 {
		t.Errorf("row %+v", r)
	}
}

func TestSimulated(t *testing.T) {
	var verdicts []Verdict
	for _, k := range Kinds() {
		last := seeds
		if k.Clean() {
			last = cleanSeeds
		}
		for seed := uint64(1); seed <= last; seed++ {
			d, err := k.Make(seed)
			if err != nil {
				t.Fatal(err)
			}
			if k.Name != "ledger-audit" { // breaks the rules on purpose
				violations, err := trace.Validate(trace.FromData(d), 3)
				if err != nil || len(violations) > 0 {
					t.Errorf("%s, seed %d: not a valid trace: %v %v", k.Name, seed, violations, err)
				}
			}
			v, err := Judge(trace.FromData(d), k.Name, k.Analyzer)
			if err != nil {
				t.Fatal(err)
			}
			v.Origin, v.Run = Simulated, seed
			verdicts = append(verdicts, v)
		}
	}
	m := Tally(verdicts)
	if m.Faulty == 0 || m.CleanPairs < 300 || m.Kinds < 16 {
		t.Errorf("%d faulty runs of %d kinds, %d clean pairs: the corpus has shrunk", m.Faulty,
			m.Kinds, m.CleanPairs)
	}
	if m.Recall < 0.95 {
		t.Errorf("recall %.2f: missed %v: repeat with highwater corpus --kind KIND --seeds %d",
			m.Recall, m.MissedKinds, seeds)
	}
	if m.FalsePairs > 0 {
		t.Errorf("%d false findings in %d pairs: %q", m.FalsePairs, m.CleanPairs, m.FalseTexts)
	}
}
