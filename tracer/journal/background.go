package journal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// retryEvery is how often the background asks for disk space again after a refusal.
const retryEvery = 50 * time.Millisecond

// makeSegment makes the next segment; mu is held.
func (j *Journal) makeSegment() (*segment, error) {
	h := j.head
	h.number = j.number
	s, err := createSegment(j.dir, &h, j.opts.Space)
	j.lastErr = err
	j.failing.Store(err != nil)
	if err != nil {
		return nil, err
	}
	j.number++
	j.mapped = append(j.mapped, s)
	return s, nil
}

// rotate puts a fresh segment in the place of full; false when there is none to be had. It makes
// one itself where the background was too slow: a short wait loses nothing.
func (j *Journal) rotate(full *segment) bool {
	if j.failing.Load() && j.current.Load() == full {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.current.Load() != full {
		return true
	}
	if j.spare == nil {
		s, err := j.makeSegment()
		if err != nil {
			return false
		}
		j.spare = s
	}
	j.current.Store(j.spare)
	j.spare = nil
	j.poke()
	return true
}

// poke wakes the background.
func (j *Journal) poke() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// background keeps a spare segment ready, its pages present, and unmaps segments that nobody writes
// to any more.
func (j *Journal) background() {
	defer close(j.done)
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	reported := int64(-1)
	for !j.closed.Load() {
		j.refill()
		j.leaveOldBlocks()
		if n := j.unmapFinished(); n != reported {
			reported = n
			j.opts.OnMapped(n)
		}
		if j.failing.Load() {
			retry.Reset(retryEvery)
		}
		select {
		case <-j.wake:
		case <-retry.C:
		}
	}
}

// refill makes the spare segment. Its pages are made present after appenders can already have it,
// so that they never wait for that.
func (j *Journal) refill() {
	j.mu.Lock()
	if j.spare != nil || j.closed.Load() {
		j.mu.Unlock()
		return
	}
	s, err := j.makeSegment()
	if err == nil {
		j.spare = s
	}
	j.mu.Unlock()
	if err == nil {
		prefault(s.data) // only this goroutine unmaps
	}
}

// leaveOldBlocks takes idle writers off blocks in segments that are full, so that these can be
// unmapped.
func (j *Journal) leaveOldBlocks() {
	for i := range j.shards {
		s := &j.shards[i]
		if !s.state.CompareAndSwap(shardFree, shardHeld) {
			continue
		}
		// Read while s is held: an older answer would take a block of the newest segment for old.
		if s.block != nil && s.seg != j.current.Load() {
			j.finishBlock(s)
		}
		s.release()
	}
}

// unmapFinished unmaps segments all of whose blocks are finished and gives the bytes that stay
// mapped.
func (j *Journal) unmapFinished() int64 {
	finished, left := j.takeFinished()
	for _, s := range finished { // takes a millisecond each: outside the lock, appenders may need that
		s.unmap()
	}
	return left
}

func (j *Journal) takeFinished() (finished []*segment, leftBytes int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	kept := j.mapped[:0]
	for _, s := range j.mapped {
		if s.open.Load() == 0 {
			finished = append(finished, s)
			continue
		}
		kept = append(kept, s)
	}
	clear(j.mapped[len(kept):])
	j.mapped = kept
	return finished, int64(len(kept)) * j.opts.SegmentBytes
}

// Close finishes the journal: later appends are refused, the counts are in the file, its lock is
// free. A second Close does nothing.
func (j *Journal) Close() error {
	if j.closed.Swap(true) {
		<-j.done
		return nil
	}
	for i := range j.shards {
		j.closeShard(&j.shards[i])
	}
	j.poke()
	<-j.done
	j.counter(ctrEvents).Store(uint64(j.Stats().Events))
	j.counter(ctrClosed).Store(1)
	err := j.release()
	j.opts.OnMapped(0)
	return errors.Join(err, unlock(j.lock))
}

// release unmaps everything. No shard can be had any more; the words' lock keeps off the last user
// of the counters.
func (j *Journal) release() error {
	final := j.Stats()
	j.words.mu.Lock()
	defer j.words.mu.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.trim()
	for _, s := range j.mapped {
		s.unmap()
	}
	_ = unix.Munmap(j.page)
	j.page, j.mapped, j.final = nil, nil, final
	return err
}

// closeShard takes a shard for good and writes what it still has to tell.
func (j *Journal) closeShard(s *shard) {
	for !s.state.CompareAndSwap(shardFree, shardHeld) {
		runtime.Gosched()
	}
	if s.lost > 0 {
		j.nextBlock(s, s.to) // without space the loss stands in the first segment's head
	}
	j.finishBlock(s)
	s.state.Store(shardClosed)
}

// trim gives back the disk space that was reserved and not used.
func (j *Journal) trim() error {
	var errs []error
	if j.spare != nil {
		errs = append(errs, os.Remove(j.spare.path))
	}
	cur := j.current.Load()
	if used := min(cur.next.Load(), cur.blocks); used < cur.blocks {
		errs = append(errs, os.Truncate(cur.path, headerBytes+used*BlockBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close journal %s: %w", j.dir, err)
	}
	return nil
}
