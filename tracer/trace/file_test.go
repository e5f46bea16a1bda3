package trace

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func mustParse(t testing.TB, text string) *Data {
	t.Helper()
	d, err := ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// reload writes d, opens it and loads it again.
func reload(t testing.TB, d *Data) *Data {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "t.hw")
	if err := Write(dir, d); err != nil {
		t.Fatal(err)
	}
	return load(t, dir)
}

func load(t testing.TB, dir string) *Data {
	t.Helper()
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	d, err := tr.Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFileRoundTrip(t *testing.T) {
	d := mustParse(t, pileup)
	valid(t, d)
	if diff := cmp.Diff(d, reload(t, d), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the files changed the trace:\n%s", diff)
	}
}

// TestFileAnyData: any rows come back from the files exactly, unless a column that has no null
// holds Null.
func TestFileAnyData(t *testing.T) {
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		d := anyData(t)
		withoutNulls(d)
		n++
		dir := filepath.Join(root, "t", string(rune('a'+n%26)))
		os.RemoveAll(dir)
		if err := Write(dir, d); err != nil {
			t.Fatal(err)
		}
		tr, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		again, err := tr.Load()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the files changed the trace:\n%s", diff)
		}
	})
}

// TestManyRows crosses row groups and pages, with dictionaries too large to keep and nulls in
// between.
func TestManyRows(t *testing.T) {
	d := &Data{Manifest: textManifest()}
	for i := range int64(3*groupRows + 17) {
		row := BufferEvent{
			Seq: i + 1, TimeNS: i * i, BufferID: i, CapacityBytes: i * 1_000_003,
			Job: i % 7, DeltaBytes: -i * 999_999_937,
		}
		row.ResidentBytes = Null
		if i%3 == 0 {
			row.ResidentBytes = i ^ math.MaxInt64
		}
		row.Estimated = i%5 == 0
		row.Class = []string{"a", "b", "", "density"}[i%4]
		d.Buffers = append(d.Buffers, row)
		d.Spans = append(d.Spans, Span{
			BeginSeq: i, SpanID: math.MaxInt64 - i*i,
			Name: string(rune('a' + i%20)), EndSeq: Null,
			Attributes: `{"n":` + string(rune('0'+i%10)) + `}`,
			OtelSpanID: string(rune('A' + i%60)),
		})
	}
	again := reload(t, d)
	if !slices.Equal(d.Buffers, again.Buffers) {
		t.Error("the buffers changed")
	}
	if !slices.Equal(d.Spans, again.Spans) {
		t.Error("the spans changed")
	}
}

func withoutNulls(d *Data) {
	clean := func(vs ...*int64) {
		for _, v := range vs {
			if *v == Null {
				*v = 0
			}
		}
	}
	for i := range d.Spans {
		s := &d.Spans[i]
		clean(&s.BeginSeq, &s.SpanID, &s.ParentID, &s.Job, &s.Partition, &s.Worker, &s.Device,
			&s.BeginNS)
	}
	for i := range d.Buffers {
		b := &d.Buffers[i]
		clean(&b.Seq, &b.TimeNS, &b.BufferID, &b.ParentID, &b.Device, &b.DeltaBytes, &b.Job,
			&b.Partition, &b.Worker, &b.SpanID)
	}
	for i := range d.Queues {
		q := &d.Queues[i]
		clean(&q.Seq, &q.TimeNS, &q.Job, &q.Partition, &q.Worker, &q.Priority, &q.Amount, &q.SpanID)
	}
	for i := range d.Samples {
		clean(&d.Samples[i].TimeNS)
	}
}
