package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// runSelf runs this program again as a fresh process with args and gives its stdout. Its stderr is
// ours. Ctrl-C is passed on once per press, and the child's clean end waited for: it is in a
// process group of its own, so that the terminal does not interrupt it a second time. It dies with
// this process.
func runSelf(ui *tui, args []string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	var out bytes.Buffer
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, ui.err, withoutSettings(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// The parent-death signal is bound to the thread that starts the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", self, err)
	}
	stop := forwardSignals(cmd.Process)
	err = cmd.Wait()
	stop()
	return out.Bytes(), childFailure(args, err)
}

// childFailure is the failure that the child's end stands for. A child that exited has said why on
// the stderr it shares with us; one that was killed has not.
func childFailure(args []string, err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() == exitInterrupted:
		return fail(exitInterrupted, nil, "")
	case errors.As(err, &exit) && exit.Exited():
		return fail(exitUsage, nil, "")
	}
	return fail(exitUsage, fmt.Errorf("run highwater %s: %w", strings.Join(args, " "), err),
		"a kernel log that names it says whether memory ran out: try a smaller --log-size")
}

// forwardSignals passes SIGINT and SIGTERM on to p until stop is called.
func forwardSignals(p *os.Process) (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	finished := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				p.Signal(s)
			case <-finished:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(finished)
	}
}

// withoutSettings drops HIGHWATER_ variables: what the child does is said by its flags alone.
func withoutSettings(environ []string) []string {
	var kept []string
	for _, kv := range environ {
		if !strings.HasPrefix(kv, "HIGHWATER_") {
			kept = append(kept, kv)
		}
	}
	return kept
}
