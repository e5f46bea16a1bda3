package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"highwater/analyze"
	"highwater/prover"
	"highwater/tracer/setting"
)

// TestRunKnowsBetter: of a trace that lost events the run's own counts are told.
func TestRunKnowsBetter(t *testing.T) {
	run := &prover.Result{JobsFinished: 6, JobsFailed: 1, JobsSkipped: 33,
		MakespanNanos: of(int64(7e9)), ProofIntervalNanos: of(int64(1e9)), Jobs: make([]prover.JobResult, 40)}
	for lost, finished := range map[int64]int{0: 4, 9: 6} {
		s := &analyze.Summary{Jobs: analyze.Jobs{Submitted: 40, Finished: 4}, LostEvents: lost}
		preferRun(s, run)
		if s.Jobs.Finished != finished || (s.MakespanNS != nil) != (lost > 0) {
			t.Errorf("%d events lost: jobs %+v, makespan %v", lost, s.Jobs, s.MakespanNS)
		}
	}
}

// TestSameKeysWithoutRecording: a run without a trace prints the keys of one with a trace.
func TestSameKeysWithoutRecording(t *testing.T) {
	keys := func(dir string) []string {
		v := setting.Defaults()
		for name, text := range map[string]string{"circuit": "mimc", "log_size": "10"} {
			if err := v.Set(name, text, "set"); err != nil {
				t.Fatal(err)
			}
		}
		r, err := prover.Run(t.Context(), prover.Config{Settings: v, Dir: dir, CacheDir: t.TempDir(),
			SetupCommand: []string{lookHighwater(t), prover.SetupSubcommand}})
		if err != nil {
			t.Fatal(err)
		}
		report, err := newProveReport(r, v)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		return sortedKeys(object)
	}
	recorded, free := keys(filepath.Join(t.TempDir(), "run.hw")), keys("")
	if !slices.Equal(recorded, free) {
		t.Errorf("keys with a trace %v, without %v", recorded, free)
	}
}
