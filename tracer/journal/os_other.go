//go:build !linux

package journal

import (
	"os"
	"time"
)

var processStart = time.Now()

// Monotonic counts from the start of the process: recording is for Linux, reading works anywhere.
func Monotonic() int64 { return int64(time.Since(processStart)) }

func reserve(f *os.File, size int64) error { return writeZeros(f, size) }

func prefault([]byte) {}
