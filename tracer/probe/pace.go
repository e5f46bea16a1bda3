package probe

import "math/bits"

// The pace of a CPU is how long it takes for a computation that is always the same. It is measured
// where the program runs, while it runs: a clock rate says nothing of a sibling hyperthread or of a
// neighbour on the host who shares the core, and steal time only tells of time given to others, not
// of time that passes slower.
const (
	paceRounds = 2000 // of eight multiplications of 64 bits: 9 µs on a core of its own (Xeon, 2.3 GHz)
	paceTries  = 3    // of which the shortest counts: an interrupt makes one longer
)

// readPace sets the CPU time of the computation on the calling thread, nothing where the kernel does
// not tell it.
func (s *readers) readPace(wants []want) {
	best := int64(0)
	for range paceTries {
		begin := threadCPUNanos()
		s.paced ^= paceWork(uint64(begin) | 1)
		if d := threadCPUNanos() - begin; d > 0 && (best == 0 || d < best) {
			best = d
		}
	}
	for i := range wants {
		if best > 0 {
			s.last.set(&wants[i], uint64(best))
		}
	}
}

// paceWork is eight independent chains of full multiplications: what field arithmetic asks of a core,
// and enough of them that a thread beside it on the same core is felt. It touches no memory, so that
// the program's own data does not count.
func paceWork(seed uint64) uint64 {
	x0, x1, x2, x3 := seed, seed+2, seed+4, seed+6
	x4, x5, x6, x7 := seed+8, seed+10, seed+12, seed+14
	for range paceRounds {
		x0, x1, x2, x3 = stir(x0), stir(x1), stir(x2), stir(x3)
		x4, x5, x6, x7 = stir(x4), stir(x5), stir(x6), stir(x7)
	}
	return x0 ^ x1 ^ x2 ^ x3 ^ x4 ^ x5 ^ x6 ^ x7
}

func stir(x uint64) uint64 {
	hi, lo := bits.Mul64(x, 0x9e3779b97f4a7c15)
	return hi ^ lo
}
