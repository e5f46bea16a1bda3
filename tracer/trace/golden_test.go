package trace

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

var update = flag.Bool("update", false, "write golden files anew")

// golden compares got with testdata/NAME.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is now\n%s\nrun go test ./tracer/trace -update and look at the difference",
			path, got)
	}
}

// TestGoldenSeal: a recovered recording of two sources, as text.
func TestGoldenSeal(t *testing.T) {
	r := newRecording(t)
	main, child := r.source("prove", 0), r.source("setup", 1)
	defer main.Close()
	r.life(child, 0, true)
	r.close(child)
	r.life(main, 1, true)
	r.life(main, 12, false)
	dir := killed(t, r)
	if _, err := Recover(dir, RecoverOptions{
		ProcessEnd: EndKilled,
		Reason:     "SIGKILL",
	}); err != nil {
		t.Fatal(err)
	}
	d := load(t, dir)
	valid(t, d)
	for i := range d.Manifest.Sources {
		d.Manifest.Sources[i].PID = 1
	}
	golden(t, "recovered.txt", FormatText(d))
}

// TestGoldenSchema: the columns as every reader of Parquet sees them.
func TestGoldenSchema(t *testing.T) {
	dir := written(t)
	var b strings.Builder
	for _, table := range []string{"spans", "buffers", "queues", "samples"} {
		f, err := os.Open(tablePath(dir, table))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		p, err := parquet.OpenFile(f, info.Size())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", table)
		for i, c := range p.Schema().Fields() {
			null := ""
			if c.Optional() {
				null = " null"
			}
			encodings := p.Metadata().RowGroups[0].Columns[i].MetaData.Encoding
			fmt.Fprintf(&b, "  %-22s %s%s %v\n", c.Name(), c.Type(), null, encodings)
		}
	}
	golden(t, "schema.txt", b.String())
}

// TestColumns: the table of columns, the rows and what is written agree on names and order.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		columns   []column
		row, disk reflect.Type
	}{
		{spanColumns, reflect.TypeFor[Span](), reflect.TypeFor[diskSpan]()},
		{bufferColumns, reflect.TypeFor[BufferEvent](), reflect.TypeFor[diskBuffer]()},
		{queueColumns, reflect.TypeFor[QueueEvent](), reflect.TypeFor[diskQueue]()},
		{sampleColumns, reflect.TypeFor[Sample](), reflect.TypeFor[diskSample]()},
	} {
		for i, col := range c.columns {
			row, disk := c.row.Field(i), c.disk.Field(i)
			name, _, _ := strings.Cut(disk.Tag.Get("parquet"), ",")
			if row.Name != disk.Name || name != col.name ||
				(disk.Type.Kind() == reflect.Pointer) != col.nullable {
				t.Errorf("%s.%s: on disk %s as %q, in the table of columns %+v", c.row, row.Name,
					disk.Name, name, col)
			}
		}
		if c.row.NumField() != len(c.columns) || c.disk.NumField() != len(c.columns) {
			t.Errorf("%s: %d columns of %d fields", c.row, len(c.columns), c.row.NumField())
		}
	}
}

// TestRulesInDocs keeps the table of rules in docs/format.md, and its example, as the code has
// them.
func TestRulesInDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "format.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| rule | invariant | loss explains it |\n|---|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.ID, r.Doc, map[bool]string{true: "yes"}[r.ByLoss])
	}
	head, rest, _ := strings.Cut(string(text), "-update -->\n")
	old, tail, ok := strings.Cut(rest, "<!-- end of rules -->")
	if !ok {
		t.Fatal("docs/format.md has no place for the rules")
	}
	if old != b.String() && *update {
		if err := os.WriteFile(path,
			[]byte(head+"-update -->\n"+b.String()+"<!-- end of rules -->"+tail),
			0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != b.String() {
		t.Error("the rules in docs/format.md are not those of the code: run go test ./tracer/trace -update")
	}
	_, example, _ := strings.Cut(tail, "```\nprogram")
	example, _, _ = strings.Cut(example, "```")
	d := mustParse(t, "program"+example)
	valid(t, d)
	if len(d.Buffers) != 5 || len(d.Queues) != 6 || len(d.Spans) != 1 {
		t.Errorf("the example of docs/format.md has %d buffer events, %d queue events, %d spans",
			len(d.Buffers), len(d.Queues), len(d.Spans))
	}
}
