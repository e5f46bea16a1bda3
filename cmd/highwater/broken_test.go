package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// damages are what is done to one file of a trace.
var damages = []struct {
	name string
	do   func(text []byte) []byte
}{
	{"empty", func([]byte) []byte { return nil }},
	{"one byte", func(b []byte) []byte { return b[:min(1, len(b))] }},
	{"half", func(b []byte) []byte { return b[:len(b)/2] }},
	{"last byte gone", func(b []byte) []byte { return b[:len(b)-1] }},
	{"foreign", func([]byte) []byte { return []byte("\x89PNG\r\n\x1a\n" + strings.Repeat("not a table ", 50)) }},
	{"bit flipped at the head", func(b []byte) []byte { return flipped(b, 1) }},
	{"bit flipped at a quarter", func(b []byte) []byte { return flipped(b, len(b)/4) }},
	{"bit flipped in the middle", func(b []byte) []byte { return flipped(b, len(b)/2) }},
	{"bit flipped near the end", func(b []byte) []byte { return flipped(b, len(b)-12) }},
}

func flipped(b []byte, at int) []byte {
	c := append([]byte(nil), b...)
	c[at] ^= 0x10
	return c
}

// TestDamagedTrace: no reading command takes a damaged trace for a whole one, crashes on it, or
// buries the message.
func TestDamagedTrace(t *testing.T) {
	whole := proveSmall(t)
	for _, file := range []string{"manifest.json", "spans.parquet", "buffers.parquet", "queues.parquet", "samples.parquet"} {
		text, err := os.ReadFile(filepath.Join(whole, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range damages {
			dir := filepath.Join(t.TempDir(), "damaged.hw")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), d.do(text), 0o666); err != nil {
				t.Fatal(err)
			}
			for _, args := range readingCommands(dir, t.TempDir()) {
				t.Run(fmt.Sprintf("%s/%s/%s", file, d.name, args[0]), func(t *testing.T) { refuses(t, here(args...), file) })
			}
		}
	}
}

// readingCommands are the commands that read all of a trace.
func readingCommands(dir, out string) [][]string {
	return [][]string{
		{"info", dir, "--json"},
		{"analyze", dir, "--json", "--fail-on", "never"},
		{"replay", dir, "--json", "--draws", "2"},
		{"export", dir, "--csv", filepath.Join(out, "tables")},
	}
}

func refuses(t *testing.T, r ran, file string) {
	t.Helper()
	if r.code != exitUsage {
		t.Errorf("exit %d, want %d; stderr %q", r.code, exitUsage, r.stderr)
	}
	if r.stdout != "" {
		t.Errorf("stdout %.200q", r.stdout)
	}
	if n := strings.Count(r.stderr, "error: "); n != 1 || strings.Contains(r.stderr, "internal error") || !strings.Contains(r.stderr, file) {
		t.Errorf("not one clear message that names %s: %q", file, r.stderr)
	}
}

// proveSmall records a small run with the real prover.
func proveSmall(t *testing.T) string {
	t.Helper()
	self, err := exec.LookPath("highwater")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run.hw")
	cmd := exec.Command(self, "prove", "--circuit", "mimc", "--log-size", "10", "--jobs", "2", "--partitions", "2",
		"--out", dir, "--cache-dir", t.TempDir(), "--quiet")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return dir
}
