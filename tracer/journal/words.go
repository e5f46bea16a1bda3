package journal

// Tables of the words that records carry as a number in Event and Space. Index 0 is "no word".
// Numbers are part of the format: append only. The texts are those of tracer/trace's schema (a test
// in tracer keeps them equal).
var (
	BufferEvents = []string{
		"", "alloc", "resize", "fill", "reclass", "pin", "unpin", "handoff", "last_use", "free",
	}
	QueueEvents  = []string{"", "request", "acquire", "release", "send", "sent", "recv", "cancel"}
	SpanKinds    = []string{"", "job", "stage", "op", "kernel", "copy", "wait", "free", "other"}
	SpanStatuses = []string{"", "ok", "error"}
	Spaces       = []string{"", "host", "pinned", "file", "device"}
	LossReasons  = []string{"", "no_space", "words_full", "attributes_cut", "closed"}
)

// Numbers of the words above.
const (
	BufferAlloc uint8 = 1 + iota
	BufferResize
	BufferFill
	BufferReclass
	BufferPin
	BufferUnpin
	BufferHandoff
	BufferLastUse
	BufferFree
)

// Numbers of QueueEvents.
const (
	QueueRequest uint8 = 1 + iota
	QueueAcquire
	QueueRelease
	QueueSend
	QueueSent
	QueueRecv
	QueueCancel
)

// Numbers of SpanStatuses.
const (
	StatusUnset uint8 = iota
	StatusOK
	StatusError
)

// Numbers of SpanKinds that the journal's users need by name.
const SpanOther uint8 = 8

// Numbers of LossReasons.
const (
	LossNoSpace       uint16 = 1 + iota // no segment could be had: a full disk
	LossWordsFull                       // a word beyond the limit was recorded as "other"
	LossAttributesCut                   // attributes that did not fit into a record group
	LossClosed                          // events that came after Close
)

// Index finds word in one of the tables above; ok is false for a word that the table lacks.
func Index(table []string, word string) (i uint8, ok bool) {
	for i, w := range table {
		if w == word {
			return uint8(i), true
		}
	}
	return 0, false
}

// Text is the word of number i in a table, "" for one that the table lacks.
func Text(table []string, i uint8) string {
	if int(i) >= len(table) {
		return ""
	}
	return table[i]
}
