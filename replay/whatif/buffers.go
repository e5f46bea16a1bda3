package whatif

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"highwater/replay/pipeline"
	"highwater/tracer/trace"
)

// resize multiplies the bytes of buffers that are allocated as class, whatever they become later.
func resize(m *pipeline.Model, class string, factor float64) error {
	found := false
	of := func(own map[int]bool, c *pipeline.Change) {
		if c.Event == trace.EventAlloc && c.Class == class {
			own[c.Buffer] = true
		}
		if own[c.Buffer] {
			c.Capacity, c.Resident, found = times(c.Capacity, factor), times(c.Resident, factor), true
		}
	}
	for i := range m.Partitions {
		p := &m.Partitions[i]
		settled, early := settledOf(p), earlyOf(p)
		own := map[int]bool{}
		eachChange(p.Pieces, func(c *pipeline.Change) { of(own, c) })
		p.SettledBytes = max(p.SettledBytes+settledOf(p)-settled, 0)
		p.EarlyBytes = min(max(p.EarlyBytes+earlyOf(p)-early, 0), p.SettledBytes)
	}
	for i := range m.Jobs {
		own := map[int]bool{}
		eachChange(m.Jobs[i].Before, func(c *pipeline.Change) { of(own, c) })
		eachChange(m.Jobs[i].After, func(c *pipeline.Change) { of(own, c) })
	}
	own := map[int]bool{}
	for i := range m.Memory.Resident {
		of(own, &m.Memory.Resident[i])
	}
	for i := range m.Memory.Later {
		of(own, &m.Memory.Later[i].Change)
	}
	for i := range m.Cached {
		if c := &m.Cached[i]; c.Class == class {
			c.Bytes, c.LoadBytes, found = max(times(c.Bytes, factor), 1), times(c.LoadBytes, factor), true
		}
	}
	if !found {
		return fmt.Errorf("buffer %s: no buffer is allocated as this class; the trace has %s", class,
			strings.Join(classesOf(m), ", "))
	}
	return nil
}

func times(n int64, factor float64) int64 { return int64(math.Round(float64(n) * factor)) }

func eachChange(pieces []pipeline.Piece, f func(*pipeline.Change)) {
	for i := range pieces {
		for k := range pieces[i].Buffers {
			f(&pieces[i].Buffers[k])
		}
	}
}

// settledOf is what p holds when its synthesis is over, in host bytes.
func settledOf(p *pipeline.Partition) int64 {
	held := map[int]int64{}
	for i := range p.Pieces {
		if s := p.Pieces[i].Segment; s != pipeline.SegmentDispatch && s != pipeline.SegmentSynthesis {
			break
		}
		follow(held, p.Pieces[i].Buffers)
	}
	return sum(held, slices.Collect(maps.Keys(held)))
}

// earlyOf is what the buffers that early_free places hold at most, in host bytes.
func earlyOf(p *pipeline.Partition) int64 {
	most := map[int]int64{}
	eachChange(p.Pieces, func(c *pipeline.Change) {
		if c.Space != trace.SpaceDevice {
			most[c.Buffer] = max(most[c.Buffer], c.Capacity)
		}
	})
	return sum(most, p.EarlyFree)
}

func sum(held map[int]int64, buffers []int) (total int64) {
	for _, b := range buffers {
		total += held[b]
	}
	return total
}

func follow(held map[int]int64, changes []pipeline.Change) {
	for i := range changes {
		c := &changes[i]
		switch {
		case c.Event == trace.EventFree:
			delete(held, c.Buffer)
		case c.Space != trace.SpaceDevice:
			held[c.Buffer] = c.Capacity
		}
	}
}

// classesOf lists the classes that buffers are allocated as.
func classesOf(m *pipeline.Model) []string {
	seen := map[string]bool{}
	note := func(c *pipeline.Change) {
		if c.Event == trace.EventAlloc {
			seen[c.Class] = true
		}
	}
	ways(m, func(pieces []pipeline.Piece) { eachChange(pieces, note) })
	for i := range m.Memory.Resident {
		note(&m.Memory.Resident[i])
	}
	for i := range m.Memory.Later {
		note(&m.Memory.Later[i].Change)
	}
	for i := range m.Cached {
		seen[m.Cached[i].Class] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// free moves the frees of buffers that have the class when the stage ends to that end.
func free(m *pipeline.Model, f FreeAt) error {
	moved, stage := false, false
	for i := range m.Partitions {
		p := &m.Partitions[i]
		at := lastOf(p.Pieces, f.Stage)
		if at < 0 {
			continue
		}
		stage = true
		held := classesAfter(p.Pieces[:at+1])
		for _, b := range slices.Sorted(maps.Keys(held)) {
			if held[b].Class != f.Class {
				continue
			}
			if used := usedAfter(p.Pieces[at+1:], b); used != "" {
				return fmt.Errorf("free %s@%s: it is still used in %s, so it cannot be freed earlier",
					f.Class, f.Stage, used)
			}
			freeAfter(p, at, held[b])
			moved = true
		}
	}
	switch {
	case !stage:
		return fmt.Errorf("free %s@%s: no partition goes through that stage; the trace has %s",
			f.Class, f.Stage, strings.Join(stagesOf(m), ", "))
	case !moved:
		return fmt.Errorf("free %s@%s: no partition holds that class when the stage ends",
			f.Class, f.Stage)
	}
	return nil
}

// lastOf is the last piece of a stage, -1 where there is none.
func lastOf(pieces []pipeline.Piece, stage string) int {
	for i := range slices.Backward(pieces) {
		if pieces[i].Stage == stage {
			return i
		}
	}
	return -1
}

// classesAfter is what is held after the pieces, by buffer.
func classesAfter(pieces []pipeline.Piece) map[int]pipeline.Change {
	held := map[int]pipeline.Change{}
	eachChange(pieces, func(c *pipeline.Change) {
		if c.Event == trace.EventFree {
			delete(held, c.Buffer)
		} else {
			held[c.Buffer] = *c
		}
	})
	return held
}

// usedAfter is the stage in which a buffer is last said to be used or filled, "" where it is not.
func usedAfter(pieces []pipeline.Piece, buffer int) (stage string) {
	for i := range pieces {
		for _, c := range pieces[i].Buffers {
			if c.Buffer != buffer {
				continue
			}
			switch c.Event {
			case trace.EventLastUse, trace.EventFill, trace.EventResize, trace.EventReclass:
				stage = pieces[i].Stage
			}
		}
	}
	return stage
}

// freeAfter frees a buffer at the end of piece at, and nowhere else.
func freeAfter(p *pipeline.Partition, at int, held pipeline.Change) {
	for i := at + 1; i < len(p.Pieces); i++ {
		p.Pieces[i].Buffers = slices.DeleteFunc(p.Pieces[i].Buffers, func(c pipeline.Change) bool {
			return c.Buffer == held.Buffer
		})
	}
	p.EarlyFree = slices.DeleteFunc(p.EarlyFree, func(b int) bool { return b == held.Buffer })
	held.At, held.Event, held.Capacity, held.Resident = 1, trace.EventFree, 0, 0
	p.Pieces[at].Buffers = append(p.Pieces[at].Buffers, held)
}
