//go:build cgo && linux

package prover

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"highwater/prover/device"
	"highwater/tracer/trace"
)

// twin has the test's runs find the library's twin on the CPU, which has two devices.
func twin(t *testing.T) {
	t.Helper()
	built := "../bin/libhighwater_native_cpu.so"
	if path := os.Getenv("HIGHWATER_TEST_NATIVE"); path != "" {
		built = path
	}
	bytes, err := os.ReadFile(built)
	if errors.Is(err, os.ErrNotExist) && os.Getenv("HIGHWATER_TEST_NATIVE") == "" {
		t.Skip("no device library to test: `make native-cpu` builds the twin")
	}
	if err != nil {
		t.Fatal(err)
	}
	// A copy: a build beside the test would change the file under it.
	path := filepath.Join(t.TempDir(), device.LibraryName)
	if err := os.WriteFile(path, bytes, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(device.LibraryEnv, path)
}

// TestDeviceRun: runs on devices give the CPU's proofs, byte for byte, under every way to reach a
// device, and their traces are valid.
func TestDeviceRun(t *testing.T) {
	twin(t)
	want := mustRun(t, Config{Settings: small(t, "backend", "cpu"), CacheDir: cache(t)})
	for _, changes := range [][]string{
		{"backend", "auto"},
		{"backend", "device", "devices", "2", "gpu_workers", "2", "pinned", "register", "b_g2", "device"},
		{"backend", "device", "pinned", "pageable", "split_proving", "false", "setup", "device"},
	} {
		t.Run(strings.Join(changes, " "), func(t *testing.T) {
			cfg := Config{Settings: small(t, append(changes, "arena_bytes", "64MiB")...), CacheDir: cache(t),
				Dir: filepath.Join(t.TempDir(), "run.hw")}
			if slices.Contains(changes, "setup") {
				cfg.CacheDir = t.TempDir()
			}
			r := mustRun(t, cfg)
			if r.Backend != "device" || !strings.Contains(r.BackendReason, "CPU twin") {
				t.Errorf("backend %s: %s", r.Backend, r.BackendReason)
			}
			if r.ProofsSHA256 != want.ProofsSHA256 {
				t.Errorf("proofs %s differ from the CPU's %s", r.ProofsSHA256, want.ProofsSHA256)
			}
			d := checkTrace(t, cfg.Dir)
			checkDeviceTrace(t, d, int(cfg.Settings.Int("devices")))
			checkHostThreads(t, d, device.StageThreads(cfg.Settings.Text("pinned")))
		})
	}
}

// checkDeviceTrace checks that each device has its lock and its memory in the trace.
func checkDeviceTrace(t *testing.T, d *trace.Data, devices int) {
	t.Helper()
	locks, arenas, kernels := 0, map[int64]bool{}, 0
	for _, r := range d.Manifest.Resources {
		if r.Kind == trace.ResourceLock {
			locks++
		}
	}
	for _, b := range d.Buffers {
		if b.Class == "d_arena" {
			arenas[b.Device] = true
		}
	}
	for _, s := range d.Spans {
		if s.Kind == trace.KindKernel && s.Job >= 0 {
			kernels++
		}
	}
	if locks != devices || len(arenas) != devices || kernels == 0 {
		t.Errorf("%d locks, %d arenas, %d kernels of jobs for %d devices", locks, len(arenas), kernels, devices)
	}
	if len(d.Manifest.Host.GPUs) != devices || d.Manifest.Versions["native"] == "" {
		t.Errorf("manifest: GPUs %v, versions %v", d.Manifest.Host.GPUs, d.Manifest.Versions)
	}
}

// checkHostThreads checks that stages say how many CPU threads they keep busy: one waits for a device.
func checkHostThreads(t *testing.T, d *trace.Data, stageIn int) {
	t.Helper()
	want := map[string]int64{trace.StageStageIn: int64(stageIn), trace.StageProveStart: 1, trace.StageSynthesis: 1}
	starts := 0
	for _, s := range d.Spans {
		if n, ok := want[s.Stage]; ok && s.Kind == trace.KindStage && s.Threads != n {
			t.Errorf("%s: %d threads, want %d", s.Stage, s.Threads, n)
		}
		if s.Stage == trace.StageProveStart {
			starts++
		}
	}
	if starts == 0 {
		t.Error("no start in the trace")
	}
}

// TestDeviceTooSmall: a device without room for the key gives way to the CPU under backend auto, and
// is an error under backend device; one without room for a proof fails the jobs, with sizes.
func TestDeviceTooSmall(t *testing.T) {
	twin(t)
	tiny := []string{"log_size", "13", "jobs", "1", "partitions", "1", "arena_bytes", "2MiB"}
	r := mustRun(t, Config{Settings: small(t, append(tiny, "backend", "auto")...), CacheDir: cache(t)})
	if r.Backend != "cpu" || !strings.Contains(r.BackendReason, "out of device memory") || r.JobsFinished != 1 {
		t.Errorf("backend %s: %s, %d jobs finished", r.Backend, r.BackendReason, r.JobsFinished)
	}
	_, err := Run(context.Background(), Config{Settings: small(t, append(tiny, "backend", "device")...), CacheDir: cache(t)})
	if !errors.Is(err, ErrNoDevice) || !errors.Is(err, device.OutOfDeviceMemory) {
		t.Errorf("error %v, want no device for want of memory", err)
	}
	_, err = Run(context.Background(), Config{
		Settings: small(t, append(tiny, "backend", "auto", "b_g2", "device")...), CacheDir: cache(t)})
	if !errors.Is(err, ErrNoDevice) {
		t.Errorf("error %v, want that b_g2 has no device", err)
	}
	r = mustRun(t, Config{CacheDir: cache(t),
		Settings: small(t, "log_size", "12", "backend", "device", "arena_bytes", "2MiB")})
	if r.JobsFailed != 2 || !strings.Contains(r.Jobs[0].Reason, "wanted") {
		t.Errorf("%d jobs failed: %s", r.JobsFailed, r.Jobs[0].Reason)
	}
}

// TestNoLibrary: without a library, backend auto takes the CPU and says why; what cannot do without a
// device is refused.
func TestNoLibrary(t *testing.T) {
	t.Setenv(device.LibraryEnv, filepath.Join(t.TempDir(), "none.so"))
	r := mustRun(t, Config{Settings: small(t, "backend", "auto"), CacheDir: cache(t)})
	if r.Backend != "cpu" || !strings.Contains(r.BackendReason, "none.so") {
		t.Errorf("backend %s: %s", r.Backend, r.BackendReason)
	}
	for _, changes := range [][]string{
		{"backend", "device"}, {"backend", "auto", "b_g2", "device"}, {"backend", "cpu", "b_g2", "device"},
		{"backend", "auto", "setup", "device"}, {"backend", "cpu", "setup", "device"},
	} {
		_, err := Run(context.Background(), Config{Settings: small(t, changes...), CacheDir: cache(t)})
		if !errors.Is(err, ErrNoDevice) {
			t.Errorf("%v: error %v, want no device", changes, err)
		}
	}
}
