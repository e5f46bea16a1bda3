package trace

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

const (
	groupRows  = 64 << 10 // rows of a row group
	writeBatch = 1024     // rows handed to parquet-go, or to a table's goroutine, at once
	fileBuffer = 1 << 20
)

// Writer writes a sealed trace: rows of the four tables, each in its order, in any interleaving;
// then Close with the manifest. It is for one goroutine; each table is encoded by a goroutine of
// its own. A trace exists once Close has returned nil: the manifest is renamed into place last.
type Writer struct {
	dir     string
	made    bool // the directory is ours to remove
	done    bool
	spans   *tableWriter[Span, diskSpan, *diskSpan]
	buffers *tableWriter[BufferEvent, diskBuffer, *diskBuffer]
	queues  *tableWriter[QueueEvent, diskQueue, *diskQueue]
	samples *tableWriter[Sample, diskSample, *diskSample]
}

// Create makes the directory dir where it is missing and starts the four tables in it. A directory
// that already holds a trace (a manifest) is refused.
func Create(dir string) (*Writer, error) {
	made, err := makeTraceDir(dir)
	if err != nil {
		return nil, err
	}
	w, err := newWriter(dir)
	if err != nil {
		if made {
			_ = os.Remove(dir) // empty and ours; the first error is what counts
		}
		return nil, err
	}
	w.made = made
	return w, nil
}

func makeTraceDir(dir string) (made bool, err error) {
	err = os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		return true, nil
	}
	if info, serr := os.Stat(dir); serr != nil || !info.IsDir() {
		return false, fmt.Errorf("create trace: %w", err)
	}
	if _, err := os.Lstat(manifestPath(dir)); !errors.Is(err, fs.ErrNotExist) {
		return false,
			fmt.Errorf("create trace %s: it already holds a trace: choose another name or remove it", dir)
	}
	return false, nil
}

// newWriter starts the tables under temporary names in an existing directory.
func newWriter(dir string) (*Writer, error) {
	w := &Writer{dir: dir}
	var errs [4]error
	w.spans, errs[0] = newTable[Span, diskSpan](dir, "spans")
	w.buffers, errs[1] = newTable[BufferEvent, diskBuffer](dir, "buffers")
	w.queues, errs[2] = newTable[QueueEvent, diskQueue](dir, "queues")
	w.samples, errs[3] = newTable[Sample, diskSample](dir, "samples")
	if err := errors.Join(errs[:]...); err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// Span adds a row; spans come by BeginSeq. The row is copied.
func (w *Writer) Span(row *Span) error { return w.spans.add(row) }

// Buffer adds a row; buffer events come by Seq. The row is copied.
func (w *Writer) Buffer(row *BufferEvent) error { return w.buffers.add(row) }

// Queue adds a row; queue events come by Seq. The row is copied.
func (w *Writer) Queue(row *QueueEvent) error { return w.queues.add(row) }

// Sample adds a row; samples come by time. The row is copied.
func (w *Writer) Sample(row *Sample) error { return w.samples.add(row) }

// Close finishes the tables, makes them durable and writes the manifest by rename. An empty
// SealedBy is written as close. After an error the trace is not there; Abort removes what is left.
func (w *Writer) Close(m *Manifest) error {
	sealed := *m
	return w.close(&sealed)
}

// close is Close; m becomes what is written.
func (w *Writer) close(m *Manifest) error {
	if w.done {
		return errors.New("close trace: it is closed already")
	}
	if err := errors.Join(w.spans.finish(), w.buffers.finish(), w.queues.finish(),
		w.samples.finish()); err != nil {
		w.Abort()
		return err
	}
	w.done = true
	m.Tables = []Table{
		w.spans.listed(), w.buffers.listed(), w.queues.listed(), w.samples.listed(),
	}
	if m.SealedBy == "" {
		m.SealedBy = SealedByClose
	}
	if m.SchemaVersion == 0 {
		m.SchemaVersion = SchemaVersion
	}
	return WriteManifest(w.dir, m)
}

// Abort gives up and removes what was written. After Close it does nothing.
func (w *Writer) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.spans.abort()
	w.buffers.abort()
	w.queues.abort()
	w.samples.abort()
	if w.made {
		_ = os.Remove(w.dir) // stays where someone put more into it
	}
}

// Write writes a whole trace in memory to the directory dir.
func Write(dir string, d *Data) error {
	w, err := Create(dir)
	if err != nil {
		return err
	}
	defer w.Abort()
	if err := errors.Join(addAll(w.Span, d.Spans), addAll(w.Buffer, d.Buffers), addAll(w.Queue,
		d.Queues),
		addAll(w.Sample, d.Samples)); err != nil {
		return err
	}
	return w.Close(&d.Manifest)
}

func addAll[T any](add func(*T) error, rows []T) error {
	for i := range rows {
		if err := add(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// diskRow is a pointer to a disk row D that takes over a public row T.
type diskRow[T, D any] interface {
	*D
	from(*T)
}

// tableWriter writes one table in a goroutine of its own: rows are gathered into batches, which
// travel over work and come back over free.
type tableWriter[T, D any, P diskRow[T, D]] struct {
	table string
	file  *digestFile
	path  string // of the finished file; it is written beside it until then
	batch []T
	work  chan []T
	free  chan []T
	ended chan error // the goroutine's result
	count int64
}

func newTable[T, D any, P diskRow[T, D]](dir, table string) (*tableWriter[T, D, P], error) {
	path := tablePath(dir, table)
	f, err := os.Create(path + ".tmp")
	if err != nil {
		return nil, fmt.Errorf("create table: %w", err)
	}
	const inFlight = 8
	w := &tableWriter[T, D, P]{
		table: table, file: &digestFile{File: f, hash: sha256.New()}, path: path,
		batch: make([]T, 0, writeBatch),
		work:  make(chan []T, inFlight), free: make(chan []T, inFlight), ended: make(chan error, 1),
	}
	for range inFlight - 1 {
		w.free <- make([]T, 0, writeBatch)
	}
	go func(work <-chan []T) { w.ended <- w.run(work) }(w.work)
	return w, nil
}

// add puts a row into the batch. An error of the goroutine shows at finish: it keeps taking batches
// until then.
func (w *tableWriter[T, D, P]) add(row *T) error {
	if w.work == nil {
		return fmt.Errorf("write %s: the table is closed", w.table)
	}
	w.batch = append(w.batch, *row)
	if len(w.batch) == writeBatch {
		w.work <- w.batch
		w.batch = (<-w.free)[:0]
	}
	return nil
}

// run encodes batches until the channel closes. After an error it only empties the channel.
func (w *tableWriter[T, D, P]) run(work <-chan []T) (err error) {
	out := bufio.NewWriterSize(w.file, fileBuffer)
	options := append([]parquet.WriterOption{
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
		parquet.DataPageStatistics(false),
		parquet.CreatedBy("highwater", strconv.Itoa(SchemaVersion), ""),
	}, boundless()...)
	p := parquet.NewGenericWriter[D](out, options...)
	disk := make([]D, writeBatch)
	for batch := range work {
		if err == nil {
			err = w.encode(p, disk, batch)
		}
		w.free <- batch
	}
	if err == nil {
		err = errors.Join(p.Close(), out.Flush())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", w.path, err)
	}
	return nil
}

func (w *tableWriter[T, D, P]) encode(p *parquet.GenericWriter[D], disk []D, batch []T) error {
	for i := range batch {
		P(&disk[i]).from(&batch[i])
	}
	if _, err := p.Write(disk[:len(batch)]); err != nil {
		return err
	}
	if w.count += int64(len(batch)); w.count%groupRows == 0 {
		return p.Flush()
	}
	return nil
}

// boundless lists the words: bounds of "a" to "srs" help no query and cost a tenth of the time.
func boundless() []parquet.WriterOption {
	words := [...]string{
		"source", "event", "class", "space", "stage", "resource", "metric", "kind", "name", "track",
		"status", "attributes", "otel_trace_id", "otel_span_id", "otel_parent_span_id",
	}
	options := make([]parquet.WriterOption, len(words))
	for i, word := range words {
		options[i] = parquet.SkipPageBounds(word)
	}
	return options
}

// finish writes the footer, makes the file durable and gives it its name.
func (w *tableWriter[T, D, P]) finish() error {
	if w.work == nil {
		return nil
	}
	if len(w.batch) > 0 {
		w.work <- w.batch
	}
	close(w.work)
	w.work = nil
	err := <-w.ended
	if err == nil {
		err = w.file.Sync()
	}
	if cerr := w.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(w.file.Name(), w.path)
	}
	if err != nil {
		return fmt.Errorf("finish table %s: %w", w.table, err)
	}
	return nil
}

// listed is the finished table's entry in the manifest.
func (w *tableWriter[T, D, P]) listed() Table {
	return Table{
		Name: w.table, Rows: w.count, Bytes: w.file.bytes,
		SHA256: hex.EncodeToString(w.file.hash.Sum(nil)),
	}
}

// abort ends the goroutine and removes the file.
func (w *tableWriter[T, D, P]) abort() {
	if w == nil {
		return
	}
	if w.work != nil {
		close(w.work)
		w.work = nil
		<-w.ended //nolint:errcheck // the trace is given up whatever it was
		w.file.Close()
	}
	_ = os.Remove(w.file.Name()) // one of the two is there
	_ = os.Remove(w.path)
}

func manifestPath(dir string) string { return filepath.Join(dir, "manifest.json") }
