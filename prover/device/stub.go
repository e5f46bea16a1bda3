//go:build !cgo || !linux

package device

import (
	"context"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"highwater/prover/groth16"
	"highwater/tracer"
)

// Without cgo there is no way to a device: Open says so, and nothing else is ever reached.

var errNoCgo = &LoadError{Reason: ErrNoCgo}

// Library stands for a loaded library; there is none.
type Library struct{}

// Open fails.
func Open(string) (*Library, error) { return nil, errNoCgo }

// Path is empty.
func (*Library) Path() string { return "" }

// Backend is empty.
func (*Library) Backend() string { return "" }

// BuildInfo is empty.
func (*Library) BuildInfo() string { return "" }

// Devices fails.
func (*Library) Devices() ([]Info, error) { return nil, errNoCgo }

// NewContext fails.
func (*Library) NewContext(Config) (*Context, error) { return nil, errNoCgo }

// Context stands for a device's context; there is none.
type Context struct{}

// Close does nothing.
func (*Context) Close() error { return nil }

// Memory fails.
func (*Context) Memory() (Memory, error) { return Memory{}, errNoCgo }

// Bench fails.
func (*Context) Bench(BenchSpec) (BenchResult, error) { return BenchResult{}, errNoCgo }

// Backend stands for a backend; there is none.
type Backend struct{}

// NewBackend fails.
func NewBackend(*Library, *groth16.Key, *tracer.Recorder, Options) (*Backend, error) {
	return nil, errNoCgo
}

// Name implements groth16.Backend.
func (*Backend) Name() string { return "device" }

// Devices implements groth16.Backend.
func (*Backend) Devices() int { return 0 }

// Close implements groth16.Backend.
func (*Backend) Close() error { return nil }

// PinnedBytes is 0.
func (*Backend) PinnedBytes() int64 { return 0 }

// Memory is empty.
func (*Backend) Memory() []Memory { return nil }

// StageIn implements groth16.Stager.
func (*Backend) StageIn(context.Context, groth16.Env, *groth16.Assignment, groth16.StartOptions) error {
	return errNoCgo
}

// Start implements groth16.Backend.
func (*Backend) Start(context.Context, groth16.Env, *groth16.Assignment, groth16.StartOptions,
) (*groth16.Pending, error) {
	return nil, errNoCgo
}

// BG2 implements groth16.Backend.
func (*Backend) BG2(context.Context, groth16.Env, *groth16.Pending, groth16.StartOptions) error {
	return errNoCgo
}

// Setup stands for a set-up on a device; there is none.
type Setup struct{}

// NewSetup fails.
func NewSetup(*Library, *tracer.Recorder, Config) (*Setup, error) { return nil, errNoCgo }

// Close does nothing.
func (*Setup) Close() error { return nil }

// G1 implements groth16.SetupDevice.
func (*Setup) G1([]fr.Element) ([]curve.G1Affine, error) { return nil, errNoCgo }

// G2 implements groth16.SetupDevice.
func (*Setup) G2([]fr.Element) ([]curve.G2Affine, error) { return nil, errNoCgo }

// Queries implements groth16.SetupDevice.
func (*Setup) Queries(groth16.QueryLogs, groth16.Queries) error { return errNoCgo }
