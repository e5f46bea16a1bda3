package device

// Event is one record of a ring, in the library's layout. Times are CLOCK_MONOTONIC.
type Event struct {
	Seq       uint64 // position in the ring
	TimeNS    int64
	Kind      EventKind
	Name      uint16 // Library.Name: class of a buffer; kernel, copy, operation, lock, attribute
	Device    int16  // -1 for host memory
	Stream    uint16 // noStream for none
	ID        uint64 // buffer; span; request of a lock
	Bytes     uint64
	Job       int32 // -1 for none
	Partition int32
	Thread    uint32
	_         uint32
	Arg       uint64 // alloc: parent buffer; kernel, copy: its operation; attribute: value
}

// noStream is the stream of what runs on none.
const noStream = 0xffff

// EventKind says what an event is.
type EventKind uint16

// Kinds of events, as in highwater_native.h.
const (
	eventAlloc       EventKind = 1
	eventFree        EventKind = 2
	eventPin         EventKind = 3
	eventUnpin       EventKind = 4
	eventCopyBegin   EventKind = 5
	eventCopyEnd     EventKind = 6
	eventKernelBegin EventKind = 7
	eventKernelEnd   EventKind = 8
	eventOpBegin     EventKind = 9
	eventOpEnd       EventKind = 10
	eventAttribute   EventKind = 11
	eventLockWait    EventKind = 12
	eventLockAcquire EventKind = 13
	eventLockRelease EventKind = 14
)
