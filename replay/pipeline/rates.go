package pipeline

// Rates computes at what rate (1 is alone) a service of each stage goes on when counts[i] services
// of stages[i] run on cpus cores, into rates. Everyone runs at full speed while the cores suffice;
// else they are shared by weight, none getting more than its parallelism, and no core idles.
// replay/sim computes the same incrementally.
func Rates(cpus float64, stages []Stage, counts []int32, rates []float64) {
	demand, weights := 0.0, 0.0
	for i := range stages {
		rates[i] = 1
		demand += float64(counts[i]) * stages[i].Parallelism
		weights += float64(counts[i]) * stages[i].weight()
	}
	if cpus == 0 || demand <= cpus {
		return
	}
	// Whoever gets his parallelism leaves the rest to the others, until nobody more does.
	done := uint64(0)
	for again := true; again; {
		again = false
		for i := range stages {
			p, w := stages[i].Parallelism, stages[i].weight()
			if done&(1<<i) != 0 || counts[i] == 0 || p == 0 || w*cpus < p*weights {
				continue
			}
			done |= 1 << i
			cpus -= float64(counts[i]) * p
			weights -= float64(counts[i]) * w
			again = true
		}
	}
	for i := range stages {
		if p := stages[i].Parallelism; done&(1<<i) == 0 && counts[i] > 0 && p > 0 {
			rates[i] = stages[i].weight() * cpus / weights / p
		}
	}
}

// weight is the share when cores are short.
func (s *Stage) weight() float64 {
	if s.Weight == 0 || s.Parallelism == 0 {
		return s.Parallelism
	}
	return s.Weight
}
