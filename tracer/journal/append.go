package journal

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// States of a shard.
const (
	shardFree uint32 = iota
	shardHeld
	shardClosed
)

// shard is one writer. Whoever sets state to shardHeld owns the rest.
type shard struct {
	state  atomic.Uint32
	id     uint32
	seg    *segment
	block  []byte // of seg, nil when there is none; 8-byte aligned
	place  int64  // of block's first record in its segment, in records
	at     int    // next record of block
	blocks int64  // claimed so far
	lost   int64  // not yet told by a KindLoss record
	from   int64  // time of the first of these
	to     int64  // time of the last
	events int64
	told   atomic.Int64    // events as of the last change of block
	_      [128 - 104]byte // no two shards share a pair of cache lines
}

// Append writes r and reports whether it is acknowledged; if not, the loss is counted. Check and
// Ext are set by the journal.
func (j *Journal) Append(r *Record) bool { return j.AppendExt(r, nil) }

// AppendExt writes r with an extension of at most MaxExt bytes, as one group: it is acknowledged
// whole or not at all.
func (j *Journal) AppendExt(r *Record, ext []byte) bool {
	s := j.home()
	if !s.state.CompareAndSwap(shardFree, shardHeld) {
		if s = j.acquire(s); s == nil {
			return false
		}
	}
	if j.closed.Load() { // Close waits for every shard: let it have them
		s.release()
		return false
	}
	n := (len(ext) + RecordBytes - 1) / RecordBytes
	ok := s.at+n < BlockRecords || j.nextBlock(s, r.TimeNS)
	if ok {
		j.write(s, r, ext, n)
		s.events++
	} else {
		j.lose(s, r.TimeNS)
	}
	s.release()
	return ok
}

// home is the calling goroutine's shard. Its stack's address stays the same for long, so it finds
// the shard's lines in its own CPU's cache.
func (j *Journal) home() *shard {
	var here byte
	i := uint64(uintptr(unsafe.Pointer(&here))) >> 10 * mix1 >> j.shift
	return &j.shards[i&uint64(len(j.shards)-1)]
}

// acquire takes the shard s or, while that is held, the next free one: a goroutine that was
// suspended while it held a shard holds up nobody. nil means that the journal is closed.
func (j *Journal) acquire(s *shard) *shard {
	for {
		for i := range j.shards {
			t := &j.shards[(int(s.id)+i)&(len(j.shards)-1)]
			if t.state.CompareAndSwap(shardFree, shardHeld) {
				return t
			}
		}
		if j.closed.Load() {
			return nil
		}
		runtime.Gosched()
	}
}

// write puts a group into the shard's block, which has room. Word 0 with the check comes last: a
// kill in between leaves a zero there, which readers take as the end of the block. Plain stores do:
// should a CPU or compiler reorder them, the check tells; and the atomic release of the shard,
// after which Append returns, has them all in memory.
func (j *Journal) write(s *shard, r *Record, ext []byte, n int) {
	b := s.block[s.at*RecordBytes:]
	w, key := wordsOf(r), placeKey(j.head.nonce, s.seg.number, s.place+int64(s.at))
	if n > 0 {
		x := b[RecordBytes : (1+n)*RecordBytes]
		copy(x, ext)
		key = groupKey(key, x)
	}
	w0 := w.head0(n)
	w0 |= uint64(w.check(w0, key))
	to := (*words)(unsafe.Pointer(&b[0])) // b is a record long at least, and aligned
	copy(to[1:], w[1:])
	to[0] = w0
	s.at += 1 + n
}

// nextBlock gives s a fresh block with its KindBlock record; false when no segment can be had.
func (j *Journal) nextBlock(s *shard, now int64) bool {
	for {
		seg := j.current.Load()
		if block, off := seg.claim(); block != nil {
			j.finishBlock(s)
			s.seg, s.block, s.place, s.at = seg, block, off/RecordBytes, 0
			break
		}
		if !j.rotate(seg) {
			return false
		}
	}
	r := ownRecord(KindBlock, now)
	r.ID, r.X = s.id, s.blocks
	j.write(s, &r, nil, 0)
	s.blocks++
	if s.lost > 0 {
		r := ownRecord(KindLoss, s.to)
		r.X, r.Y, r.ID, r.Word0 = s.lost, s.from, s.id, LossNoSpace
		j.write(s, &r, nil, 0)
		s.lost = 0
	}
	return true
}

// ownRecord is a record of the journal itself: it belongs to no job.
func ownRecord(kind Kind, now int64) Record {
	return Record{Kind: kind, TimeNS: now, Job: -1, Partition: -1, Worker: -1, Device: -1}
}

// finishBlock leaves the shard's block for good.
func (j *Journal) finishBlock(s *shard) {
	s.told.Store(s.events)
	if s.block == nil {
		return
	}
	if s.seg.open.Add(-1) == 0 {
		j.poke()
	}
	s.seg, s.block, s.at = nil, nil, BlockRecords
}

// lose counts an event that found no space, for the journal and in the mapping, which survives a
// kill.
func (j *Journal) lose(s *shard, now int64) {
	if s.lost == 0 {
		s.from = now
	}
	s.lost++
	s.to = now
	j.counter(ctrLostFrom).CompareAndSwap(0, uint64(now))
	j.counter(ctrLostTo).Store(uint64(now))
	j.counter(ctrLost).Add(1)
}

// counter is one of the counters in the first segment's head, which is mapped as long as a shard or
// the words' lock can be had.
func (j *Journal) counter(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&j.page[offCounters+8*i]))
}

// CountCut counts n attributes that did not fit into a record group.
func (j *Journal) CountCut(n int) {
	if s := j.acquire(j.home()); s != nil {
		j.counter(ctrCut).Add(uint64(n))
		s.release()
	}
}
