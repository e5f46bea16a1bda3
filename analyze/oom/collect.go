package oom

import "slices"

// collector puts the lines of one input in order of time and hands them to the assembler, a batch
// at a time, so that memory stays bounded. Lines of other sources than the kernel it keeps apart.
type collector struct {
	in       *Input
	kernel   *assembler
	batch    []line
	bytes    int
	settled  bool // the direction is known
	others   []line
	lost     int64 // of others
	maxLines int
}

// maxOthers bounds the lines kept of other sources than the kernel.
const maxOthers = 1 << 13

func newCollector(in *Input) *collector {
	return &collector{in: in, kernel: newAssembler(in.Name), maxLines: maxBatch}
}

func (c *collector) add(l *line) {
	if l.kind > lastKernelKind {
		if len(c.others) < maxOthers {
			c.others = append(c.others, *l)
		} else {
			c.lost++
		}
		return
	}
	c.batch = append(c.batch, *l)
	c.bytes += len(l.msg)
	if len(c.batch) >= c.maxLines || c.bytes >= maxBatchBytes {
		c.flush(false)
	}
}

// flush assembles the batch; but for the last one, what may go on in the next batch is kept.
func (c *collector) flush(last bool) {
	if !c.settled {
		c.in.Reversed = reversed(c.batch)
		c.settled = true
	}
	cut := len(c.batch)
	if !last {
		cut = c.boundary()
	}
	part := c.batch[:cut]
	if c.in.Reversed {
		slices.Reverse(part)
	}
	for i := range part {
		c.kernel.add(&part[i])
	}
	if c.in.Reversed || last {
		c.kernel.closeAll()
	}
	rest := copy(c.batch, c.batch[cut:])
	clear(c.batch[rest:])
	c.batch, c.bytes = c.batch[:rest], 0
	for i := range c.batch {
		c.bytes += len(c.batch[i].msg)
	}
}

// boundary is up to where the batch holds whole events: the last line that begins one.
func (c *collector) boundary() int {
	for i := len(c.batch) - 1; i > len(c.batch)/2; i-- {
		if c.batch[i].kind != kindInvoke {
			continue
		}
		if c.in.Reversed {
			return i + 1
		}
		return i
	}
	return len(c.batch)
}

// reversed says whether a text's newest line comes first: by its stamps, and where they do not
// tell, by the order of the parts of a report.
func reversed(lines []line) bool {
	var forward, backward, down, up int
	var last *line
	for i := range lines {
		l := &lines[i]
		if last != nil && l.head.host == last.head.host {
			switch l.head.stamp.compare(&last.head.stamp) {
			case 1:
				forward++
			case -1:
				backward++
			}
			if l.kind > last.kind {
				down++
			} else if l.kind < last.kind {
				up++
			}
		}
		last = l
	}
	if forward != backward {
		return backward > forward
	}
	return up > down
}
