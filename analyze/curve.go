package analyze

import "sort"

// maxPoints bounds a curve: past it every second point goes, so that a long trace keeps its shape.
const maxPoints = 1 << 16

// curve is one sampled metric over time, in order of time.
type curve struct {
	at    []int64
	value []float64
	skip  int // points left out for each one kept
	left  int // until the next is kept
}

func (c *curve) add(timeNS int64, v float64) {
	if c.left > 0 {
		c.left--
		return
	}
	c.left = c.skip
	c.at, c.value = append(c.at, timeNS), append(c.value, v)
	if len(c.at) < maxPoints {
		return
	}
	n := len(c.at) / 2
	for i := range n {
		c.at[i], c.value[i] = c.at[2*i], c.value[2*i]
	}
	c.at, c.value = c.at[:n], c.value[:n]
	c.skip = 2*c.skip + 1
	c.left = c.skip
}

func (c *curve) len() int {
	if c == nil {
		return 0
	}
	return len(c.at)
}

// value at timeNS, on a straight line between the points around it; the nearest point's outside.
func (c *curve) when(timeNS int64) float64 {
	i := sort.Search(len(c.at), func(i int) bool { return c.at[i] >= timeNS })
	switch {
	case i == len(c.at):
		return c.value[i-1]
	case i == 0 || c.at[i] == timeNS:
		return c.value[i]
	}
	t := float64(timeNS-c.at[i-1]) / float64(c.at[i]-c.at[i-1])
	return c.value[i-1] + t*(c.value[i]-c.value[i-1])
}

// rise is how much a counter grew between two times; falls (a reset) count as nothing.
func (c *curve) rise(fromNS, toNS int64) float64 {
	if c.len() == 0 || toNS <= fromNS {
		return 0
	}
	return max(0, c.when(toNS)-c.when(fromNS))
}

// first and last are the values at the ends, 0 for an empty curve.
func (c *curve) first() float64 {
	if c.len() == 0 {
		return 0
	}
	return c.value[0]
}

func (c *curve) last() float64 {
	if c.len() == 0 {
		return 0
	}
	return c.value[len(c.value)-1]
}

// highest is the largest value and its time; 0, 0 for an empty curve.
func (c *curve) highest() (v float64, atNS int64) {
	for i := range c.len() {
		if i == 0 || c.value[i] > v {
			v, atNS = c.value[i], c.at[i]
		}
	}
	return v, atNS
}
