package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"highwater/analyze/memory"
	"highwater/analyze/report"
	"highwater/tracer/trace"
)

// exportCSV writes the four tables, columns named as in the Parquet files. What was not measured is
// an empty cell.
func (c *exportCmd) exportCSV(_ *tui, t *trace.Trace) ([]exportedFile, error) {
	if c.CSV == "" {
		return nil, nil
	}
	if err := os.MkdirAll(c.CSV, 0o777); err != nil {
		return nil, fmt.Errorf("make the CSV folder: %w", err)
	}
	var files []exportedFile
	for _, write := range []func() (exportedFile, error){
		func() (exportedFile, error) { return writeTable(c.CSV, "spans", t.Spans()) },
		func() (exportedFile, error) { return writeTable(c.CSV, "buffers", t.Buffers()) },
		func() (exportedFile, error) { return writeTable(c.CSV, "queues", t.Queues()) },
		func() (exportedFile, error) { return writeTable(c.CSV, "samples", t.Samples()) },
	} {
		f, err := write()
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	peak, err := c.exportPeak(t)
	return append(files, peak...), err
}

// exportPeak writes what was live over time, down-sampled, and what held the memory at the peak.
func (c *exportCmd) exportPeak(t *trace.Trace) ([]exportedFile, error) {
	r, err := memory.Build(t)
	if err != nil {
		return nil, traceFailure(err)
	}
	var files []exportedFile
	write := func(what string, to func(io.Writer) error) error {
		var text bytes.Buffer
		if err := to(&text); err != nil {
			return err
		}
		path, lines := filepath.Join(c.CSV, what+".csv"), bytes.Count(text.Bytes(), []byte{'\n'})
		files = append(files, exportedFile{Path: path, What: what, Rows: int64(lines - 1)})
		return os.WriteFile(path, text.Bytes(), 0o666)
	}
	err = write("series", func(w io.Writer) error { return report.SeriesCSV(w, r.Series) })
	if err == nil && r.Peak != nil {
		err = write("peak", func(w io.Writer) error { return report.PeakCSV(w, r.Peak) })
	}
	return files, err
}

func writeTable[T any](dir, name string, rows iter.Seq2[*T, error]) (exportedFile, error) {
	out := exportedFile{Path: filepath.Join(dir, name+".csv"), What: name}
	f, err := os.Create(out.Path)
	if err != nil {
		return out, fmt.Errorf("write table %s: %w", name, err)
	}
	defer f.Close()
	buffered := bufio.NewWriterSize(f, 1<<20)
	w := csv.NewWriter(buffered)
	typ := reflect.TypeFor[T]()
	record := make([]string, typ.NumField())
	for i := range record {
		record[i] = columnName(typ.Field(i).Name)
	}
	w.Write(record) // errors of a csv.Writer stay: Error gives the first
	for row, err := range rows {
		if err != nil {
			return out, traceFailure(err)
		}
		v := reflect.ValueOf(row).Elem()
		for i := range record {
			record[i] = cell(v.Field(i))
		}
		w.Write(record)
		out.Rows++
	}
	w.Flush()
	if err := firstError(w.Error, buffered.Flush, f.Close); err != nil {
		return out, fmt.Errorf("write table %s: %w", name, err)
	}
	return out, nil
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func cell(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Int64:
		if v.Int() == trace.Null {
			return ""
		}
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return v.String()
}

// columnName is a row type's field as the tables name it: BeginNS is begin_ns, OtelSpanID
// otel_span_id.
func columnName(field string) string {
	field = strings.Replace(field, "CPUNS", "CpuNS", 1)
	var b strings.Builder
	prev := ' '
	for _, r := range field {
		if unicode.IsUpper(r) && unicode.IsLower(prev) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		prev = r
	}
	return b.String()
}
