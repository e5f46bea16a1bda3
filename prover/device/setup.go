//go:build cgo && linux

package device

import (
	"errors"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"highwater/prover/groth16"
	"highwater/tracer"
	"highwater/tracer/journal"
)

// Setup computes the points of keys on a device, by tables of multiples of the generators.
type Setup struct {
	context *Context
	drain   *drain
}

// NewSetup opens a device for set-up.
func NewSetup(lib *Library, rec *tracer.Recorder, config Config) (*Setup, error) {
	config.NoEvents = rec == nil
	c, err := lib.NewContext(config)
	if err != nil {
		return nil, err
	}
	return &Setup{c, startDrain(c, rec, int32(config.Device), lib.Name, 0)}, nil
}

// Close gives the device back.
func (s *Setup) Close() error {
	s.drain.halt()
	err := s.context.Close()
	return errors.Join(err, s.drain.finish(journal.Monotonic()))
}

// G1 implements groth16.SetupDevice.
func (s *Setup) G1(logs []fr.Element) ([]curve.G1Affine, error) {
	_, _, base, _ := curve.Generators()
	out := make([]curve.G1Affine, len(logs))
	return out, FixedBase(s.context, G1, &base, logs, out)
}

// G2 implements groth16.SetupDevice.
func (s *Setup) G2(logs []fr.Element) ([]curve.G2Affine, error) {
	_, _, _, base := curve.Generators()
	out := make([]curve.G2Affine, len(logs))
	return out, FixedBase(s.context, G2, &base, logs, out)
}

// Queries implements groth16.SetupDevice.
func (s *Setup) Queries(logs groth16.QueryLogs, points groth16.Queries) error {
	key, err := s.context.setUpKey(logs, points)
	if err != nil {
		return err
	}
	key.free()
	return nil
}
