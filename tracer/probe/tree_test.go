package probe

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/*.txtar")

// TestTrees samples recorded and made-up trees and compares all that was found with their want section.
func TestTrees(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no trees: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := &archive.Files[len(archive.Files)-1]
			if want.Name != "want" {
				t.Fatalf("last section is %s, not want", want.Name)
			}
			opts := unpack(t, archive)
			got := describe(t, opts)
			if *update {
				want.Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(want.Data), got); d != "" {
				t.Errorf("want section (-want +got; -update rewrites it):\n%s", d)
			}
		})
	}
}

// unpack lays a tree out and gives the options that read it as process 4242's.
func unpack(t *testing.T, a *txtar.Archive) Options {
	t.Helper()
	root := t.TempDir()
	for _, f := range a.Files {
		name := filepath.Join(root, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		data := f.Data
		if strings.HasSuffix(name, "/statm") && strings.HasSuffix(string(data), " \n") {
			data = data[:len(data)-1] // a line that a blank ends stands for one cut off
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return Options{Hz: 0.001, PID: 4242, Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}
}

// describe is everything this package says about a tree, as text without the tree's place.
func describe(t *testing.T, opts Options) string {
	t.Helper()
	var b strings.Builder
	p, err := Start(sinkFunc(func(metric string, value float64) {
		if metric == RSS || metric == "process.memory.virtual" {
			value = value / float64(os.Getpagesize()) * 4096 // want has pages of 4 KiB
		}
		fmt.Fprintf(&b, "%s %.15g\n", metric, value)
	}), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range p.Absent() {
		fmt.Fprintf(&b, "absent %s: %s\n", a.Metric, a.Reason)
	}
	fmt.Fprintf(&b, "limit %+v\nhost %+v\n", EffectiveLimit(opts), HostInfo(opts))
	defer p.Stop() // it samples once more: after the text is taken
	return strings.ReplaceAll(b.String(), filepath.Dir(opts.Proc), "")
}

type sinkFunc func(metric string, value float64)

func (f sinkFunc) Sample(metric string, value float64) { f(metric, value) }
