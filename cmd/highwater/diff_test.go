package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"highwater/analyze/compare"
	"highwater/analyze/compare/inject"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// simulatedBank is n runs of the example pipeline that differ as repeats do: each draws its
// services anew, scaled by a factor of its own of that standard deviation. Equal arguments give
// equal banks.
func simulatedBank(t testing.TB, n int, noise float64) []*trace.Data {
	t.Helper()
	m, err := pipeline.Example().Apply(map[string]string{"jobs": "6"})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, 11))
	var bank []*trace.Data
	for i := range n {
		d, _, err := sim.Record(m, sim.Draw{Seed: uint64(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		stretch(d, 1+noise*rng.NormFloat64())
		bank = append(bank, d)
	}
	return bank
}

// stretch multiplies all times by factor: a machine that is a little slower in this run.
func stretch(d *trace.Data, factor float64) {
	at := func(ns *int64) {
		if *ns != trace.Null {
			*ns = int64(float64(*ns) * factor)
		}
	}
	for i := range d.Spans {
		at(&d.Spans[i].BeginNS)
		at(&d.Spans[i].EndNS)
	}
	for i := range d.Buffers {
		at(&d.Buffers[i].TimeNS)
	}
	for i := range d.Queues {
		at(&d.Queues[i].TimeNS)
	}
	for i := range d.Samples {
		at(&d.Samples[i].TimeNS)
	}
}

// TestPower: over a bank of simulated repeats with 1 % of noise equal sides are no regression in
// 99 % of comparisons, and what is edited into ten runs is found in 95 %. The bank, the edits and
// the resamples are the same in every run of the test.
func TestPower(t *testing.T) {
	bank := simulatedBank(t, 40, 0.01)
	p, err := compare.MeasurePower(len(bank), func(i int) (*trace.Trace, error) {
		x := trace.FromData(bank[i])
		x.Dir = fmt.Sprintf("run-%02d", i)
		return x, nil
	}, compare.PowerOptions{Side: 10, Resamples: 200, Sizes: []float64{0.05, 0.10}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Comparable) != 0 {
		t.Errorf("the bank is not of equal runs: %v", p.Comparable)
	}
	for _, f := range p.Failures() {
		t.Error(f)
	}
	judged := map[string]int{}
	for _, x := range p.Effects {
		if x.NoiseRatio != nil && *x.NoiseRatio <= 0.015 {
			judged[x.Kind]++
		}
		if x.NoiseRatio != nil && math.IsNaN(*x.NoiseRatio) || len(x.Points) == 0 {
			t.Errorf("%s %s has no curve", x.Kind, x.Subject)
		}
	}
	for _, kind := range []string{
		compare.EffectStageTime, compare.EffectLifetime, compare.EffectSize, compare.EffectOneMore,
	} {
		if judged[kind] == 0 {
			t.Errorf("no %s is quiet enough to be judged: the test shows nothing", kind)
		}
	}
}

// TestDiffOfSides: eight runs a side on disk, through the command: equal sides are no regression, and
// a stage that takes a fifth longer is one (exit 1), with its name in the first sentence.
func TestDiffOfSides(t *testing.T) {
	bank := simulatedBank(t, 24, 0.01)
	dir := t.TempDir()
	for i, d := range bank {
		name := filepath.Join(dir, []string{"base", "new", "history"}[i/8], fmt.Sprintf("%02d.hw", i))
		d.Manifest.Commit = []string{"aaaa", "bbbb", "cccc"}[i/8]
		if err := trace.Write(name, d); err != nil {
			t.Fatal(err)
		}
		if i/8 != 1 {
			continue
		}
		slow, err := inject.StageTime(d, trace.StageSynthesis, 0.20)
		if err == nil {
			err = trace.Write(filepath.Join(dir, "slow", fmt.Sprintf("%02d.hw", i)), slow)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	diff := func(next string) (d compare.Diff, code int) {
		var out, messages bytes.Buffer
		code = run(&out, &messages, []string{
			"diff", filepath.Join(dir, "base"), filepath.Join(dir, next), "--json", "-q",
		})
		if err := json.Unmarshal(out.Bytes(), &d); err != nil {
			t.Fatalf("%v: %s", err, messages.String())
		}
		return d, code
	}
	if d, code := diff("slow"); code != exitVerdict || d.Verdict != compare.Regression ||
		!strings.Contains(d.Sentence, "stage synthesis +19.6 %") {
		t.Errorf("a slower stage: exit %d, %s: %s", code, d.Verdict, d.Sentence)
	}
	d, code := diff("new")
	if code == exitVerdict || d.Basis != compare.BasisTest || d.Base.Runs != 8 ||
		strings.Join(d.New.Commits, "") != "bbbb" {
		t.Errorf("equal sides: exit %d, %s by %s: %+v", code, d.Verdict, d.Basis, d.New)
	}
}

// TestPinnedStory: the diff of two runs on a GPU, one with pageable memory and one with a pinned
// pool, says what differs, names the stage, the copies and the size of both effects, and the stage
// that only one side has; page faults, which moved no further than their noise, it does not name.
func TestPinnedStory(t *testing.T) {
	args := []string{
		"diff", "../../replay/testdata/gpu/pinned-pageable", "vs",
		"../../replay/testdata/gpu/pinned-pool", "-q",
	}
	var out, messages bytes.Buffer
	if code := run(&out, &messages, args); code != exitUnsure {
		t.Errorf("without --across: exit %d: %s", code, messages.String())
	}
	for _, word := range []string{"regression", "improvement"} {
		if strings.Contains(out.String(), word) {
			t.Errorf("a verdict of %s on sides that cannot be compared:\n%s", word, out.String())
		}
	}
	out.Reset()
	run(&out, &messages, append(args, "--across", "settings"))
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"across settings: pinned: pageable -> pool",
		"Better: stage prove_start -38.5 %",
		"stage prove_start 234.2 ms 144.0 ms -38.5 %",
		"copy copy_h2d 1.00 s 98.4 ms -90.2 %",
		"pinned_pool 0 -> 1 +1.00 GiB",
		"note: stage_in: 10 spans of the new side that the other side has not, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "faults") {
		t.Errorf("names page faults:\n%s", out.String())
	}
}

func FuzzNoise(f *testing.F) {
	f.Add([]byte(`{"runs":20,"base_n":1,"new_n":1,"draws":4000,"seed":1,"factor":4,"metrics":[` +
		`{"name":"stage_time_ns","subject":"synthesis","floor_ratio":0.1}]}`))
	f.Add([]byte(`{"runs":20,"metrics":[{"name":"nothing","floor_ratio":0.1}]}`))
	f.Add([]byte(`{"runs":1,"metrics":[{"name":"peak_live_bytes","floor_ratio":-1}]}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		floor, err := decodeNoise(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, x := range floor.Floors {
			if !(x.FloorRatio >= 0) || math.IsInf(x.FloorRatio, 0) {
				t.Fatalf("floor %v passes", x)
			}
		}
	})
}
