package device

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"highwater/tracer"
	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// script is a ring whose events a test wrote.
type script struct {
	events  []Event
	dropped int64
	err     error
}

var scriptNames = []string{"?", "d_arena", "d_a", "msm h", "ntt a b c", "kernel", "copy_h2d", "digits", "lane", "pinned_pool", "gather a", "fixed base"}

func scriptName(n uint16) string { return scriptNames[int(n)%len(scriptNames)] }

func (s *script) ReadEvents(out []Event) (int, error) {
	n := copy(out, s.events)
	s.events = s.events[n:]
	return n, s.err
}

func (s *script) Ring() (Ring, error) { return Ring{Dropped: s.dropped}, nil }
func (s *script) Memory() (Memory, error) {
	return Memory{DriverKnown: true, DriverUsed: 7, DriverBase: 2}, nil
}

// numbered numbers events in the ring's order.
func numbered(events []Event) []Event {
	for i := range events {
		events[i].Seq = uint64(i)
	}
	return events
}

// record journals the events under a stage of job 0, partition 0, and gives the trace.
func record(t *testing.T, s *script) *trace.Data {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run.hw")
	rec, err := tracer.Create(dir, tracer.Options{NoOTLP: true})
	if err != nil {
		t.Fatal(err)
	}
	owner := tracer.NoOwner
	owner.Job, owner.Partition, owner.Stage = 0, 0, trace.StageProveStart
	_, span := rec.Start(t.Context(), tracer.SpanSpec{Kind: trace.KindStage, Stage: owner.Stage, Name: owner.Stage,
		Owner: owner, Device: 0, Stream: trace.Null, Threads: trace.Null})
	owner.Span = span.ID()
	now := journal.Monotonic()
	for i := range s.events {
		s.events[i].TimeNS += now
	}
	d := &drain{eventJournal: newEventJournal(rec.Drain(), 0, scriptName), from: s, rec: rec,
		loss: trace.Loss{Writer: "device/0", Reason: "event ring full"}}
	d.bind(now, owner)
	d.empty()
	d.release(owner, 1<<40)
	span.End(nil)
	if err := d.finish(journal.Monotonic()); err != nil && s.err == nil {
		t.Fatal(err)
	}
	if len(d.buffers)+len(d.ops)+len(d.running) > 0 {
		t.Error("the journal still holds something")
	}
	if err := rec.Close(trace.EndFinished, ""); err != nil {
		t.Fatal(err)
	}
	return validTrace(t, dir)
}

func validTrace(t *testing.T, dir string) *trace.Data {
	t.Helper()
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	violations, err := trace.Validate(tr, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		if v.Severity == trace.SeverityError {
			t.Errorf("%+v", v)
		}
	}
	data, err := tr.Load()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// find is the one span of a name.
func find(t *testing.T, d *trace.Data, name string) *trace.Span {
	t.Helper()
	var found *trace.Span
	for i := range d.Spans {
		if d.Spans[i].Name == name {
			if found != nil {
				t.Fatalf("span %q stands twice", name)
			}
			found = &d.Spans[i]
		}
	}
	if found == nil {
		t.Fatalf("there is no span %q", name)
	}
	return found
}

// TestJournal: an operation with its kernel, copy, attribute and buffer becomes what a trace has for
// them, in the right places, although the device's clock runs a little early.
func TestJournal(t *testing.T) {
	d := record(t, &script{events: numbered([]Event{
		{TimeNS: 10, Kind: eventAlloc, Name: 1, ID: 1, Bytes: 100, Job: -1, Partition: -1},
		{TimeNS: 20, Kind: eventAlloc, Name: 2, ID: 2, Bytes: 60, Arg: 1},
		{TimeNS: 25, Kind: eventAlloc, Name: 9, ID: 3, Bytes: 8, Device: -1, Job: -1, Partition: -1},
		{TimeNS: -9000, Kind: eventOpBegin, Name: 3, ID: 1, Stream: 2},
		{TimeNS: -9500, Kind: eventKernelBegin, Name: 5, ID: 2, Stream: 2, Arg: 1},
		{TimeNS: 40, Kind: eventKernelEnd, Name: 5, ID: 2, Stream: 2, Arg: 1},
		{TimeNS: 41, Kind: eventCopyBegin, Name: 6, ID: 3, Stream: 3, Bytes: 96, Arg: 1},
		{Kind: eventAttribute, Name: 7, ID: 1, Arg: 12345},
		{TimeNS: 90, Kind: eventOpEnd, Name: 3, ID: 1, Stream: 2},
		{TimeNS: 80, Kind: eventCopyEnd, Name: 6, ID: 3, Stream: 3, Arg: 1},
		{TimeNS: 100, Kind: eventLockWait, Name: 8, ID: 9, Stream: noStream},
		{TimeNS: 5100, Kind: eventLockAcquire, Name: 8, ID: 9, Stream: noStream},
		{TimeNS: 5200, Kind: eventFree, ID: 2},
	})})
	stage, op := find(t, d, "prove_start"), find(t, d, "msm h")
	kernel, copied, wait := find(t, d, "kernel"), find(t, d, "copy_h2d"), find(t, d, "lane")
	if op.ParentID != stage.SpanID || op.BeginNS < stage.BeginNS || op.Attributes != `{"prover.msm.digits":12345}` {
		t.Errorf("operation %+v", op)
	}
	if kernel.ParentID != op.SpanID || kernel.BeginNS < op.BeginNS || kernel.Stream != 2 || kernel.Bytes != trace.Null {
		t.Errorf("kernel %+v", kernel)
	}
	if copied.ParentID != op.SpanID || copied.Bytes != 96 || copied.Track != "device/0/copies/1" {
		t.Errorf("copy %+v", copied)
	}
	if wait.Kind != trace.KindWait || wait.EndNS-wait.BeginNS != 5000 || wait.Stream != trace.Null {
		t.Errorf("wait %+v", wait)
	}
	for _, b := range d.Buffers {
		switch {
		case b.Class == "d_a" && (b.ParentID == 0 || b.SpanID != stage.SpanID || b.Space != trace.SpaceDevice):
			t.Errorf("buffer %+v", b)
		case b.Class == "pinned_pool" && (b.Space != trace.SpacePinned || b.Device != -1):
			t.Errorf("pool %+v", b)
		}
	}
}

// TestJournalOfAnything: whatever a ring that lost events still gives, the trace is valid, and nothing
// is live at its end.
func TestJournalOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		d := record(t, &script{events: numbered(anyEvents(r)), dropped: 5})
		live := int64(0)
		for _, b := range d.Buffers {
			if b.Class != trace.ClassRecorder {
				live += b.DeltaBytes
			}
		}
		if live != 0 {
			t.Errorf("%d bytes are live at the end", live)
		}
		if len(d.Manifest.Loss) != 1 || d.Manifest.Loss[0].Count != 5 {
			t.Errorf("losses %+v, want 5", d.Manifest.Loss)
		}
	}
}

// anyEvents are events of every kind, half of them without the other end. As the library does, they
// use no id twice, cut buffers from large ones, and free those after what is cut from them.
func anyEvents(r *rand.Rand) (events []Event) {
	begun := map[uint64]bool{}
	roots := []uint64{0}
	for at := range 300 {
		e := Event{TimeNS: int64(at*100 + r.IntN(500)), Kind: EventKind(r.IntN(16)), Name: uint16(r.IntN(12)),
			ID: uint64(1 + r.IntN(80)), Stream: uint16(r.IntN(4)), Job: int32(r.IntN(2)) - 1,
			Partition: int32(r.IntN(2)) - 1, Arg: uint64(r.IntN(80)), Bytes: uint64(r.IntN(1000))}
		switch e.Kind {
		case eventAlloc:
			e.ID, e.Arg = uint64(1000+at), roots[r.IntN(len(roots))]
			if r.IntN(3) == 0 {
				e.Bytes, e.Arg = 1<<40, 0
				roots = append(roots, e.ID)
			}
		case eventFree:
			if e.ID = uint64(1000 + r.IntN(at+1)); slices.Contains(roots, e.ID) {
				continue
			}
		case eventOpBegin, eventKernelBegin, eventCopyBegin:
			if begun[e.ID] {
				continue
			}
			begun[e.ID] = true
		}
		events = append(events, e)
	}
	return events
}

// TestDrainProblem: what keeps the drain from reading is an error at the end, not silence.
func TestDrainProblem(t *testing.T) {
	rec, err := tracer.Create(filepath.Join(t.TempDir(), "run.hw"), tracer.Options{NoOTLP: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close(trace.EndFailed, "")
	broken := errors.New("the ring is gone")
	d := startDrain(&script{err: broken}, rec, 3, scriptName, 100)
	d.halt()
	if err := d.finish(journal.Monotonic()); !errors.Is(err, broken) {
		t.Errorf("error %v, want that the ring is gone", err)
	}
	var off *drain
	off.halt()
	if err := off.finish(0); err != nil {
		t.Error(err)
	}
}
