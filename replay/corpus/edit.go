package corpus

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"highwater/tracer/trace"
)

// seqGap is the room that widen makes between two events.
const seqGap = 1 << 10

// widen spreads the sequence numbers of d, so that events can be put between.
func widen(d *trace.Data) {
	for i := range d.Buffers {
		d.Buffers[i].Seq *= seqGap
	}
	for i := range d.Queues {
		d.Queues[i].Seq *= seqGap
	}
	for i := range d.Spans {
		d.Spans[i].BeginSeq *= seqGap
		if d.Spans[i].EndSeq != trace.Null {
			d.Spans[i].EndSeq *= seqGap
		}
	}
}

// sortEvents puts each table in its order again.
func sortEvents(d *trace.Data) {
	slices.SortStableFunc(d.Buffers,
		func(a, b trace.BufferEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortStableFunc(d.Spans,
		func(a, b trace.Span) int { return cmp.Compare(a.BeginSeq, b.BeginSeq) })
}

// retime lets times rise strictly in the order of the trace, as a recorder's do: virtual time
// stands still while one event follows from another.
func retime(d *trace.Data) {
	type event struct {
		seq int64
		at  *int64
	}
	all := make([]event, 0, len(d.Buffers)+len(d.Queues)+2*len(d.Spans))
	for i := range d.Buffers {
		all = append(all, event{d.Buffers[i].Seq, &d.Buffers[i].TimeNS})
	}
	for i := range d.Queues {
		all = append(all, event{d.Queues[i].Seq, &d.Queues[i].TimeNS})
	}
	for i := range d.Spans {
		s := &d.Spans[i]
		all = append(all, event{s.BeginSeq, &s.BeginNS})
		if s.EndSeq != trace.Null {
			all = append(all, event{s.EndSeq, &s.EndNS})
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.seq, b.seq) })
	last := int64(math.MinInt64)
	for _, e := range all {
		*e.at = max(*e.at, last+1)
		last = *e.at
	}
}

func nextBuffer(d *trace.Data) int64 {
	id := int64(0)
	for i := range d.Buffers {
		id = max(id, d.Buffers[i].BufferID)
	}
	return id + 1
}

// breakLedger makes the ledger contradict itself in one of three ways.
func breakLedger(d *trace.Data, rng *rand.Rand) {
	var frees []int
	for i := range d.Buffers {
		if d.Buffers[i].Event == trace.EventFree {
			frees = append(frees, i)
		}
	}
	pick := frees[rng.IntN(len(frees))]
	switch rng.IntN(3) {
	case 0:
		e := d.Buffers[pick]
		e.Seq++
		e.DeltaBytes, e.DeltaResidentBytes = 0, 0
		d.Buffers = append(d.Buffers, e)
		sortEvents(d)
	case 1:
		d.Queues[rng.IntN(len(d.Queues))].LevelAfter = -1
	default:
		d.Buffers = slices.Delete(d.Buffers, pick, pick+1)
	}
}

// forgetFrees leaves the buffers of one class that one partition of each job has, or of every
// other, alive for ever.
func forgetFrees(d *trace.Data, rng *rand.Rand) {
	class := []string{trace.ClassA, trace.ClassB, trace.ClassC, trace.ClassAux}[rng.IntN(4)]
	every := 1 + rng.Int64N(2)
	d.Buffers = slices.DeleteFunc(d.Buffers, func(e trace.BufferEvent) bool {
		return e.Event == trace.EventFree && e.Class == class && e.Partition == 0 && e.Job%every == 0
	})
}

// starts lists the indexes of prove_start's spans.
func starts(d *trace.Data) []int {
	var at []int
	for i := range d.Spans {
		if s := &d.Spans[i]; s.Kind == trace.KindStage && s.Stage == trace.StageProveStart {
			at = append(at, i)
		}
	}
	return at
}

// addCopies puts an upload into each prove_start that takes share of its time at rate bytes a
// second.
func addCopies(d *trace.Data, rate, share float64) {
	id := int64(0)
	for i := range d.Spans {
		id = max(id, d.Spans[i].SpanID)
	}
	for _, i := range starts(d) {
		s := d.Spans[i]
		id++
		c := s
		c.SpanID, c.ParentID, c.Kind, c.Name = id, s.SpanID, trace.KindCopy, "copy_h2d"
		c.Track, c.Threads = "copies", trace.Null
		c.BeginSeq, c.EndSeq = s.BeginSeq+1, s.BeginSeq+2
		c.EndNS = s.BeginNS + int64(share*float64(s.EndNS-s.BeginNS))
		c.Bytes = int64(rate * float64(c.EndNS-c.BeginNS) / 1e9)
		// Nothing else may lie between: the copy ends before the next event of the trace.
		c.EndSeq = endSeqAt(d, c.EndNS, c.BeginSeq)
		d.Spans = append(d.Spans, c)
	}
	sortEvents(d)
}

// endSeqAt is a number for an event at timeNS that no other event has: after the last event that is
// not later.
func endSeqAt(d *trace.Data, timeNS, after int64) int64 {
	i, _ := slices.BinarySearchFunc(d.Queues, timeNS+1,
		func(e trace.QueueEvent, t int64) int { return cmp.Compare(e.TimeNS, t) })
	j, _ := slices.BinarySearchFunc(d.Buffers, timeNS+1,
		func(e trace.BufferEvent, t int64) int { return cmp.Compare(e.TimeNS, t) })
	seq := after
	if i > 0 {
		seq = max(seq, d.Queues[i-1].Seq)
	}
	if j > 0 {
		seq = max(seq, d.Buffers[j-1].Seq)
	}
	for k := range d.Spans {
		if s := &d.Spans[k]; s.BeginNS <= timeNS {
			seq = max(seq, s.BeginSeq)
			if s.EndSeq != trace.Null && s.EndNS <= timeNS {
				seq = max(seq, s.EndSeq)
			}
		}
	}
	return seq + 1 + after%(seqGap/2)
}

// uploadBytes is the size of a partition's upload buffer.
const uploadBytes = 512 << 20

// addPinning page-locks a buffer for each prove_start: anew (register: by pin and unpin of host
// memory), and gives it back at its end.
func addPinning(d *trace.Data, register bool) {
	id := nextBuffer(d)
	for n, i := range starts(d) {
		s := &d.Spans[i]
		e := trace.BufferEvent{
			Seq: s.BeginSeq + 10, TimeNS: s.BeginNS, Source: s.Source, Event: trace.EventAlloc,
			BufferID: id + int64(n), Class: "upload", Space: trace.SpacePinned, Device: trace.None,
			CapacityBytes: uploadBytes, ResidentBytes: uploadBytes, DeltaBytes: uploadBytes,
			DeltaResidentBytes: uploadBytes, Job: s.Job, Partition: s.Partition, Worker: s.Worker,
			Stage: s.Stage, SpanID: s.SpanID,
		}
		pin, unpin, free := e, e, e
		pin.DeltaBytes, pin.DeltaResidentBytes = 0, 0
		pin.Seq, pin.Event = e.Seq+1, trace.EventPin
		unpin = pin
		unpin.Seq, unpin.TimeNS = s.EndSeq-3, s.EndNS
		unpin.Event, unpin.Space = trace.EventUnpin, trace.SpaceHost
		free = unpin
		free.Seq, free.Event, free.Space = s.EndSeq-1, trace.EventFree, trace.SpacePinned
		free.CapacityBytes, free.ResidentBytes = 0, 0
		free.DeltaBytes, free.DeltaResidentBytes = -uploadBytes, -uploadBytes
		last := free
		last.Seq, last.Event = s.EndSeq-2, trace.EventLastUse
		last.CapacityBytes, last.ResidentBytes = uploadBytes, uploadBytes
		last.DeltaBytes, last.DeltaResidentBytes = 0, 0
		if register {
			e.Space, free.Space, last.Space = trace.SpaceHost, trace.SpaceHost, trace.SpaceHost
			d.Buffers = append(d.Buffers, e, pin, unpin, last, free)
		} else {
			d.Buffers = append(d.Buffers, e, last, free)
		}
	}
	sortEvents(d)
}

// addPool pins two buffers before the first job and cuts each upload from one of them.
func addPool(d *trace.Data) {
	id := nextBuffer(d)
	pool := trace.BufferEvent{
		Seq: 1, TimeNS: d.Queues[0].TimeNS, Source: d.Queues[0].Source, Event: trace.EventAlloc,
		BufferID: id, Class: trace.ClassPinnedPool, Space: trace.SpacePinned, Device: trace.None,
		CapacityBytes: 8 * uploadBytes, ResidentBytes: 8 * uploadBytes,
		DeltaBytes: 8 * uploadBytes, DeltaResidentBytes: 8 * uploadBytes,
		Job: trace.None, Partition: trace.None, Worker: trace.None,
	}
	first := math.MaxInt64
	if len(d.Buffers) > 0 {
		first = int(min(d.Buffers[0].TimeNS, pool.TimeNS))
	}
	pool.TimeNS = int64(first)
	d.Buffers = append(d.Buffers, pool)
	for n, i := range starts(d) {
		s := &d.Spans[i]
		e := trace.BufferEvent{
			Seq: s.BeginSeq + 10, TimeNS: s.BeginNS, Source: s.Source, Event: trace.EventAlloc,
			BufferID: id + 1 + int64(n), ParentID: id, Class: "upload", Space: trace.SpacePinned,
			Device: trace.None, CapacityBytes: uploadBytes, ResidentBytes: uploadBytes,
			DeltaBytes: uploadBytes, DeltaResidentBytes: uploadBytes, Job: s.Job,
			Partition: s.Partition, Worker: s.Worker, Stage: s.Stage, SpanID: s.SpanID,
		}
		last, free := e, e
		last.Seq, last.TimeNS, last.Event = s.EndSeq-2, s.EndNS, trace.EventLastUse
		last.DeltaBytes, last.DeltaResidentBytes = 0, 0
		free.Seq, free.TimeNS, free.Event = s.EndSeq-1, s.EndNS, trace.EventFree
		free.CapacityBytes, free.ResidentBytes = 0, 0
		free.DeltaBytes, free.DeltaResidentBytes = -uploadBytes, -uploadBytes
		d.Buffers = append(d.Buffers, e, last, free)
	}
	sortEvents(d)
}

// addCache lets the first jobs add a buffer that stays, each at its end.
func addCache(d *trace.Data, jobs int64) {
	id := nextBuffer(d)
	for _, e := range d.Queues {
		if e.Resource != trace.ResourceJob || e.Event != trace.EventRelease || e.Job >= jobs {
			continue
		}
		d.Buffers = append(d.Buffers, trace.BufferEvent{
			Seq: e.Seq + 5, TimeNS: e.TimeNS, Source: e.Source, Event: trace.EventAlloc,
			BufferID: id, Class: "cache", Space: trace.SpaceHost, Device: trace.None,
			CapacityBytes: 256 << 20, ResidentBytes: 256 << 20, DeltaBytes: 256 << 20,
			DeltaResidentBytes: 256 << 20, Job: trace.None, Partition: trace.None,
			Worker: trace.None,
		})
		id++
	}
	sortEvents(d)
}
