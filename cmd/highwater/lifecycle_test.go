package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// started is a proving run in a process of its own.
type started struct {
	cmd    *exec.Cmd
	dir    string
	stderr bytes.Buffer
}

// lookHighwater finds the command that testscript.Main puts on the path.
func lookHighwater(t *testing.T) string {
	t.Helper()
	self, err := exec.LookPath("highwater")
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// startRun starts a run that is long enough to be caught at work: it ends by a signal, not by
// itself.
func startRun(t *testing.T, keys string) *started {
	t.Helper()
	self := lookHighwater(t)
	s := &started{dir: filepath.Join(t.TempDir(), "run.hw")}
	s.cmd = exec.Command(self, "prove", "--circuit", "mimc", "--log-size", "10",
		"--jobs", "5000", "--partitions", "2", "--out", s.dir, "--cache-dir", keys)
	s.cmd.Stderr = &s.stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	return s
}

// ran is what a command did.
type ran struct {
	code           int
	stdout, stderr string
}

// here runs a command in this process.
func here(args ...string) ran {
	var stdout, stderr bytes.Buffer
	code := run(&stdout, &stderr, args)
	return ran{code, stdout.String(), stderr.String()}
}

// figures decodes the JSON that a command printed.
func (r ran) figures(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("stdout is not one JSON object: %v\n%s\n%s", err, r.stdout, r.stderr)
	}
	return v
}

// awaitJobs polls the running trace until jobs have finished.
func (s *started) awaitJobs(t *testing.T, jobs float64) ran {
	t.Helper()
	var last ran
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); <-tick.C {
		last = here("info", s.dir, "--json")
		if last.code != 0 {
			continue // not made yet
		}
		if v, err := lookup(any(last.figures(t)), "jobs.finished"); err != nil {
			t.Fatal(err)
		} else if v.(float64) >= jobs {
			return last
		}
	}
	t.Fatalf("no %v jobs finished in time: info says %+v; the run says %s", jobs, last, &s.stderr)
	return last
}

// wait waits for the run's end and gives its status, -1 for a signal.
func (s *started) wait(t *testing.T) int {
	t.Helper()
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return s.cmd.ProcessState.ExitCode()
}

// TestLifecycle: runs that are watched, interrupted and killed, all with the same keys.
func TestLifecycle(t *testing.T) {
	keys := t.TempDir()
	for _, c := range []struct {
		name string
		test func(t *testing.T, s *started)
	}{
		{"live", testLive}, {"interrupt", testInterrupt}, {"interrupt twice", testInterruptTwice}, {"kill", testKill},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, startRun(t, keys)) })
	}
}

// testLive: info and analyze read a trace while it is being written; recover refuses it.
func testLive(t *testing.T, s *started) {
	live := s.awaitJobs(t, 2).figures(t)
	if live["live"] != true {
		t.Errorf("live is %v", live["live"])
	}
	if n, ok := live["peak_live_bytes"].(float64); !ok || n <= 0 {
		t.Errorf("peak_live_bytes of a live trace is %v", live["peak_live_bytes"])
	}
	if r := here("analyze", s.dir, "--fail-on", "never", "--no-what-if", "--json"); r.code != 0 || r.figures(t)["live"] != true {
		t.Errorf("analyze of a live trace: %+v", r)
	}
	r := here("recover", s.dir)
	if r.code != exitUsage || !strings.Contains(r.stderr, "hint: ") || r.stdout != "" {
		t.Errorf("recover of a living run: %+v", r)
	}
}

// testInterrupt: the first SIGINT ends cleanly, with a sealed trace and status 130.
func testInterrupt(t *testing.T, s *started) {
	s.awaitJobs(t, 1)
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := s.wait(t); code != exitInterrupted {
		t.Errorf("exit %d, want %d: %s", code, exitInterrupted, &s.stderr)
	}
	info := here("info", s.dir, "--json").figures(t)
	if info["live"] != false || info["process_end"] != "interrupted" || info["sealed_by"] != "close" {
		t.Errorf("live %v, process_end %v, sealed_by %v", info["live"], info["process_end"], info["sealed_by"])
	}
	jobs := info["jobs"].(map[string]any)
	if jobs["failed"] != 0.0 || jobs["open"] != 0.0 || jobs["cancelled"].(float64) < 1 {
		t.Errorf("jobs %v, want those that did not finish cancelled", jobs)
	}
	if strings.Contains(s.stderr.String(), "prove 10000/10000") {
		t.Errorf("progress counts what was given up: %s", &s.stderr)
	}
	if !strings.Contains(s.stderr.String(), "interrupt again") {
		t.Errorf("stderr does not say how to leave at once: %s", &s.stderr)
	}
}

// testInterruptTwice: after two signals the run has left with 130, and what was recorded can be
// recovered. Both are sent while it is stopped: between two that are sent to a running process, the
// test may be kept waiting until the first has ended it, and two SIGINTs may come as one. Whether
// the second overtakes the clean end is the scheduler's matter; TestSecondInterrupt has no clean
// end to overtake.
func testInterruptTwice(t *testing.T, s *started) {
	s.awaitJobs(t, 1)
	for _, sig := range []syscall.Signal{
		syscall.SIGSTOP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCONT,
	} {
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.wait(t); code != exitInterrupted {
		t.Errorf("exit %d, want %d: %s", code, exitInterrupted, &s.stderr)
	}
	if r := here("recover", s.dir); r.code != 0 {
		t.Errorf("recover: %+v", r)
	}
}

// testKill: after SIGKILL recover seals the trace, prints the ledger, and says that it does not
// know how the run ended.
func testKill(t *testing.T, s *started) {
	s.awaitJobs(t, 2)
	s.cmd.Process.Kill()
	s.wait(t)

	if r := here("info", s.dir, "--json"); r.code != 0 || r.figures(t)["live"] != true {
		t.Errorf("info before recovery: %+v", r)
	}
	r := here("recover", s.dir, "--json")
	if r.code != 0 {
		t.Fatalf("recover: %+v", r)
	}
	ledger := r.figures(t)
	if ledger["already_sealed"] != false || ledger["open_spans"].(float64) < 1 {
		t.Errorf("ledger %v", ledger)
	}
	info := here("info", s.dir, "--json").figures(t)
	if info["sealed_by"] != "recover" || info["process_end"] != "unknown" || info["open_spans"] != ledger["open_spans"] {
		t.Errorf("sealed_by %v, process_end %v, open_spans %v", info["sealed_by"], info["process_end"], info["open_spans"])
	}
	if r := here("recover", s.dir); r.code != 0 || !strings.Contains(r.stdout, "already sealed") {
		t.Errorf("second recover: %+v", r)
	}
}
