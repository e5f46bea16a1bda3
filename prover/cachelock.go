package prover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a set-up lock that another process holds is tried again: set-up takes
// seconds.
const lockPoll = 100 * time.Millisecond

// lockSetup takes the lock of a cache file, so that of several processes only one sets its keys up;
// onWait is called once if another one holds it. The lock ends with unlock or with the process. The
// lock file stays: removing it would race.
func lockSetup(ctx context.Context, path string, onWait func()) (unlock func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open set-up lock: %w", err)
	}
	timer := time.NewTicker(lockPoll)
	defer timer.Stop()
	for waited := false; ; waited = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if !waited {
			onWait()
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}
