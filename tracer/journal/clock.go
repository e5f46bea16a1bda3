package journal

import "time"

// Clock reads CLOCK_MONOTONIC in nanoseconds after an anchor; all processes of a host that share
// the anchor share the clock.
type Clock struct {
	base   time.Time
	offset int64 // what to add to the time since base
}

// NewClock makes the clock whose time 0 is the CLOCK_MONOTONIC reading anchorNS.
//
// Go's monotonic reading is CLOCK_MONOTONIC with an origin of its own, and cheaper than a system
// call. The distance between the two is measured: the narrowest of some brackets, which leaves an
// error of half its width, usually under 100 ns.
func NewClock(anchorNS int64) Clock {
	base := time.Now()
	best, offset := time.Duration(1<<62), int64(0)
	for range 64 {
		before := time.Since(base)
		mono := Monotonic()
		after := time.Since(base)
		if after-before < best {
			best, offset = after-before, mono-int64(before+after)/2
		}
	}
	return Clock{base: base, offset: offset - anchorNS}
}

// Now is the time since the anchor.
func (c *Clock) Now() int64 { return int64(time.Since(c.base)) + c.offset }
