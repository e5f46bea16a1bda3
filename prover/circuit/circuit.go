// Package circuit holds the circuits that the prover proves: "label", a small stand-in for a
// Proof-of-Replication partition (chained SHA-256 compressions over secret parents, the label as a
// Poseidon2 leaf, a Merkle inclusion path to a public root), and "mimc", a chain of MiMC whose
// assignment is full-size field elements throughout.
//
// Every circuit is sized by log_size: it fills a domain of 2^log_size constraints to just under the
// brim. No circuit uses commitments, lookups or GKR.
package circuit

import (
	"fmt"
	"strings"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark/backend/witness"
	"github.com/consensys/gnark/frontend"
)

// Names of the circuits.
const (
	Label = "label"
	MiMC  = "mimc"
)

// MaxLogSize is the largest log_size accepted: wire numbers and byte counts stay far inside their
// types.
const MaxLogSize = 28

// Circuit is a circuit of one size. It is immutable and may be shared.
type Circuit interface {
	Name() string
	LogSize() int
	// Shape is the circuit without values, to compile.
	Shape() frontend.Circuit
	// Assign computes the assignment of one partition natively, its public root included.
	Assign(p Partition) (frontend.Circuit, error)
}

// Partition names a partition of a run; equal partitions have equal witnesses.
type Partition struct {
	Seed           uint64
	Job, Partition int
	// Bad makes the public root wrong, so that the witness satisfies nothing: for tests of failing
	// jobs.
	Bad bool
}

// New gives the circuit called name that fills 2^logSize constraints.
func New(name string, logSize int) (Circuit, error) {
	if logSize > MaxLogSize {
		return nil, fmt.Errorf("circuit %s: log_size %d is above %d", name, logSize, MaxLogSize)
	}
	switch name {
	case Label:
		return newLabel(logSize)
	case MiMC:
		return newMiMC(logSize)
	}
	return nil, fmt.Errorf("circuit %q is unknown: choose one of %s", name, strings.Join(Names(), ", "))
}

// Names lists the circuits that New knows.
func Names() []string { return []string{Label, MiMC} }

// Witness computes the full witness of one partition of c.
func Witness(c Circuit, p Partition) (witness.Witness, error) {
	assignment, err := c.Assign(p)
	if err != nil {
		return nil, fmt.Errorf("assign %s for job %d partition %d: %w", c.Name(), p.Job, p.Partition, err)
	}
	w, err := frontend.NewWitness(assignment, ecc.BLS12_381.ScalarField())
	if err != nil {
		return nil, fmt.Errorf("build witness of %s for job %d partition %d: %w", c.Name(), p.Job, p.Partition, err)
	}
	return w, nil
}
