package trace

var (
	bufferWords = []string{
		EventAlloc, EventResize, EventFill, EventReclass, EventPin, EventUnpin,
		EventHandoff, EventLastUse, EventFree,
	}
	spaceWords = []string{SpaceHost, SpacePinned, SpaceFile, SpaceDevice}
)

// bufferState is what is known of a buffer, also after its free.
type bufferState struct {
	lastNS   int64
	freed    bool
	device   bool  // in device memory
	parent   int64 // 0 for none
	capacity int64
	children int64 // live
	cut      int64 // bytes of these
}

func (v *validator) bufferEvent(e *BufferEvent) {
	v.common(row{"buffers", e.Seq, e.TimeNS, e.Source, e.Job, e.Partition, e.Worker, e.Device})
	v.word("buffers", e.Seq, "event", e.Event, bufferWords)
	v.word("buffers", e.Seq, "space", e.Space, spaceWords)
	if e.Class == "" {
		v.report("word", "buffers", e.Seq, "the class of buffer %d is empty", e.BufferID)
	}
	v.spanRef("buffers", e.Seq, e.SpanID)
	b := v.buffers[e.BufferID]
	if !v.bufferLife(e, b) {
		return
	}
	v.bufferRanges(e)
	v.bufferDeltas(e)
	if b == nil {
		b = &bufferState{
			parent: e.ParentID, capacity: e.CapacityBytes,
			device: e.Space == SpaceDevice,
		}
		v.buffers[e.BufferID] = b
	} else {
		v.rising("buffer-time", "buffers", order{e.Seq, e.TimeNS}, b.lastNS)
	}
	b.lastNS = e.TimeNS
	v.bufferSpace(e, b)
	v.bufferFamily(e, b)
	v.bufferLive(e)
}

// bufferLife checks an event's place in its buffer's life; false where the other rules have nothing
// to go by.
func (v *validator) bufferLife(e *BufferEvent, b *bufferState) bool {
	switch {
	case e.BufferID < 1:
		v.report("buffer-id", "buffers", e.Seq, "buffer id %d is below 1", e.BufferID)
	case b == nil && e.Event == EventAlloc:
		return true
	case b == nil:
		v.report("buffer-alloc", "buffers", e.Seq, "%s of buffer %d, which has no alloc", e.Event,
			e.BufferID)
	case e.Event == EventAlloc:
		v.report("buffer-id", "buffers", e.Seq, "buffer id %d is allocated again", e.BufferID)
	case b.freed && e.Event == EventFree:
		v.report("double-free", "buffers", e.Seq, "buffer %d is freed twice", e.BufferID)
	case b.freed:
		v.report("buffer-freed", "buffers", e.Seq, "%s of buffer %d after its free", e.Event,
			e.BufferID)
	default:
		return true
	}
	return false
}

func (v *validator) bufferRanges(e *BufferEvent) {
	capacity, resident := e.CapacityBytes, e.ResidentBytes
	if capacity < 0 && capacity != Null || resident < 0 && resident != Null {
		v.report("buffer-range", "buffers", e.Seq, "buffer %d has %d bytes, %d resident",
			e.BufferID, capacity, resident)
	}
	if capacity != Null && resident > capacity && e.Event != EventFree {
		v.report("buffer-range", "buffers", e.Seq,
			"buffer %d has %d bytes resident in a capacity of %d", e.BufferID, resident, capacity)
	}
}

// bufferDeltas checks the deltas, and that only a resize changes the capacity.
func (v *validator) bufferDeltas(e *BufferEvent) {
	bytes, resident := v.ledger.deltas(e)
	if e.DeltaBytes != bytes {
		v.report("buffer-delta", "buffers", e.Seq,
			"delta_bytes of %s of buffer %d is %d, its events make it %d", e.Event, e.BufferID,
			e.DeltaBytes, bytes)
	}
	if e.DeltaResidentBytes != resident {
		v.report("buffer-delta", "buffers", e.Seq,
			"delta_resident_bytes of %s of buffer %d is %s, its events make it %s",
			e.Event, e.BufferID, nullText(e.DeltaResidentBytes), nullText(resident))
	}
	if h, ok := v.ledger[e.BufferID]; ok && e.Event != EventResize && e.Event != EventFree &&
		e.CapacityBytes != h.capacity {
		v.report("buffer-delta", "buffers", e.Seq,
			"capacity of buffer %d becomes %s from %s by a %s",
			e.BufferID, nullText(e.CapacityBytes), nullText(h.capacity), e.Event)
	}
	v.ledger.record(e)
}

func (v *validator) bufferSpace(e *BufferEvent, b *bufferState) {
	device := e.Space == SpaceDevice
	if device && e.Device < 0 {
		v.report("buffer-space", "buffers", e.Seq, "buffer %d is in device memory without a device",
			e.BufferID)
	}
	if device != b.device {
		v.report("buffer-space", "buffers", e.Seq, "buffer %d moves between host and device",
			e.BufferID)
	}
}

// bufferFamily follows pools: a parent lives around its children, which fit into it.
func (v *validator) bufferFamily(e *BufferEvent, b *bufferState) {
	if e.ParentID != b.parent {
		v.report("buffer-parent", "buffers", e.Seq, "the parent of buffer %d becomes %d from %d",
			e.BufferID, e.ParentID, b.parent)
	}
	if e.Event == EventFree {
		b.freed = true
		if b.children > 0 {
			v.report("buffer-parent", "buffers", e.Seq, "buffer %d is freed with %d live children",
				e.BufferID, b.children)
		}
	}
	if b.parent == 0 {
		return
	}
	p := v.buffers[b.parent]
	if p == nil || p.freed || b.parent == e.BufferID {
		v.report("buffer-parent", "buffers", e.Seq, "parent %d of buffer %d is not live", b.parent,
			e.BufferID)
		return
	}
	switch e.Event {
	case EventAlloc:
		p.children++
	case EventFree:
		p.children--
	}
	p.cut += e.DeltaBytes
	if p.capacity != Null && p.cut > p.capacity {
		v.report("buffer-children", "buffers", e.Seq,
			"children of buffer %d hold %d of its %d bytes", b.parent, p.cut, p.capacity)
	}
}

// bufferLive keeps the sums of live bytes and the capacity that children are held against.
func (v *validator) bufferLive(e *BufferEvent) {
	if e.Event == EventResize {
		v.buffers[e.BufferID].capacity = e.CapacityBytes
	}
	if e.ParentID != 0 {
		return
	}
	where := None
	if e.Space == SpaceDevice {
		where = e.Device
	}
	v.live[where] += e.DeltaBytes
	if sum := v.live[where]; sum < 0 {
		v.report("live-negative", "buffers", e.Seq, "live bytes fall to %d", sum)
	}
}
