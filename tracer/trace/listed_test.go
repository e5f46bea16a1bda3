package trace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var tableNames = []string{"spans", "buffers", "queues", "samples"}

// TestListed: the manifest lists each table as it stands on disk, and a Trace does not show the
// list.
func TestListed(t *testing.T) {
	dir := written(t)
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Tables) != len(tableNames) {
		t.Fatalf("tables %+v", m.Tables)
	}
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for i, name := range tableNames {
		info, err := os.Stat(tablePath(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		l := m.Tables[i]
		if l.Name != name || l.Bytes != info.Size() || l.Rows != tr.tables[i].meta.NumRows {
			t.Errorf("%s of %d bytes is listed as %+v", name, info.Size(), l)
		}
	}
	if tr.Manifest.Tables != nil {
		t.Errorf("the trace shows %+v", tr.Manifest.Tables)
	}
}

// TestListedFlips: a flipped bit in any byte of a table is found when the trace is opened.
func TestListedFlips(t *testing.T) {
	dir := written(t)
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	flipAll(t, dir, "spans", func() (*tableFile, error) {
		return openTable[Span](dir, "spans", spanColumns, m)
	})
	flipAll(t, dir, "queues", func() (*tableFile, error) {
		return openTable[QueueEvent](dir, "queues", queueColumns, m)
	})
}

func flipAll(t *testing.T, dir, table string, open func() (*tableFile, error)) {
	t.Helper()
	f, err := os.OpenFile(tablePath(dir, table), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		put := func(v byte) {
			if _, err := f.WriteAt([]byte{v}, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		put(whole[i] ^ 1<<(i%8))
		opened, err := open()
		if err == nil {
			opened.close()
		}
		fileErrorWith(t, err, filepath.Base(f.Name()))
		put(whole[i])
	}
}

func openError(dir string) error {
	tr, err := Open(dir)
	if err == nil {
		err = tr.Close()
	}
	return err
}

func fileErrorWith(t *testing.T, err error, parts ...string) {
	t.Helper()
	var typed *FileError
	if !errors.As(err, &typed) {
		t.Errorf("error %v, want a FileError", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not say %q", err, part)
		}
	}
}

// TestForeignTable: a whole table of another trace is refused.
func TestForeignTable(t *testing.T) {
	dir, other := written(t), filepath.Join(t.TempDir(), "other.hw")
	d := mustParse(t, pileup)
	d.Queues[0].TimeNS++
	if err := errors.Join(Write(other, d), copyFile(other, dir, "queues.parquet")); err != nil {
		t.Fatal(err)
	}
	fileErrorWith(t, openError(dir), "queues.parquet", "manifest lists", "another trace")
}

// TestVerifiedAtEnd: of a table too large to check when it is opened, the digest is checked when
// all rows were read.
func TestVerifiedAtEnd(t *testing.T) {
	tr, err := Open(unlisted(t))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.tables[1].listed = &Table{Name: "buffers", SHA256: strings.Repeat("0", 64)}
	var last error
	n := 0
	for _, err := range tr.Buffers() {
		if last = err; err == nil {
			n++
		}
	}
	if int64(n) != tr.tables[1].meta.NumRows {
		t.Errorf("%d rows before the error", n)
	}
	fileErrorWith(t, last, "buffers.parquet", "SHA-256")
	for range tr.Buffers() {
		break // who leaves early gets no error
	}
}

// TestFIFO: a FIFO in the place of any file of a trace is refused, not waited for.
func TestFIFO(t *testing.T) {
	names := []string{"manifest.json"}
	for _, table := range tableNames {
		names = append(names, table+".parquet")
	}
	for _, name := range names {
		for command, read := range map[string]func(dir string) error{
			"open": openError,
			"recover": func(dir string) error {
				_, err := Recover(dir, RecoverOptions{})
				return err
			},
			"hash": func(dir string) error {
				_, err := Hash(dir)
				return err
			},
		} {
			if command == "hash" && name != "manifest.json" {
				continue
			}
			dir := written(t)
			path := filepath.Join(dir, name)
			if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644)); err != nil {
				t.Fatal(err)
			}
			err := within(t, command+" "+name, func() error { return read(dir) })
			if err == nil || !strings.Contains(err.Error(), "not a regular file") ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s is a FIFO: %v", command, name, err)
			}
		}
	}
}

// within ends the test where f hangs.
func within(t *testing.T, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(3 * time.Minute): // only what hangs takes so long
		t.Fatalf("%s hangs", what)
		return nil
	}
}

// TestHints: what is said fits what is wrong.
func TestHints(t *testing.T) {
	for _, c := range []struct {
		err        error
		want, lack string
	}{
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, "as the user who", "damaged"},
		{&os.PathError{Op: "read", Path: "x", Err: syscall.EIO}, "may be whole", "damaged"},
		{errThrift, "damaged", "may be whole"},
		{nil, "damaged", "may be whole"},
	} {
		hint := hintFor(c.err)
		if !strings.Contains(hint, c.want) || strings.Contains(hint, c.lack) {
			t.Errorf("%v: %q", c.err, hint)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(file, RecoverOptions{}); !errors.Is(err, ErrNotTrace) ||
		!strings.Contains(err.Error(), "a trace is a directory") {
		t.Errorf("recovering a file: %v", err)
	}
}
