package tracer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"highwater/internal/leak"
	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killEnv); dir != "" {
		killedChild(dir)
		return
	}
	for _, kv := range os.Environ() { // a collector that this machine sends to gets no spans of tests
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "OTEL_") || k == WitnessEnv {
			os.Unsetenv(k)
		}
	}
	leak.Main(m, nil)
}

func record(t testing.TB, opts Options) *Recorder {
	t.Helper()
	opts.Source = "test"
	r, err := Create(filepath.Join(t.TempDir(), "t.hw"), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(trace.EndFinished, ""); err != nil {
			t.Error(err)
		}
		validate(t, r.Dir())
	})
	return r
}

// validate opens a sealed trace and wants it free of violations.
func validate(t testing.TB, dir string) *trace.Data {
	t.Helper()
	in, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	found, err := trace.Validate(in, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Errorf("%s: %s", dir, v)
	}
	d, err := in.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// listed is a manifest that knows the metrics which the tests sample.
var listed = trace.Manifest{Metrics: []trace.Metric{{Name: "m", Unit: "By", Kind: "gauge"}}}

// row is a journal entry in words.
type row struct {
	journal.Entry
	word [3]string
	ext  journal.SpanExt
	attr map[string]any
}

// rows reads what the recorder has journaled up to now, its own buffer and clock left out, in the
// order of time.
func rows(t testing.TB, r *Recorder, kinds ...journal.Kind) []row {
	t.Helper()
	in, err := journal.OpenReader(r.j.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out []row
	for in.Scan() {
		e := row{Entry: *in.Entry()}
		e.word = [3]string{in.Word(e.Word0), in.Word(e.Word1), in.Word(e.Word2)}
		if !slices.Contains(kinds, e.Kind) || e.word[0] == trace.ClassRecorder {
			continue
		}
		if e.Kind == journal.KindSpanBegin || e.Kind == journal.KindSpanEnd {
			var ok bool
			if e.ext, ok = journal.DecodeSpan(in.Entry()); !ok {
				t.Fatalf("extension of %+v makes no sense", e.Record)
			}
			if len(e.ext.Attributes) > 0 {
				if err := json.Unmarshal(e.ext.Attributes, &e.attr); err != nil {
					t.Fatalf("attributes %q: %v", e.ext.Attributes, err)
				}
			}
		}
		out = append(out, e)
	}
	if l := in.Ledger(); in.Err() != nil || l.Torn != 0 || len(l.Damage) != 0 || l.UnresolvedWords != 0 {
		t.Fatalf("journal: %v, %+v", in.Err(), l)
	}
	slices.SortStableFunc(out, func(a, b row) int { return int(a.TimeNS - b.TimeNS) })
	return out
}

func TestWordsAreThoseOfTheSchema(t *testing.T) {
	for name, c := range map[string]struct{ journal, schema []string }{
		"buffer events": {journal.BufferEvents, []string{"", trace.EventAlloc, trace.EventResize, trace.EventFill, trace.EventReclass,
			trace.EventPin, trace.EventUnpin, trace.EventHandoff, trace.EventLastUse, trace.EventFree}},
		"queue events": {journal.QueueEvents, []string{"", trace.EventRequest, trace.EventAcquire, trace.EventRelease, trace.EventSend,
			trace.EventSent, trace.EventRecv, trace.EventCancel}},
		"span kinds": {journal.SpanKinds, []string{"", trace.KindJob, trace.KindStage, trace.KindOp, trace.KindKernel, trace.KindCopy,
			trace.KindWait, trace.KindFree, trace.KindOther}},
		"spaces": {journal.Spaces, []string{"", trace.SpaceHost, trace.SpacePinned, trace.SpaceFile, trace.SpaceDevice}},
	} {
		if !slices.Equal(c.journal, c.schema) {
			t.Errorf("%s: journal %q, schema %q", name, c.journal, c.schema)
		}
	}
	for i, word := range journal.QueueEvents {
		if queueEvent(word) != uint8(i) {
			t.Errorf("queue event %q has number %d, want %d", word, queueEvent(word), i)
		}
	}
	if journal.Text(journal.SpanKinds, journal.SpanOther) != trace.KindOther || journal.Text(journal.BufferEvents, journal.BufferFree) != trace.EventFree {
		t.Error("numbers and words differ")
	}
}

func TestBufferLife(t *testing.T) {
	r := record(t, Options{})
	_, span := r.Start(context.Background(), spec(trace.KindStage, "synthesis", NoOwner))
	defer span.End(nil)
	pool := r.Alloc(BufferSpec{Class: trace.ClassRecorder, Space: trace.SpaceHost, Device: -1, CapacityBytes: 1 << 20, ResidentBytes: trace.Null, Owner: NoOwner})
	defer pool.Free()
	owner := Owner{Job: 3, Partition: 1, Worker: 2, Stage: trace.StageSynthesis, Span: span.ID()}
	b := r.Alloc(BufferSpec{Class: trace.ClassA, Space: trace.SpaceHost, Device: -1, Parent: pool.ID(), CapacityBytes: 4096, ResidentBytes: trace.Null, Estimated: true, Owner: owner})
	b.Fill(100)
	b.Resize(8192, 200)
	b.Reclass(trace.ClassH)
	b.Pin()
	b.Unpin()
	b.Handoff(Owner{Job: 3, Partition: 1, Worker: -1, Stage: trace.StageProveStart})
	b.LastUse()
	b.Free()
	type state struct {
		event, class, stage, space string
		capacity, resident         int64
		worker                     int16
		span                       uint32
	}
	want := []state{
		{"alloc", "a", "synthesis", "host", 4096, trace.Null, 2, 1},
		{"fill", "a", "synthesis", "host", 4096, 100, 2, 1},
		{"resize", "a", "synthesis", "host", 8192, 200, 2, 1},
		{"reclass", "h", "synthesis", "host", 8192, 200, 2, 1},
		{"pin", "h", "synthesis", "pinned", 8192, 200, 2, 1},
		{"unpin", "h", "synthesis", "host", 8192, 200, 2, 1},
		{"handoff", "h", "prove_start", "host", 8192, 200, -1, 0},
		{"last_use", "h", "prove_start", "host", 8192, 200, -1, 0},
		{"free", "h", "prove_start", "host", 8192, 200, -1, 0},
	}
	var last int64
	got := rows(t, r, journal.KindBuffer)
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i, e := range got {
		s := state{journal.Text(journal.BufferEvents, e.Event), e.word[0], e.word[1], journal.Text(journal.Spaces, e.Space), e.X, e.Y, e.Worker, e.Span}
		if s != want[i] || int64(e.ID) != b.ID() || int64(e.Parent) != pool.ID() || e.Extra != 1 || e.Job != 3 || e.Device != -1 {
			t.Errorf("event %d: %+v, want %+v; record %+v", i, s, want[i], e.Record)
		}
		if i > 0 && e.TimeNS <= last {
			t.Errorf("event %d at %d, the one before at %d", i, e.TimeNS, last)
		}
		last = e.TimeNS
	}
}

func TestQueueEvents(t *testing.T) {
	r := record(t, Options{})
	capacity := int64(1 << 40)
	q := r.Queue(trace.Resource{Name: "budget", Kind: trace.ResourceBudget, Unit: "byte", Capacity: &capacity, Device: trace.None})
	const n = 1000
	for i := range n {
		q.Event(QueueOp{Event: trace.EventRequest, Owner: Owner{Job: 1, Partition: int32(i), Worker: -1}, Priority: 1 << 20, Amount: 1 << 40, WaitingAfter: int64(i)})
	}
	q.Event(QueueOp{Event: trace.EventAcquire, Owner: Owner{Job: 1, Worker: -1}, Amount: 1 << 40, LevelAfter: 1 << 40, WaitingAfter: trace.Null})
	got := rows(t, r, journal.KindQueue)
	if len(got) != n+1 {
		t.Fatalf("%d events", len(got))
	}
	for i, e := range got[:n] {
		if e.word[0] != "budget" || e.Event != 1 || e.Partition != int32(i) || e.Parent != uint32(i) || e.Extra != 1<<15-1 || i > 0 && e.TimeNS <= got[i-1].TimeNS {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
	if e := got[n]; e.Parent != journal.UnknownWaiting || e.X != 1<<40 || e.Y != 1<<40 || e.Worker != -1 || journal.Text(journal.QueueEvents, e.Event) != "acquire" {
		t.Errorf("last event %+v", e.Record)
	}
	m, err := trace.ReadManifest(r.Dir())
	if err != nil || len(m.Resources) != 1 || m.Resources[0].Name != "budget" || *m.Resources[0].Capacity != capacity {
		t.Errorf("resources %+v, %v", m.Resources, err)
	}
}

func spec(kind, name string, owner Owner) SpanSpec {
	return SpanSpec{Kind: kind, Stage: trace.StageSynthesis, Name: name, Track: "worker 1", Owner: owner, Device: -1, Stream: trace.Null, Threads: 2}
}

func TestSpans(t *testing.T) {
	r := record(t, Options{})
	owner := Owner{Job: 7, Partition: 2, Worker: 1}
	ctx, job := r.Start(context.Background(), spec(trace.KindJob, "job seven", owner), attribute.String("who", `a "quote"`))
	ctx, op := r.Start(ctx, spec(trace.KindOp, "ntt", owner))
	op.SetAttributes(attribute.Int("rounds", 5))
	op.SetCPUNanos(123)
	op.SetBytes(456)
	fctx, foreign := r.TracerProvider().Tracer("lib").Start(ctx, "query")
	_, under := r.Start(fctx, spec(trace.KindOp, "under", owner))
	under.End(nil)
	foreign.AddEvent("retry")
	foreign.End()
	op.End(errors.New("no luck"))

	begins, ends := map[string]row{}, map[uint32]row{}
	for _, e := range rows(t, r, journal.KindSpanBegin, journal.KindSpanEnd) {
		if e.Kind == journal.KindSpanBegin {
			begins[e.word[1]] = e
		} else {
			ends[e.ID] = e
		}
	}
	jb, ob, fb := begins["job seven"], begins["ntt"], begins["query"]
	if int64(jb.ID) != job.ID() || jb.Parent != 0 || ob.Parent != jb.ID || fb.Parent != ob.ID || begins["under"].Parent != fb.ID {
		t.Errorf("parents: %+v %+v %+v", jb.Record, ob.Record, fb.Record)
	}
	if jb.attr["who"] != `a "quote"` || jb.word[2] != "worker 1" || jb.word[0] != "synthesis" || jb.X != trace.Null || jb.Y != 2 || jb.Job != 7 {
		t.Errorf("job's begin: %+v %v", jb.Record, jb.attr)
	}
	if journal.Text(journal.SpanKinds, fb.Event) != "other" || fb.Job != 7 || fb.Partition != 2 || fb.word[2] != "lib" {
		t.Errorf("foreign begin: %+v %v", fb.Record, fb.word)
	}
	if ob.ext.ParentSpanID != jb.ext.SpanID || ob.ext.TraceID != jb.ext.TraceID || jb.ext.ParentSpanID != [8]byte{} || jb.ext.TraceID == [16]byte{} {
		t.Errorf("OpenTelemetry ids: %x %x", jb.ext, ob.ext)
	}
	oe := ends[ob.ID]
	if oe.Event != journal.StatusError || oe.X != 123 || oe.Y != 456 || oe.attr["rounds"] != 5.0 || oe.attr["error.message"] != "no luck" {
		t.Errorf("op's end: %+v %v", oe.Record, oe.attr)
	}
	if fe := ends[fb.ID]; fe.Event != journal.StatusUnset || fmt.Sprint(fe.attr["otel.events"]) != "[retry]" {
		t.Errorf("foreign end: %+v %v", fe.Record, fe.attr)
	}
	if ue := ends[begins["under"].ID]; ue.Event != journal.StatusOK || ue.X != trace.Null || ue.attr != nil {
		t.Errorf("end without news: %+v %v", ue.Record, ue.attr)
	}
	if _, ended := ends[jb.ID]; ended {
		t.Error("the open span has an end")
	}
	job.End(nil)
}

func TestLongAttributesAreCutAndCounted(t *testing.T) {
	r := record(t, Options{})
	var attrs []attribute.KeyValue
	for i := range 10 {
		attrs = append(attrs, attribute.String(fmt.Sprint("key", i), strings.Repeat("é", 1000)))
	}
	attrs = append(attrs, attribute.Int("last", 1), attribute.Float64Slice("floats", []float64{1, 2.5}))
	_, s := r.Start(context.Background(), spec(trace.KindOp, "x", NoOwner), attrs...)
	s.End(nil)
	b := rows(t, r, journal.KindSpanBegin)[0]
	if len(b.attr) < 3 || b.attr["last"] != 1.0 || fmt.Sprint(b.attr["floats"]) != "[1 2.5]" || b.ext.Cut != 10 || r.Stats().Cut != 10 {
		t.Errorf("%d attributes, %d cut, %d counted", len(b.attr), b.ext.Cut, r.Stats().Cut)
	}
	if text, _ := b.attr["key0"].(string); text == "" || strings.Trim(text, "é") != "" {
		t.Errorf("a cut text is %q", text)
	}
}

func TestNothingRecordsNothing(t *testing.T) {
	var r *Recorder
	b := r.Alloc(BufferSpec{Class: "a"})
	var zero Buffer
	for _, b := range []*Buffer{&b, &zero} {
		b.Fill(1)
		b.Resize(1, 1)
		b.Reclass("b")
		b.Handoff(NoOwner)
		b.Pin()
		b.Unpin()
		b.LastUse()
		b.Free()
		if b.ID() != 0 {
			t.Error("a buffer that is not recorded has an id")
		}
	}
	q := r.Queue(trace.Resource{Name: "x"})
	q.Event(QueueOp{Event: trace.EventSend})
	in := context.WithValue(context.Background(), spanKey{}, 1)
	ctx, s := r.Start(in, SpanSpec{})
	s.SetAttributes(attribute.Int("a", 1))
	s.SetBytes(1)
	s.SetCPUNanos(1)
	s.End(errors.New("x"))
	_, foreign := r.TracerProvider().Tracer("x").Start(ctx, "y")
	foreign.End()
	r.Sample("m", 1)
	if s.ID() != 0 || q != nil || ctx != in || r.Dir() != "" || r.Now() != 0 || foreign.IsRecording() || r.Stats() != (journal.Stats{}) || r.Export().Spans != 0 {
		t.Error("a nil recorder did something")
	}
	if err := errors.Join(r.UpdateManifest(nil), r.Close("", "")); err != nil {
		t.Error(err)
	}
}

func TestEventsAllocateNothing(t *testing.T) {
	r := record(t, Options{Manifest: listed})
	q := r.Queue(trace.Resource{Name: "channel", Kind: trace.ResourceChannel, Unit: "item", Device: trace.None})
	partition := int32(0)
	b := r.Alloc(BufferSpec{Class: "a", Space: trace.SpaceHost, Device: -1, CapacityBytes: 1, Owner: NoOwner})
	for name, f := range map[string]func(){
		"alloc": func() {
			x := r.Alloc(BufferSpec{Class: "a", Space: trace.SpaceHost, Device: -1, Owner: NoOwner})
			x.Free()
		},
		"fill":    func() { b.Fill(1) },
		"handoff": func() { b.Handoff(Owner{Job: 1, Stage: trace.StageFinalise}) },
		"queue": func() {
			partition++
			q.Event(QueueOp{Event: trace.EventSend, Owner: Owner{Job: 1, Partition: partition, Stage: "synthesis"}, Amount: 1})
		},
		"sample": func() { r.Sample("m", 1) },
	} {
		if n := testing.AllocsPerRun(500, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestJoin(t *testing.T) {
	r := record(t, Options{})
	var joined []*Recorder
	for range 2 {
		c, err := Join(r.Dir(), "setup")
		if err != nil {
			t.Fatal(err)
		}
		joined = append(joined, c)
	}
	plain := BufferSpec{Class: "a", Space: trace.SpaceHost, Device: -1, Owner: NoOwner}
	own, first, second := r.Alloc(plain), joined[0].Alloc(plain), joined[1].Alloc(plain)
	if a, b, c := own.ID()>>32, first.ID()>>32, second.ID()>>32; a != 0 || b != 1 || c != 2 {
		t.Errorf("ids from ranges %d %d %d", a, b, c)
	}
	for range 100 { // one clock: readings of two recorders interleave, within what setting the clocks may err
		a, b, c := r.Now(), joined[0].Now(), r.Now()
		if b < a-100_000 || b > c+100_000 {
			t.Fatalf("clocks differ: %d not in %d..%d", b, a, c)
		}
	}
	for _, c := range joined {
		if err := c.Close(trace.EndFinished, ""); err != nil {
			t.Error(err)
		}
	}
	m, err := trace.ReadManifest(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range m.Sources {
		names = append(names, s.Name)
		if s.Anchor != m.Anchor || s.PID != os.Getpid() {
			t.Errorf("source %+v", s)
		}
	}
	if !slices.Equal(names, []string{"test", "setup", "setup-2"}) {
		t.Errorf("sources %q", names)
	}
	if _, err := Join(t.TempDir(), "x"); err == nil {
		t.Error("joined a folder without a trace")
	}
	if _, err := Join(r.Dir(), "../x"); err == nil {
		t.Error("a source name that leaves the folder was accepted")
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, Options{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("folder in use: %v", err)
	}
}

// TestFailedStart: a start that fails leaves the directory as it found it, so that the next works.
func TestFailedStart(t *testing.T) {
	fresh, empty := filepath.Join(t.TempDir(), "new", "t.hw"), t.TempDir()
	for _, dir := range []string{fresh, empty} {
		for _, env := range [][2]string{
			{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}, {WitnessEnv, t.TempDir()},
		} {
			t.Run(env[0], func(t *testing.T) {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
				t.Setenv(env[0], env[1])
				_, err := Create(dir, Options{})
				if err == nil || strings.Count(err.Error(), "create trace") != 1 {
					t.Errorf("error %v", err)
				}
				names, err := os.ReadDir(dir)
				if len(names) > 0 || (err == nil) != (dir == empty) {
					t.Errorf("left in %s: %v, %v", dir, names, err)
				}
			})
		}
		r, err := Create(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(trace.EndFinished, ""); err != nil {
			t.Error(err)
		}
	}
}

// TestCreateAtOnce: of several that start in one directory one gets it, unharmed by the others.
func TestCreateAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.hw")
	var wg sync.WaitGroup
	started := make(chan *Recorder, 8)
	for range cap(started) {
		wg.Go(func() {
			if r, err := Create(dir, Options{}); err == nil {
				started <- r
			}
		})
	}
	wg.Wait()
	close(started)
	if len(started) != 1 {
		t.Fatalf("%d recorders in one directory", len(started))
	}
	if err := (<-started).Close(trace.EndFinished, ""); err != nil {
		t.Fatal(err)
	}
	validate(t, dir)
}

func TestManifestOfTheStart(t *testing.T) {
	r := record(t, Options{Manifest: trace.Manifest{Program: "prove", Seed: 5, Versions: map[string]string{"x": "1"}}})
	m, err := trace.ReadManifest(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if m.SchemaVersion != trace.SchemaVersion || m.Origin != trace.OriginRecorded || m.SealedBy != "" || m.Seed != 5 || m.Program != "prove" {
		t.Errorf("manifest %+v", m)
	}
	if m.Anchor.Kind != trace.AnchorMonotonic || m.Anchor.MonotonicNS <= 0 || m.Anchor.UnixNS <= 0 {
		t.Errorf("anchor %+v", m.Anchor)
	}
	if m.Host.CPUs == 0 || m.Host.Kernel == "" || m.Host.RAMBytes == 0 || m.Memory.EffectiveBytes == 0 || m.Versions["go"] == "" || m.Versions["x"] != "1" {
		t.Errorf("host %+v, memory %+v, versions %v", m.Host, m.Memory, m.Versions)
	}
	if m.Recorder.EventNS <= 0 || len(m.Sources) != 1 || m.Sources[0].Name != "test" {
		t.Errorf("recorder %+v, sources %+v", m.Recorder, m.Sources)
	}
	for name := range m.Versions {
		if name != "go" && name != "x" && !strings.Contains(name, "/") {
			t.Errorf("module %q is not named by its path", name)
		}
	}
}

func TestUpdatesFollowEachOther(t *testing.T) {
	r := record(t, Options{})
	var wg sync.WaitGroup
	const n = 20
	for i := range n {
		wg.Go(func() {
			if err := r.UpdateManifest(func(m *trace.Manifest) {
				m.Metrics = append(m.Metrics, trace.Metric{Name: fmt.Sprint("m", i), Unit: "1", Kind: "gauge"})
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if m, err := trace.ReadManifest(r.Dir()); err != nil || len(m.Metrics) != n {
		t.Errorf("%d of %d changes kept, %v", len(m.Metrics), n, err)
	}
}

func TestWitnessCountsWhatWasAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "witness")
	t.Setenv(WitnessEnv, path)
	r := record(t, Options{Manifest: listed})
	for range 5 {
		r.Sample("m", 1)
	}
	_, s := r.Start(context.Background(), spec(trace.KindOp, "x", NoOwner))
	s.End(nil)
	got, err := ReadWitness(path)
	if err != nil || got[journal.KindSample] != 5 || got[journal.KindSpanBegin] != 1 || got[journal.KindSpanEnd] != 1 || got[journal.KindQueue] != 0 {
		t.Errorf("witness %v, %v", got, err)
	}
	if _, err := ReadWitness(t.TempDir()); err == nil {
		t.Error("read a folder")
	}
}

// TestOwnMemory wants the recorder's mapped segments in the ledger.
func TestOwnMemory(t *testing.T) {
	r := record(t, Options{SegmentBytes: 1 << 20})
	eventually(t, "two segments are in the ledger", func() bool {
		r.self.mu.Lock()
		defer r.self.mu.Unlock()
		return r.self.buffer.ID() != 0 && r.self.buffer.at.X == 2<<20
	})
}
