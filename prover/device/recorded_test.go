package device

import (
	"path/filepath"
	"testing"

	"highwater/tracer/trace"
)

// TestRecordedOnGPU: the traces recorded on H200s are valid, lost nothing, have what runs on a device
// under the operations of their partitions, and their ledger of device memory agrees with the driver's
// figures within 2 %.
func TestRecordedOnGPU(t *testing.T) {
	dirs, err := filepath.Glob("../../replay/testdata/gpu/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no recorded traces: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			d := validTrace(t, dir)
			if len(d.Manifest.Loss) > 0 || d.Manifest.ProcessEnd != trace.EndFinished {
				t.Errorf("process_end %q, losses %+v", d.Manifest.ProcessEnd, d.Manifest.Loss)
			}
			checkParents(t, d)
			checkDriver(t, d)
		})
	}
}

// checkParents: kernels and copies of a partition belong to operations, operations to stages.
func checkParents(t *testing.T, d *trace.Data) {
	t.Helper()
	kinds, kernels := map[int64]string{}, 0
	for _, s := range d.Spans {
		kinds[s.SpanID] = s.Kind
	}
	for _, s := range d.Spans {
		if s.Kind != trace.KindKernel || s.Job < 0 {
			continue
		}
		kernels++
		if kinds[s.ParentID] != trace.KindOp {
			t.Errorf("kernel %q of partition %d is under a %q", s.Name, s.Partition, kinds[s.ParentID])
		}
	}
	if kernels == 0 {
		t.Error("no kernels")
	}
}

// checkDriver compares what the process took of each device with what the driver says it has.
func checkDriver(t *testing.T, d *trace.Data) {
	t.Helper()
	type sample struct{ at, bytes int64 }
	readings := map[int64]sample{} // the last of each device, of the proving process
	for _, s := range d.Samples {
		for device := range int64(8) {
			if s.Metric == "process.gpu.memory.usage."+decimal(device) && s.Source != "setup" {
				readings[device] = sample{s.TimeNS, int64(s.Value)}
			}
		}
	}
	if len(readings) == 0 {
		t.Fatal("the driver's figures are not in the trace")
	}
	for device, reading := range readings {
		ledger := int64(0)
		for _, b := range d.Buffers {
			if b.Space == trace.SpaceDevice && b.Device == device && b.ParentID == 0 && b.TimeNS <= reading.at {
				ledger += b.DeltaBytes
			}
		}
		if off := ledger - reading.bytes; off > reading.bytes/50 || off < -reading.bytes/50 {
			t.Errorf("device %d: the ledger has %d bytes, the driver %d", device, ledger, reading.bytes)
		}
	}
}
