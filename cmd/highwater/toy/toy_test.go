package toy

import (
	"path/filepath"
	"testing"

	"highwater/analyze"
	"highwater/tracer/trace"
)

// TestRun: a real run of each fault that does not depend on how fast the machine is has its own
// finding, and the trace is valid but for the fault.
func TestRun(t *testing.T) {
	for _, kind := range []string{"leak", "ledger-audit"} {
		t.Run(kind, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run.hw")
			if err := Run(dir, kind); err != nil {
				t.Fatal(err)
			}
			tr, err := trace.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			if v, err := trace.Validate(tr, 3); kind == "leak" && (err != nil || len(v) > 0) {
				t.Errorf("not a valid trace: %v %v", v, err)
			}
			r, err := analyze.Run(tr, analyze.Options{Only: []string{kind}})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) == 0 {
				t.Errorf("%+v: nothing found in a run made to have it", r.Analyzers)
			}
		})
	}
}

func TestRunRefusesUnknownKinds(t *testing.T) {
	if err := Run(filepath.Join(t.TempDir(), "x.hw"), "no such"); err == nil {
		t.Error("ran a kind that there is not")
	}
	for _, kind := range Kinds() {
		if _, err := shapeOf(kind); err != nil {
			t.Error(err)
		}
	}
}
