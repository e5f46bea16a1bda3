package trace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestManifestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	base, capacity := int64(1<<30), int64(0)
	want := &Manifest{
		SchemaVersion: SchemaVersion, Origin: OriginSimulated, Program: "<test> & co", Seed: 1<<64 - 1,
		DerivedFrom: []Derivation{{"a.hw", "00ff"}},
		Fit:         map[string]any{"r2": 0.5, "stages": []any{"synthesis", nil}},
		Anchor:      Anchor{AnchorVirtual, -1, 1<<63 - 1},
		Resources: []Resource{
			{Name: "permit", Capacity: &capacity, Device: None},
			{Name: "channel", Device: 0},
		},
		Settings:  map[string]Setting{"jobs": {"4", "flag"}},
		BaseBytes: &base, PeakRSS: &PeakRSS{5, "predicted"},
		SealedBy: SealedByClose, ProcessEnd: EndFinished,
	}
	if err := WriteManifest(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written and read, it changed:\n%s", diff)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("files left: %v", names)
	}
}

func TestHashAndSize(t *testing.T) {
	dir := written(t)
	before, err := Hash(dir)
	if err != nil || len(before) != 64 {
		t.Fatalf("hash %q, %v", before, err)
	}
	size, err := Size(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		want += info.Size()
	}
	if size != want || len(names) != 5 {
		t.Errorf("size %d of %d files, want %d", size, len(names), want)
	}
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Seed++
	if err := WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	if after, err := Hash(dir); err != nil || after == before {
		t.Errorf("another manifest has the same hash, %v", err)
	}
	if _, err := Size(filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("size of nothing: %v", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := written(t)
	if err := Write(dir, mustParse(t, pileup)); err == nil {
		t.Error("a second trace was written over the first")
	}
	if _, err := readAll(dir); err != nil {
		t.Errorf("the first trace is damaged: %v", err)
	}
	w, err := Create(filepath.Join(t.TempDir(), "new", "t.hw"))
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, err := os.Stat(w.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an aborted trace left its directory: %v", err)
	}
}

// TestIterators: several at once, left early, each with its own place.
func TestIterators(t *testing.T) {
	tr, err := Open(written(t))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	n := 0
	for a, err := range tr.Buffers() {
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range tr.Buffers() {
			if err != nil {
				t.Fatal(err)
			}
			if b.Seq >= a.Seq {
				break
			}
			n++
		}
	}
	if n != 15 { // 0 + 1 + … + 5
		t.Errorf("%d pairs", n)
	}
	if _, err := tr.LoadLimit(3); !errors.Is(err, ErrTooLarge) {
		t.Errorf("loading past the limit: %v", err)
	}
}

// TestManifestFlips: one flipped bit anywhere in a manifest is an error.
func TestManifestFlips(t *testing.T) {
	dir := t.TempDir()
	m := &Manifest{
		SchemaVersion: SchemaVersion, Origin: OriginRecorded, Program: "p", Seed: 7,
		Anchor: Anchor{Kind: AnchorMonotonic, MonotonicNS: 12345, UnixNS: 67890},
	}
	if err := WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(manifestPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(text) {
		bad := bytes.Clone(text)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := parseManifest("manifest.json", bad); err == nil {
			t.Errorf("bit %d of byte %d (%q) flipped unseen", i%8, i/8, text[i/8])
		}
	}
	edited := bytes.Replace(text, []byte(`"seed": 7`), []byte(`"seed": 8`), 1)
	at := bytes.LastIndex(edited, []byte(`,
  "checksum"`))
	got, err := parseManifest("manifest.json", append(edited[:at:at], "\n}\n"...))
	if err != nil || got.Seed != 8 {
		t.Errorf("edited, its checksum deleted: %v, %v", got, err)
	}
}
