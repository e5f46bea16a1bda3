package journal

import (
	"encoding/binary"
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
	block  []byte // of seg, nil when there is none
	off    int64  // of block in its segment
	at     int    // next record of block
	blocks int64  // claimed so far
	lost   int64  // not yet told by a KindLoss record
	from   int64  // time of the first of these
	to     int64  // time of the last
	events atomic.Int64
	_      [128 - 96]byte // no two shards share a pair of cache lines
}

// Append writes r and reports whether it is acknowledged; if not, the loss is counted. Check and Ext are set by the journal.
func (j *Journal) Append(r *Record) bool { return j.AppendExt(r, nil) }

// AppendExt writes r with an extension of at most MaxExt bytes, as one group: it is acknowledged whole or not at all.
func (j *Journal) AppendExt(r *Record, ext []byte) bool {
	s := j.acquire()
	if s == nil {
		return false
	}
	ok := j.put(s, r, ext)
	s.state.Store(shardFree)
	return ok
}

// acquire takes a shard: that of the calling goroutine if it is free, else the next free one. A goroutine that was
// suspended while it held a shard therefore holds up nobody. nil means that the journal is closed.
func (j *Journal) acquire() *shard {
	var here byte
	// A goroutine's stack address stays the same for long, so it finds its shard's lines in its own CPU's cache.
	i := int(uint64(uintptr(unsafe.Pointer(&here)))>>10*mix1>>j.shift) & (len(j.shards) - 1)
	for {
		for range j.shards {
			s := &j.shards[i]
			if s.state.CompareAndSwap(shardFree, shardHeld) {
				return s
			}
			i = (i + 1) & (len(j.shards) - 1)
		}
		if j.closed.Load() {
			return nil
		}
		runtime.Gosched()
	}
}

func (j *Journal) put(s *shard, r *Record, ext []byte) bool {
	n := (len(ext) + RecordBytes - 1) / RecordBytes
	if s.at+n >= BlockRecords && !j.nextBlock(s, r.TimeNS) {
		s.lose(r.TimeNS)
		j.countLoss(r.TimeNS)
		return false
	}
	j.write(s, r, ext, n)
	s.events.Store(s.events.Load() + 1) // only the owner writes
	return true
}

// write puts a group into the shard's block, which has room. Word 0 with the check comes last: a kill in between leaves a zero
// there, which readers take as the end of the block. The release of the shard that follows orders it for other CPUs.
func (j *Journal) write(s *shard, r *Record, ext []byte, n int) {
	at := s.at * RecordBytes
	b := (*[RecordBytes]byte)(s.block[at:])
	var w words
	w.pack(r, n)
	key := placeKey(j.head.nonce, s.seg.number, s.off+int64(at))
	var check uint32
	if n == 0 {
		check = w.check(key)
	} else {
		x := s.block[at+RecordBytes : at+(1+n)*RecordBytes]
		copy(x, ext)
		check = w.checkGroup(key, x)
	}
	for i := 1; i < len(w); i++ {
		binary.LittleEndian.PutUint64(b[8*i:], w[i])
	}
	atomic.StoreUint64((*uint64)(unsafe.Pointer(b)), w[0]|uint64(check))
	s.at += 1 + n
}

// nextBlock gives s a fresh block with its KindBlock record; false when no segment can be had.
func (j *Journal) nextBlock(s *shard, now int64) bool {
	for {
		seg := j.current.Load()
		if block, off := seg.claim(); block != nil {
			j.finishBlock(s)
			s.seg, s.block, s.off, s.at = seg, block, off, 0
			break
		}
		if !j.rotate(seg) {
			return false
		}
	}
	j.write(s, &Record{Kind: KindBlock, TimeNS: now, ID: s.id, X: s.blocks, Job: -1, Partition: -1, Worker: -1, Device: -1}, nil, 0)
	s.blocks++
	if s.lost > 0 {
		j.write(s, &Record{Kind: KindLoss, TimeNS: s.to, X: s.lost, Y: s.from, ID: s.id, Word0: LossNoSpace,
			Job: -1, Partition: -1, Worker: -1, Device: -1}, nil, 0)
		s.lost = 0
	}
	return true
}

// finishBlock leaves the shard's block for good.
func (j *Journal) finishBlock(s *shard) {
	if s.block == nil {
		return
	}
	if s.seg.open.Add(-1) == 0 {
		j.poke()
	}
	s.seg, s.block, s.at = nil, nil, BlockRecords
}

func (s *shard) lose(now int64) {
	if s.lost == 0 {
		s.from = now
	}
	s.lost++
	s.to = now
}

// counter is one of the counters in the first segment's head, which is mapped as long as a shard or the words' lock can be had.
func (j *Journal) counter(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&j.page[offCounters+8*i]))
}

// CountCut counts n attributes that did not fit into a record group.
func (j *Journal) CountCut(n int) {
	if s := j.acquire(); s != nil {
		j.counter(ctrCut).Add(uint64(n))
		s.state.Store(shardFree)
	}
}

// countLoss counts in the mapping, which survives a kill.
func (j *Journal) countLoss(now int64) {
	j.counter(ctrLostFrom).CompareAndSwap(0, uint64(now))
	j.counter(ctrLostTo).Store(uint64(now))
	j.counter(ctrLost).Add(1)
}
