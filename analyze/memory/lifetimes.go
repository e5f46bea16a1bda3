package memory

import "highwater/tracer/trace"

// buffer takes one event of buffers.parquet. The running sums follow delta_bytes of top-level rows
// whatever else the row says, so that they are the sums that SQL gives; everything that does not
// fit becomes a flaw.
func (l *Ledger) buffer(e *trace.BufferEvent) {
	t := l.tally(deviceOf(e))
	b := l.buffers[e.BufferID]
	switch {
	case e.Event == trace.EventAlloc:
		l.alloc(e, b)
	case b == nil:
		l.stray(e)
	case e.Event == trace.EventFree:
		l.free(e, b)
	default:
		l.update(e, b)
	}
	if e.ParentID == 0 {
		t.LiveBytes += e.DeltaBytes
		if t.LiveBytes < 0 {
			l.Flaws.add(FlawNegativeLive, e.BufferID, e.Seq, t.LiveBytes)
		}
	}
	t.rise(l, e.Seq, e.TimeNS, false)
}

// stray notes an event of a buffer that is not alive.
func (l *Ledger) stray(e *trace.BufferEvent) {
	kind := FlawUnmatchedEvent
	switch seen := l.seen.has(e.BufferID); {
	case e.Event == trace.EventFree && seen:
		kind = FlawDoubleFree
	case e.Event == trace.EventFree:
		kind = FlawUnmatchedFree
	case seen:
		kind = FlawEventAfterFree
	}
	l.Flaws.add(kind, e.BufferID, e.Seq, e.DeltaBytes)
}

func (l *Ledger) alloc(e *trace.BufferEvent, old *Buffer) {
	if l.seen.add(e.BufferID) {
		l.Flaws.add(FlawReusedID, e.BufferID, e.Seq, e.CapacityBytes)
	}
	if old != nil {
		l.move(old, amounts{-old.CapacityBytes, -old.ResidentBytes, -1})
	}
	b := l.newBuffer()
	*b = Buffer{
		ID: e.BufferID, ParentID: e.ParentID, Owner: l.owner(e.Job, e.Partition), AllocNS: e.TimeNS,
		LastUseNS: trace.Null, class: l.words.of(e.Class), stage: l.words.of(e.Stage),
		device: deviceOf(e), source: l.words.of(e.Source), estimated: e.Estimated,
	}
	l.buffers[b.ID] = b
	if b.ParentID != 0 && l.buffers[b.ParentID] == nil {
		l.Flaws.add(FlawMissingParent, b.ID, e.Seq, e.CapacityBytes)
	}
	d := amounts{bytes: e.DeltaBytes, buffers: 1}
	b.resUnknown = e.ResidentBytes == trace.Null
	if !b.resUnknown {
		d.resident = e.ResidentBytes
	}
	l.move(b, d)
	if b.resUnknown && l.topLevel(b) {
		l.sourceOf(b.source).unknown += b.CapacityBytes
	}
	l.check(e, b)
}

func (l *Ledger) newBuffer() *Buffer {
	if n := len(l.spare); n > 0 {
		b := l.spare[n-1]
		l.spare = l.spare[:n-1]
		return b
	}
	return &Buffer{}
}

func (l *Ledger) topLevel(b *Buffer) bool { return b.ParentID == 0 && !b.OnDevice() }

// move adds d to the buffer, to its owner's cell, and to the sums; what a child takes, its pool
// loses.
func (l *Ledger) move(b *Buffer, d amounts) {
	t := l.tally(b.device)
	l.change(b, d)
	b.CapacityBytes += d.bytes
	b.ResidentBytes += d.resident
	l.own(b, d)
	if b.ParentID == 0 {
		t.ResidentBytes += d.resident
		if !b.OnDevice() {
			s := l.sourceOf(b.source)
			s.resident += d.resident
			if b.estimated {
				s.estimated += d.resident
			}
			s.peak = max(s.peak, s.resident)
		}
		return
	}
	if p := l.buffers[b.ParentID]; p != nil && p != b {
		p.childBytes += d.bytes
		p.childRes += d.resident
		l.change(p, amounts{-d.bytes, -d.resident, 0})
		l.own(p, amounts{bytes: -d.bytes})
	}
}

// change adds d to what b's cell holds.
func (l *Ledger) change(b *Buffer, d amounts) {
	l.tally(b.device).change(b.key(), d)
	if l.tracked && !b.OnDevice() {
		l.touchedClasses = append(l.touchedClasses, b.class)
	}
}

func (b *Buffer) key() cellKey {
	return cellKey{owner: b.Owner, class: b.class, stage: b.stage, dead: b.LastUseNS != trace.Null}
}

// own adds d to what the owner of b has. Its bytes are those of the host.
func (l *Ledger) own(b *Buffer, d amounts) {
	if b.OnDevice() {
		d.bytes = 0
	}
	if d.bytes == 0 && d.buffers == 0 {
		return
	}
	o := b.Owner
	l.count(o, -1)
	o.bytes += d.bytes
	o.buffers += d.buffers
	o.had = o.had || d.buffers > 0
	l.count(o, 1)
}

// rekey moves what b holds itself to another cell: another owner, class or state.
func (l *Ledger) rekey(b *Buffer, change func()) {
	own := amounts{b.CapacityBytes - b.childBytes, b.ResidentBytes - b.childRes, 1}
	l.change(b, own.negated())
	l.own(b, own.negated())
	change()
	l.change(b, own)
	l.own(b, own)
}

func (l *Ledger) free(e *trace.BufferEvent, b *Buffer) {
	if e.DeltaBytes != -b.CapacityBytes {
		l.Flaws.add(FlawDeltaMismatch, b.ID, e.Seq, e.DeltaBytes+b.CapacityBytes)
	}
	if b.childBytes != 0 {
		l.Flaws.add(FlawParentFreedLive, b.ID, e.Seq, b.childBytes)
	}
	if b.resUnknown && l.topLevel(b) {
		l.sourceOf(b.source).unknown -= b.CapacityBytes
	}
	capacity, resident := b.CapacityBytes, b.ResidentBytes
	// The cell holds what the children left of it.
	d := amounts{b.childBytes, b.childRes, 0}
	l.change(b, d)
	l.own(b, d)
	l.move(b, amounts{-capacity, -resident, -1})
	b.CapacityBytes, b.ResidentBytes = capacity, resident
	delete(l.buffers, b.ID)
	l.Freed = b
}

func (l *Ledger) update(e *trace.BufferEvent, b *Buffer) {
	d := amounts{bytes: e.DeltaBytes}
	if e.ResidentBytes != trace.Null {
		if b.resUnknown && l.topLevel(b) {
			l.sourceOf(b.source).unknown -= b.CapacityBytes
		}
		b.resUnknown = false
		d.resident = e.ResidentBytes - b.ResidentBytes
	} else if b.resUnknown && l.topLevel(b) {
		l.sourceOf(b.source).unknown += d.bytes
	}
	if d != (amounts{}) {
		l.move(b, d)
	}
	switch e.Event {
	case trace.EventHandoff:
		l.rekey(b, func() { l.handOff(e, b) })
	case trace.EventReclass:
		l.rekey(b, func() { b.class, b.LastUseNS = l.words.of(e.Class), trace.Null })
	case trace.EventLastUse:
		l.rekey(b, func() { b.LastUseNS = e.TimeNS })
	}
	l.check(e, b)
}

func (l *Ledger) handOff(e *trace.BufferEvent, b *Buffer) {
	b.Owner = l.owner(e.Job, e.Partition)
	if e.Stage != "" {
		b.stage = l.words.of(e.Stage)
	}
}

// check compares what the row says with what its deltas have added up to.
func (l *Ledger) check(e *trace.BufferEvent, b *Buffer) {
	if b.CapacityBytes != e.CapacityBytes {
		l.Flaws.add(FlawDeltaMismatch, b.ID, e.Seq, e.CapacityBytes-b.CapacityBytes)
	}
	if e.CapacityBytes < 0 || e.ResidentBytes < 0 && e.ResidentBytes != trace.Null {
		l.Flaws.add(FlawNegativeSize, b.ID, e.Seq, e.CapacityBytes)
	}
	if e.ResidentBytes > e.CapacityBytes {
		l.Flaws.add(FlawResidentOver, b.ID, e.Seq, e.ResidentBytes-e.CapacityBytes)
	}
	if p := l.buffers[b.ParentID]; b.ParentID != 0 && p != nil && p.childBytes > p.CapacityBytes {
		l.Flaws.add(FlawChildrenOver, p.ID, e.Seq, p.childBytes-p.CapacityBytes)
	}
}
