package sim

import (
	"math"
	"sort"

	"highwater/replay/pipeline"
)

// class is the services that share one contention law. Instead of moving every service's end when
// rates change, a class has a clock of its own, which counts the work (ns alone on the machine)
// that each of its services gets: a service that begins at clock v with work w ends at v + w,
// whatever the rates do in between. The clock is read only when its rate changes.
type class struct {
	parallelism, weight float64
	fast, slow          float64 // weight over parallelism, and the reverse

	bandwidth, pressure, sensitivity float64
	slope                            float64 // of the rate over the level, see fill

	n       float64 // services now; a float saves conversions
	clock   float64 // work done by each up to shares.since
	rate    float64 // of the clock since, per ns of virtual time; 0 where there is no service
	inverse float64
	first   float64 // key of the service that ends first; infinite where there is none
	ends    timerHeap
}

// shares divides the cores over the classes. It always looks at all of them: they are few, and that
// is cheaper than to guess which have services.
type shares struct {
	cpus      float64
	bandwidth float64
	general   bool    // bandwidth or pressure count: rates come from fill
	since     float64 // when the clocks were read and the rates computed
	classes   []class
	order     []int    // by parallelism over weight: who is satisfied first
	at        []uint64 // by class: bits of when its first service ends, if the rates stay
	stale     bool     // the counts have changed since the rates were computed

	// Rates depend on the counts alone, and the same ones come again and again: known is a cache of
	// them, one a class in each slot, by the counts packed into key.
	key   uint64
	total int // services
	slots []uint64
	known []speed
}

// speed is how fast a class's clock goes, and the reverse.
type speed struct{ rate, inverse float64 }

const (
	slotBits    = 8
	maxPacked   = 8   // classes whose counts a key holds
	maxServices = 255 // of all classes
	noKey       = ^uint64(0)
)

// never is a time after all others.
var never = math.Float64bits(math.Inf(1))

func newShares(m *pipeline.Machine, classes []class) shares {
	s := shares{
		cpus: m.CPUs, bandwidth: m.MemoryBandwidth,
		classes: append([]class(nil), classes...), at: make([]uint64, len(classes)),
		slots: make([]uint64, 1<<slotBits), known: make([]speed, len(classes)<<slotBits),
	}
	for i := range s.slots {
		s.slots[i] = noKey
	}
	for i := range s.classes {
		c := &s.classes[i]
		c.ends = newTimerHeap(0)
		if c.parallelism > 0 {
			c.fast, c.slow = c.weight/c.parallelism, c.parallelism/c.weight
		}
		if c.slope == 0 {
			c.slope = c.fast
		}
		if c.parallelism == 0 || c.sensitivity > 0 || s.bandwidth > 0 && c.bandwidth > 0 {
			s.general = true
		}
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
		c.n, c.clock, c.rate, c.first = 0, 0, 0, math.Inf(1)
		c.ends.reset()
		s.at[i] = never
	}
	s.since, s.stale, s.key, s.total = 0, false, 0, 0
}

// begin adds a service with t.at() ns of work to class i.
func (s *shares) begin(i uint8, t timer, now float64) {
	c := &s.classes[i]
	if c.n == 0 {
		c.clock, c.rate = 0, 0
	}
	c.ends.push(t.after(c.clock + (now-s.since)*c.rate))
	c.first = c.ends.first()
	c.n++
	s.key += 1 << (8 * i)
	s.total++
	s.stale = true
}

// replace puts a service with t.at() ns of work in place of the one that ends in class i. The rates
// stay.
func (s *shares) replace(i uint8, t timer, now float64) {
	c := &s.classes[i]
	c.ends.replace(t.after(c.clock + (now-s.since)*c.rate))
	c.first = c.ends.first()
	s.at[i] = math.Float64bits(s.since + (c.first-c.clock)*c.inverse)
}

// next is when the first service ends and in which class, the rates being settled; -1 for none
// before that time. Times are not negative, so they compare as their bits do.
func (s *shares) next(before float64) (at float64, which int) {
	least, which := math.Float64bits(before), -1
	for i, t := range s.at {
		if t < least {
			least, which = t, i
		}
	}
	return math.Float64frombits(least), which
}

// ending is the service that ends next in class i.
func (s *shares) ending(i int) int32 { return s.classes[i].ends.entity() }

// end removes it.
func (s *shares) end(i int) {
	c := &s.classes[i]
	c.ends.pop()
	c.first = c.ends.first()
	c.n--
	s.key -= 1 << (8 * i)
	s.total--
	s.stale = true
}

// settle reads the clocks, and sets the rates from now on and when the first service of each class
// ends.
func (s *shares) settle(now float64) {
	slot, known := s.slot()
	if !known {
		s.compute(slot)
	}
	passed, classes, n := now-s.since, s.classes, len(s.classes)
	speeds, at := s.known[slot*n:][:n], s.at[:n]
	for i := range classes {
		c, v := &classes[i], &speeds[i]
		c.clock += passed * c.rate
		c.rate, c.inverse = v.rate, v.inverse
		at[i] = math.Float64bits(now + (c.first-c.clock)*v.inverse)
	}
	s.since, s.stale = now, false
}

// slot is the cache's slot of the counts now, and whether it holds their rates. Counts that do not
// fit a key share the first slot and are never known.
func (s *shares) slot() (slot int, known bool) {
	if s.total > maxServices || len(s.classes) > maxPacked {
		s.slots[0] = noKey
		return 0, false
	}
	slot = int(s.key * 0x9e3779b97f4a7c15 >> (64 - slotBits))
	known = s.slots[slot] == s.key
	s.slots[slot] = s.key
	return slot, known
}

// compute puts the rates of the counts now into a slot.
func (s *shares) compute(slot int) {
	speeds := s.known[slot*len(s.classes):]
	if s.general {
		s.fill(speeds)
	} else {
		s.share(speeds)
	}
	for i := range s.classes {
		if s.classes[i].n == 0 {
			speeds[i].rate = 0
		}
	}
}

// share computes the rates of the cores alone: everyone runs at full speed while they suffice, else
// they are shared by weight, none getting more than its parallelism, and no core idles.
func (s *shares) share(speeds []speed) {
	demand, weights := 0.0, 0.0
	for i := range s.classes {
		c := &s.classes[i]
		demand += c.n * c.parallelism
		weights += c.n * c.weight
	}
	satisfied, cpus := len(s.order), s.cpus
	if demand > cpus {
		satisfied, cpus, weights = s.satisfied(weights)
	}
	each, inverse := cpus/weights, weights/cpus // cores by weight, for those who are not
	for k, i := range s.order {
		c := &s.classes[i]
		speeds[i] = speed{1, 1}
		if k >= satisfied {
			speeds[i] = speed{c.fast * each, c.slow * inverse}
		}
	}
}

// satisfied is how many classes, in order, get their parallelism although the cores are short, and
// what they leave of the cores and of the weights.
func (s *shares) satisfied(weights float64) (n int, cpus, rest float64) {
	cpus = s.cpus
	for k, i := range s.order {
		c := &s.classes[i]
		if c.weight*cpus < c.parallelism*weights {
			return k, cpus, weights
		}
		cpus -= c.n * c.parallelism
		weights -= c.n * c.weight
	}
	return len(s.order), cpus, weights
}
