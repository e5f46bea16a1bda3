package trace

import (
	"errors"
	"fmt"
	"highwater/tracer/journal"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SealOptions say how a recording ended.
type SealOptions struct {
	ProcessEnd string // one of the End words; "" is unknown
	Reason     string // a sentence for the manifest, or ""
	SealedBy   string // SealedByClose | SealedByRecover; "" is close
}

// Seal turns the journal of the trace directory dir into Parquet: one order over all sources, spans
// joined, losses counted in the manifest. The manifest is renamed into place last and the journal
// removed after it, so that a crash in the middle leaves the journal and sealing again works.
// Sealing a sealed trace only removes a left-over journal. The caller must own the trace: its
// journals are closed, or their writers dead; ErrLiving otherwise.
func Seal(dir string, opts SealOptions) (*Manifest, error) {
	r, err := seal(dir, opts, false)
	if err != nil {
		return nil, fmt.Errorf("seal trace: %w", err)
	}
	return r.Manifest, nil
}

// seal is Seal and Recover. A recovery also takes a trace whose manifest is gone or damaged: the
// journal says enough.
func seal(dir string, opts SealOptions, recovery bool) (*Recovery, error) {
	m, err := ReadManifest(dir)
	if err == nil && m.SealedBy != "" {
		return alreadySealed(dir, m), removeJournal(dir)
	}
	if !hasJournal(dir) {
		if err == nil {
			err = fileError(dir, "the trace is not sealed and has no journal",
				"there is nothing to recover: record the run again", nil)
		}
		return nil, err
	}
	if err != nil && !recovery {
		return nil, err
	}
	unlock, lockErr := lockForSealing(dir)
	if lockErr != nil {
		return nil, lockErr
	}
	defer unlock()
	rec, serr := sealJournal(dir, m, opts)
	if serr == nil && err != nil {
		rec.Warnings = append(rec.Warnings,
			fmt.Sprintf("the manifest could not be read and was made anew: %v", err))
	}
	return rec, serr
}

// lockForSealing refuses while a writer or another sealer lives.
func lockForSealing(dir string) (unlock func(), err error) {
	f, err := os.Open(journalDir(dir))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is being sealed by another process: %w", dir, err)
	}
	entries, err := os.ReadDir(journalDir(dir))
	for _, e := range entries {
		living := false
		if err == nil && e.IsDir() {
			living, err = journal.Locked(filepath.Join(journalDir(dir), e.Name()))
		}
		if living {
			f.Close()
			return nil,
				fmt.Errorf("%s, source %s: %w: wait for it to end, or end it, and try again", dir,
					e.Name(), ErrLiving)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func sealJournal(dir string, m *Manifest, opts SealOptions) (*Recovery, error) {
	if err := removeTemporary(dir); err != nil {
		return nil, err
	}
	in, err := readJournals(dir)
	if err != nil {
		return nil, err
	}
	defer in.close()
	w, err := newWriter(dir)
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	c, err := convert(in, w)
	if err != nil {
		return nil, err
	}
	sealed := journalManifest(m, in, c)
	sealed.ProcessEnd, sealed.EndReason, sealed.SealedBy = orWord(opts.ProcessEnd, EndUnknown),
		opts.Reason, orWord(opts.SealedBy, SealedByClose)
	if err := w.Close(sealed); err != nil {
		return nil, err
	}
	return newRecovery(dir, sealed, in, c), removeJournal(dir)
}

// journalManifest is m, or a manifest made from the journal where there is none, with the sources
// and losses that the journal tells.
func journalManifest(m *Manifest, in *journalData, c *converter) *Manifest {
	var out Manifest
	if m != nil {
		out = *m
	} else {
		out = Manifest{
			SchemaVersion: SchemaVersion, Origin: OriginRecorded,
			Anchor: Anchor{Kind: AnchorMonotonic},
		}
		if len(in.sources) > 0 {
			out.Anchor = anchorOf(&in.sources[0].head)
		}
	}
	out.Sources = append([]Source(nil), out.Sources...)
	for i := range in.sources {
		h := &in.sources[i].head
		if !out.hasSource(h.Source) {
			out.Sources = append(out.Sources, Source{
				Name: h.Source, Kind: "process", PID: h.PID,
				Device: None, Anchor: anchorOf(h),
			})
		}
	}
	out.Loss = append(append([]Loss(nil), out.Loss...), losses(in, c)...)
	return &out
}

func anchorOf(h *journal.Header) Anchor {
	return Anchor{Kind: AnchorMonotonic, MonotonicNS: h.AnchorMonotonic, UnixNS: h.AnchorUnix}
}

func (m *Manifest) hasSource(name string) bool {
	for i := range m.Sources {
		if m.Sources[i].Name == name {
			return true
		}
	}
	return false
}

// Reasons of losses that reading a journal finds, besides those that its writer counted
// (journal.LossReasons).
const (
	LossTorn           = "torn"            // records half written: at a kill these were never acknowledged
	LossMissingBlocks  = "missing_blocks"  // blocks (of up to 63 records) that are not there
	LossDamagedBytes   = "damaged_bytes"   // bytes of segments that could not be used
	LossDamagedSource  = "damaged_source"  // sources of which nothing could be read
	LossUnresolvedWord = "unresolved_word" // words whose text is missing; they read "?" and a number
	LossStrayEnd       = "stray_end"       // ends of spans whose begin is missing
)

// losses are the manifest's entries for what is missing.
func losses(in *journalData, c *converter) []Loss {
	var out []Loss
	add := func(writer, reason string, count int64) {
		if count > 0 {
			out = append(out, Loss{Writer: writer, Count: count, Reason: reason})
		}
	}
	for i := range in.sources {
		s := &in.sources[i]
		l := s.reader.Ledger()
		for _, x := range l.Losses {
			writer := s.head.Source
			if x.Writer >= 0 {
				writer = fmt.Sprintf("%s/%d", s.head.Source, x.Writer)
			}
			out = append(out, Loss{
				Writer: writer, FromNS: x.FromNS, ToNS: x.ToNS, Count: x.Count,
				Reason: x.Reason,
			})
		}
		add(s.head.Source, LossTorn, l.Torn)
		add(s.head.Source, LossMissingBlocks, l.MissingBlocks)
		add(s.head.Source, LossDamagedBytes, l.DamagedBytes)
		add(s.head.Source, LossUnresolvedWord, l.UnresolvedWords)
	}
	add("", LossDamagedSource, int64(len(in.damaged)))
	add("", LossStrayEnd, c.tally.strayEnds)
	return out
}

// removeJournal removes the journal of a sealed trace, and temporary files.
func removeJournal(dir string) error {
	if err := os.RemoveAll(journalDir(dir)); err != nil {
		return fmt.Errorf("remove journal of the sealed trace: %w", err)
	}
	return removeTemporary(dir)
}

// removeTemporary removes what a crashed sealing or manifest write left behind.
func removeTemporary(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	for _, name := range names {
		if rerr := os.Remove(name); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

func orWord(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}
