package sim

import (
	"math/bits"
	"sort"
)

// class is the services that share one contention law. Instead of moving every service's end when
// rates change, a class has a clock of its own, which counts the work (ns alone on the machine)
// that each of its services gets: a service that begins at clock v with work w ends at v + w,
// whatever the rates do in between. The clock is read only when its rate changes.
type class struct {
	parallelism, weight float64
	fast, slow          float64 // weight over parallelism, and the reverse

	n       int     // services now
	settled int     // services when the rates were computed
	clock   float64 // work done by each up to shares.since
	rate    float64 // of the clock since, per ns of virtual time; 0 where it stands at 0
	inverse float64
	at      float64 // when the first service ends, if the rates stay
	ends    timerHeap
}

// shares divides the cores over the classes.
type shares struct {
	cpus    float64
	since   float64 // when the clocks were read and the rates computed
	classes []class
	order   []int  // by parallelism over weight: who is satisfied first
	active  uint64 // bit c: classes[c] has services
	stale   bool   // the counts may have changed since the rates were computed
	settled uint64 // active when the rates were computed
}

func newShares(cpus float64, classes []class) shares {
	s := shares{cpus: cpus, classes: append([]class(nil), classes...)}
	for i := range s.classes {
		c := &s.classes[i]
		c.fast, c.slow = c.weight/c.parallelism, c.parallelism/c.weight
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
		c.n, c.settled, c.clock, c.rate, c.ends = 0, 0, 0, 0, c.ends[:0]
	}
	s.since, s.active, s.settled, s.stale = 0, 0, 0, false
}

func (s *shares) begin(i uint8, t timer, now float64) {
	c := &s.classes[i]
	t.key += c.clock + (now-s.since)*c.rate
	c.ends.push(t)
	c.at = s.since + (c.ends[0].key-c.clock)*c.inverse
	c.n++
	s.active |= 1 << i
	s.stale = true
}

// next is when the first service ends and in which class; -1 for none before that time.
func (s *shares) next(now, before float64) (at float64, which int) {
	if s.stale {
		s.stale = false
		if s.changed() {
			s.settle(now)
		}
	}
	at, which = before, -1
	for m := s.active; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if t := s.classes[i].at; t < at {
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

// end removes the service that ends next in class i.
func (s *shares) end(i int) int32 {
	c := &s.classes[i]
	t := c.ends.pop()
	if c.n--; c.n == 0 {
		s.active &^= 1 << i
	} else {
		c.at = s.since + (c.ends[0].key-c.clock)*c.inverse
	}
	s.stale = true
	return t.id
}

// settle reads the clocks and computes the rates from now on: everyone runs at full speed while the
// cores suffice, else they are shared by weight, none getting more than its parallelism, and no
// core idles.
func (s *shares) settle(now float64) {
	for m := s.settled &^ s.active; m != 0; m &= m - 1 {
		c := &s.classes[bits.TrailingZeros64(m)]
		c.clock, c.rate = 0, 0
	}
	demand, weights := 0.0, 0.0
	for m := s.active; m != 0; m &= m - 1 {
		c := &s.classes[bits.TrailingZeros64(m)]
		c.clock += (now - s.since) * c.rate
		c.settled = c.n
		demand += float64(c.n) * c.parallelism
		weights += float64(c.n) * c.weight
	}
	s.since, s.settled = now, s.active
	if demand <= s.cpus {
		for m := s.active; m != 0; m &= m - 1 {
			s.classes[bits.TrailingZeros64(m)].goOn(now, 1, 1)
		}
		return
	}
	s.divide(weights)
}

// divide shares out the cores where they are short. Classes come in order of how soon their
// services are satisfied: from the first that is not, all get the same share by weight.
func (s *shares) divide(weights float64) {
	cpus, short := s.cpus, false
	var each, inverse float64 // cores by weight
	for _, i := range s.order {
		c := &s.classes[i]
		switch {
		case s.active&(1<<i) == 0:
		case !short && c.weight*cpus >= c.parallelism*weights:
			cpus -= float64(c.n) * c.parallelism
			weights -= float64(c.n) * c.weight
			c.goOn(s.since, 1, 1)
		default:
			if !short {
				short, each, inverse = true, cpus/weights, weights/cpus
			}
			c.goOn(s.since, c.fast*each, c.slow*inverse)
		}
	}
}

// goOn sets the rate of the clock from now on.
func (c *class) goOn(now, rate, inverse float64) {
	c.rate, c.inverse = rate, inverse
	c.at = now + (c.ends[0].key-c.clock)*inverse
}
