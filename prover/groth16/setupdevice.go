package groth16

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// onDevice has every point computed by the device; the key comes out as from the CPUs, byte for
// byte.
func (j *setupJob) onDevice(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	k, s, w := j.key, j.scalars, &j.waste
	fixed, err := j.device.G1(append([]fr.Element{w.alpha, w.beta, w.delta}, s.c[:k.size.public]...))
	if err != nil {
		return fmt.Errorf("compute fixed points: %w", err)
	}
	k.alpha, k.beta, k.delta = fixed[0], fixed[1], fixed[2]
	k.verifying.G1.K = fixed[3:]
	fixed2, err := j.device.G2([]fr.Element{w.beta, w.delta, w.gamma})
	if err != nil {
		return fmt.Errorf("compute fixed points: %w", err)
	}
	k.beta2, k.delta2, k.verifying.G2.Gamma = fixed2[0], fixed2[1], fixed2[2]
	bitReversed(s.z)
	logs := QueryLogs{Z: s.z[:k.size.domain-1], K: s.c[k.size.public:], A: s.a, B: s.b}
	if err := j.device.Queries(logs, k.Queries()); err != nil {
		return fmt.Errorf("compute queries: %w", err)
	}
	j.blocks.progress(k.size.a + k.size.b + k.size.wires + k.size.domain - 1 + g2Work*k.size.b)
	return k.seal()
}

// bitReversed permutes v, whose length is a power of two, in place.
func bitReversed(v []fr.Element) {
	lg := bits.Len(uint(len(v))) - 1
	for i := range v {
		if r := bitReverse(i, lg); r > i {
			v[i], v[r] = v[r], v[i]
		}
	}
}
