package regular

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestOpen: nothing but a regular file is opened, and nothing waits.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	t.Chdir(dir) // the name of a socket must be short, and that of a temporary folder may be long
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(
		os.WriteFile(at("file"), []byte("content"), 0o644), os.Symlink("file", at("link")),
		syscall.Mkfifo(at("fifo"), 0o644), os.Symlink("fifo", at("fifo link")),
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"file": nil, "link": nil, "fifo": ErrNotRegular, "fifo link": ErrNotRegular,
		"socket": ErrNotRegular, ".": ErrNotRegular, "nothing": fs.ErrNotExist,
	} {
		done := make(chan error, 1)
		go func() { done <- readAll(at(name)) }()
		select {
		case err := <-done:
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		case <-time.After(3 * time.Minute): // only what hangs takes so long
			t.Fatalf("%s: opening it waits", name)
		}
	}
}

func readAll(path string) error {
	f, size, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err == nil && (string(b) != "content" || size != int64(len(b))) {
		err = errors.New("other content")
	}
	return err
}
