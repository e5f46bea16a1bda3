package groth16

import (
	"errors"

	"highwater/prover/hostmem"
	"highwater/tracer"
)

// Assignment is one synthesised partition: a, b, c and the full assignment w (aux), each in its own
// region. A, B, C are dead once Backend.Start has returned: FreeABC gives them back. Its methods
// must not run at the same time.
type Assignment struct {
	A, B, C, W *hostmem.Region // nil once freed

	system *System
	staged Staged // nil for none
}

// System is the circuit that the assignment satisfies.
func (a *Assignment) System() *System { return a.system }

// Live says whether a, b, c and w are all there.
func (a *Assignment) Live() bool { return a.A != nil && a.B != nil && a.C != nil && a.W != nil }

// SetStaged keeps what a Stager made, to be released before a region is freed.
func (a *Assignment) SetStaged(s Staged) { a.staged = s }

// Staged is what a Stager made, nil once it is released.
func (a *Assignment) Staged() Staged { return a.staged }

// Unstage releases what a Stager made. It is safe to call twice.
func (a *Assignment) Unstage() error {
	s := a.staged
	a.staged = nil
	if s == nil {
		return nil
	}
	return s.Release()
}

func (a *Assignment) live() []*hostmem.Region {
	var live []*hostmem.Region
	for _, r := range []*hostmem.Region{a.A, a.B, a.C, a.W} {
		if r != nil {
			live = append(live, r)
		}
	}
	return live
}

// SettledBytes is the capacity of what is left of a, b, c and w now.
func (a *Assignment) SettledBytes() int64 { return capacityOf(a.live()) }

// Handoff records the new owner of all regions that are left.
func (a *Assignment) Handoff(to tracer.Owner) {
	for _, r := range a.live() {
		r.Handoff(to)
	}
}

// FreeABC gives back what is left of a, b and c (a may live on as h until Start ends). It is safe
// to call twice.
func (a *Assignment) FreeABC() error {
	err := a.Unstage()
	regions := []*hostmem.Region{a.A, a.B, a.C}
	a.A, a.B, a.C = nil, nil, nil
	return errors.Join(err, freeAll(regions...))
}

// Free gives everything back that is left. It is safe to call twice.
func (a *Assignment) Free() error {
	err := a.Unstage()
	regions := a.live()
	a.A, a.B, a.C, a.W = nil, nil, nil, nil
	return errors.Join(err, freeAll(regions...))
}
