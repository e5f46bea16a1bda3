package memory

// Tally is live bytes in one space (the host, or one device) and what they were made of at their
// peak.
//
// The peak's make-up is kept without copying everything at each new maximum: every cell remembers
// the value it had when the current maximum was set, once it is changed after that (copy on write
// by epoch). So the cost of a step does not depend on how much is alive.
type Tally struct {
	LiveBytes     int64 // sum of delta_bytes of top-level buffers
	ResidentBytes int64 // of these, touched
	Peak          Peak

	classBytes []int64 // live bytes by class word, children apart from their pool

	cells  map[cellKey]*cell
	ghosts []*cell // emptied since the peak
	spare  []*cell // emptied, for the next new one
	epoch  uint64
	index  int // of the owners' marks
}

// Peak is the moment of the highest live bytes since the tally's start or its last reset.
type Peak struct {
	LiveBytes     int64
	ResidentBytes int64
	// of the event that reached it; of the reset where nothing rose above the level then
	Seq, TimeNS int64
	Unpermitted Waiting
	Places      [NumPlaces]Waiting // partitions, and bytes of all buffers, by place
}

// Waiting is partitions and the bytes that they own.
type Waiting struct {
	Partitions int64 `json:"partitions"`
	Bytes      int64 `json:"bytes"`
}

// cellKey is the finest attribution of bytes: whose, of which class, from which stage, and whether
// past their last use.
type cellKey struct {
	owner        *Owner
	class, stage word
	dead         bool
}

type amounts struct {
	bytes, resident int64
	buffers         int64
}

func (a *amounts) add(b amounts) {
	a.bytes += b.bytes
	a.resident += b.resident
	a.buffers += b.buffers
}

func (a amounts) negated() amounts { return amounts{-a.bytes, -a.resident, -a.buffers} }

type cell struct {
	key    cellKey
	cur    amounts
	atPeak amounts
	epoch  uint64 // atPeak holds when this is the tally's; else cur does
}

func newTally(index int) *Tally {
	return &Tally{cells: map[cellKey]*cell{}, index: index}
}

// change adds d to the cell of k. A cell that empties leaves the map; while the peak needs it, it
// stays as a ghost.
func (t *Tally) change(k cellKey, d amounts) {
	c := t.cells[k]
	if c == nil {
		c = t.newCell()
		*c = cell{key: k, epoch: t.epoch}
		t.cells[k] = c
	}
	if c.epoch != t.epoch {
		c.atPeak, c.epoch = c.cur, t.epoch
	}
	c.cur.add(d)
	for int(k.class) >= len(t.classBytes) {
		t.classBytes = append(t.classBytes, 0)
	}
	t.classBytes[k.class] += d.bytes
	if c.cur == (amounts{}) {
		delete(t.cells, k)
		if c.atPeak != (amounts{}) {
			t.ghosts = append(t.ghosts, c)
		} else {
			t.spare = append(t.spare, c)
		}
	}
}

func (t *Tally) newCell() *cell {
	if n := len(t.spare); n > 0 {
		c := t.spare[n-1]
		t.spare = t.spare[:n-1]
		return c
	}
	return &cell{}
}

// beforePlace keeps the place that o had at the peak.
func (t *Tally) beforePlace(o *Owner) {
	for len(o.marks) <= t.index {
		o.marks = append(o.marks, placeMark{})
	}
	if m := &o.marks[t.index]; m.epoch != t.epoch || !m.set {
		*m = placeMark{epoch: t.epoch, place: o.place, set: true}
	}
}

// placeAtPeak is where o was at the peak.
func (t *Tally) placeAtPeak(o *Owner) Place {
	if t.index < len(o.marks) {
		if m := o.marks[t.index]; m.set && m.epoch == t.epoch {
			return m.place
		}
	}
	return o.place
}

// rise makes now the peak if live bytes are above it; reset makes it the peak whatever the level.
func (t *Tally) rise(l *Ledger, seq, timeNS int64, reset bool) {
	if t.LiveBytes <= t.Peak.LiveBytes && !reset {
		return
	}
	t.Peak = Peak{
		LiveBytes: t.LiveBytes, ResidentBytes: t.ResidentBytes, Seq: seq, TimeNS: timeNS,
		Unpermitted: l.Unpermitted, Places: l.places,
	}
	t.epoch++
	t.ghosts = t.ghosts[:0]
}

// atPeak visits every cell that held something at the peak.
func (t *Tally) atPeak(visit func(k cellKey, a amounts)) {
	show := func(c *cell) {
		a := c.cur
		if c.epoch == t.epoch {
			a = c.atPeak
		}
		if a != (amounts{}) {
			visit(c.key, a)
		}
	}
	for _, c := range t.cells {
		show(c)
	}
	for _, c := range t.ghosts {
		show(c)
	}
}
