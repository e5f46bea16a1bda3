package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// ReadHWM is the highest resident set of process pid (0 is this one) since it started, or since ResetHWM, in bytes.
// It is the kernel's own record: exact, whatever the sampling rate.
func ReadHWM(pid int) (int64, error) { return readStatusBytes(Options{PID: pid}, "VmHWM") }

// ReadRSS is the resident set of process pid (0 is this one) now, in bytes.
func ReadRSS(pid int) (int64, error) { return readStatusBytes(Options{PID: pid}, "VmRSS") }

// ResetHWM makes the high-water mark of process pid (0 is this one) its resident set of now, so that a later
// ReadHWM speaks of what came since. It needs the right to write the process's clear_refs.
func ResetHWM(pid int) error {
	name := filepath.Join(procDir(Options{PID: pid}.withDefaults()), "clear_refs")
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("reset peak RSS: %w", err)
	}
	defer f.Close()
	if _, err := f.WriteString("5"); err != nil {
		return fmt.Errorf("reset peak RSS: %w", err)
	}
	return nil
}

// readStatusBytes reads one kB figure of /proc/PID/status.
func readStatusBytes(opts Options, key string) (int64, error) {
	name := filepath.Join(procDir(opts.withDefaults()), "status")
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	n, ok := figure(text, keyed, key)
	if !ok {
		return 0, fmt.Errorf("read %s: %s has no such line", key, name)
	}
	return int64(n) * kib, nil
}

// figure parses one number out of a file's text.
func figure(text []byte, f format, key string) (uint64, bool) {
	r := newReading(1)
	r.parse(text, f, []want{{key: []byte(key), scale: 1}})
	return uint64(r.value[0]), r.ok[0] // exact below 2^53, far above any byte count
}

func procDir(opts Options) string {
	pid := "self"
	if opts.PID != 0 {
		pid = strconv.Itoa(opts.PID)
	}
	return filepath.Join(opts.Proc, pid)
}
