package groth16

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"highwater/prover/hostmem"
)

// cacheChunk is how much of a section is read at a time: the ledger follows, and a cancelled load
// stops.
const cacheChunk = 4 << 20

// CacheID names the content of a cache file.
type CacheID struct {
	Circuit string
	LogSize int
	Seed    uint64
}

// FileName is the cache file's name: circuit, log size, seed and format version.
func (id CacheID) FileName() string {
	return fmt.Sprintf("%s-%d-seed%d-v%d.hwkeys", id.Circuit, id.LogSize, id.Seed, cacheVersion)
}

func (id CacheID) validate() error {
	if n := len(id.Circuit); n == 0 || n > maxCircuitName || strings.ContainsAny(id.Circuit, "/\\\x00") {
		return fmt.Errorf("name cache file: circuit name %q must have 1 to %d bytes and no separator",
			id.Circuit, maxCircuitName)
	}
	return nil
}

// CacheError says what is wrong with a cache file: damaged, foreign, or of another version. Such a
// file is never used; build it anew.
type CacheError struct {
	Path   string
	Offset int64 // in bytes, -1 where it has none
	Reason string
}

// Error implements error.
func (e *CacheError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf(" at byte %d", e.Offset)
	}
	return fmt.Sprintf("key cache %s cannot be used%s: %s; it must be built anew", e.Path, at, e.Reason)
}

// SaveCache writes system and key to dir/id.FileName(), by rename, and returns the path. It makes
// dir where it is missing. The file is not synced: its checksums tell whether it survived.
func SaveCache(dir string, id CacheID, s *System, k *Key) (string, error) {
	path := filepath.Join(dir, id.FileName())
	if err := errors.Join(id.validate(), k.fits(s), os.MkdirAll(dir, 0o755)); err != nil {
		return "", fmt.Errorf("save key cache: %w", err)
	}
	file, err := os.CreateTemp(dir, id.FileName()+".*.tmp")
	if err != nil {
		return "", fmt.Errorf("save key cache: %w", err)
	}
	err = errors.Join(writeCache(file, id, s, k), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("save key cache: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return path, nil
}

// writeCache writes the sections, then the header that vouches for them.
func writeCache(file *os.File, id CacheID, s *System, k *Key) error {
	h := cacheHeader{id: id, system: s.size, words: len(s.program.words), key: k.size}
	sections := append([][]byte{encodeFixed(k)}, h.views(s, k)...)
	for i, sec := range h.layout() {
		if _, err := file.WriteAt(sections[i], sec.offset); err != nil {
			return err
		}
		h.digests[i] = sha256.Sum256(sections[i])
	}
	if err := file.Truncate(h.fileBytes()); err != nil {
		return err
	}
	_, err := file.WriteAt(h.encode(), 0)
	return err
}

// views are the large sections in memory, in the order of the layout, without the first.
func (h *cacheHeader) views(s *System, k *Key) [][]byte {
	layout := h.layout()[1:]
	var views [][]byte
	for i, r := range append(append([]*hostmem.Region{}, s.regions...), k.regions...) {
		views = append(views, r.Bytes()[:layout[i].size])
	}
	return views
}

// LoadCache reads dir/id.FileName() straight into mmap memory: points are stored as they lie in
// memory. A file that does not exist is fs.ErrNotExist, one that cannot be trusted a *CacheError;
// nothing stays allocated then.
func LoadCache(ctx context.Context, env Env, dir string, id CacheID) (*System, *Key, error) {
	path := filepath.Join(dir, id.FileName())
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("load key cache: %w", err)
	}
	defer file.Close()
	r := cacheReader{ctx: ctx, env: env, file: file, path: path}
	if err := r.readHeader(id); err != nil {
		return nil, nil, err
	}
	s, k, err := r.load()
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.Free())
		}
		if k != nil {
			err = errors.Join(err, k.Free())
		}
		return nil, nil, err
	}
	return s, k, nil
}

// cacheReader loads one file.
type cacheReader struct {
	ctx    context.Context
	env    Env
	file   *os.File
	path   string
	header cacheHeader
}

func (r *cacheReader) bad(offset int64, format string, args ...any) error {
	return &CacheError{Path: r.path, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// readHeader trusts the header only when its checksum, its identity and the file's size agree with
// it.
func (r *cacheReader) readHeader(id CacheID) error {
	buf := make([]byte, cacheAlign)
	n, err := io.ReadFull(io.NewSectionReader(r.file, 0, cacheAlign), buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.bad(int64(n), "file ends inside the header")
	}
	if err != nil {
		return fmt.Errorf("load key cache: %w", err)
	}
	if offset, reason := r.header.decode(buf); reason != "" {
		return r.bad(offset, "%s", reason)
	}
	if r.header.id != id {
		return r.bad(offsetID, "it holds %+v, not %+v", r.header.id, id)
	}
	info, err := r.file.Stat()
	if err != nil {
		return fmt.Errorf("load key cache: %w", err)
	}
	if want := r.header.fileBytes(); info.Size() != want {
		return r.bad(min(info.Size(), want), "file has %d bytes, its header wants %d", info.Size(), want)
	}
	return nil
}

// load reads everything behind the header. What it returns with an error is still to be freed.
func (r *cacheReader) load() (*System, *Key, error) {
	h := &r.header
	s, err := newSystem(r.env, h.system, h.words)
	if err != nil {
		return nil, nil, fmt.Errorf("load key cache: %w", err)
	}
	s.public = h.key.public
	k, err := newKey(r.env, h.key)
	if err != nil {
		return s, nil, fmt.Errorf("load key cache: %w", err)
	}
	layout := h.layout()
	fixed := make([]byte, layout[0].size)
	if err := r.section(0, fixed, func(int64) {}); err != nil {
		return s, k, err
	}
	regions := append(append([]*hostmem.Region{}, s.regions...), k.regions...)
	for i, view := range h.views(s, k) {
		if err := r.section(i+1, view, regions[i].Fill); err != nil {
			return s, k, err
		}
	}
	if err := decodeFixed(k, fixed); err != nil {
		return s, k, r.bad(layout[0].offset, "%v", err)
	}
	if err := errors.Join(s.seal(), k.seal()); err != nil {
		return s, k, r.bad(-1, "%v", err)
	}
	return s, k, nil
}

// section reads section i into view, chunk by chunk, and compares its checksum.
func (r *cacheReader) section(i int, view []byte, filled func(int64)) error {
	sec := r.header.layout()[i]
	sum := sha256.New()
	for done := 0; done < len(view); {
		if err := context.Cause(r.ctx); err != nil {
			return fmt.Errorf("load key cache: %w", err)
		}
		chunk := view[done:min(done+cacheChunk, len(view))]
		if _, err := r.file.ReadAt(chunk, sec.offset+int64(done)); err != nil {
			return fmt.Errorf("load key cache: read %s: %w", sec.name, err)
		}
		sum.Write(chunk)
		done += len(chunk)
		filled(int64(done))
	}
	if [sha256.Size]byte(sum.Sum(nil)) != r.header.digests[i] {
		return r.bad(sec.offset, "checksum of section %s is wrong", sec.name)
	}
	return nil
}
