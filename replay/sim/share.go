package sim

import (
	"math/bits"
	"sort"
)

// class is the services that share one contention law. Instead of moving every service's end when
// rates change, a class has a clock of its own, which counts the work (ns alone on the machine)
// that each of its services gets: a service that begins at clock v with work w ends at v + w,
// whatever the rates do in between.
type class struct {
	parallelism, weight float64

	n       int     // services now
	settled int     // services when the rates were computed
	clock   float64 // work done by each
	rate    float64 // of the clock, per ns of virtual time
	inverse float64
	ends    timerHeap
}

// shares divides the cores over the classes.
type shares struct {
	cpus    float64
	classes []class
	order   []int  // by parallelism over weight: who is satisfied first
	active  uint64 // bit c: classes[c] has services
	stale   bool   // the counts may have changed since the rates were computed
	settled uint64 // active when the rates were computed
}

func newShares(cpus float64, classes []class) shares {
	s := shares{cpus: cpus, classes: append([]class(nil), classes...)}
	for i := range s.classes {
		s.order = append(s.order, i)
	}
	sort.SliceStable(s.order, func(i, j int) bool {
		a, b := &s.classes[s.order[i]], &s.classes[s.order[j]]
		return a.parallelism*b.weight < b.parallelism*a.weight
	})
	return s
}

func (s *shares) reset() {
	for i := range s.classes {
		c := &s.classes[i]
		c.n, c.clock, c.ends = 0, 0, c.ends[:0]
	}
	s.active, s.settled, s.stale = 0, 0, false
}

func (s *shares) begin(i uint8, work float64, seq uint32, id int32) {
	c := &s.classes[i]
	c.ends.push(timer{c.clock + work, seq, id})
	c.n++
	s.active |= 1 << i
	s.stale = true
}

// next is when the first service ends and in which class; -1 for none.
func (s *shares) next(now, before float64) (at float64, which int) {
	if s.stale {
		s.stale = false
		if s.changed() {
			s.settle()
		}
	}
	at, which = before, -1
	for m := s.active; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		c := &s.classes[i]
		if t := now + (c.ends[0].key-c.clock)*c.inverse; t < at {
			at, which = t, i
		}
	}
	return at, which
}

// changed says whether the rates are those of other counts. Often they are not: a service went from
// one part of its stage to the next.
func (s *shares) changed() bool {
	if s.active != s.settled {
		return true
	}
	for m := s.active; m != 0; m &= m - 1 {
		if c := &s.classes[bits.TrailingZeros64(m)]; c.n != c.settled {
			return true
		}
	}
	return false
}

// advance lets time pass.
func (s *shares) advance(dt float64) {
	for m := s.active; m != 0; m &= m - 1 {
		c := &s.classes[bits.TrailingZeros64(m)]
		c.clock += dt * c.rate
	}
}

// end removes the service that ends next in class i.
func (s *shares) end(i int) int32 {
	c := &s.classes[i]
	t := c.ends.pop()
	c.clock = t.key
	if c.n--; c.n == 0 {
		s.active &^= 1 << i
		c.clock = 0
	}
	s.stale = true
	return t.id
}

// settle computes the rates: everyone runs at full speed while the cores suffice, else they are
// shared by weight, none getting more than its parallelism, and no core idles.
func (s *shares) settle() {
	s.settled = s.active
	demand, weights := 0.0, 0.0
	for m := s.active; m != 0; m &= m - 1 {
		c := &s.classes[bits.TrailingZeros64(m)]
		demand += float64(c.n) * c.parallelism
		weights += float64(c.n) * c.weight
		c.rate, c.inverse, c.settled = 1, 1, c.n
	}
	if demand <= s.cpus {
		return
	}
	cpus := s.cpus
	for _, i := range s.order {
		c := &s.classes[i]
		if c.n == 0 {
			continue
		}
		share := min(c.parallelism, c.weight*cpus/weights)
		cpus -= float64(c.n) * share
		weights -= float64(c.n) * c.weight
		c.rate = share / c.parallelism
		c.inverse = c.parallelism / share
	}
}
