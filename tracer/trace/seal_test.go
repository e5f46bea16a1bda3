package trace

import (
	"bytes"
	"errors"
	"highwater/tracer/journal"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// recording is a trace directory whose journals a test writes itself.
type recording struct {
	t   testing.TB
	dir string
	mu  sync.Mutex // stands for a buffer's or a resource's critical section
	now int64
}

func newRecording(t testing.TB) *recording {
	t.Helper()
	r := &recording{t: t, dir: filepath.Join(t.TempDir(), "t.hw")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m := &Manifest{
		SchemaVersion: SchemaVersion, Origin: OriginRecorded, Program: "test",
		Anchor: Anchor{Kind: AnchorMonotonic},
	}
	permits := int64(1 << 20)
	m.Resources = []Resource{{
		Name: "permit", Kind: ResourcePermit, Unit: "permit",
		Capacity: &permits, Device: None,
	}}
	m.Metrics = []Metric{{Name: "process.memory.usage", Unit: "By", Kind: "gauge"}}
	if err := WriteManifest(r.dir, m); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *recording) source(name string, base uint32) *journal.Journal {
	r.t.Helper()
	j, err := journal.Create(filepath.Join(r.dir, "journal", name), journal.Options{
		Source: name,
		Base:   base, Writers: 4, SegmentBytes: 1 << 20,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

// tick is the next time; it rises strictly.
func (r *recording) tick() int64 {
	r.now += 100
	return r.now
}

func (r *recording) close(j *journal.Journal) {
	r.t.Helper()
	if err := j.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// life writes the events of one partition: permit, span, a buffer, a sample. end says whether it
// comes to its end.
func (r *recording) life(j *journal.Journal, n int32, end bool) {
	owner := journal.Record{Job: n / 10, Partition: n % 10, Worker: int16(n % 4), Device: -1}
	put := func(kind journal.Kind, event uint8, change func(*journal.Record), ext []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		rec := owner
		rec.Kind, rec.Event, rec.TimeNS = kind, event, r.tick()
		change(&rec)
		if !j.AppendExt(&rec, ext) {
			r.t.Error("an event was lost")
		}
	}
	id := uint32(n) + 1
	permit := func(event uint8, level, waiting int64) {
		put(journal.KindQueue, event, func(x *journal.Record) {
			x.Word0, x.X, x.Y, x.Parent = j.Word("permit"), 1, level, uint32(waiting)
		}, nil)
	}
	buffer := func(event uint8, resident int64) {
		put(journal.KindBuffer, event, func(x *journal.Record) {
			x.Word0, x.Word1, x.Space, x.ID, x.Span, x.X, x.Y = j.Word("a"), j.Word("synthesis"), 1,
				id, id, 1<<20, resident
		}, nil)
	}
	permit(1, 0, 1)
	permit(2, 1, 0)
	put(journal.KindSpanBegin, 2, func(x *journal.Record) {
		x.ID, x.Word0, x.Word1, x.Word2, x.X, x.Y = id, j.Word("synthesis"), j.Word("synthesis"),
			j.Word("track"), Null, 1
	}, journal.AppendSpanBegin(nil, &journal.SpanExt{
		TraceID: [16]byte{1}, SpanID: [8]byte{2},
		Attributes: []byte(`{"a":1,"b":2}`),
	}))
	buffer(journal.BufferAlloc, 0)
	buffer(journal.BufferFill, 1<<20)
	put(journal.KindSample, 0, func(x *journal.Record) {
		x.Word0, x.X = j.Word("process.memory.usage"), int64(math.Float64bits(float64(n)))
	}, nil)
	if !end {
		return
	}
	buffer(journal.BufferFree, 1<<20)
	put(journal.KindSpanEnd, journal.StatusOK, func(x *journal.Record) {
		x.ID, x.X, x.Y = id, 77,
			Null
	},
		journal.AppendSpanEnd(nil, &journal.SpanExt{Attributes: []byte(`{"b":3}`)}))
	permit(3, 0, 0)
}

func TestSeal(t *testing.T) {
	r := newRecording(t)
	main, child := r.source("prove", 0), r.source("setup", 1)
	const lives = 400
	for n := range int32(lives) {
		r.life([]*journal.Journal{main, child}[n%2], n, true)
	}
	r.close(main)
	r.close(child)
	m, err := Seal(r.dir, SealOptions{ProcessEnd: EndFinished, Reason: "all done"})
	if err != nil {
		t.Fatal(err)
	}
	if m.SealedBy != SealedByClose || m.ProcessEnd != EndFinished || len(m.Sources) != 2 ||
		len(m.Loss) != 0 {
		t.Errorf("manifest %+v", m)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "journal")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the journal is still there")
	}
	d := load(t, r.dir)
	valid(t, d)
	if len(d.Spans) != lives || len(d.Buffers) != 3*lives || len(d.Queues) != 3*lives ||
		len(d.Samples) != lives {
		t.Errorf("%d spans, %d buffer events, %d queue events, %d samples", len(d.Spans),
			len(d.Buffers), len(d.Queues), len(d.Samples))
	}
	s := d.Spans[1]
	want := Span{
		BeginSeq: 11, EndSeq: 15, Source: "setup", SpanID: 1<<32 + 2, Kind: "stage",
		Stage: "synthesis", Name: "synthesis",
		Track: "track", Partition: 1, Worker: 1, Device: None, Stream: Null, Threads: 1,
		BeginNS: 1200, EndNS: 1700, CPUNS: 77, Bytes: Null,
		Status: "ok", Attributes: `{"a":1,"b":3}`, OtelTraceID: "01000000000000000000000000000000",
		OtelSpanID: "0200000000000000",
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("second span:\n%s", diff)
	}
}

// TestSealWriters: events of several goroutines, in one critical section, keep their order
// whichever writer took them.
func TestSealWriters(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	permit := j.Word("permit")
	level, events := int64(0), 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 2000 {
				r.mu.Lock()
				rec := journal.Record{
					Kind: journal.KindQueue, TimeNS: r.tick(), Event: 1,
					Word0: permit, X: 1, Device: -1, Worker: -1,
				}
				if i%3 > 0 {
					rec.Event = []uint8{0, 2, 3}[i%3]
					level += []int64{0, 1, -1}[i%3]
				}
				rec.Y, rec.Parent = level, journal.UnknownWaiting
				j.Append(&rec)
				events++
				r.mu.Unlock()
			}
		}()
	}
	wg.Wait()
	r.close(j)
	if _, err := Seal(r.dir, SealOptions{}); err != nil {
		t.Fatal(err)
	}
	d := load(t, r.dir)
	valid(t, d)
	if len(d.Queues) != events || d.Queues[0].WaitingAfter != Null {
		t.Errorf("%d events of %d; %+v", len(d.Queues), events, d.Queues[0])
	}
}

// Each leaves dir as a sealing that died would: sealed is how it would have ended.
var sealCrashes = []struct {
	name  string
	crash func(sealed, dir string) error
}{
	{"tables half written", func(sealed, dir string) error {
		return errors.Join(os.WriteFile(dir+"/spans.parquet.tmp", []byte("PAR1"), 0o644),
			os.WriteFile(dir+"/buffers.parquet.tmp", nil, 0o644))
	}},
	{"tables there, no manifest", func(sealed, dir string) error {
		return errors.Join(copyFile(sealed, dir, "spans.parquet"), copyFile(sealed, dir,
			"queues.parquet"))
	}},
	{
		"manifest half written",
		func(sealed, dir string) error {
			return os.WriteFile(dir+"/manifest.json.1.tmp", []byte("{"),
				0o644)
		},
	},
	{"sealed, journal left", func(sealed, dir string) error {
		return errors.Join(copyFile(sealed, dir, "spans.parquet"), copyFile(sealed, dir,
			"queues.parquet"),
			copyFile(sealed, dir, "buffers.parquet"), copyFile(sealed, dir, "samples.parquet"),
			copyFile(sealed, dir, "manifest.json"))
	}},
}

// TestSealAgain: whatever moment a sealing dies at, sealing again gives the same trace.
func TestSealAgain(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	for n := range int32(20) {
		r.life(j, n, true)
	}
	r.close(j)
	saved := t.TempDir()
	if err := os.CopyFS(saved, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := Seal(r.dir, SealOptions{ProcessEnd: EndFinished}); err != nil {
		t.Fatal(err)
	}
	want := load(t, r.dir)
	for _, c := range sealCrashes {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "t.hw")
			if err := errors.Join(os.CopyFS(dir, os.DirFS(saved)), c.crash(r.dir, dir)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := Seal(dir, SealOptions{ProcessEnd: EndFinished}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, load(t, dir), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("sealed differently:\n%s", diff)
			}
			names, _ := os.ReadDir(dir)
			if len(names) != 5 {
				t.Errorf("files left: %v", names)
			}
		})
	}
}

func copyFile(from, to, name string) error {
	b, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name), b, 0o644)
}

// killed gives the directory of a recording as a kill would leave it: its writer's memory is on
// disk, nobody holds the lock.
func killed(t testing.TB, r *recording) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "killed.hw")
	if err := os.CopyFS(dir, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRecover(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	defer j.Close()
	for n := range int32(7) {
		r.life(j, n, n != 6)
	}
	dir := killed(t, r)
	rec, err := Recover(dir, RecoverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := load(t, dir)
	valid(t, d)
	if d.Manifest.SealedBy != SealedByRecover || d.Manifest.ProcessEnd != EndUnknown {
		t.Errorf("manifest says %s, %s", d.Manifest.SealedBy, d.Manifest.ProcessEnd)
	}
	want := &Recovery{
		Dir: dir, Events: map[string]int64{
			"buffer": 20, "queue": 20, "sample": 7, "span_begin": 7,
			"span_end": 6,
		}, Lost: map[string]int64{},
		OpenSpans: 1, LiveBuffers: 1, LiveBytes: 1 << 20, Sources: 1, LastNS: 6000,
		Blocks: rec.Blocks,
	}
	if diff := cmp.Diff(want, rec, cmpopts.IgnoreFields(Recovery{}, "Manifest")); diff != "" ||
		rec.Blocks == 0 {
		t.Errorf("ledger:\n%s", diff)
	}
	again, err := Recover(dir, RecoverOptions{})
	if err != nil || !again.AlreadySealed {
		t.Errorf("recovering again: %+v, %v", again, err)
	}
}

func TestRecoverLiving(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	r.life(j, 0, false)
	if _, err := Recover(r.dir, RecoverOptions{}); !errors.Is(err, ErrLiving) ||
		!strings.Contains(err.Error(), "wait for it to end") {
		t.Errorf("recovering under a living writer: %v", err)
	}
	tr, err := Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if !tr.Live || tr.Rows() != 6 { // times of this recording are long before the cut
		t.Errorf("live %v, %d rows", tr.Live, tr.Rows())
	}
	if found, err := Validate(tr, 0); err != nil || len(found) > 0 {
		t.Errorf("a living trace: %v, %v", found, err)
	}
	r.close(j)
	if _, err := Recover(r.dir, RecoverOptions{ProcessEnd: EndKilled, Reason: "oom"}); err != nil {
		t.Fatal(err)
	}
	if m, err := ReadManifest(r.dir); err != nil || m.ProcessEnd != EndKilled ||
		m.EndReason != "oom" {
		t.Errorf("manifest %+v, %v", m, err)
	}
}

// TestRecoverDamage: a flipped bit, a cut segment, a lost manifest: what is whole comes back, and
// what is missing is said.
func TestRecoverDamage(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	for n := range int32(200) {
		r.life(j, n, true)
	}
	r.close(j)
	segment := func(dir string) string {
		names, _ := filepath.Glob(filepath.Join(dir, "journal", "main", "*.seg"))
		return names[0]
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		lost   string // a reason that must be counted, "" for none
		kept   bool   // the journal, for somebody to look at
	}{
		{
			"flipped bit", func(t *testing.T, dir string) {
				flip(t, segment(dir), inFullBlock(t, segment(dir))+20)
			},
			LossTorn, true,
		},
		{"segment cut", func(t *testing.T, dir string) {
			if err := os.Truncate(segment(dir), 100_000); err != nil {
				t.Fatal(err)
			}
		}, journal.MissingEvents, true},
		{
			"segment gone", func(t *testing.T, dir string) { os.Remove(segment(dir)) },
			LossDamagedSource, true,
		},
		{
			"head damaged", func(t *testing.T, dir string) { flip(t, segment(dir), 30) },
			LossDamagedBytes, true,
		},
		{"no manifest", func(t *testing.T, dir string) { os.Remove(manifestPath(dir)) }, "", false},
		{"broken manifest", func(t *testing.T, dir string) {
			os.WriteFile(manifestPath(dir),
				[]byte("{\"schema"), 0o644)
		}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := killed(t, r)
			c.damage(t, dir)
			rec, err := Recover(dir, RecoverOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if c.lost != "" && rec.Lost[c.lost] == 0 || c.lost == "" && (len(rec.Lost) > 0 ||
				len(rec.Warnings) == 0) {
				t.Errorf("lost %v, warnings %v", rec.Lost, rec.Warnings)
			}
			d := load(t, dir)
			for _, v := range check(t, d) {
				if v.Severity == SeverityError {
					t.Error(v)
				}
			}
			missing := int64(200 * 9)
			for _, n := range rec.Events {
				missing -= n
			}
			checkCounted(t, d, missing)
			checkKept(t, rec, c.kept)
		})
	}
}

// inFullBlock is the offset of a queue event amid a full block: which blocks are full, and what stands where in
// them, depends on which writers the goroutine met. A damaged last record of a block could as well be one that
// a kill cut short, and a damaged word would cost no event.
func inFullBlock(t *testing.T, path string) int64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head, block, kind = 4096, journal.BlockBytes, 4
	for at := head; at+block <= len(text); at += block {
		if last := text[at+block-journal.RecordBytes : at+block]; allZero(last) {
			continue
		}
		for rec := at; rec < at+block/2; rec += journal.RecordBytes {
			if text[rec+kind] == byte(journal.KindQueue) {
				return int64(rec)
			}
		}
	}
	t.Fatal("no queue event in a full block")
	return 0
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// checkCounted wants so many missing events counted, or said to be unknown.
func checkCounted(t *testing.T, d *Data, missing int64) {
	t.Helper()
	counted := int64(0)
	for _, l := range d.Manifest.Loss {
		if l.Reason == journal.MissingEvents {
			counted += l.Count
		}
	}
	if counted != missing && len(unknownLosses(&d.Manifest)) == 0 {
		t.Errorf("%d events are missing, losses %+v", missing, d.Manifest.Loss)
	}
}

// checkKept wants a damaged journal beside the trace, or nothing left of a whole one.
func checkKept(t *testing.T, rec *Recovery, kept bool) {
	t.Helper()
	names, err := os.ReadDir(rec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	want := 5
	if kept {
		want = 6
		if _, err := os.Stat(rec.DamagedJournal); err != nil || hasJournal(rec.Dir) {
			t.Errorf("damaged journal at %q: %v", rec.DamagedJournal, err)
		}
	}
	if (rec.DamagedJournal != "") != kept || len(names) != want {
		t.Errorf("damaged journal at %q, files %v", rec.DamagedJournal, names)
	}
}

// TestRecoverUnclosed: of a killed writer's journal nobody knows how many events a missing part
// held. That is counted in bytes, and said.
func TestRecoverUnclosed(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	defer j.Close()
	for n := range int32(200) {
		r.life(j, n, true)
	}
	dir := killed(t, r)
	segment := filepath.Join(dir, "journal", "main", "000000.seg")
	if err := os.Truncate(segment, 100_000); err != nil {
		t.Fatal(err)
	}
	rec, err := Recover(dir, RecoverOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Lost[LossMissingBytes] != 1<<20-100_000 {
		t.Errorf("lost %v", rec.Lost)
	}
	if all := strings.Join(rec.Warnings, "\n"); !strings.Contains(all, "is unknown") {
		t.Errorf("warnings %q", all)
	}
	checkKept(t, rec, true)
}

// TestRecoverSealed: a sealed trace with a damaged table is an error, and its journal stays where
// one is left.
func TestRecoverSealed(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	r.life(j, 0, true)
	r.close(j)
	saved := t.TempDir()
	if err := os.CopyFS(saved, os.DirFS(filepath.Join(r.dir, "journal"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Seal(r.dir, SealOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(r.dir, "journal"), os.DirFS(saved)); err != nil {
		t.Fatal(err)
	}
	flip(t, tablePath(r.dir, "queues"), 100)
	_, err := Recover(r.dir, RecoverOptions{})
	fileErrorWith(t, err, "queues.parquet")
	if !hasJournal(r.dir) {
		t.Error("the journal of a damaged trace is gone")
	}
}

// TestSealGlob: a directory may be named with what a pattern would take for its own.
func TestSealGlob(t *testing.T) {
	r := newRecording(t)
	dir := filepath.Join(t.TempDir(), "y[1*.hw")
	if err := os.Rename(r.dir, dir); err != nil {
		t.Fatal(err)
	}
	r.dir = dir
	j := r.source("main", 0)
	r.life(j, 0, true)
	r.close(j)
	left := filepath.Join(dir, "spans.parquet.1.tmp")
	if err := os.WriteFile(left, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(dir, RecoverOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a temporary file stays: %v", err)
	}
	valid(t, load(t, dir))
}

// TestRebuilt: without a manifest, resources and metrics are told from the records.
func TestRebuilt(t *testing.T) {
	b := newRebuilder(dataSink{new(Data)})
	for _, e := range []QueueEvent{
		{Resource: "job", Event: EventRequest, Amount: 1},
		{Resource: "job", Event: EventAcquire, Amount: 1, LevelAfter: 1},
		{Resource: "workers", Event: EventAcquire, Amount: 1, LevelAfter: 3},
		{Resource: "channel", Event: EventSend, Amount: 1, LevelAfter: Null},
		{Resource: "gpu_lock/2", Event: EventAcquire, Amount: 1, LevelAfter: 1},
		{Resource: "budget", Event: EventRequest, Amount: 1},
		{Resource: "memory", Event: EventAcquire, Amount: 4096, LevelAfter: 4096},
	} {
		if err := b.Queue(&e); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := b.Sample(&Sample{Metric: "m"}); err != nil {
			t.Fatal(err)
		}
	}
	var m Manifest
	b.fill(&m)
	n := func(v int64) *int64 { return &v }
	want := []Resource{
		{Name: "job", Kind: ResourceJob, Unit: "job", Capacity: n(1), Device: None},
		{Name: "workers", Kind: ResourcePermit, Unit: "permit", Capacity: n(3), Device: None},
		{Name: "channel", Kind: ResourceChannel, Unit: "item", Device: None},
		{Name: "gpu_lock/2", Kind: ResourceLock, Unit: "lock", Capacity: n(1), Device: 2},
		{Name: "budget", Kind: ResourceBudget, Unit: "byte", Device: None},
		{Name: "memory", Kind: ResourceBudget, Unit: "byte", Capacity: n(4096), Device: None},
	}
	if diff := cmp.Diff(want, m.Resources); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Metric{{Name: "m", Kind: "gauge"}}, m.Metrics); diff != "" {
		t.Error(diff)
	}
}

// TestLiveCut: what a living writer may be about to append is not read.
func TestLiveCut(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	defer j.Close()
	r.life(j, 0, true)
	before := j.Now()
	in, err := readJournals(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	if after := j.Now(); in.cut < before-cutMarginNS || in.cut > after-cutMarginNS {
		t.Errorf("cut at %d, read between %d and %d", in.cut, before, after)
	}
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		b[at] ^= 4
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
