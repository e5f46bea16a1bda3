package main

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestExit(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
		want string
	}{
		{"fine", nil, 0, ""},
		{"plain error", errors.New("read x: gone"), 2, "highwater: error: read x: gone\n"},
		{"verdict without message", fail(exitVerdict, nil, ""), 1, ""},
		{"with hint", badInput("do this", "bad %d", 7), 2, "highwater: error: bad 7\nhighwater: hint: do this\n"},
		{"several lines", errors.New("a\nb\n"), 2, "highwater: error: a\n  b\n"},
		{"wrapped", errors.Join(fail(exitInterrupted, errors.New("stopped"), "")), 130, "highwater: error: stopped\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stderr bytes.Buffer
			ui := &tui{err: &stderr}
			if code := ui.exit(c.err); code != c.code || stderr.String() != c.want {
				t.Errorf("exit %d, stderr %q; want %d, %q", code, stderr.String(), c.code, c.want)
			}
		})
	}
}

// TestInternalError: a panic gives one line and a file, and its stack stays out of sight.
func TestInternalError(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var stderr bytes.Buffer
	ui := &tui{err: &stderr}
	if code := ui.internalError("index out of range", []byte("goroutine 1 [running]")); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	file := regexp.MustCompile(`report it with (\S+)`).FindStringSubmatch(stderr.String())
	if file == nil || strings.Contains(stderr.String(), "goroutine") {
		t.Fatalf("stderr %q", stderr.String())
	}
	text, err := os.ReadFile(file[1])
	if err != nil || !strings.Contains(string(text), "goroutine 1") {
		t.Errorf("the file does not hold the stack: %v, %q", err, text)
	}
}

// TestLines: plain progress is a line for each new phase, one every linePeriod, and one at the end
// of a phase; a phase that is over in no time has none.
func TestLines(t *testing.T) {
	var stderr bytes.Buffer
	now := time.Unix(0, 0)
	l := &lines{ui: &tui{err: &stderr}, now: func() time.Time { return now }}
	for _, s := range []struct {
		after time.Duration
		step
	}{
		{0, step{Phase: "setup"}},
		{time.Second, step{Phase: "setup", Text: "keys"}},
		{time.Second, step{Phase: "prove", Done: 0, Total: 4}},
		{time.Second, step{Phase: "prove", Done: 1, Total: 4}},
		{linePeriod, step{Phase: "prove", Done: 2, Total: 4}},
		{time.Second, step{Phase: "prove", Done: 3, Total: 4}},
		{time.Second, step{Phase: "prove", Done: 4, Total: 4}},
		{time.Second, step{Phase: "prove", Done: 4, Total: 4}},
		{time.Second, step{Phase: "quick", Done: 1, Total: 2}},
		{time.Second, step{Phase: "quick", Done: 2, Total: 2}},
		{time.Second, step{Phase: "slow", Done: 1, Total: 3}},
		{linePeriod, step{Phase: "slow", Done: 2, Total: 3}},
		{time.Second, step{Phase: "slow", Done: 3, Total: 3}},
	} {
		now = now.Add(s.after)
		l.update(s.step)
	}
	want := "highwater: setup\nhighwater: prove 0/4\nhighwater: prove 2/4\nhighwater: prove 4/4\n" +
		"highwater: slow 2/3\nhighwater: slow 3/3\n"
	if stderr.String() != want {
		t.Errorf("got %q, want %q", stderr.String(), want)
	}
}

func TestColumnName(t *testing.T) {
	for field, want := range map[string]string{
		"BeginNS": "begin_ns", "CPUNS": "cpu_ns", "OtelSpanID": "otel_span_id", "OtelParentSpanID": "otel_parent_span_id",
		"Seq": "seq", "DeltaResidentBytes": "delta_resident_bytes", "SpanID": "span_id", "OtelTraceID": "otel_trace_id",
	} {
		if got := columnName(field); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
}
