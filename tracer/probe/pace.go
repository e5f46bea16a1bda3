package probe

import "math/bits"

// The pace of a CPU is how long it takes for a computation that is always the same. It is measured
// where the program runs, while it runs: a clock rate says nothing of a sibling hyperthread or of a
// neighbour on the host who shares the core, and steal time only tells of time given to others, not
// of time that passes slower.
const (
	paceRounds = 3000 // of four multiplications of 64 bits: about 5 µs
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

// paceWork is four independent chains of full multiplications: what field arithmetic asks of a core.
// It touches no memory, so that the program's own data does not count.
func paceWork(seed uint64) uint64 {
	const k = 0x9e3779b97f4a7c15
	a, b, c, d := seed, seed+2, seed+4, seed+6
	for range paceRounds {
		ah, al := bits.Mul64(a, k)
		bh, bl := bits.Mul64(b, k)
		ch, cl := bits.Mul64(c, k)
		dh, dl := bits.Mul64(d, k)
		a, b, c, d = ah^al, bh^bl, ch^cl, dh^dl
	}
	return a ^ b ^ c ^ d
}
