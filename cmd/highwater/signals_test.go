package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// neverEnds is a command that hears of the first interrupt and never ends by itself; testscript.Main
// puts it on the path.
const neverEnds = "highwater-never-ends"

func neverEnding() {
	ui := &tui{out: os.Stdout, err: os.Stderr}
	ctx, stop := ui.interruptible(func() string { return "something is left" })
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("cancelled")
	select {}
}

// TestSecondInterrupt: the first SIGINT cancels the context, the second leaves at once with 130 and
// says what is left behind. Each is sent when the one before has been heard.
func TestSecondInterrupt(t *testing.T) {
	self, err := exec.LookPath(neverEnds)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for _, want := range []string{"ready", "cancelled"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("says %q, want %q", lines.Text(), want)
			break
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}
	err = cmd.Wait() // a failure is an exit status, judged below
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit %d (%v), want %d", code, err, exitInterrupted)
	}
	for _, want := range []string{
		"interrupt again to leave at once", "left at once", "hint: something is left",
	} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr does not say %q: %s", want, &stderr)
		}
	}
}
