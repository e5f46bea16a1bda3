package journal

// Kind says what a record is.
type Kind uint8

// Kinds of records. 0 is never written: an all-zero record is free space.
const (
	KindBlock     Kind = 1 + iota // first record of a block: writer, block number
	KindString                    // defines a word: Word0 is its number, the text is in the extension
	KindBuffer                    // a row of buffers
	KindQueue                     // a row of queues
	KindSample                    // a row of samples
	KindSpanBegin                 // a span began; the extension holds OpenTelemetry ids, stream, threads, attributes
	KindSpanEnd                   // a span ended; the extension holds attributes
	KindLoss                      // X records of writer ID lost from time Y to TimeNS; Word0 is the reason
	KindClock                     // X is the unix time in ns at TimeNS

	kindEnd // one past the last kind
)

// UnknownWaiting in Parent of a queue record says that nobody counted who waits.
const UnknownWaiting = 1<<32 - 1

// Record is one 64-byte record, little-endian on disk, in this order. Ids are local to their source
// (one journal is one source); sealing makes them unique over the trace. Ext says how many 64-byte
// extension records follow in the same block; a group whose extension is not whole was never
// acknowledged.
type Record struct {
	Check  uint32 // over the record and its place; computed by the journal
	Kind   Kind
	Event  uint8 // index into BufferEvents, QueueEvents, SpanKinds; of a span's end, SpanStatuses
	Space  uint8 // index into Spaces
	Ext    uint8
	TimeNS int64 // after the trace's anchor
	// X is of a buffer: capacity; queue: amount; sample: float64 bits; span begin: stream; span
	// end: cpu ns; block: its number in its writer.
	X         int64
	Y         int64  // buffer: resident; queue: level after; span begin: threads; span end: bytes
	ID        uint32 // buffer id; span id; writer of a block or a loss; string: its length in bytes
	Parent    uint32 // buffer: parent id; queue: waiting after; span: parent span
	Span      uint32 // buffer, queue: span id
	Job       int32
	Partition int32
	Worker    int16
	Device    int16
	Word0     uint16 // buffer: class; queue: resource; sample: metric; span: stage
	Word1     uint16 // buffer, queue: stage; span: name
	Word2     uint16 // span: track
	Extra     int16  // queue: priority; buffer: 1 = estimated
}
