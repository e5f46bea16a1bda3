package trace

import (
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSealedMeanwhile: who finds the journal gone, or going, looks for the sealed trace that came before.
func TestSealedMeanwhile(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	r.life(j, 0, true)
	r.close(j)
	unsealed, err := ReadManifest(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Seal(r.dir, SealOptions{}); err != nil {
		t.Fatal(err)
	}
	tr, err := openJournal(r.dir, unsealed) // read before it was sealed
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if tr.Live || tr.Rows() != 9-1 { // a span is one row
		t.Errorf("live %v, %d rows", tr.Live, tr.Rows())
	}
}

// TestSealWaits: sealing waits for a recorder that is writing the manifest, and keeps what it wrote.
func TestSealWaits(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	r.life(j, 0, true)
	r.close(j)
	unlock, err := lockFolder(r.dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := Seal(r.dir, SealOptions{})
		done <- err
	}()
	m, err := ReadManifest(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Recorder.Events = 77
	if err := WriteManifest(r.dir, m); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if m, err = ReadManifest(r.dir); err != nil || m.Recorder.Events != 77 || m.SealedBy == "" {
		t.Errorf("manifest %+v, %v", m, err)
	}
	if _, err := Seal(r.dir, SealOptions{}); err != nil {
		t.Errorf("the lock is not given back: %v", err)
	}
}

// TestSealOnce: of several that seal at once each finds the trace sealed, or is told who does it.
func TestSealOnce(t *testing.T) {
	r := newRecording(t)
	j := r.source("main", 0)
	for n := range int32(50) {
		r.life(j, n, true)
	}
	r.close(j)
	var wg sync.WaitGroup
	var sealed atomic.Int64
	for range 4 {
		wg.Go(func() {
			if _, err := Recover(r.dir, RecoverOptions{}); err == nil {
				sealed.Add(1)
			} else if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if sealed.Load() == 0 {
		t.Error("nobody sealed it")
	}
	d := load(t, r.dir)
	valid(t, d)
	if len(d.Spans) != 50 {
		t.Errorf("%d spans", len(d.Spans))
	}
}
