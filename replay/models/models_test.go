package models_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"highwater/replay/models"
	"highwater/replay/pipeline"
	"highwater/replay/sim"
	"highwater/tracer/trace"
)

// variants are the rows of the table of variants, in cuzk.md 1.2.
var variants = []string{
	"v0", "v1", "v1b", "v1c", "v2", "v3", "v4", "v5", "v6", "v7", "v7b", "v7c", "v7d", "v8", "v9",
	"v10", "v11", "v12", "v13", "v14", "v15",
}

func load(t *testing.T, name string, set map[string]string) *pipeline.Model {
	t.Helper()
	m, err := models.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = m.Apply(set); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryVariantHasAModel(t *testing.T) {
	list, err := models.List()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]models.Named{}
	for _, n := range list {
		named[n.Name] = n
	}
	if len(list) != len(variants) {
		t.Errorf("%d named models, %d variants", len(list), len(variants))
	}
	for _, v := range variants {
		n := named["cuzk/"+v]
		if n.Doc == "" || n.Source == "" || n.Base == "" {
			t.Errorf("cuzk/%s: %+v", v, n)
		}
	}
}

// TestEveryModelRuns: a short run of each is a valid trace in which all jobs finish.
func TestEveryModelRuns(t *testing.T) {
	for _, v := range variants {
		t.Run(v, func(t *testing.T) {
			m := load(t, "cuzk/"+v, map[string]string{"jobs": "3"})
			data, st, err := sim.Record(m, sim.Draw{Seed: 1, Bootstrap: true})
			if err != nil {
				t.Fatal(err)
			}
			if st.JobsDone != 3 {
				t.Errorf("%d of 3 jobs done", st.JobsDone)
			}
			broken, err := trace.Validate(trace.FromData(data), 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range broken {
				t.Error(b)
			}
		})
	}
}

func TestModelsReadBack(t *testing.T) {
	for _, v := range variants {
		m := load(t, "cuzk/"+v, nil)
		text, err := pipeline.Format(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := pipeline.Parse(text)
		if err != nil {
			t.Fatalf("cuzk/%s: %v", v, err)
		}
		back, err := pipeline.Format(again)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(text, back); d != "" {
			t.Errorf("cuzk/%s after a round trip (-want +got):\n%s", v, d)
		}
	}
}

func TestVariantsDifferInWhatBlocksOnWhat(t *testing.T) {
	v7, v7b, v8 := load(t, "cuzk/v7", nil), load(t, "cuzk/v7b", nil), load(t, "cuzk/v8", nil)
	if v7.Policy.EarlyFree || !v7b.Policy.EarlyFree || !v8.Policy.EarlyFree {
		t.Error("a, b, c are freed early from V7b on")
	}
	if v7.Policy.PermitRelease != pipeline.ReleaseSynthEnd ||
		v8.Policy.PermitRelease != pipeline.ReleaseSendAccepted {
		t.Error("V8 holds the permit until the send, V7 does not")
	}
	for set, want := range map[string]pipeline.Bound{"1": 1, "10": 10, "12": 12} {
		m := load(t, "cuzk/v8", map[string]string{"partition_workers": set})
		if got := m.Policy.ChannelCapacity; got != want {
			t.Errorf("V8 with %s workers has a channel of %s", set, got)
		}
	}
	m := load(t, "cuzk/v8", map[string]string{"partition_workers": "12", "channel_capacity": "1"})
	if m.Policy.ChannelCapacity != 1 {
		t.Errorf("a channel that is set is %s", m.Policy.ChannelCapacity)
	}
	head := load(t, "cuzk/v15", map[string]string{"byte_budget": "128GiB"})
	if head.Policy.PartitionWorkers != 9 || head.Admission.Handoff != 9 {
		t.Errorf("HEAD at 128 GiB has %d workers and a hand-off of %d, want 9", head.Policy.PartitionWorkers,
			head.Admission.Handoff)
	}
	free := load(t, "cuzk/v10", map[string]string{"byte_budget": "unbounded"})
	if free.Policy.PartitionWorkers != 64 || free.Policy.ChannelCapacity != 32 {
		t.Errorf("V10 without a budget has %d workers and a channel of %s, want the most of each",
			free.Policy.PartitionWorkers, free.Policy.ChannelCapacity)
	}
}

func TestRefusalsSayWhy(t *testing.T) {
	for _, c := range []struct{ name, setting, value, want string }{
		{"cuzk/v9", "partition_workers", "3", "V9 removed the partition semaphore"},
		{"cuzk/v0", "channel_capacity", "3", "there is no channel"},
		{"cuzk/v0", "gpu_workers", "2", "one worker a GPU"},
		{"cuzk/v1", "queue_order", "priority", "order is that of their arrival"},
		{"cuzk/v2", "permit_release", "freed", "there are no permits"},
		{"cuzk/v9", "byte_budget", "40GiB", "of the cached objects"},
		{"cuzk/v8", "partition_workers", "0", "outside"},
		{"cuzk/v8", "log_size", "20", "replay cannot vary it"},
		{"cuzk/v8", "gpu_worker", "2", `did you mean "gpu_workers"`},
		{"cuzk/v3", "split_proving", "true", "lock's scope is the whole worker"},
		{"cuzk/v14", "pacer_target", "-1", "pacer_target"},
	} {
		m, err := models.Load(c.name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Apply(map[string]string{c.setting: c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s=%s: got %v, want an error that says %q", c.name, c.setting, c.value, err,
				c.want)
		}
	}
	if _, err := models.Load("cuzk/v99"); err == nil || !strings.Contains(err.Error(), "cuzk/v7b") {
		t.Errorf("an unknown model: %v", err)
	}
	if _, err := models.Load("../../go"); err == nil {
		t.Error("a path is no name")
	}
}

// TestMoreDevicesProveMore: V0 has a worker a GPU, which does everything; the others' GPU workers
// follow the devices by themselves.
func TestMoreDevicesProveMore(t *testing.T) {
	run := func(devices string) float64 {
		s, err := sim.New(load(t, "cuzk/v0", map[string]string{"jobs": "4", "devices": devices}))
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Run(sim.Draw{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return st.MakespanNS
	}
	if one, two := run("1"), run("2"); two > 0.6*one {
		t.Errorf("four proofs take %.0f s on two devices, %.0f s on one", two/1e9, one/1e9)
	}
}

// The deallocation mutexes came with V6.
func TestDeallocationIsBoundedFromV6On(t *testing.T) {
	for _, v := range variants {
		want := int64(1)
		switch v {
		case "v0", "v1", "v1b", "v1c", "v2", "v3", "v4", "v5":
			want = 0
		}
		for _, s := range load(t, "cuzk/"+v, nil).Stages {
			if s.Name == "dealloc" && s.Workers != want {
				t.Errorf("cuzk/%s deallocates %d at once (0: any number), want %d", v, s.Workers, want)
			}
		}
	}
}

// TestBudgetIsNoBoundOnRSS: 14 GiB are reserved for what settles at 15.5, and the pool keeps what is
// given back (cuzk.md 6, pathology 19).
func TestBudgetIsNoBoundOnRSS(t *testing.T) {
	m := load(t, "cuzk/v13", nil)
	s, err := sim.New(m)
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Run(sim.Draw{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if rss, budget := st.PeakRSSBytes(&m.Memory), int64(m.Policy.ByteBudget); rss <= budget {
		t.Errorf("peak RSS %d within the budget %d", rss, budget)
	}
	if st.QueueMax.BudgetBytes > int64(m.Policy.ByteBudget) {
		t.Errorf("%d bytes reserved", st.QueueMax.BudgetBytes)
	}
}

// TestPCEKeepsNobodyWaiting: from V9 on PCE is extracted beside the syntheses, by each job that finds
// it missing (cuzk.md 1.5, and pathology 21).
func TestPCEKeepsNobodyWaiting(t *testing.T) {
	for _, v := range []string{"v9", "v10", "v11", "v12", "v13", "v14", "v15"} {
		t.Run(v, func(t *testing.T) {
			data, _, err := sim.Record(load(t, "cuzk/"+v, map[string]string{"jobs": "3"}), sim.Draw{})
			if err != nil {
				t.Fatal(err)
			}
			first := int64(-1)
			for _, s := range data.Spans {
				if s.Stage == trace.StageSynthesis && (first < 0 || s.BeginNS < first) {
					first = s.BeginNS
				}
			}
			// the SRS takes 15 s to load, parsing 0.3 s, the extraction 46.9 s
			if want := int64(15.3e9); first != want {
				t.Errorf("the first synthesis begins at %d, want %d", first, want)
			}
			loads, most, now := 0, 0, 0
			for _, b := range data.Buffers {
				switch {
				case b.Class != trace.ClassPCE:
				case b.Event == trace.EventAlloc:
					loads, now = loads+1, now+1
				case b.Event == trace.EventFree:
					now--
				}
				most = max(most, now)
			}
			if loads != 3 || most != 3 || now != 1 {
				t.Errorf("%d extractions, %d at once, %d kept: want each job's, and one kept", loads, most, now)
			}
		})
	}
}
