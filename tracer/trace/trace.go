package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// MaxLoadRows is how many rows Load takes into memory: about 30 GB of rows. LoadLimit takes another
// limit.
const MaxLoadRows = 128 << 20

// Trace reads a trace's tables in order, from files or from memory. A row handed out by an iterator
// is valid until the next one. An iterator that meets damage yields its error last and stops.
// Several iterators may run at once.
type Trace struct {
	Dir      string // "" for a trace in memory
	Manifest Manifest
	Live     bool // still being written, or killed and not yet recovered: read from its journal

	data   *Data         // nil when the tables are files
	tables [4]*tableFile // spans, buffers, queues, samples
}

// FromData wraps a trace in memory.
func FromData(d *Data) *Trace { return &Trace{Manifest: d.Manifest, data: d} }

// Open opens the trace directory dir: sealed (Parquet), or still being written or killed (its
// journal is read into memory as it stands, and Live is set). A file that cannot be used is a
// FileError.
func Open(dir string) (*Trace, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	m, err := ReadManifest(dir)
	if err == nil && m.SealedBy != "" {
		return openSealed(dir, m)
	}
	if !hasJournal(dir) {
		if now := sealedNow(dir); now != nil {
			return openSealed(dir, now)
		}
		if err == nil {
			err = fileError(dir, "the trace is not sealed and its journal is gone",
				"record the run again", nil)
		}
		return nil, err
	}
	if err != nil && !errors.Is(err, ErrNotTrace) {
		return nil, err
	}
	return openJournal(dir, m)
}

// checkDir says what dir is where it is no directory.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fileError(dir, "there is no such directory", "give a trace directory NAME.hw",
			ErrNotTrace)
	case err != nil:
		return fileError(dir, "", hintFor(err), err)
	case !info.IsDir():
		return fileError(dir, "it is not a directory", "a trace is a directory NAME.hw",
			ErrNotTrace)
	}
	return nil
}

func journalDir(dir string) string { return filepath.Join(dir, "journal") }

func hasJournal(dir string) bool {
	info, err := os.Stat(journalDir(dir))
	return err == nil && info.IsDir()
}

func openSealed(dir string, m *Manifest) (*Trace, error) {
	t := &Trace{Dir: dir, Manifest: *m}
	t.Manifest.Tables = nil
	var errs [4]error
	t.tables[0], errs[0] = openTable[Span](dir, "spans", spanColumns, m)
	t.tables[1], errs[1] = openTable[BufferEvent](dir, "buffers", bufferColumns, m)
	t.tables[2], errs[2] = openTable[QueueEvent](dir, "queues", queueColumns, m)
	t.tables[3], errs[3] = openTable[Sample](dir, "samples", sampleColumns, m)
	for _, err := range errs {
		if err != nil {
			_ = t.Close() // the damage is what counts
			return nil, err
		}
	}
	return t, nil
}

// Close releases the files.
func (t *Trace) Close() error {
	var err error
	for _, f := range t.tables {
		if f != nil {
			err = errors.Join(err, f.close())
		}
	}
	return err
}

// Spans yields spans by BeginSeq.
func (t *Trace) Spans() iter.Seq2[*Span, error] {
	if t.data != nil {
		return rows(t.data.Spans)
	}
	return fileRows[Span](t.tables[0], spanColumns)
}

// Buffers yields buffer events by Seq.
func (t *Trace) Buffers() iter.Seq2[*BufferEvent, error] {
	if t.data != nil {
		return rows(t.data.Buffers)
	}
	return fileRows[BufferEvent](t.tables[1], bufferColumns)
}

// Queues yields queue events by Seq.
func (t *Trace) Queues() iter.Seq2[*QueueEvent, error] {
	if t.data != nil {
		return rows(t.data.Queues)
	}
	return fileRows[QueueEvent](t.tables[2], queueColumns)
}

// Samples yields samples by time.
func (t *Trace) Samples() iter.Seq2[*Sample, error] {
	if t.data != nil {
		return rows(t.data.Samples)
	}
	return fileRows[Sample](t.tables[3], sampleColumns)
}

// Rows is the number of rows of all tables.
func (t *Trace) Rows() int64 {
	if d := t.data; d != nil {
		return int64(len(d.Spans) + len(d.Buffers) + len(d.Queues) + len(d.Samples))
	}
	var n int64
	for _, f := range t.tables {
		n += f.meta.NumRows
	}
	return n
}

// Load reads the whole trace into memory; one of more than MaxLoadRows rows is refused with
// ErrTooLarge.
func (t *Trace) Load() (*Data, error) { return t.LoadLimit(MaxLoadRows) }

// LoadLimit is Load with another limit on the rows.
func (t *Trace) LoadLimit(maxRows int64) (*Data, error) {
	if n := t.Rows(); n > maxRows {
		return nil, fmt.Errorf("load trace %s: %d rows: %w of %d: read it with the iterators",
			t.Dir, n, ErrTooLarge, maxRows)
	}
	if t.data != nil {
		return t.data, nil
	}
	d := &Data{Manifest: t.Manifest}
	err := errors.Join(collect(&d.Spans, t.Spans()), collect(&d.Buffers, t.Buffers()),
		collect(&d.Queues, t.Queues()),
		collect(&d.Samples, t.Samples()))
	if err != nil {
		return nil, err
	}
	return d, nil
}

func collect[T any](into *[]T, rows iter.Seq2[*T, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		*into = append(*into, *row)
	}
	return nil
}

func rows[T any](s []T) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for i := range s {
			if !yield(&s[i], nil) {
				return
			}
		}
	}
}
