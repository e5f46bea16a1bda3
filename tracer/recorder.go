package tracer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"highwater/tracer/journal"
	"highwater/tracer/otlp"
	"highwater/tracer/trace"
)

const journalFolder = "journal"

// Recorder records one source (usually one process) into a trace directory.
type Recorder struct {
	dir     string
	creator bool // it sealed at Close
	j       *journal.Journal
	idBase  int64 // the source's number in the upper half of its ids
	buffers atomic.Uint32
	witness *witness
	eventNS float64
	self    selfBuffer

	provider *sdktrace.TracerProvider
	tracer   oteltrace.Tracer
	spans    liveSpans
	ids      *idGenerator
	export   *otlp.Exporter // nil: no collector

	closing  sync.Once
	mu       sync.Mutex
	deferred []error // of calls that cannot return one; Close does
}

// Create makes the trace directory dir (which must not exist, or be empty), writes its first
// manifest and starts recording. Where it fails it removes what it made.
func Create(dir string, opts Options) (*Recorder, error) {
	made, err := makeEmpty(dir)
	if err != nil {
		return nil, fmt.Errorf("create trace: %w", err)
	}
	r, err := create(dir, opts)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create trace: %w", err), removeStarted(dir, made))
	}
	return r, nil
}

// create starts recording in a directory that is ours.
func create(dir string, opts Options) (*Recorder, error) {
	m := opts.Manifest
	fillManifest(&m)
	source := opts.Source
	if source == "" {
		source = sourceName(m.Program)
	}
	r := &Recorder{dir: dir, creator: true, eventNS: journal.MeasureEvent()}
	m.Recorder.EventNS = r.eventNS
	m.Sources = append(m.Sources, processSource(source, m.Anchor))
	if err := trace.WriteManifest(dir, &m); err != nil {
		return nil, err
	}
	if err := r.start(source, m.Anchor, opts); err != nil {
		return nil, err
	}
	return r, nil
}

// Join adds this process as a further source to a trace that another process (its parent) is
// recording. Ids of each source come from a range of their own. Times count from the trace's
// anchor. Where the trace already has a source of that name, a number is added to it.
func Join(dir, source string) (*Recorder, error) {
	m, err := trace.ReadManifest(dir)
	if err != nil {
		return nil, fmt.Errorf("join trace: %w", err)
	}
	if m.SealedBy != "" {
		return nil, fmt.Errorf("join trace %s: it is sealed already", dir)
	}
	r := &Recorder{dir: dir}
	for n := 1; ; n++ {
		name := source
		if n > 1 {
			name = fmt.Sprintf("%s-%d", source, n)
		}
		err = r.start(name, m.Anchor, Options{})
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("join trace: %w", err)
		}
		source = name
		break
	}
	err = r.UpdateManifest(func(m *trace.Manifest) {
		m.Sources = append(m.Sources, processSource(source, m.Anchor))
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("join trace: %w", err), r.Close(trace.EndFailed, ""))
	}
	return r, nil
}

// start opens the journal and what hangs on it.
func (r *Recorder) start(source string, anchor trace.Anchor, opts Options) error {
	if err := checkSource(source); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(r.dir, journalFolder, source)); err == nil {
		return fmt.Errorf("source %s: %w", source, fs.ErrExist)
	}
	base, err := journal.ClaimBase(filepath.Join(r.dir, journalFolder))
	if err != nil {
		return err
	}
	r.idBase = int64(base) << 32
	if r.witness, err = openWitness(opts.Witness); err != nil {
		return err
	}
	r.j, err = journal.Create(filepath.Join(r.dir, journalFolder, source), journal.Options{
		Source: source, Base: base, AnchorMonotonic: anchor.MonotonicNS, AnchorUnix: anchor.UnixNS,
		SegmentBytes: opts.SegmentBytes, OnMapped: func(n int64) { r.self.mapped(n) },
	})
	if err != nil {
		return err
	}
	if err := r.startSpans(opts); err != nil {
		return errors.Join(err, r.j.Close())
	}
	r.append(&journal.Record{Kind: journal.KindClock, TimeNS: r.j.Now(), X: time.Now().UnixNano(),
		Job: -1, Partition: -1, Worker: -1, Device: -1})
	r.self.start(r)
	return nil
}

// Dir is the trace directory, "" for a nil Recorder.
func (r *Recorder) Dir() string {
	if r == nil {
		return ""
	}
	return r.dir
}

// Now is the trace's clock: nanoseconds since its anchor. 0 for a nil Recorder.
func (r *Recorder) Now() int64 {
	if r == nil {
		return 0
	}
	return r.j.Now()
}

// append journals a record and tells the witness.
func (r *Recorder) append(rec *journal.Record) {
	if r.j.Append(rec) && r.witness != nil {
		r.witness.count(rec.Kind)
	}
}

// Sample records one reading of a metric now. It implements probe.Sink.
func (r *Recorder) Sample(metric string, value float64) {
	if r == nil {
		return
	}
	rec := sampleRecord(r.j.Word(metric), value)
	rec.TimeNS = r.j.Now()
	r.append(&rec)
}

// Stats counts what was recorded and lost so far; zero for a nil Recorder.
func (r *Recorder) Stats() journal.Stats {
	if r == nil {
		return journal.Stats{}
	}
	return r.j.Stats()
}

// Export counts what went to the collector; zero where there is none.
func (r *Recorder) Export() otlp.Stats {
	if r == nil {
		return otlp.Stats{}
	}
	return r.export.Stats()
}

func (r *Recorder) note(err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deferred = append(r.deferred, err)
}

// makeEmpty makes dir, or checks that it is empty, and makes the journal's folder in it: of several
// that start there at once, one gets it. made says whether dir is new.
func makeEmpty(dir string) (made bool, err error) {
	err = os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(dir, 0o755)
	}
	made = err == nil
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	names, err := os.ReadDir(dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%s: the folder is not empty; choose another or remove it", dir)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, journalFolder), 0o755)
	}
	if err != nil && made {
		_ = os.Remove(dir) // stays where somebody put something into it
	}
	return made, err
}

// removeStarted removes what a failed start left in dir, and dir where it is new, so that the next
// try finds it as this one did.
func removeStarted(dir string, made bool) error {
	err := os.RemoveAll(filepath.Join(dir, journalFolder))
	if rerr := os.Remove(filepath.Join(dir, "manifest.json")); !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if made {
		err = errors.Join(err, os.Remove(dir))
	}
	if err != nil {
		return fmt.Errorf("remove what was started: %w", err)
	}
	return nil
}

func sourceName(program string) string {
	if name := filepath.Base(program); program != "" && checkSource(name) == nil {
		return name
	}
	if name := filepath.Base(os.Args[0]); checkSource(name) == nil {
		return name
	}
	return "process"
}

// checkSource accepts names that are safe as a folder's.
func checkSource(name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if name == "" || len(name) > 100 || name[0] == '.' || strings.Trim(name, letters) != "" {
		return fmt.Errorf("source name %q: use 1 to 100 letters, digits, '.', '_' and '-', "+
			"not starting with a dot", name)
	}
	return nil
}
