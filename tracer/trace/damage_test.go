package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
)

// written writes the sample trace and returns its directory.
func written(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t.hw")
	if err := Write(dir, mustParse(t, pileup)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readAll opens dir and reads every row.
func readAll(dir string) (*Data, error) {
	tr, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	return tr.Load()
}

// foreign is a Parquet file of another schema.
func foreign(rows any) []byte {
	var b bytes.Buffer
	w := parquet.NewWriter(&b)
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Each damage changes one file of the sample trace; a nil change removes it.
var damages = []struct {
	name, file, want string
	change           func(b []byte) []byte
}{
	{
		"empty table", "buffers.parquet", "offset 0: 0 bytes are too short for a Parquet file",
		func([]byte) []byte { return nil },
	},
	{
		"half a table", "buffers.parquet", "the file is cut off: its footer is missing",
		func(b []byte) []byte { return b[:len(b)/2] },
	},
	{"missing table", "queues.parquet", "queues.parquet: the table is missing", nil},
	{
		"text as table", "spans.parquet", "offset 0: not a Parquet file",
		func([]byte) []byte { return []byte("seq,time_ns\n1,2\n3,4\n") },
	},
	{"footer too long", "spans.parquet", "footer of 4294967295 bytes", func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[len(b)-8:], 1<<32-1)
		return b
	}},
	{
		"footer zeroed", "spans.parquet", "footer",
		func(b []byte) []byte { clear(b[len(b)-400 : len(b)-8]); return b },
	},
	{
		"page damaged", "buffers.parquet", "a page fails its checksum",
		func(b []byte) []byte { b[60] ^= 1; return b },
	},
	{
		"another table", "queues.parquet", `column "seq" is missing`,
		func([]byte) []byte { return foreign(struct{ Name string }{"x"}) },
	},
	{"column missing", "samples.parquet", `column "value" is missing`, func([]byte) []byte {
		return foreign(struct {
			TimeNS int64  `parquet:"time_ns"`
			Source string `parquet:"source"`
			Metric string `parquet:"metric"`
		}{})
	}},
	{
		"column of another type", "samples.parquet",
		`column "time_ns" is of type DOUBLE, want INT64`, func([]byte) []byte {
			return foreign(struct {
				TimeNS float64 `parquet:"time_ns"`
				Source string  `parquet:"source"`
				Metric string  `parquet:"metric"`
				Value  float64 `parquet:"value"`
			}{})
		},
	},
	{
		"null where none may be", "samples.parquet", `column "time_ns" is null`,
		func([]byte) []byte {
			return foreign(struct {
				TimeNS *int64  `parquet:"time_ns,optional,zstd"`
				Source string  `parquet:"source,zstd"`
				Metric string  `parquet:"metric,zstd"`
				Value  float64 `parquet:"value,zstd"`
			}{})
		},
	},
	{
		"empty manifest", "manifest.json", "unexpected end of JSON input",
		func([]byte) []byte { return nil },
	},
	{
		"half a manifest", "manifest.json", "unexpected end of JSON input",
		func(b []byte) []byte { return b[:len(b)/2] },
	},
	{
		"foreign manifest", "manifest.json", "schema_version is missing",
		func([]byte) []byte { return []byte(`{"name":"web-app"}`) },
	},
	{
		"newer manifest", "manifest.json", "schema version 99, this program reads up to 1",
		func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"schema_version": 1`), []byte(`"schema_version": 99`),
				1)
		},
	},
	{
		"two manifests", "manifest.json", "after top-level value",
		func(b []byte) []byte { return append(b, b...) },
	},
	{"wrong type", "manifest.json", "offset", func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"program": "prove"`), []byte(`"program": 7`), 1)
	}},
	{"huge manifest", "manifest.json", "larger than the limit", func(b []byte) []byte {
		return append(b, bytes.Repeat([]byte(" "), maxManifestBytes)...)
	}},
	{"no manifest", "manifest.json", "it has no manifest.json", nil},
}

// unlisted is written without the list of tables in the manifest, as one made by hand.
func unlisted(t *testing.T) string {
	t.Helper()
	dir := written(t)
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Tables = nil
	if err := WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDamagedFiles(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			dir := unlisted(t)
			path := filepath.Join(dir, c.file)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			os.Remove(path)
			if c.change != nil {
				if err := os.WriteFile(path, c.change(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, err = readAll(dir)
			var typed *FileError
			if !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a FileError with %q", err, c.want)
			} else if typed.Hint == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q does not say in one line what to do", err)
			}
		})
	}
}

func TestNotATrace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, file, filepath.Join(dir, "nothing")} {
		if _, err := Open(path); !errors.Is(err, ErrNotTrace) {
			t.Errorf("opening %s: %v", path, err)
		}
	}
}

// TestOtherLayouts: tables that other programs wrote, with V1 pages, plain encoding and columns
// more than ours, read the same.
func TestOtherLayouts(t *testing.T) {
	type row struct {
		Extra  []string `parquet:"extra,list"`
		Value  float64  `parquet:"value,zstd"`
		Metric *string  `parquet:"metric,optional,zstd"`
		TimeNS *int64   `parquet:"time_ns,optional"`
		Source string   `parquet:"source,zstd"`
	}
	metric := "process.memory.usage"
	for _, version := range []int{1, 2} {
		dir := unlisted(t)
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.DataPageVersion(version))
		for i := range int64(300) {
			if _, err := w.Write([]row{{
				[]string{"x", "y"},
				float64(i), &metric, &i,
				"main",
			}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), os.WriteFile(tablePath(dir, "samples"), b.Bytes(),
			0o644)); err != nil {
			t.Fatal(err)
		}
		d := load(t, dir)
		if n := len(d.Samples); n != 300 || d.Samples[7] != (Sample{7, "main", metric, 7}) {
			t.Errorf("version %d: %d samples, %+v", version, n, d.Samples[7])
		}
	}
}

// TestEveryBit flips a bit of each byte of a table: the rows are as they were, or the error is
// typed; no panic, no silent change, and no more memory than a row group takes.
func TestEveryBit(t *testing.T) {
	dir := written(t)
	t.Run("spans", func(t *testing.T) { everyBit[Span](t, tablePath(dir, "spans"), spanColumns) })
	t.Run("buffers", func(t *testing.T) {
		everyBit[BufferEvent](t, tablePath(dir, "buffers"),
			bufferColumns)
	})
	t.Run("queues", func(t *testing.T) {
		everyBit[QueueEvent](t, tablePath(dir, "queues"),
			queueColumns)
	})
	t.Run("samples", func(t *testing.T) {
		everyBit[Sample](t, tablePath(dir, "samples"),
			sampleColumns)
	})
}

func everyBit[T comparable](t *testing.T, path string, columns []column) {
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := drain[T](whole, columns)
	if err != nil {
		t.Fatal(err)
	}
	const step = 64
	for first := 0; first < len(whole); first += step {
		part := min(step, len(whole)-first)
		if n := memory(func() {
			for i := range part {
				oneBit(t, whole, first+i, want, columns)
			}
		}); n > 256<<20 {
			t.Errorf("bytes %d to %d: %d bytes allocated", first, first+part, n)
		}
	}
}

func oneBit[T comparable](t *testing.T, whole []byte, i int, want []T, columns []column) {
	damaged := bytes.Clone(whole)
	damaged[i] ^= 1 << (i % 8)
	got, err := drain[T](damaged, columns)
	var typed *FileError
	if err != nil && !errors.As(err, &typed) {
		t.Errorf("byte %d: error %v of no type", i, err)
	}
	if err == nil && !slices.Equal(got, want) {
		t.Errorf("byte %d of %d: other rows without an error: %v", i, len(whole), got)
	}
}

func memory(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzOpen puts fuzzed bytes in the place of each table in turn.
func FuzzOpen(f *testing.F) {
	seed := written(f)
	for i, table := range []string{"spans", "buffers", "queues", "samples"} {
		b, err := os.ReadFile(tablePath(seed, table))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), b)
	}
	f.Add(byte(0), []byte("PAR1PAR1PAR1"))
	f.Fuzz(func(t *testing.T, n byte, content []byte) {
		var err error
		switch n % 4 {
		case 0:
			_, err = drain[Span](content, spanColumns)
		case 1:
			_, err = drain[BufferEvent](content, bufferColumns)
		case 2:
			_, err = drain[QueueEvent](content, queueColumns)
		case 3:
			_, err = drain[Sample](content, sampleColumns)
		}
		var typed *FileError
		if err != nil && !errors.As(err, &typed) {
			t.Fatalf("error %v of no type", err)
		}
	})
}

// drain reads all rows of a table from memory.
func drain[T any](content []byte, columns []column) ([]T, error) {
	t := &tableFile{
		path: "fuzzed.parquet", table: "fuzzed", in: bytes.NewReader(content),
		size: int64(len(content)),
	}
	if err := t.check(columns, reflect.TypeFor[T]()); err != nil {
		return nil, err
	}
	var rows []T
	err := collect(&rows, fileRows[T](t, columns))
	return rows, err
}

// FuzzManifest reads any bytes as a manifest; what is read is written and read again the same.
func FuzzManifest(f *testing.F) {
	b, err := os.ReadFile(manifestPath(written(f)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"schema_version":1,"resources":[{"capacity":null}],"fit":{"a":[1,{"b":null}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest("manifest.json", text)
		if err != nil {
			var typed *FileError
			if !errors.As(err, &typed) {
				t.Fatalf("error %v of no type", err)
			}
			return
		}
		text, err = encodeManifest(m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseManifest("manifest.json", text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("written and read, it changed:\n%s", diff)
		}
	})
}
