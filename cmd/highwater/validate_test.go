package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"highwater/replay"
	"highwater/tracer/trace"
)

// heldOut are six settings of the hypercube that `make validate-heldout` draws 60 of, for runs
// of four jobs of two partitions.
var heldOut = [][]string{
	{"--partition-workers=4", "--channel-capacity=3", "--permit-release=freed", "--no-early-free"},
	{"--partition-workers=8", "--channel-capacity=0", "--permit-release=synth_end"},
	{"--partition-workers=5", "--channel-capacity=0", "--permit-release=gpu_pickup", "--no-early-free"},
	{"--partition-workers=1", "--channel-capacity=8", "--permit-release=synth_end"},
	{"--partition-workers=3", "--channel-capacity=6", "--permit-release=send_accepted"},
	{"--partition-workers=2", "--channel-capacity=unbounded", "--permit-release=send_accepted", "--byte-budget=1MiB"},
}

// recordRuns proves two runs to fit to and the six to predict.
func recordRuns(t *testing.T) []string {
	t.Helper()
	dir, keys := t.TempDir(), t.TempDir()
	all := append([][]string{
		{"--partition-workers=6", "--permit-release=synth_end"},
		{"--partition-workers=2", "--permit-release=send_accepted"},
	}, heldOut...)
	var out []string
	for i, flags := range all {
		name := fmt.Sprintf("run-%d.hw", i)
		if i < 2 {
			name = fmt.Sprintf("fit-%d.hw", i)
		}
		out = append(out, filepath.Join(dir, name))
		args := append([]string{
			"prove", "--quiet", "--backend", "cpu", "--circuit", "mimc", "--log-size", "10", "--jobs", "4",
			"--partitions", "2", "--cache-dir", keys, "--out", out[i],
		}, flags...)
		if text, err := exec.Command(lookHighwater(t), args...).CombinedOutput(); err != nil {
			t.Fatalf("highwater %v: %v\n%s", args, err, text)
		}
	}
	return out
}

// TestRealRunsAreValidated: real runs, on whatever machine and beside whatever load this test finds.
// How well they are predicted is luck there, of the peak too: which partitions were in memory at
// once is the scheduler's matter. Bars on errors are held by runs whose law is known
// (replay.TestHeldOutSettingsOfAKnownLaw), by recorded ones (replay.TestRealRunsPredictEachOther,
// TestIdentityOfRealRuns) and, on a quiet machine, by `make validate-heldout`. What holds anywhere:
// all runs are predicted, what is called measured is what the trace says, and a peak lies between
// that of one partition and that of all which the settings let in at once.
func TestRealRunsAreValidated(t *testing.T) {
	runs := recordRuns(t)
	got := here(append([]string{"validate", "--quiet", "--json", "--draws", "40", "--fit-on", "fit-*"}, runs...)...)
	if got.code != 0 && got.code != exitVerdict {
		t.Fatalf("exits with %d\n%s", got.code, got.stderr)
	}
	var v replay.Validation
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
		t.Fatal(err)
	}
	if v.HeldOut == nil || v.HeldOut.Runs != int64(len(heldOut)) || v.HeldOut.Failed != 0 || len(v.Cases) != len(runs) {
		t.Fatalf("held out: %+v, %d cases", v.HeldOut, len(v.Cases))
	}
	memory := memoryOf(t, runs)
	for _, c := range v.Cases {
		if c.PeakLive == nil || c.PeakRSS == nil || c.ProofInterval == nil || c.Backlog == nil {
			t.Errorf("%s: not all is compared: %+v", c.Trace, c)
			continue
		}
		memory.holds(t, &c, v.Groups[0].SettledBytes)
		sameAsInfo(t, &c)
		frozenHolds(t, c.Trace)
	}
}

// runMemory is what the runs have in common, in bytes.
type runMemory struct{ resident, scratch int64 }

// memoryOf is the least of what belongs to no job when proving begins, and the most MSM scratch of
// a run.
func memoryOf(t *testing.T, dirs []string) runMemory {
	t.Helper()
	m := runMemory{resident: math.MaxInt64}
	for _, dir := range dirs {
		tr, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		data, err := tr.Load()
		tr.Close()
		if err != nil {
			t.Fatal(err)
		}
		resident := int64(0)
		for _, b := range data.Buffers {
			if b.Job >= 0 {
				break
			}
			if b.ParentID == 0 {
				resident += b.DeltaBytes
			}
		}
		m.resident = min(m.resident, resident)
		for _, b := range data.Buffers {
			if b.Class == trace.ClassCPUScratch && b.ParentID == 0 {
				m.scratch = max(m.scratch, b.CapacityBytes)
			}
		}
	}
	return m
}

// holds fails where a peak, predicted or measured, is outside what the settings admit. Besides what
// it settles at, a partition holds its witness or its split: less than half as much again; and each
// that is proved adds to the scratch.
func (m *runMemory) holds(t *testing.T, c *replay.ValidationCase, settled int64) {
	t.Helper()
	partitions := int64(8)
	if c.Set["permit_release"] == "freed" {
		workers, err := strconv.ParseInt(c.Set["partition_workers"], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", c.Trace, err)
		}
		partitions = min(partitions, workers)
	}
	least, most := m.resident+settled, m.resident+partitions*(settled+settled/2+m.scratch)
	for what, peak := range map[string]int64{"predicted": c.PeakLive.Predicted, "measured": c.PeakLive.Measured} {
		if settled <= 0 || peak < least || peak > most {
			t.Errorf("%s %v: peak live is %s as %d, outside %d to %d", filepath.Base(c.Trace), c.Set, what, peak, least, most)
		}
	}
}

// sameAsInfo: what is called measured is what info says.
func sameAsInfo(t *testing.T, c *replay.ValidationCase) {
	t.Helper()
	info := here("info", c.Trace, "--json").figures(t)
	for key, x := range map[string]*replay.Compared{
		"peak_live_bytes": c.PeakLive, "peak_rss_bytes": c.PeakRSS, "proof_interval_ns": c.ProofInterval,
	} {
		if info[key] != float64(x.Measured) {
			t.Errorf("%s: %s is measured as %d, and %v by info", filepath.Base(c.Trace), key, x.Measured, info[key])
		}
	}
}

// frozenHolds: with frozen durations the device is as busy as it was. How much the makespan errs
// depends on how long the scheduler let wakers wait.
func frozenHolds(t *testing.T, dir string) {
	t.Helper()
	got := here("replay", dir, "--durations", "recorded", "--json", "--quiet")
	var p replay.Prediction
	if err := json.Unmarshal([]byte(got.stdout), &p); err != nil {
		t.Fatalf("%v\n%s", err, got.stderr)
	}
	if p.Identity.MakespanErrorRatio == nil || p.Identity.PeakLiveErrorRatio == nil {
		t.Fatalf("%s: no identity: %+v", filepath.Base(dir), p.Identity)
	}
	proving := int64(0)
	for _, s := range here("info", dir, "--json").figures(t)["stages"].([]any) {
		if s := s.(map[string]any); s["name"] == trace.StageProveStart {
			proving = int64(s["total_ns"].(float64))
		}
	}
	if proving == 0 || float64(*p.MakespanNS) < 0.99*float64(proving) {
		t.Errorf("%s: frozen makespan %d ns, and the one device proves for %d", filepath.Base(dir), *p.MakespanNS, proving)
	}
}
