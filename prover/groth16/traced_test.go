package groth16

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"highwater/prover/circuit"
	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/trace"
)

// recordProof makes one proof with recording on, and returns the validated trace.
func recordProof(t *testing.T, presize bool) (*trace.Data, *System) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "proof.hw")
	rec, err := tracer.Create(dir, tracer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := circuit.New(circuit.MiMC, 12)
	if err != nil {
		t.Fatal(err)
	}
	msms := 0
	r := &rig{env: Env{Mem: &hostmem.Allocator{Rec: rec}, AfterMSM: func() { msms++ }}, circuit: c}
	if r.system, err = Compile(t.Context(), r.env, c.Shape()); err != nil {
		t.Fatal(err)
	}
	if r.key, err = Setup(t.Context(), r.env, r.system, SetupOptions{}); err != nil {
		t.Fatal(err)
	}
	r.backend = NewCPU(r.key)
	r.prove(t, circuit.Partition{}, presize, 2)
	if msms != 5 {
		t.Errorf("AfterMSM ran %d times, want 5", msms)
	}
	system := *r.system
	if err := errors.Join(r.backend.Close(), r.key.Free(), r.system.Free(), rec.Close("finished", "")); err != nil {
		t.Fatal(err)
	}
	opened, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	violations, err := trace.Validate(opened, 10)
	if err != nil || len(violations) != 0 {
		t.Fatalf("trace is invalid: %v, %v", violations, err)
	}
	data, err := opened.Load()
	if err != nil {
		t.Fatal(err)
	}
	return data, &system
}

// life is what a trace tells of one buffer.
type life struct {
	first, last trace.BufferEvent
	events      []string
	peakBytes   int64
}

func lives(d *trace.Data) map[int64]*life {
	all := map[int64]*life{}
	for _, e := range d.Buffers {
		l := all[e.BufferID]
		if l == nil {
			l = &life{first: e}
			all[e.BufferID] = l
		}
		l.last, l.events = e, append(l.events, e.Event)
		l.peakBytes = max(l.peakBytes, e.CapacityBytes)
	}
	return all
}

// ofClass gives the one buffer that began as class.
func ofClass(t *testing.T, all map[int64]*life, class string) *life {
	t.Helper()
	var found []*life
	for _, l := range all {
		if l.first.Class == class {
			found = append(found, l)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d buffers of class %s, want 1", len(found), class)
	}
	return found[0]
}

func TestRecordedProofAccountsForEveryBuffer(t *testing.T) {
	data, system := recordProof(t, true)
	all := lives(data)
	for id, l := range all {
		if l.last.Event != trace.EventFree {
			t.Errorf("buffer %d of class %s ends with %s, not with free", id, l.first.Class, l.last.Event)
		}
		mayGrow := l.first.Class == trace.ClassCPUScratch || l.first.Class == trace.ClassRecorder
		if !mayGrow && slices.Contains(l.events, trace.EventResize) {
			t.Errorf("buffer %d of class %s was resized though everything was reserved up front", id, l.first.Class)
		}
	}
	var settled int64
	for _, class := range []string{trace.ClassA, trace.ClassB, trace.ClassC, trace.ClassAux} {
		l := ofClass(t, all, class)
		settled += l.peakBytes
		if !slices.Contains(l.events, trace.EventLastUse) {
			t.Errorf("%s is freed without a last use", class)
		}
		if n := len(slices.DeleteFunc(slices.Clone(l.events), func(e string) bool { return e != trace.EventFill })); n < 8 {
			t.Errorf("%s was declared touched in %d steps, too few for a curve", class, n)
		}
	}
	if want := system.SettledBytes(); settled != want {
		t.Errorf("a, b, c and w have %d bytes in the ledger, SettledBytes says %d", settled, want)
	}
	if a := ofClass(t, all, trace.ClassA); a.last.Class != trace.ClassH {
		t.Errorf("a is freed as %s, want h", a.last.Class)
	}
}

func TestGrowingByDoublingShowsInTheLedger(t *testing.T) {
	data, system := recordProof(t, false)
	all := lives(data)
	var settled int64
	for _, class := range []string{trace.ClassA, trace.ClassB, trace.ClassC, trace.ClassAux} {
		l := ofClass(t, all, class)
		settled += l.peakBytes
		if l.first.CapacityBytes != firstGrownBytes || !slices.Contains(l.events, trace.EventResize) {
			t.Errorf("%s starts with %d bytes: %v", class, l.first.CapacityBytes, l.events)
		}
	}
	if want := system.GrownBytes(); settled != want || want < system.SettledBytes() {
		t.Errorf("%d bytes in the ledger, GrownBytes says %d, SettledBytes %d", settled, want, system.SettledBytes())
	}
}

func TestMSMScratchIsCutFromOnePool(t *testing.T) {
	data, _ := recordProof(t, true)
	var pool int64
	var children, largest int64
	for id, l := range lives(data) {
		if l.first.Class != trace.ClassCPUScratch {
			continue
		}
		if !l.first.Estimated {
			t.Errorf("scratch buffer %d is not marked estimated", id)
		}
		if l.first.ParentID == 0 {
			pool = id
			if l.first.Job != trace.None {
				t.Errorf("the pool belongs to job %d", l.first.Job)
			}
			continue
		}
		children++
		largest = max(largest, l.peakBytes)
	}
	if children != 5 || pool == 0 {
		t.Fatalf("%d MSMs with scratch in pool %d, want 5", children, pool)
	}
	if got := lives(data)[pool].peakBytes; got != largest {
		t.Errorf("the pool has %d bytes, the largest MSM %d", got, largest)
	}
}

func TestOperationsAreSpans(t *testing.T) {
	data, _ := recordProof(t, true)
	got := map[string]int{}
	for _, s := range data.Spans {
		if s.Kind != trace.KindOp || s.Status == "error" || s.EndNS == trace.Null {
			t.Errorf("span %s: kind %s, status %s, end %d", s.Name, s.Kind, s.Status, s.EndNS)
		}
		got[s.Stage+": "+s.Name]++
	}
	want := map[string]int{"b_g2: msm b_g2": 1}
	for _, op := range []string{
		"intt a b c", "coset ntt a b c", "pointwise", "coset intt h", "msm h", "msm l", "gather a", "msm a", "gather b", "msm b_g1",
	} {
		want["prove_start: "+op] = 1
	}
	if !maps.Equal(got, want) {
		t.Errorf("operations %v, want %v", got, want)
	}
}
