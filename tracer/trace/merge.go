package trace

import (
	"cmp"
	"errors"
	"fmt"
	"highwater/tracer/journal"
	"io/fs"
	"slices"
)

// journalData is every record of a trace's journals, in memory: 64 bytes a record and 4 for its
// place in the order.
type journalData struct {
	dir     string // of the trace
	sources []journalSource
	records []([]journal.Record) // in pieces of recordPiece, so that growing copies nothing
	count   uint32
	exts    map[uint32]journal.SpanExt // of spans, by record
	runs    []run
	damaged []*journal.DamageError // sources of which nothing could be read
	cut     int64                  // later events of a living writer are left out; 0 for none
}

// journalSource is one source's journal, open for its words.
type journalSource struct {
	reader *journal.Reader
	head   journal.Header
	runOf  map[uint32]int // writer to run
}

// run is what one writer wrote: the numbers of its records, by time.
type run struct {
	source, writer uint32
	records        []uint32
}

const recordPiece = 1 << 14

// cutMarginNS is how long before the reading of a living writer begins the cut through its writers
// is: a writer reads the clock, and appends after the reader has passed its block. It takes well
// under 1 us; much more only where the writer's thread loses its CPU in between.
const cutMarginNS = 10e6

// readJournals reads all sources under DIR/journal. The caller closes the result.
func readJournals(dir string) (*journalData, error) {
	dirs, damaged, err := journal.Sources(journalDir(dir))
	if err != nil {
		return nil, fmt.Errorf("read journal of %s: %w", dir, err)
	}
	d := &journalData{dir: dir, exts: map[uint32]journal.SpanExt{}, damaged: damaged}
	for _, path := range dirs {
		if err := d.readSource(path); err != nil {
			d.close()
			return nil, fmt.Errorf("read journal %s: %w", path, err)
		}
	}
	for i := range d.runs {
		d.sortRun(&d.runs[i])
	}
	slices.SortFunc(d.runs, func(a, b run) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.writer, b.writer))
	})
	return d, nil
}

func (d *journalData) readSource(path string) error {
	r, err := journal.OpenReader(path)
	var bad *journal.DamageError
	switch {
	case errors.As(err, &bad):
		d.damaged = append(d.damaged, bad)
		return nil
	case errors.Is(err, fs.ErrNotExist): // gone since it was listed
		return nil
	case err != nil:
		return err
	}
	n := uint32(len(d.sources))
	d.sources = append(d.sources, journalSource{
		reader: r, head: r.Header(),
		runOf: map[uint32]int{},
	})
	s := &d.sources[n]
	if r.Live() {
		clock := journal.NewClock(s.head.AnchorMonotonic)
		if cut := clock.Now() - cutMarginNS; d.cut == 0 || cut < d.cut {
			d.cut = cut
		}
	}
	for r.Scan() {
		if err := d.add(n, s, r.Entry()); err != nil {
			return err
		}
	}
	return r.Err()
}

// add keeps a record. Its check, done with, makes place for the number of its source.
func (d *journalData) add(source uint32, s *journalSource, e *journal.Entry) error {
	if e.Kind < journal.KindBuffer || e.Kind > journal.KindSpanEnd || e.Kind == journal.KindString {
		return nil
	}
	if d.count == 1<<32-1 {
		return fmt.Errorf("more than %d records: %w", d.count, ErrTooLarge)
	}
	if d.count%recordPiece == 0 {
		d.records = append(d.records, make([]journal.Record, 0, recordPiece))
	}
	piece := &d.records[len(d.records)-1]
	*piece = append(*piece, e.Record)
	(*piece)[len(*piece)-1].Check = source
	if e.Ext > 0 {
		if x, ok := journal.DecodeSpan(e); ok {
			x.Attributes = slices.Clone(x.Attributes)
			d.exts[d.count] = x
		}
	}
	at, ok := s.runOf[e.Writer]
	if !ok {
		at = len(d.runs)
		s.runOf[e.Writer] = at
		d.runs = append(d.runs, run{source: source, writer: e.Writer})
	}
	d.runs[at].records = append(d.runs[at].records, d.count)
	d.count++
	return nil
}

func (d *journalData) record(n uint32) *journal.Record {
	return &d.records[n/recordPiece][n%recordPiece]
}

// sortRun puts a writer's records in the order of time. They nearly are: a caller reads the clock
// before it gets hold of the writer.
func (d *journalData) sortRun(r *run) {
	byTime := func(a, b uint32) int { return cmp.Compare(d.record(a).TimeNS, d.record(b).TimeNS) }
	if !slices.IsSortedFunc(r.records, byTime) {
		slices.SortStableFunc(r.records, byTime)
	}
}

// each calls f with every record in the order of the trace: by time, then source and writer, then
// position in that writer.
func (d *journalData) each(f func(n uint32, r *journal.Record) error) error {
	h := make(mergeHeap, 0, len(d.runs))
	for i := range d.runs {
		if next, ok := d.cursor(i, 0); ok {
			h = append(h, next)
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	for len(h) > 0 {
		top := &h[0]
		if d.cut != 0 && top.time > d.cut {
			return nil
		}
		n := d.runs[top.run].records[top.at]
		if err := f(n, d.record(n)); err != nil {
			return err
		}
		if next, ok := d.cursor(top.run, top.at+1); ok {
			h[0] = next
		} else {
			h[0] = h[len(h)-1]
			h = h[:len(h)-1]
		}
		h.down(0)
	}
	return nil
}

// cursor stands at record at of a run.
func (d *journalData) cursor(run, at int) (mergeCursor, bool) {
	records := d.runs[run].records
	if at == len(records) {
		return mergeCursor{}, false
	}
	return mergeCursor{time: d.record(records[at]).TimeNS, run: run, at: at}, true
}

func (d *journalData) close() {
	for i := range d.sources {
		_ = d.sources[i].reader.Close() // only read
	}
}

type mergeCursor struct {
	time    int64
	run, at int
}

func (c *mergeCursor) before(o *mergeCursor) bool {
	return c.time < o.time || c.time == o.time && c.run < o.run
}

// mergeHeap has the earliest cursor on top.
type mergeHeap []mergeCursor

func (h mergeHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
