package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// ErrLiving is returned (wrapped) by Recover and Seal when the trace is still being written by a
// living process.
var ErrLiving = errors.New("the trace is still being written by a living process")

// ErrNotTrace is wrapped by a FileError when the path holds no trace: neither a manifest nor a
// journal.
var ErrNotTrace = errors.New("not a trace")

// ErrTooLarge is wrapped when reading would take more memory than the caller allowed.
var ErrTooLarge = errors.New("larger than the limit")

// FileError is damage in, or a mismatch of, a file of a trace: which file, which table and where,
// what is wrong and what to do. Every reading function of this package returns it for a file that
// it cannot use.
type FileError struct {
	Path   string
	Table  string // spans, buffers, queues, samples; "" outside a table
	Offset int64  // byte offset, or -1 where it has no meaning
	Row    int64  // row in the table, or -1
	What   string // what is wrong
	Hint   string // what to do, or ""
	Err    error  // the cause, or nil
}

// Error says everything in one line.
func (e *FileError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "read %s", e.Path)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ": offset %d", e.Offset)
	}
	if e.Row >= 0 {
		fmt.Fprintf(&b, ": row %d", e.Row)
	}
	if e.What != "" {
		b.WriteString(": " + e.What)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *FileError) Unwrap() error { return e.Err }

const (
	hintDamaged = "the file is damaged or not of a trace: restore it from a copy, " +
		"or record the run again"
	hintForbidden = "you may not read it: ask its owner, or read it as the user who recorded it"
	hintRefused   = "the system could not read it; what is in it may be whole"
)

// hintFor is what to do about a file that cannot be read because of err, or for what is in it.
func hintFor(err error) string {
	var system syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission):
		return hintForbidden
	case errors.As(err, &system):
		return hintRefused
	}
	return hintDamaged
}

func fileError(path, what, hint string, err error) *FileError {
	return &FileError{Path: path, Offset: -1, Row: -1, What: what, Hint: hint, Err: err}
}
