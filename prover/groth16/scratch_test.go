package groth16

import (
	"math"
	"testing"
)

// The formula is held against the RSS that MSMs of dense scalars were measured to need with two
// tasks.
func TestMSMScratchIsWhatWasMeasured(t *testing.T) {
	for _, tc := range []struct {
		points     int
		pointBytes int64
		wantMiB    float64
	}{{1 << 16, g1Bytes, 25}, {1 << 17, g1Bytes, 47}, {1 << 18, g1Bytes, 92}, {174275, g2Bytes, 92}} {
		got := float64(msmScratchBytes(tc.points, 2, tc.pointBytes)) / (1 << 20)
		if math.Abs(got-tc.wantMiB) > 0.05*tc.wantMiB {
			t.Errorf("%d points of %d bytes: %.1f MiB, measured %.0f", tc.points, tc.pointBytes, got, tc.wantMiB)
		}
	}
}

// An MSM that is split needs the scratch of its halves, which run at the same time.
func TestMSMScratchOfManyTasks(t *testing.T) {
	const n = 1 << 18
	if msmScratchBytes(0, 2, g1Bytes) != 0 {
		t.Error("no points need scratch")
	}
	whole, split := msmScratchBytes(n, 2, g1Bytes), msmScratchBytes(n, 64, g1Bytes)
	if half := msmScratchBytes(n/2, 32, g1Bytes); split != 2*half || split == whole {
		t.Errorf("64 tasks need %d bytes, half the points on 32 need %d, two tasks %d", split, half, whole)
	}
}
