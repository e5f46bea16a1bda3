package compare

import (
	"strings"

	"highwater/tracer/trace"
)

// classObserver follows live bytes class by class: its own peak, bytes times time, and how many
// buffers there were, how large and for how long. A child of a pool counts under its own class,
// the pool for the rest. Classes of device memory are apart from those of the host.
type classObserver struct {
	jobs    jobOrder
	classes map[classKey]*classBytes
	order   []*classBytes
	live    map[int64]liveBuffer
	made    madeCounts
}

type classKey struct {
	class  string
	device int64 // trace.None on the host
}

// classBytes is one class. The fields below the blank line count from the phase's start on.
type classBytes struct {
	classKey
	index   int
	live    int64 // all of it
	owned   int64 // of jobs
	buffers int64
	lastNS  int64

	peak     int64
	area     float64 // bytes of jobs times ns
	made     int64   // by jobs
	capacity float64 // sum over freed ones of jobs
	lifetime float64
	freed    int64
}

// liveBuffer is what is kept of a buffer while it lives.
type liveBuffer struct {
	class    *classBytes
	parent   int64
	capacity int64
	allocNS  int64
	owner    ownerKey
}

// ownerKey is a partition by its job's rank.
type ownerKey struct{ job, partition int64 }

func newClassObserver(jobs jobOrder) *classObserver {
	return &classObserver{
		jobs: jobs, classes: map[classKey]*classBytes{}, live: map[int64]liveBuffer{},
		made: madeCounts{byKey: map[madeKey]int32{}},
	}
}

func (o *classObserver) class(name string, device int64) *classBytes {
	k := classKey{name, device}
	c := o.classes[k]
	if c == nil {
		k.class = strings.Clone(name)
		c = &classBytes{classKey: k, index: len(o.order)}
		o.classes[k] = c
		o.order = append(o.order, c)
	}
	return c
}

// subject is the class's name in metrics.
func (c *classBytes) subject() string {
	if c.device == trace.None {
		return c.class
	}
	return c.class + " on device"
}

// startJobs begins the phase that counts: what lives stays, what was added up goes.
func (o *classObserver) startJobs(nowNS int64) {
	for _, c := range o.order {
		c.peak, c.lastNS = c.live, nowNS
		c.area, c.made, c.capacity, c.lifetime, c.freed = 0, 0, 0, 0, 0
	}
}

// add changes what the class holds now.
func (c *classBytes) add(bytes int64, owned bool, nowNS int64) {
	c.area += float64(c.owned) * float64(nowNS-c.lastNS)
	c.lastNS = nowNS
	c.live += bytes
	if owned {
		c.owned += bytes
	}
	c.peak = max(c.peak, c.live)
}

func (o *classObserver) buffer(e *trace.BufferEvent) {
	b, known := o.live[e.BufferID]
	switch {
	case e.Event == trace.EventAlloc:
		o.alloc(e)
		return
	case !known:
		return // damage: analyze's ledger-audit reports it
	case e.Event == trace.EventFree:
		o.free(e, b)
		return
	}
	if e.DeltaBytes != 0 {
		o.move(b, e.DeltaBytes, e.TimeNS)
		b.capacity += e.DeltaBytes
	}
	switch e.Event {
	case trace.EventReclass:
		o.rekey(&b, o.class(e.Class, b.class.device), b.owner, e.TimeNS)
	case trace.EventHandoff:
		o.rekey(&b, b.class, ownerKey{o.jobs.rank(e.Job), e.Partition}, e.TimeNS)
	}
	o.live[e.BufferID] = b
}

func (o *classObserver) alloc(e *trace.BufferEvent) {
	device := trace.None
	if e.Space == trace.SpaceDevice {
		device = e.Device
	}
	b := liveBuffer{
		class: o.class(e.Class, device), parent: e.ParentID, capacity: e.DeltaBytes,
		allocNS: e.TimeNS, owner: ownerKey{o.jobs.rank(e.Job), e.Partition},
	}
	o.born(b)
	o.move(b, e.DeltaBytes, e.TimeNS)
	o.live[e.BufferID] = b
}

// born counts a buffer that begins to be of its class and owner.
func (o *classObserver) born(b liveBuffer) {
	b.class.buffers++
	if b.owner.job >= 0 {
		b.class.made++
	}
	o.made.add(b.owner, b.class.index)
}

// move adds bytes to the buffer's class; what a child takes, its pool loses.
func (o *classObserver) move(b liveBuffer, bytes, nowNS int64) {
	b.class.add(bytes, b.owner.job >= 0, nowNS)
	if b.parent == 0 {
		return
	}
	if p, ok := o.live[b.parent]; ok {
		p.class.add(-bytes, p.owner.job >= 0, nowNS)
	}
}

// rekey moves the buffer to another class or owner. For its pool nothing changes.
func (o *classObserver) rekey(b *liveBuffer, class *classBytes, owner ownerKey, nowNS int64) {
	if class == b.class && owner == b.owner {
		return
	}
	b.class.add(-b.capacity, b.owner.job >= 0, nowNS)
	b.class.buffers--
	b.class, b.owner = class, owner
	b.class.add(b.capacity, b.owner.job >= 0, nowNS)
	o.born(*b)
}

func (o *classObserver) free(e *trace.BufferEvent, b liveBuffer) {
	delete(o.live, e.BufferID)
	o.move(b, e.DeltaBytes, e.TimeNS)
	b.class.buffers--
	if b.owner.job < 0 {
		return
	}
	b.class.freed++
	b.class.capacity += float64(b.capacity)
	b.class.lifetime += float64(e.TimeNS - b.allocNS)
}

func (o *classObserver) finish(v Values, endNS int64) {
	for _, c := range o.order {
		c.add(0, false, endNS)
		if c.peak > 0 {
			v.set(ClassPeak, c.subject(), v[Metric{ClassPeak, c.subject()}]+float64(c.peak))
		}
		if c.area > 0 {
			v.set(ClassArea, c.subject(), v[Metric{ClassArea, c.subject()}]+gibSeconds(c.area))
		}
		if c.made > 0 {
			v.set(ClassMade, c.subject(), v[Metric{ClassMade, c.subject()}]+float64(c.made))
		}
		if c.freed > 0 {
			v.set(ClassSize, c.subject(), c.capacity/float64(c.freed))
			v.set(ClassLifetime, c.subject(), c.lifetime/float64(c.freed))
		}
	}
}

// madeCounts is how many buffers of a class each partition had in the whole trace. It is what tells
// a buffer that there is one more of from one that lives longer.
type madeCounts struct {
	byKey map[madeKey]int32
	full  bool // there were too many to tell apart by partition: they are added up by class
}

type madeKey struct {
	owner ownerKey
	class int
}

// maxMadeKeys bounds the counts of one run: about 20 MB.
const maxMadeKeys = 1 << 18

// everyone stands for all partitions together, once they are too many.
var everyone = ownerKey{trace.Null, trace.Null}

func (m *madeCounts) add(owner ownerKey, class int) {
	if m.full {
		owner = everyone
	}
	m.byKey[madeKey{owner, class}]++
	if len(m.byKey) <= maxMadeKeys {
		return
	}
	m.full = true
	sums := map[madeKey]int32{}
	for k, n := range m.byKey {
		sums[madeKey{everyone, k.class}] += n
	}
	m.byKey = sums
}
