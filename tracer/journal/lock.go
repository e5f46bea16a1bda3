package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"highwater/internal/regular"
)

const lockName = "LOCK"

// lockFolder takes the folder's lock for the life of the process (or until the file is closed).
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock journal: %w", err)
	}
	// Someone who asks Locked holds the lock shared for an instant: a few tries tell that from
	// another writer.
	for try := 0; ; try++ {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if try == 50 {
			f.Close()
			return nil, fmt.Errorf("lock journal %s: another process writes to it: %w", dir, err)
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintf(f, "%d\n", os.Getpid()) // for people; nothing reads it
	return f, nil
}

// Locked tells whether a living process still writes to the journal folder DIR.hw/journal/SOURCE.
func Locked(dir string) (bool, error) {
	f, _, err := regular.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask journal lock: %w", err)
	}
	defer f.Close()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case err == nil:
		return false, nil // closing gives the shared lock back
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	default:
		return false, fmt.Errorf("ask journal lock %s: %w", f.Name(), err)
	}
}
