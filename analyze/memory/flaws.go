package memory

// FlawKind names a way in which the ledger contradicts itself.
type FlawKind string

// Kinds of flaws.
const (
	// a free of a buffer that was never allocated
	FlawUnmatchedFree FlawKind = "unmatched_free"
	FlawDoubleFree    FlawKind = "double_free" // a second free
	// another event of a buffer that was never allocated
	FlawUnmatchedEvent FlawKind = "unmatched_event"
	FlawEventAfterFree FlawKind = "event_after_free" // another event of a freed buffer
	FlawReusedID       FlawKind = "reused_id"        // an id allocated twice
	FlawNegativeLive   FlawKind = "negative_live"    // the running sum fell below zero
	// a buffer's capacity or resident bytes below zero
	FlawNegativeSize FlawKind = "negative_size"
	// delta_bytes is not the change of capacity_bytes
	FlawDeltaMismatch   FlawKind = "delta_mismatch"
	FlawResidentOver    FlawKind = "resident_over_capacity"  // touched more than reserved
	FlawMissingParent   FlawKind = "missing_parent"          // cut from a pool that is not alive
	FlawChildrenOver    FlawKind = "children_over_parent"    // children hold more than their pool
	FlawParentFreedLive FlawKind = "parent_freed_before_use" // a pool freed while its children live
)

// Flaw counts one kind, with the first examples.
type Flaw struct {
	Count   int64
	Bytes   int64 // of the buffers or differences concerned
	Buffers []int64
	Seqs    []int64
}

// maxExamples bounds the examples of a flaw.
const maxExamples = 10

// Flaws are the contradictions met so far, by kind.
type Flaws map[FlawKind]*Flaw

func (f *Flaws) add(kind FlawKind, bufferID, seq, bytes int64) {
	if *f == nil {
		*f = Flaws{}
	}
	x := (*f)[kind]
	if x == nil {
		x = &Flaw{}
		(*f)[kind] = x
	}
	x.Count++
	x.Bytes += max(bytes, -bytes)
	if len(x.Seqs) < maxExamples {
		x.Seqs = append(x.Seqs, seq)
		x.Buffers = append(x.Buffers, bufferID)
	}
}
