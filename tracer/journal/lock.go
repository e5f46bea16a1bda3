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

const (
	lockName     = "LOCK"
	lockPatience = time.Minute
)

// lockFolder takes the folder's lock for the life of the process (or until the file is closed).
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock journal: %w", err)
	}
	// Someone who asks Locked holds the lock shared for an instant, or longer where it loses its CPU
	// in between: some patience tells that from another writer.
	end := time.Now().Add(lockPatience)
	for err = tryLock(f); errors.Is(err, unix.EWOULDBLOCK) && time.Now().Before(end); err = tryLock(f) {
		time.Sleep(time.Millisecond)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("another process writes to it: %w", err)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock journal %s: %w", dir, err)
	}
	fmt.Fprintf(f, "%d\n", os.Getpid()) // for people; nothing reads it
	return f, nil
}

func tryLock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// unlock gives a lock up and closes its file. Closing alone leaves the lock to a child that this process
// is just starting, until that child calls exec.
func unlock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return errors.Join(err, f.Close())
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
		return false, unix.Flock(int(f.Fd()), unix.LOCK_UN)
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	default:
		return false, fmt.Errorf("ask journal lock %s: %w", f.Name(), err)
	}
}
