package trace

import (
	"errors"
	"highwater/tracer/journal"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
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
	}{
		{
			"flipped bit", func(t *testing.T, dir string) { flip(t, segment(dir), 4096+64*5+20) },
			LossTorn,
		},
		{"segment gone", func(t *testing.T, dir string) { os.Remove(segment(dir)) }, LossDamagedSource},
		{"head damaged", func(t *testing.T, dir string) { flip(t, segment(dir), 30) }, LossDamagedSource},
		{"no manifest", func(t *testing.T, dir string) { os.Remove(manifestPath(dir)) }, ""},
		{"broken manifest", func(t *testing.T, dir string) {
			os.WriteFile(manifestPath(dir),
				[]byte("{\"schema"), 0o644)
		}, ""},
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
			for _, v := range check(t, load(t, dir)) {
				if v.Severity == SeverityError && !slices.Contains([]string{
					"resource-listed",
					"metric-listed",
				}, v.Rule) {
					t.Error(v)
				}
			}
		})
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
