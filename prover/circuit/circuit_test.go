package circuit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark/constraint"
	cs "github.com/consensys/gnark/constraint/bls12-381"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/r1cs"
	"github.com/google/go-cmp/cmp"
)

func compileCircuit(t *testing.T, c Circuit) *cs.R1CS {
	t.Helper()
	system, err := frontend.Compile(ecc.BLS12_381.ScalarField(), r1cs.NewBuilder, c.Shape())
	if err != nil {
		t.Fatalf("compile %s 2^%d: %v", c.Name(), c.LogSize(), err)
	}
	return system.(*cs.R1CS)
}

// A circuit fills its domain to the brim, needs no commitment, and accepts the natively computed
// root: that is the check of the gadgets against crypto/sha256 and gnark-crypto's Poseidon2 and
// MiMC.
func TestCircuitsFillTheirDomainAndAcceptTheNativeRoot(t *testing.T) {
	for _, tc := range []struct {
		name    string
		logSize int
		slack   int // the cost of the smallest piece
	}{
		{Label, 15, labelLevelConstraints}, {Label, 16, labelLevelConstraints},
		{MiMC, 10, mimcLinkConstraints}, {MiMC, 13, mimcLinkConstraints},
	} {
		t.Run(fmt.Sprintf("%s-%d", tc.name, tc.logSize), func(t *testing.T) {
			c, err := New(tc.name, tc.logSize)
			if err != nil {
				t.Fatal(err)
			}
			system := compileCircuit(t, c)
			n := system.GetNbConstraints()
			if brim := 1 << tc.logSize; n > brim || n <= brim-tc.slack {
				t.Errorf("%d constraints, want at most %d and more than %d", n, brim, brim-tc.slack)
			}
			if got := len(system.CommitmentInfo.(constraint.Groth16Commitments)); got != 0 {
				t.Errorf("%d commitments, want none", got)
			}
			good, err := Witness(c, Partition{Seed: 3, Job: 1, Partition: 2})
			if err != nil {
				t.Fatal(err)
			}
			if err := system.IsSolved(good); err != nil {
				t.Errorf("native witness: %v", err)
			}
			bad, err := Witness(c, Partition{Seed: 3, Job: 1, Partition: 2, Bad: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := system.IsSolved(bad); err == nil {
				t.Error("a bad witness satisfies the circuit")
			}
		})
	}
}

func TestWitnessDependsOnSeedJobAndPartitionOnly(t *testing.T) {
	c, err := New(MiMC, 10)
	if err != nil {
		t.Fatal(err)
	}
	vector := func(p Partition) fr.Vector {
		w, err := Witness(c, p)
		if err != nil {
			t.Fatal(err)
		}
		return w.Vector().(fr.Vector)
	}
	base := vector(Partition{Seed: 1, Job: 2, Partition: 3})
	if diff := cmp.Diff(base, vector(Partition{Seed: 1, Job: 2, Partition: 3})); diff != "" {
		t.Errorf("equal partitions differ:\n%s", diff)
	}
	for _, p := range []Partition{{Seed: 2, Job: 2, Partition: 3}, {Seed: 1, Job: 3, Partition: 3}, {Seed: 1, Job: 2, Partition: 2}} {
		if cmp.Equal(base, vector(p)) {
			t.Errorf("%+v has the witness of another partition", p)
		}
	}
}

// Nearly all internal wires of the label circuit are 0 or 1: the skew that split MSMs live from.
func TestLabelAssignmentIsSkewed(t *testing.T) {
	c, err := New(Label, 15)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Witness(c, Partition{})
	if err != nil {
		t.Fatal(err)
	}
	solution, err := compileCircuit(t, c).Solve(w)
	if err != nil {
		t.Fatal(err)
	}
	wires := solution.(*cs.R1CSSolution).W
	bits := 0
	for i := range wires {
		if wires[i].IsZero() || wires[i].IsOne() {
			bits++
		}
	}
	if share := float64(bits) / float64(len(wires)); share < 0.7 {
		t.Errorf("%.2f of the wires are 0 or 1, want at least 0.7", share)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		logSize int
		want    string
	}{
		{"poseidon", 16, "choose one of label, mimc"},
		{Label, 14, "the smallest is 15"},
		{MiMC, 9, "the smallest is 10"},
		{MiMC, MaxLogSize + 1, "is above 28"},
		{Label, -1, "the smallest is 15"},
	} {
		_, err := New(tc.name, tc.logSize)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("New(%q, %d): %v, want an error with %q", tc.name, tc.logSize, err, tc.want)
		}
	}
}

// Sizes are computed, not compiled: every accepted size stays under its brim.
func TestLabelSizesByArithmetic(t *testing.T) {
	for logSize := labelMinLogSize; logSize <= MaxLogSize; logSize++ {
		c, err := newLabel(logSize)
		if err != nil {
			t.Fatal(err)
		}
		n := labelConstraints(c.blocks, c.levels)
		if n > 1<<logSize || n <= 1<<logSize-labelLevelConstraints || c.levels < labelMinLevels {
			t.Errorf("2^%d: %d constraints with %d blocks and %d levels", logSize, n, c.blocks, c.levels)
		}
	}
}
