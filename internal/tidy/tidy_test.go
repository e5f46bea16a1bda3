package tidy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestModule holds the whole module to the rules of style.
func TestModule(t *testing.T) {
	tree, err := Load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(tree.Sources, func(s Source) bool { return s.Path == "internal/tidy/tidy.go" }) {
		t.Fatalf("found %d files, and not this one: wrong root", len(tree.Sources))
	}
	for _, fault := range slices.Concat(tree.Arrows(), tree.Packages(), tree.Comments()) {
		t.Error(fault)
	}
	t.Logf("long, to be looked at:\n%s", strings.Join(tree.Lengths(), "\n"))
}

// TestRules checks the rules themselves on a made module with one fault of each kind.
func TestRules(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"cmd/x/main.go":            "// Command x.\npackage main\nimport (_ \"highwater/replay/sim\"; _ \"highwater/prover\")\nfunc Exported() {}\n",
		"analyze/a.go":             "// Package analyze is documented.\npackage analyze\nimport _ \"highwater/replay\"\n",
		"analyze/a_test.go":        "package analyze\nimport _ \"highwater/prover\"\n",
		"tracer/probe/p.go":        "// Package probe is documented.\npackage probe\nimport _ \"highwater/tracer\"\n",
		"tracer/tracer.go":         "// Package tracer is documented.\npackage tracer\nimport _ \"highwater/tracer/probe\"\n",
		"elsewhere/e.go":           "// Package elsewhere is documented.\npackage elsewhere\nimport _ \"highwater/internal/units\"\n",
		"internal/util/u.go":       "package util\n",
		"internal/skip/testdata/x": "",
		".cache/mod/bad.go":        "not go",
		"internal/doc/d.go": `// Package doc has names with and without comments.
package doc

// A has one.
const A = 1

// Grouped.
const (
	B = 1
	C = 2
)

var D, e = 1, 2

var F = 3 // behind

type G struct{}

// H has one.
type H struct{}

func (H) String() string { return "" }
func (*H) I()            {}
func (h *H) J()          {} // behind
func (g[T]) K()          {}

type g[T any] struct{}

func L() {
}
`,
	} {
		write(t, filepath.Join(root, name), text)
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Concat(tree.Arrows(), tree.Packages(), tree.Comments())
	want := []string{
		"analyze/a.go:3: analyze may not import replay",
		"analyze/a_test.go:2: analyze may not import prover",
		"elsewhere/e.go:3: elsewhere may not import internal/units",
		"tracer/probe/p.go:3: tracer/probe may not import tracer",
		"internal/util/u.go: a package is named for what it does, not util",
		"internal/util: no file has a package comment",
		"internal/doc/d.go:13: D has no comment",
		"internal/doc/d.go:17: G has no comment",
		"internal/doc/d.go:23: I has no comment",
		"internal/doc/d.go:29: L has no comment",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("faults (-want +got):\n%s", d)
	}
}

// TestLengths checks the report on a long function, many parameters and a long file.
func TestLengths(t *testing.T) {
	root := t.TempDir()
	body := strings.Repeat("\t_ = a\n", 60)
	write(t, filepath.Join(root, "x.go"), "package x\n\nfunc f(a, b, c, d, e, g int) {\n"+body+"}\n"+strings.Repeat("\n", 400)+"var _ = 1\n")
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"x.go: 465 lines", "x.go:3: f has 62 lines", "x.go:3: f has 6 parameters"}
	if d := cmp.Diff(want, tree.Lengths()); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
}

// TestLoadSaysWhatIsBroken checks that a file that does not parse is named.
func TestLoadSaysWhatIsBroken(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "broken.go"), "package")
	if _, err := Load(root); err == nil || !strings.Contains(err.Error(), "broken.go") {
		t.Fatalf("Load = %v, want an error that names broken.go", err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
