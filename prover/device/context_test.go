//go:build cgo && linux

package device

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"highwater/tracer"
	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// TestTooLittleMemory: a context that does not fit, and an operation that does not, are errors with
// sizes; what comes next works.
func TestTooLittleMemory(t *testing.T) {
	l := library(t)
	_, err := l.NewContext(Config{ArenaBytes: 64 << 20, FaultDeviceBytes: 1 << 20})
	if !errors.Is(err, OutOfDeviceMemory) {
		t.Fatalf("error %v, want out of device memory", err)
	}
	t.Log(err)
	if _, err := l.NewContext(Config{Device: 1000}); !errors.Is(err, NoDevice) {
		t.Errorf("error %v, want no device", err)
	}
	c := newContext(t, Config{ArenaBytes: 4 << 20})
	big := make([]fr.Element, 1<<18) // 8 MiB
	err = NTT(c, big, OrderNR, 0)
	if !errors.Is(err, OutOfDeviceMemory) || !strings.Contains(err.Error(), "wanted") {
		t.Errorf("error %v, want out of device memory with sizes", err)
	}
	if err := NTT(c, big[:1024], OrderNR, 0); err != nil {
		t.Errorf("after running out: %v", err)
	}
}

// TestPool: the page-locked pool gives out what it has, says when it has no more, and takes back.
func TestPool(t *testing.T) {
	c := newContext(t, Config{PoolBytes: 1 << 20})
	a, err := c.HostAlloc(700<<10, "a", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		a[i] = byte(i)
	}
	if _, err := c.HostAlloc(700<<10, "b", 0, 1); !errors.Is(err, OutOfPinnedMemory) {
		t.Errorf("error %v, want out of page-locked memory", err)
	}
	if err := c.HostFree(a); err != nil {
		t.Fatal(err)
	}
	if err := c.HostFree(a); err == nil {
		t.Error("a second free was no error")
	}
	b, err := c.HostAlloc(1<<20, "b", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.HostFree(b); err != nil {
		t.Error(err)
	}
}

// TestMemory: what the context says it holds agrees with what the driver reports.
func TestMemory(t *testing.T) {
	c := newContext(t, Config{ArenaBytes: 64 << 20, PoolBytes: 1 << 20})
	if err := NTT(c, make([]fr.Element, 1<<10), OrderNN, 0); err != nil {
		t.Fatal(err)
	}
	m, err := c.Memory()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", m)
	if m.Arena != 64<<20 || m.Pool != 1<<20 || m.ArenaPeak < 32<<10 || m.ArenaPeak > m.Arena {
		t.Errorf("memory %+v", m)
	}
	if !m.DriverKnown {
		return // nobody to agree with
	}
	ours, driver := m.Context+m.Arena, m.DriverUsed-m.DriverBase
	if off := ours - driver; off > driver/50 || off < -driver/50 {
		t.Errorf("the ledger has %d device bytes, the driver %d: more than 2 %% apart", ours, driver)
	}
	if err := c.ResetPeaks(); err != nil {
		t.Fatal(err)
	}
	if m, err = c.Memory(); err != nil || m.ArenaPeak != m.ArenaUsed {
		t.Errorf("peaks after the reset: %+v, %v", m, err)
	}
}

// TestRingFull: a ring that nobody reads drops, counts what it drops, and blocks nobody.
func TestRingFull(t *testing.T) {
	c := newContext(t, Config{RingRecords: 64})
	v := make([]fr.Element, 16)
	for range 100 {
		if err := NTT(c, v, OrderNN, 0); err != nil {
			t.Fatal(err)
		}
	}
	ring, err := c.Ring()
	if err != nil {
		t.Fatal(err)
	}
	if ring.Capacity != 64 || ring.Dropped == 0 || ring.Waiting > 64 {
		t.Fatalf("ring %+v", ring)
	}
	var events [256]Event
	n, err := c.ReadEvents(events[:])
	if err != nil || n != 64 {
		t.Fatalf("%d events, %v, want 64", n, err)
	}
	for i := range events[:n] {
		if events[i].Seq != uint64(i) {
			t.Fatalf("event %d has seq %d", i, events[i].Seq)
		}
	}
	if n, err := c.ReadEvents(nil); n != 0 || err != nil {
		t.Errorf("reading into nothing: %d, %v", n, err)
	}
}

// TestDropsAreLoss: what a full ring dropped stands in the manifest's losses, and the trace is valid
// all the same.
func TestDropsAreLoss(t *testing.T) {
	l := library(t) // before the recorder: a test that is skipped leaves none behind
	dir := filepath.Join(t.TempDir(), "run.hw")
	rec, err := tracer.Create(dir, tracer.Options{NoOTLP: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.NewContext(Config{ArenaBytes: 64 << 20, RingRecords: 64})
	if err != nil {
		t.Fatal(err)
	}
	v := make([]fr.Element, 16)
	for range 100 { // before anybody reads
		if err := NTT(c, v, OrderNN, 0); err != nil {
			t.Fatal(err)
		}
	}
	d := startDrain(c, rec, 0, l.Name, 20)
	for range 3 {
		if err := NTT(c, v, OrderNN, 0); err != nil {
			t.Fatal(err)
		}
	}
	d.halt()
	ring, err := c.Ring()
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := d.finish(journal.Monotonic()); err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(trace.EndFinished, ""); err != nil {
		t.Fatal(err)
	}
	data := load(t, dir)
	for _, loss := range data.Manifest.Loss {
		if loss.Writer == "device/0" && loss.Count == ring.Dropped && loss.Count > 0 {
			return
		}
	}
	t.Errorf("losses %+v, want the %d of the ring", data.Manifest.Loss, ring.Dropped)
}

// load reads a trace, which must be valid.
func load(t testing.TB, dir string) *trace.Data {
	t.Helper()
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	violations, err := trace.Validate(tr, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		if v.Severity == trace.SeverityError {
			t.Errorf("%+v", v)
		}
	}
	data, err := tr.Load()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
