package trace

// ledger follows the buffers that are live and says what each event adds to live and resident
// bytes. Sealing, the text form and the validator share it.
type ledger map[int64]held

// held is what a live buffer holds.
type held struct {
	capacity, resident int64
	host               bool // counts in live host bytes: not on a device, not cut from a parent
}

// deltas gives delta_bytes and delta_resident_bytes of e after the events before it. An event of a
// buffer that is not live (its alloc is lost, or it was freed) adds nothing, and so does a second
// alloc.
func (l ledger) deltas(e *BufferEvent) (bytes, resident int64) {
	prev, live := l[e.BufferID]
	switch {
	case live && e.Event == EventFree:
		return -orZero(prev.capacity), negated(prev.resident)
	case live && e.Event == EventResize:
		return orZero(e.CapacityBytes) - orZero(prev.capacity), difference(e.ResidentBytes,
			prev.resident)
	case live && e.Event != EventAlloc:
		return 0, difference(e.ResidentBytes, prev.resident)
	case !live && e.Event == EventAlloc:
		return orZero(e.CapacityBytes), e.ResidentBytes
	}
	return 0, 0
}

// record takes e into account.
func (l ledger) record(e *BufferEvent) {
	prev, live := l[e.BufferID]
	switch {
	case e.Event == EventFree:
		delete(l, e.BufferID)
	case e.Event == EventAlloc && !live:
		l[e.BufferID] = held{e.CapacityBytes, e.ResidentBytes, e.Space != SpaceDevice &&
			e.ParentID == 0}
	case live:
		prev.resident = e.ResidentBytes
		if e.Event == EventResize {
			prev.capacity = e.CapacityBytes
		}
		l[e.BufferID] = prev
	}
}

// liveBytes is the capacity of all live host buffers.
func (l ledger) liveBytes() (sum int64) {
	for _, h := range l {
		if h.host {
			sum += orZero(h.capacity)
		}
	}
	return sum
}

func orZero(v int64) int64 {
	if v == Null {
		return 0
	}
	return v
}

func negated(v int64) int64 {
	if v == Null {
		return Null
	}
	return -v
}

func difference(a, b int64) int64 {
	if a == Null || b == Null {
		return Null
	}
	return a - b
}

// levelStep is what an operation adds to the level of its resource, in units of its amount, and to
// the number waiting.
func levelStep(event string) (level, waiting int64) {
	switch event {
	case EventRequest, EventSend:
		return 0, 1
	case EventAcquire, EventSent:
		return 1, -1
	case EventRelease, EventRecv:
		return -1, 0
	case EventCancel:
		return 0, -1
	}
	return 0, 0
}
