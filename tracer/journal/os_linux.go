package journal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Monotonic reads CLOCK_MONOTONIC in nanoseconds by a system call.
func Monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("journal: no CLOCK_MONOTONIC: " + err.Error()) // every Linux has it
	}
	return ts.Nano()
}

// reserve gives the first size bytes of f disk space, so that a full disk is an error here and never a SIGBUS later.
func reserve(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("reserve %d bytes of %s: %w", size, f.Name(), err)
	}
	return writeZeros(f, size) // a file system without fallocate
}

// prefault makes all pages of a mapping present and writable, so that appends take no page fault.
func prefault(m []byte) {
	// Kernels before 5.14 lack MADV_POPULATE_WRITE; there the first appends to a page fault, nothing else changes.
	_ = unix.Madvise(m, unix.MADV_POPULATE_WRITE)
}
