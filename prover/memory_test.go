package prover

import (
	"errors"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"highwater/prover/hostmem"
	"highwater/tracer"
	"highwater/tracer/probe"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// TestPeakMeterSampled checks what is said where the kernel's mark may not be reset: the highest
// sample of the measured time, with a doubt; and nothing at all without samples.
func TestPeakMeterSampled(t *testing.T) {
	m := &peakMeter{}
	m.Sample(probe.RSS, 900) // before begin
	m.begin()
	m.resetErr = errors.New("permission denied")
	m.Sample(probe.RSS, 500)
	m.Sample(probe.RSS, 700)
	m.Sample(probe.HWM, 5000)
	m.Sample(probe.RSS, 600)
	peak, doubt := m.end()
	if peak == nil || *peak != (trace.PeakRSS{Bytes: 700, Source: "sampled"}) || !strings.Contains(doubt, "permission denied") {
		t.Errorf("peak %v, doubt %q, want 700 sampled and why", peak, doubt)
	}
	none := &peakMeter{resetErr: errors.New("permission denied")}
	if peak, doubt := none.end(); peak != nil || doubt == "" {
		t.Errorf("peak %v, doubt %q, want none and why", peak, doubt)
	}
}

// TestPeakMeterMark checks that the kernel's mark sees memory that was there for a moment only, and
// not what was before. Both are held against what was resident while the memory was there: the rest
// of the process gives pages back when it likes. The mark is off by some MiB where there are many
// CPUs.
func TestPeakMeterMark(t *testing.T) {
	const size = 128 << 20
	m := &peakMeter{}
	m.begin()
	quiet, doubt := m.end()
	if m.resetErr != nil { // a kernel or container that does not permit it: then it must be told
		if quiet != nil || !strings.Contains(doubt, m.resetErr.Error()) {
			t.Fatalf("peak %v, doubt %q without the right to reset", quiet, doubt)
		}
		return
	}
	if quiet == nil || quiet.Source != "vmhwm" || doubt != "" {
		t.Fatalf("peak %v, doubt %q, want the kernel's mark", quiet, doubt)
	}
	m = &peakMeter{}
	m.begin()
	during := rssWith(t, size)
	peak, _ := m.end()
	if peak == nil || peak.Bytes < during-size/4 {
		t.Fatalf("peak %v, want about the %d that were resident", peak, during)
	}
	m = &peakMeter{}
	m.begin()
	later, _ := m.end()
	if later == nil || later.Bytes > during-size/2 {
		t.Errorf("peak %v after a reset, want it far below %d", later, during)
	}
}

// rssWith is the resident set while bytes more are touched.
func rssWith(t *testing.T, bytes int64) int64 {
	t.Helper()
	mem := &hostmem.Allocator{}
	r, err := mem.Alloc(trace.ClassAux, bytes, tracer.NoOwner)
	if err != nil {
		t.Fatal(err)
	}
	for i := int64(0); i < bytes; i += 4096 {
		r.Bytes()[i] = 1
	}
	rss, err := exactRSS()
	if err := errors.Join(err, r.Free()); err != nil {
		t.Fatal(err)
	}
	return rss
}

// TestSafetyNet checks the limit of a run that names none.
func TestSafetyNet(t *testing.T) {
	for _, c := range []struct{ available, outside, want int64 }{
		{0, 1 << 20, setting.Unbounded},
		{1000 << 20, 100 << 20, 800 << 20},
		{100 << 20, 90 << 20, 64 << 20},
	} {
		if got := safetyNet(c.available, c.outside); got != c.want {
			t.Errorf("of %d bytes with %d outside the heap: %d, want %d",
				c.available, c.outside, got, c.want)
		}
	}
	r := mustRun(t, Config{Settings: small(t), CacheDir: cache(t),
		Dir: filepath.Join(t.TempDir(), "run.hw")})
	d := checkTrace(t, r.TraceDir)
	got, err := strconv.ParseInt(d.Manifest.Settings["memory_limit_bytes"].Value, 10, 64)
	// What is available changes from moment to moment, but never reaches what the machine has.
	if ram := d.Manifest.Host.RAMBytes; err != nil || got < 64<<20 || got > ram*19/20 {
		t.Errorf("limit in effect %d (%v) on a machine with %d", got, err, ram)
	}
}

// TestCollector checks that the collector's settings take effect and are taken back.
func TestCollector(t *testing.T) {
	percent := debug.SetGCPercent(80)
	defer debug.SetGCPercent(percent)
	limit := debug.SetMemoryLimit(1 << 40)
	defer debug.SetMemoryLimit(limit)
	for _, c := range []struct {
		gogc, limit string
		net         int64
		percent     int
		bytes       int64
		collects    bool
	}{
		{"off", "unbounded", setting.Unbounded, -1, 1 << 40, true},
		{"off", "unbounded", 1 << 33, -1, 1 << 33, true},
		{"off", "unbounded", 1 << 41, -1, 1 << 40, true}, // GOMEMLIMIT is lower
		{"off", "1GiB", 1 << 33, -1, 1 << 30, true},
		{"50", "1GiB", 1 << 33, 50, 1 << 30, false},
		{"50", "unbounded", 1 << 33, 50, 1 << 40, false},
	} {
		gc := setCollector(values(t, "gogc", c.gogc, "memory_limit_bytes", c.limit), c.net)
		if got := debug.SetGCPercent(c.percent); got != c.percent {
			t.Errorf("gogc %s: percentage %d, want %d", c.gogc, got, c.percent)
		}
		if got := debug.SetMemoryLimit(-1); got != c.bytes {
			t.Errorf("memory_limit_bytes %s: limit %d, want %d", c.limit, got, c.bytes)
		}
		if (gc.afterMSM != nil) != c.collects {
			t.Errorf("gogc %s: collects after each MSM: %v", c.gogc, gc.afterMSM != nil)
		}
		gc.restore()
		if got := debug.SetMemoryLimit(-1); got != 1<<40 {
			t.Errorf("limit %d after restore", got)
		}
	}
	if got := debug.SetGCPercent(80); got != 80 {
		t.Errorf("percentage %d after restore, want 80", got)
	}
	// Of two that overlap, whichever ends first, the last one restores.
	first := setCollector(values(t, "memory_limit_bytes", "1GiB"), setting.Unbounded)
	second := setCollector(values(t), setting.Unbounded)
	first.restore()
	if got := debug.SetGCPercent(-1); got != -1 {
		t.Errorf("percentage %d while a run with gogc off is under way", got)
	}
	second.restore()
	if got := debug.SetGCPercent(80); got != 80 {
		t.Errorf("percentage %d after both, want 80", got)
	}
	if got := debug.SetMemoryLimit(-1); got != 1<<40 {
		t.Errorf("limit %d after both", got)
	}
}
