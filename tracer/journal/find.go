package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"highwater/internal/regular"
)

// maxDamage is how many damages a ledger lists; DamagedBytes counts all.
const maxDamage = 100

func (r *Reader) damage(off int64, what string) {
	path := r.dir
	if r.seg >= 0 && r.seg < len(r.segments) {
		path = r.segments[r.seg].path
	}
	r.note(&DamageError{File: path, Offset: off, What: what})
}

func (r *Reader) note(d *DamageError) {
	if len(r.ledger.Damage) < maxDamage {
		r.ledger.Damage = append(r.ledger.Damage, d)
	}
}

// findSegments lists the folder's segments in order, checks their heads, and takes over what the
// first says.
func (r *Reader) findSegments() error {
	names, err := os.ReadDir(r.dir)
	if err != nil {
		return fmt.Errorf("read journal folder: %w", err)
	}
	var unborn []string // their head was not written when the writer was killed, or is not yet
	for _, d := range names {
		if d.IsDir() || !strings.HasSuffix(d.Name(), ".seg") {
			continue
		}
		path := filepath.Join(r.dir, d.Name())
		switch err := r.addSegment(path); {
		case errors.Is(err, errUnborn):
			unborn = append(unborn, path)
		case r.live && errors.Is(err, fs.ErrNotExist):
			// There was no space for it, or the writer has closed before it was used.
		case err != nil:
			return err
		}
	}
	if len(r.segments) == 0 {
		return r.nothing()
	}
	slices.SortFunc(r.segments, func(a, b segmentFile) int { return cmp.Compare(a.number, b.number) })
	r.findGaps()
	for _, path := range unborn {
		if path < r.segments[len(r.segments)-1].path {
			r.note(&DamageError{File: path, What: "segment without a head before others that have one"})
		}
	}
	return nil
}

// addSegment checks the head of a file and lists it. One that is damaged is counted, and no error.
func (r *Reader) addSegment(path string) error {
	h, page, size, err := readHead(path)
	first := len(r.segments) == 0
	if err == nil && !first && (h.nonce != r.head.nonce || h.Source != r.head.Source) {
		err = &DamageError{File: path, What: "segment of another journal"}
	}
	if err != nil {
		return r.skipFile(size, err)
	}
	if first {
		r.head = h
	}
	if h.number == 0 {
		r.takeCounters(decodeCounters(page))
	}
	r.segments = append(r.segments, segmentFile{path: path, number: h.number, size: size})
	return nil
}

// errUnborn is a segment file whose head is not finished.
var errUnborn = errors.New("segment without a head")

// skipFile counts a file without a usable head; an error of the operating system is given back.
func (r *Reader) skipFile(size int64, err error) error {
	var d *DamageError
	if !errors.As(err, &d) {
		return err
	}
	r.ledger.Bytes += size
	r.ledger.DamagedBytes += size
	r.note(d)
	return nil
}

func (r *Reader) nothing() error {
	if r.live && len(r.ledger.Damage) == 0 {
		return fmt.Errorf("journal %s has no segment yet: %w", r.dir, fs.ErrNotExist)
	}
	if len(r.ledger.Damage) == 0 {
		return &DamageError{File: r.dir, What: "no journal segment in this folder"}
	}
	first := *r.ledger.Damage[0]
	first.Bytes = r.ledger.DamagedBytes
	return &first
}

func (r *Reader) findGaps() {
	want := uint32(0)
	for i, s := range r.segments {
		if s.number != want {
			r.note(&DamageError{
				File: s.path, What: fmt.Sprintf("segments before it are missing: expected number %d", want),
			})
			r.ledger.MissingSegments += max(0, int64(s.number)-int64(want))
		}
		want = s.number + 1
		// Close cuts the last segment to what is used; nothing else ever makes one shorter.
		if s.size < r.head.segBytes && !(r.ledger.Clean && i == len(r.segments)-1) {
			what := fmt.Sprintf("file ends early: a segment has %d bytes", r.head.segBytes)
			r.note(&DamageError{File: s.path, Offset: s.size, What: what})
			r.ledger.MissingBytes += r.head.segBytes - s.size
		}
	}
}

// readHead reads and checks a segment's first page. The error is a *DamageError unless the system
// refused.
func readHead(path string) (h segmentHeader, page []byte, size int64, err error) {
	f, size, err := regular.Open(path)
	if errors.Is(err, regular.ErrNotRegular) {
		return h, nil, 0, &DamageError{File: path, What: regular.ErrNotRegular.Error()}
	}
	if err != nil {
		return h, nil, 0, fmt.Errorf("open journal segment: %w", err)
	}
	defer f.Close()
	page = make([]byte, headerBytes)
	n, err := io.ReadFull(f, page)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return h, nil, size, fmt.Errorf("read journal segment: %w", err)
	}
	if unborn(f, page[:n]) {
		return h, nil, size, errUnborn
	}
	h, err = decodeHeader(page[:n])
	if err != nil {
		return h, nil, size, &DamageError{File: path, What: err.Error()}
	}
	return h, page, min(size, h.segBytes), nil
}

// unborn tells whether a segment's head is still to be written or only begun: its magic comes last. A head
// without magic behind which records stand is damaged.
func unborn(f *os.File, page []byte) bool {
	start := page[:min(len(page), len(magic))]
	if !bytes.Equal(start, zeroBlock[:len(start)]) {
		return false
	}
	if bytes.Equal(page, zeroBlock[:len(page)]) {
		return true
	}
	var block [BlockBytes]byte // the first: it is the first to be written to
	n, err := f.ReadAt(block[:], headerBytes)
	return (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(block[:n], zeroBlock[:n])
}

// takeCounters turns the counters in the first segment's head into losses. KindLoss records take
// their part off again.
func (r *Reader) takeCounters(c counters) {
	r.counted = c
	r.ledger.Clean = c[ctrClosed] == 1
}

// finish completes the ledger.
func (r *Reader) finish() {
	if r.finished {
		return
	}
	r.finished = true
	c := r.counted
	from, to := int64(c[ctrLostFrom]), int64(c[ctrLostTo])
	for _, s := range []Loss{
		{Count: int64(c[ctrLost]) - r.told, Reason: LossReasons[LossNoSpace], FromNS: from, ToNS: to},
		{Count: int64(c[ctrWordsFull]), Reason: LossReasons[LossWordsFull]},
		{Count: int64(c[ctrCut]), Reason: LossReasons[LossAttributesCut]},
		{Count: r.missingEvents(), Reason: MissingEvents},
	} {
		if s.Writer = -1; s.Count > 0 {
			r.ledger.Losses = append(r.ledger.Losses, s)
		}
	}
	if n := r.ledger.MissingBlocks; n > 0 {
		r.note(&DamageError{File: r.dir, What: fmt.Sprintf("%d blocks of %d bytes are missing", n, BlockBytes)})
	}
}

// missingEvents is how many events fewer were read than the journal was closed with. Where it was not
// closed, nobody counted.
func (r *Reader) missingEvents() int64 {
	want := int64(r.counted[ctrEvents])
	if !r.ledger.Clean || want <= r.events {
		return 0
	}
	what := fmt.Sprintf("%d events are missing: it was closed with %d", want-r.events, want)
	r.note(&DamageError{File: r.dir, What: what})
	return want - r.events
}

// Sources lists the source folders under DIR.hw/journal in the order of their Base. A folder
// without a usable segment is in damaged, not in dirs; a missing journal folder gives an error for
// which errors.Is(err, fs.ErrNotExist).
func Sources(journalDir string) (dirs []string, damaged []*DamageError, err error) {
	names, err := os.ReadDir(journalDir)
	if err != nil {
		return nil, nil, fmt.Errorf("list journal: %w", err)
	}
	base := map[string]uint32{}
	for _, d := range names {
		if !d.IsDir() {
			continue
		}
		dir := filepath.Join(journalDir, d.Name())
		r, err := OpenReader(dir)
		var bad *DamageError
		switch {
		case err == nil:
			base[dir] = r.Header().Base
			dirs = append(dirs, dir)
		case errors.As(err, &bad):
			damaged = append(damaged, bad)
		case errors.Is(err, fs.ErrNotExist): // gone since it was listed
		default:
			return nil, nil, err
		}
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(base[a], base[b]) })
	return dirs, damaged, nil
}
