package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

// verifyAtOpen is the size in bytes up to which a table's digest is checked when it is opened: well
// under 0.1 s. That of a larger one is checked when its rows have been read to the end.
const verifyAtOpen = 64 << 20

// Table is a sealed table as the manifest lists it, so that a damaged one, or one of another trace,
// is told from the one that was written.
type Table struct {
	Name   string `json:"name"` // spans, buffers, queues, samples
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of the file, in hex
}

// listed finds a table's entry; nil where the manifest has none (made by hand, or by an older
// version): the table is then read as it stands.
func (m *Manifest) listed(table string) *Table {
	for i := range m.Tables {
		if m.Tables[i].Name == table {
			return &m.Tables[i]
		}
	}
	return nil
}

// checkListed compares the opened table with what the manifest lists.
func (t *tableFile) checkListed() error {
	switch l := t.listed; {
	case l == nil:
		return nil
	case t.size != l.Bytes:
		return t.notListed("it has %d bytes, the manifest lists %d", t.size, l.Bytes)
	case t.meta.NumRows != l.Rows:
		return t.notListed("it has %d rows, the manifest lists %d", t.meta.NumRows, l.Rows)
	case t.size > verifyAtOpen:
		return nil
	}
	return t.verify()
}

// verify reads the whole file, once, and compares its digest; it does nothing where none is listed.
func (t *tableFile) verify() error {
	if t.listed == nil || t.verified.Load() {
		return nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(t.in, 0, t.size)); err != nil {
		return t.errorAt(-1, "", err)
	}
	want, err := hex.DecodeString(t.listed.SHA256)
	if err != nil || !bytes.Equal(h.Sum(nil), want) {
		return t.notListed("its SHA-256 is not the one that the manifest lists")
	}
	t.verified.Store(true)
	return nil
}

func (t *tableFile) notListed(what string, args ...any) error {
	return &FileError{
		Path: t.path, Table: t.table, Offset: -1, Row: -1, What: fmt.Sprintf(what, args...),
		Hint: "the file is damaged or of another trace: restore it from a copy, " +
			"or record the run again",
	}
}

// digestFile is a file that is written from the start on, and its digest.
type digestFile struct {
	*os.File
	hash  hash.Hash
	bytes int64
}

func (f *digestFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.hash.Write(b[:n])
	f.bytes += int64(n)
	return n, err
}
