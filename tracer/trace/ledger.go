package trace

// ledger follows buffers through their events and says what each event adds to live and resident bytes. Sealing, the
// text form and the validator share it.
type ledger map[int64]*BufferEvent // the last event of each buffer that has lived

// deltas gives delta_bytes and delta_resident_bytes of e after the events before it. An event of a buffer whose alloc is
// not there adds nothing; neither does anything after the free.
func (l ledger) deltas(e *BufferEvent) (bytes, resident int64) {
	prev := l[e.BufferID]
	switch {
	case prev == nil && e.Event == EventAlloc:
		return orZero(e.CapacityBytes), e.ResidentBytes
	case prev == nil || prev.Event == EventFree || e.Event == EventAlloc:
		return 0, 0
	case e.Event == EventFree:
		return -orZero(prev.CapacityBytes), negated(prev.ResidentBytes)
	case e.Event == EventResize:
		bytes = orZero(e.CapacityBytes) - orZero(prev.CapacityBytes)
	}
	return bytes, difference(e.ResidentBytes, prev.ResidentBytes)
}

// record makes e the last event of its buffer. A buffer is known from its alloc on.
func (l ledger) record(e *BufferEvent) {
	prev := l[e.BufferID]
	if prev == nil {
		if e.Event != EventAlloc {
			return
		}
		prev = new(BufferEvent)
		l[e.BufferID] = prev
	}
	*prev = *e
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

// levelStep is what an operation adds to the level of its resource, in units of its amount, and to the number waiting.
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
