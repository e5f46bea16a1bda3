//go:build cgo && linux

package device

import (
	"context"
	"errors"
	"fmt"

	"highwater/prover/groth16"
	"highwater/tracer"
	"highwater/tracer/journal"
	"highwater/tracer/trace"
)

// Backend proves on devices, each with its own copy of the key. b_g2 runs there or on the CPU.
type Backend struct {
	lib     *Library
	key     *groth16.Key
	options Options
	devices []*proving
	cpu     groth16.Backend // for b_g2
}

// proving is one device with the key on it.
type proving struct {
	number  int
	context *Context
	key     *srs
	drain   *drain // nil without recording
	slot    slot
}

// NewBackend opens the devices, takes their memory and puts the key on each. The key must outlive
// the backend.
func NewBackend(lib *Library, key *groth16.Key, rec *tracer.Recorder, o Options) (*Backend, error) {
	b := &Backend{lib: lib, key: key, options: o, cpu: groth16.NewCPUBG2(key)}
	for i := range max(o.Devices, 1) {
		p, err := b.open(i, rec)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.devices = append(b.devices, p)
	}
	return b, nil
}

// open makes a device ready.
func (b *Backend) open(number int, rec *tracer.Recorder) (*proving, error) {
	c := b.options.Context
	c.Device, c.NoEvents = number, rec == nil
	if b.options.Pinned == PinnedPool {
		c.PoolBytes = int64(max(b.options.Workers, 1)) * slotOf(b.key.Queries()).bytes()
	}
	ctx, err := b.lib.NewContext(c)
	if err != nil {
		return nil, err
	}
	p := &proving{number: number, context: ctx, slot: slotOf(b.key.Queries())}
	p.drain = startDrain(ctx, rec, int32(number), b.lib.Name, b.options.SampleHz)
	if p.key, err = ctx.loadKey(b.key.Queries(), b.options.BG2); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *proving) close() error {
	if p.key != nil {
		p.key.free()
	}
	p.drain.halt()
	err := p.context.Close()
	return errors.Join(err, p.drain.finish(journal.Monotonic()))
}

// Name implements groth16.Backend.
func (b *Backend) Name() string { return "device" }

// Devices implements groth16.Backend.
func (b *Backend) Devices() int { return len(b.devices) }

// Close implements groth16.Backend.
func (b *Backend) Close() error {
	errs := []error{b.cpu.Close()}
	for _, p := range b.devices {
		errs = append(errs, p.close())
	}
	b.devices = nil
	return errors.Join(errs...)
}

// PinnedBytes is the page-locked host memory that the backend holds from its start to its end.
func (b *Backend) PinnedBytes() (n int64) {
	for _, p := range b.devices {
		if p.drain != nil {
			n += p.drain.pinnedAtStart
		} else if m, err := p.context.Memory(); err == nil {
			n += m.Pool
		}
	}
	return n
}

// Memory is what each device holds; a device that cannot tell is left out.
func (b *Backend) Memory() (all []Memory) {
	for _, p := range b.devices {
		if m, err := p.context.Memory(); err == nil {
			all = append(all, m)
		}
	}
	return all
}

// on is the device of a call.
func (b *Backend) on(opts groth16.StartOptions) (*proving, error) {
	if opts.Device < 0 || opts.Device >= len(b.devices) {
		return nil, fmt.Errorf("use device %d: there are %d", opts.Device, len(b.devices))
	}
	return b.devices[opts.Device], nil
}

// StageIn implements groth16.Stager.
func (b *Backend) StageIn(ctx context.Context, env groth16.Env, a *groth16.Assignment,
	opts groth16.StartOptions,
) error {
	p, err := b.on(opts)
	if err == nil {
		err = b.key.CheckStart(a)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("stage in: %w", err)
	}
	defer p.during(opts.Owner)()
	switch b.options.Pinned {
	case PinnedPool:
		err = p.copyToPool(a, opts)
	case PinnedRegister:
		err = p.register(a, opts)
	}
	if err != nil {
		return fmt.Errorf("stage in: %w", errors.Join(err, a.Unstage()))
	}
	return nil
}

// Start implements groth16.Backend.
func (b *Backend) Start(ctx context.Context, env groth16.Env, a *groth16.Assignment,
	opts groth16.StartOptions,
) (*groth16.Pending, error) {
	p, err := b.on(opts)
	if err == nil {
		err = b.key.CheckStart(a)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("start proof: %w", err)
	}
	v := hostVectors(a)
	if s, ok := a.Staged().(*staged); ok {
		v = s.vectors
	}
	parts, err := p.start(v, a.System().Constraints(), opts.Owner, b.options.BG2)
	for _, r := range []interface{ LastUse() }{a.A, a.B, a.C} {
		r.LastUse()
	}
	if b.options.BG2 {
		a.W.LastUse()
	}
	if err = errors.Join(err, a.Unstage()); err != nil {
		return nil, err
	}
	return groth16.NewPending(parts, a), nil
}

// start runs the library's start with its events bound to the owner.
func (p *proving) start(v vectors, constraints int, owner tracer.Owner, g2 bool) (groth16.Parts, error) {
	defer p.during(owner)()
	s, err := p.key.proveStart(v, constraints, owner.Job, owner.Partition, g2)
	return s.parts, err
}

// during has the device's events belong to the owner until the function that it gives is called.
func (p *proving) during(owner tracer.Owner) func() {
	if p.drain == nil {
		return func() {}
	}
	p.drain.bind(journal.Monotonic(), owner)
	return func() {
		ring, err := p.context.Ring()
		if err != nil {
			return // the binding stays: a few bytes
		}
		p.drain.release(owner, ring.Written)
	}
}

// BG2 implements groth16.Backend: on the CPU, where the start has not done it.
func (b *Backend) BG2(ctx context.Context, env groth16.Env, p *groth16.Pending,
	opts groth16.StartOptions,
) error {
	if p.HasBG2() {
		return nil
	}
	return b.cpu.BG2(ctx, env, p, opts)
}

var _ groth16.Stager = (*Backend)(nil)

// classes of what is staged: the vectors' own, the pool being their parent.
var stagedClasses = [4]string{trace.ClassA, trace.ClassB, trace.ClassC, trace.ClassAux}
