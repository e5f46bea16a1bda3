package main

import (
	"fmt"
	"os"
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
	{"end gone", func(b []byte) []byte { return b[:len(b)-4] }},
	{"foreign", func([]byte) []byte { return []byte("\x89PNG\r\n\x1a\n" + strings.Repeat("x", 500)) }},
	{"head flipped", func(b []byte) []byte { return flipped(b, 0) }},
	{"quarter flipped", func(b []byte) []byte { return flipped(b, len(b)/4) }},
	{"middle flipped", func(b []byte) []byte { return flipped(b, len(b)/2) }},
	{"three quarters flipped", func(b []byte) []byte { return flipped(b, len(b)/4*3) }},
	{"footer flipped", func(b []byte) []byte { return flipped(b, len(b)-200) }},
	{"end flipped", func(b []byte) []byte { return flipped(b, len(b)-12) }},
}

func flipped(b []byte, at int) []byte {
	c := append([]byte(nil), b...)
	c[at] ^= 0x10
	return c
}

// TestDamagedTrace: no reading command takes a damaged trace for a whole one, crashes on it, or
// buries the message.
func TestDamagedTrace(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "run.hw")
	if err := simulateTrace(whole, nil); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"manifest.json", "spans.parquet", "buffers.parquet", "queues.parquet", "samples.parquet",
	} {
		for _, d := range damages {
			dir := damagedCopy(t, whole, file, d.do)
			for _, args := range readingCommands(dir) {
				t.Run(fmt.Sprintf("%s/%s/%s", file, d.name, args[0]), func(t *testing.T) {
					refuses(t, here(args...), file)
				})
			}
		}
	}
}

func damagedCopy(t *testing.T, whole, file string, damage func([]byte) []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "damaged.hw")
	if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, damage(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readingCommands are the commands that read all of a sealed trace.
func readingCommands(dir string) [][]string {
	return [][]string{
		{"info", dir, "--json", "--quiet"},
		{"recover", dir, "--quiet"},
		{"analyze", dir, "--json", "--quiet", "--fail-on", "never", "--no-what-if"},
		{"replay", dir, "--json", "--quiet", "--draws", "2"},
		{"export", dir, "--text", "-", "--quiet"},
		{"diff", dir, dir, "--json", "--quiet"},
		{"history", dir, "--json", "--quiet"},
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
	clear := strings.Count(r.stderr, "error: ") == 1 && strings.Contains(r.stderr, file) &&
		!strings.Contains(r.stderr, "internal error")
	if !clear {
		t.Errorf("not one clear message that names %s: %q", file, r.stderr)
	}
}
