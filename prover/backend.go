package prover

import (
	"context"
	"fmt"

	"highwater/internal/units"
	"highwater/prover/device"
	"highwater/prover/groth16"
	"highwater/tracer"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// backendChoice is what the settings' backend comes down to on this machine.
type backendChoice struct {
	name    string          // cpu or device
	why     string          // it was taken
	library *device.Library // nil for cpu
	infos   []device.Info   // of the devices that prove
}

// chooseBackend finds the backend that the settings ask for. Whether the devices have room for the
// key shows only when it is there.
func chooseBackend(v *setting.Values) (backendChoice, error) {
	asked := v.Text("backend")
	choice := backendChoice{name: "cpu", why: "backend cpu: as asked"}
	if asked != "cpu" {
		library, infos, err := findDevices(int(v.Int("devices")))
		if err != nil && asked == "device" {
			return choice, &NoDeviceError{Setting: "backend", Value: "device", Err: err}
		}
		if err != nil {
			return cpuInstead(v, err)
		}
		return backendChoice{name: "device", library: library, infos: infos,
			why: fmt.Sprintf("backend %s: %s", asked, describeDevices(library, infos))}, nil
	}
	if v.Text("b_g2") == "device" {
		return choice, &NoDeviceError{Setting: "b_g2", Value: "device"}
	}
	if v.Text("setup") == "device" {
		if _, _, err := findDevices(1); err != nil {
			return choice, &NoDeviceError{Setting: "setup", Value: "device", Err: err}
		}
	}
	return choice, nil
}

// cpuInstead is backend auto without a usable device.
func cpuInstead(v *setting.Values, reason error) (backendChoice, error) {
	why := fmt.Sprintf("backend auto: no device, took cpu: %v", reason)
	choice := backendChoice{name: "cpu", why: why}
	for _, s := range []string{"b_g2", "setup"} {
		if v.Text(s) == "device" {
			return choice, &NoDeviceError{Setting: s, Value: "device", Err: reason}
		}
	}
	return choice, nil
}

// findDevices loads the library and describes the first n devices.
func findDevices(n int) (*device.Library, []device.Info, error) {
	library, err := device.Find()
	if err != nil {
		return nil, nil, err
	}
	infos, err := library.Devices()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", library.Path(), err)
	}
	if len(infos) < n {
		return nil, nil, fmt.Errorf("devices is %d, and there are %d", n, len(infos))
	}
	return library, infos[:n], nil
}

func describeDevices(l *device.Library, infos []device.Info) string {
	text := ""
	if len(infos) > 1 {
		text = fmt.Sprintf("%d × ", len(infos))
	}
	return fmt.Sprintf("%s%s, %s (%s)", text, infos[0].Name, units.Bytes(infos[0].TotalBytes), l.Path())
}

// openBackend makes the chosen backend ready with the key. With backend auto, a device that cannot
// be had gives way to the CPU.
func (r *run) openBackend(ctx context.Context, key *groth16.Key) (groth16.Backend, error) {
	if r.choice.library == nil {
		return groth16.NewCPU(key), nil
	}
	var b *device.Backend
	err := setupStage(ctx, r.rec, trace.StageKeyLoad, func(context.Context) (err error) {
		b, err = device.NewBackend(r.choice.library, key, r.rec, r.deviceOptions())
		return err
	})
	if err == nil {
		r.pinnedBytes = b.PinnedBytes()
		return b, r.describeGPUs()
	}
	if r.settings.Text("backend") != "auto" {
		return nil, &NoDeviceError{Setting: "backend", Value: "device", Err: err}
	}
	choice, err := cpuInstead(r.settings, err)
	if err != nil {
		return nil, err
	}
	r.take(choice)
	r.warn(choice.why)
	return groth16.NewCPU(key), nil
}

// take puts the choice into effect.
func (r *run) take(choice backendChoice) {
	r.choice = choice
	r.policy.devices = max(1, len(choice.infos))
	r.policy.stageThreads = trace.Null
	r.policy.startThreads = threads(r.settings.Int("backend_threads"))
	if choice.library != nil { // a device's start is waited for by one thread
		r.policy.stageThreads = int64(device.StageThreads(r.settings.Text("pinned")))
		r.policy.startThreads = 1
	}
	r.result.Backend, r.result.BackendReason = choice.name, choice.why
	r.result.InEffect["backend"] = choice.name
	r.result.InEffect["devices"] = fmt.Sprint(r.policy.devices)
}

// deviceOptions are the settings of the device backend.
func (r *run) deviceOptions() device.Options {
	v := r.settings
	return device.Options{
		Devices: r.policy.devices, Workers: r.policy.gpuWorkers, Pinned: v.Text("pinned"),
		BG2: v.Text("b_g2") == "device", SampleHz: float64(v.Int("sample_hz")),
		Context: deviceConfig(v),
	}
}

// deviceConfig is how a context is made under the settings.
func deviceConfig(v *setting.Values) device.Config {
	return device.Config{
		ArenaBytes:      orAuto(v.Int("arena_bytes")),
		MSMScratchBytes: orAuto(v.Int("msm_scratch_bytes")),
	}
}

func orAuto(n int64) int64 { return max(n, 0) }

// describeGPUs puts the devices and the library into the manifest.
func (r *run) describeGPUs() error {
	return r.updateManifest(func(m *trace.Manifest) {
		m.Host.GPUs = nil
		for _, i := range r.choice.infos {
			m.Host.GPUs = append(m.Host.GPUs, i.Name)
		}
		if m.Versions == nil {
			m.Versions = map[string]string{}
		}
		m.Versions["native"] = r.choice.library.BuildInfo()
		i := r.choice.infos[0]
		m.Versions["cuda_driver"] = cudaVersion(i.DriverVersion)
		m.Versions["cuda_runtime"] = cudaVersion(i.RuntimeVersion)
	})
}

// cudaVersion writes 13020 as 13.2.
func cudaVersion(n int) string { return fmt.Sprintf("%d.%d", n/1000, n%1000/10) }

// setUpOnDevice opens a device for the set-up child.
func setUpOnDevice(rec *tracer.Recorder) (*device.Setup, error) {
	library, _, err := findDevices(1)
	if err != nil {
		return nil, fmt.Errorf("set up on the device: %w", err)
	}
	s, err := device.NewSetup(library, rec, device.Config{})
	if err != nil {
		return nil, fmt.Errorf("set up on the device: %w", err)
	}
	return s, nil
}
