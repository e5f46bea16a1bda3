package trace

import (
	"errors"
	"fmt"
	"highwater/tracer/journal"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	m, err := ReadManifest(dir)
	if err == nil && m.SealedBy != "" {
		return alreadySealed(dir, m)
	}
	if !hasJournal(dir) {
		if now := sealedNow(dir); now != nil {
			return alreadySealed(dir, now)
		}
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
	m, err = ReadManifest(dir) // another process may have changed it, or sealed, before we had the lock
	switch {
	case err == nil && m.SealedBy != "":
		return alreadySealed(dir, m)
	case err != nil && !recovery:
		return nil, err
	}
	rec, serr := sealJournal(dir, m, opts)
	if serr == nil && err != nil {
		rec.Warnings = append(rec.Warnings, fmt.Sprintf("the manifest could not be read and was "+
			"made anew: settings are gone, a resource's capacity is the highest level it had: %v",
			err))
	}
	return rec, serr
}

// lockForSealing refuses while a writer or another sealer lives, and keeps recorders from changing the
// manifest.
func lockForSealing(dir string) (unlock func(), err error) {
	sealing, err := lockFolder(journalDir(dir), 0)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%s is being sealed by another process: %w", dir, err)
	}
	if err != nil {
		return nil, err
	}
	err = noneLiving(dir)
	var manifest func()
	if err == nil {
		// A source that has just closed its journal may still write what recording cost.
		manifest, err = lockFolder(dir, time.Minute)
	}
	if err != nil {
		sealing()
		return nil, err
	}
	return func() { manifest(); sealing() }, nil
}

// lockFolder takes a folder's lock, that of a trace as tracer.Recorder does, and waits for it that long.
func lockFolder(dir string, patience time.Duration) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() {
		// Closing alone leaves the lock to a child that this process is just starting, until that
		// child calls exec.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		f.Close()
	}, nil
}

// noneLiving is ErrLiving while a source is being written.
func noneLiving(dir string) error {
	entries, err := os.ReadDir(journalDir(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		living, err := journal.Locked(filepath.Join(journalDir(dir), e.Name()))
		if err != nil {
			return err
		}
		if living {
			return fmt.Errorf("%s, source %s: %w: wait for it to end, or end it, and try again", dir,
				e.Name(), ErrLiving)
		}
	}
	return nil
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
	sealed, c, err := convertAll(m, in, w)
	if err != nil {
		return nil, err
	}
	sealed.ProcessEnd, sealed.EndReason, sealed.SealedBy = orWord(opts.ProcessEnd, EndUnknown),
		opts.Reason, orWord(opts.SealedBy, SealedByClose)
	if err := w.close(&sealed); err != nil {
		return nil, err
	}
	rec := newRecovery(dir, &sealed, in, c)
	err = rec.settleJournal()
	return rec, err
}

// convertAll converts all records to rows of out, and gives the manifest m completed with what the
// journal tells. Where m is nil it is made from the journal.
func convertAll(m *Manifest, in *journalData, out sink) (Manifest, *converter, error) {
	var lost *rebuilder
	if m == nil {
		lost = newRebuilder(out)
		out = lost
	}
	c, err := convert(in, out)
	if err != nil {
		return Manifest{}, nil, err
	}
	full := journalManifest(m, in, c)
	if lost != nil {
		lost.fill(&full)
	}
	return full, c, nil
}

// journalManifest is m, or a manifest made from the journal where there is none, with the sources
// and losses that the journal tells.
func journalManifest(m *Manifest, in *journalData, c *converter) Manifest {
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
	return out
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

// removeJournal removes the journal of a sealed trace, and temporary files.
func removeJournal(dir string) error {
	if err := os.RemoveAll(journalDir(dir)); err != nil {
		return fmt.Errorf("remove journal of the sealed trace: %w", err)
	}
	return removeTemporary(dir)
}

// removeTemporary removes what a crashed sealing or manifest write left behind.
func removeTemporary(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		rerr := os.Remove(filepath.Join(dir, e.Name()))
		if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
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
