// Package regular opens files that must be regular ones. Whoever hands over a directory may have put
// a FIFO, a device or a socket in a file's place: opening or reading those can wait for ever.
package regular

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is returned for what is there and is no regular file.
var ErrNotRegular = errors.New("not a regular file")

// Open opens path for reading and gives its size. It never waits, and refuses all but regular files
// (and links to them) with ErrNotRegular.
func Open(path string) (f *os.File, bytes int64, err error) {
	// Without O_NONBLOCK, opening a FIFO waits for a writer. On a regular file it changes nothing.
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket, or a device without a driver
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}
