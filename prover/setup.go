package prover

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// SetupSubcommand is the hidden subcommand by which a program runs SetupMain.
const SetupSubcommand = "setup-child"

// setupGrace is how long a set-up child that was told to stop may take to close its part of the
// trace.
const setupGrace = 5 * time.Second

// setupReport is one line of JSON that the set-up child writes to its standard output.
type setupReport struct {
	Stage string `json:"stage"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// setupChild is a set-up to run in a child process.
type setupChild struct {
	command []string // as Config.SetupCommand
	args    []string // SetupMain's
	report  func(setupReport)
}

// run starts the child and waits for it. The kernel kills the child when this process dies, however
// it dies; a cancelled context ends it by SIGTERM first.
func (c *setupChild) run(ctx context.Context) error {
	command := c.command
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find own executable for set-up: %w", err)
		}
		command = []string{self, SetupSubcommand}
	}
	args := append(command[1:len(command):len(command)], c.args...)
	cmd := exec.CommandContext(ctx, command[0], args...)
	// A group of its own keeps the terminal's Ctrl-C from the child: this process passes it on
	// once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = setupGrace
	stderr := &tail{limit: 4 << 10}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start set-up: %w", err)
	}
	// Pdeathsig follows the thread that starts the child, not the process: keep that thread until
	// the child has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start set-up: %w", err)
	}
	c.follow(stdout)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &SetupError{Err: err, Stderr: stderr.String()}
	}
	return nil
}

// follow passes the child's reports on until it closes its output.
func (c *setupChild) follow(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var r setupReport
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			c.report(r)
		}
	}
	io.Copy(io.Discard, stdout) // a line too long to be a report must not block the child
}

// SetupError says how the set-up child failed.
type SetupError struct {
	Err    error  // of waiting for it
	Stderr string // the end of what it wrote
}

func (e *SetupError) Error() string {
	text := "set up keys: the set-up process failed: " + e.Err.Error()
	var exit *exec.ExitError
	if errors.As(e.Err, &exit) {
		s, ok := exit.Sys().(syscall.WaitStatus)
		if ok && s.Signaled() && s.Signal() == syscall.SIGKILL {
			text += " (killed from outside, out of memory perhaps: `dmesg` would say so; " +
				"a smaller log_size needs less)"
		}
	}
	if last := strings.TrimSpace(e.Stderr); last != "" {
		text += ": " + last
	}
	return text
}

// Unwrap gives the error of the process.
func (e *SetupError) Unwrap() error { return e.Err }

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	buf   bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if over := t.buf.Len() - t.limit; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string { return t.buf.String() }
