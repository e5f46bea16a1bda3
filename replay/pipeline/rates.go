package pipeline

// Rates computes at what rate (1 is alone) a service of each stage goes on when counts[i] services
// of stages[i] run on cpus cores, into rates. Everyone runs at full speed while the cores suffice;
// else they are shared by weight, none getting more than its parallelism, and no core idles.
func Rates(cpus float64, stages []Stage, counts []int32, rates []float64) {
	(&Machine{CPUs: cpus}).Rates(stages, counts, rates)
}

// Rates is the whole contention law: cores, memory bandwidth, and what services slow each other
// down by Pressure. All rates rise together, in proportion to Weight, until a stage is at full
// speed or a resource is used up; whoever uses that one stays at his rate, the others go on rising.
// replay/sim computes the same without allocation.
func (m *Machine) Rates(stages []Stage, counts []int32, rates []float64) {
	f := filling{cpus: m.CPUs, bandwidth: m.MemoryBandwidth, stages: stages, counts: counts}
	f.fill(rates)
	pressure := 0.0
	for i := range stages {
		pressure += float64(counts[i]) * stages[i].Pressure
	}
	for i := range stages {
		s := &stages[i]
		if others := pressure - s.Pressure; s.Sensitivity > 0 && others > 0 {
			rates[i] /= 1 + s.Sensitivity*others
		}
	}
}

// filling is the progressive filling of cores and bandwidth.
type filling struct {
	cpus, bandwidth float64
	stages          []Stage
	counts          []int32
	done            uint64 // stages whose rate is settled
}

func (f *filling) fill(rates []float64) {
	for i := range f.stages {
		rates[i] = 1
		if f.counts[i] == 0 || !f.contends(i) {
			f.done |= 1 << i
		}
	}
	for f.done != 1<<len(f.stages)-1 {
		level, what := f.level()
		for i := range f.stages {
			if f.done&(1<<i) == 0 && f.stops(i, level, what) {
				f.settle(i, level, rates)
			}
		}
	}
}

// contends says whether stage i uses something that is bounded.
func (f *filling) contends(i int) bool {
	s := &f.stages[i]
	return f.cpus > 0 && s.Parallelism > 0 || f.bandwidth > 0 && s.Bandwidth > 0
}

// What ends a rise of the level.
const (
	stopSpeed = iota
	stopCores
	stopBandwidth
)

// level is where the next stage stops: at full speed, or because cores or bandwidth are used up.
func (f *filling) level() (level float64, what int) {
	cores, moved := 0.0, 0.0
	level = -1
	for i := range f.stages {
		if f.done&(1<<i) != 0 {
			continue
		}
		s, n := &f.stages[i], float64(f.counts[i])
		cores += n * s.Parallelism * s.Slope()
		moved += n * s.Bandwidth * s.Slope()
		if full := 1 / s.Slope(); level < 0 || full < level {
			level = full
		}
	}
	if f.cpus != 0 && cores*level > f.cpus {
		level, what = f.cpus/cores, stopCores
	}
	if f.bandwidth != 0 && moved*level > f.bandwidth {
		level, what = f.bandwidth/moved, stopBandwidth
	}
	return max(level, 0), what
}

func (f *filling) stops(i int, level float64, what int) bool {
	s := &f.stages[i]
	switch what {
	case stopCores:
		return s.Parallelism > 0
	case stopBandwidth:
		return s.Bandwidth > 0
	}
	return level*s.Slope() >= 1-1e-12
}

// settle fixes stage i's rate and takes what it uses. What is left stays above 0, so that later
// stages get a rate, however small.
func (f *filling) settle(i int, level float64, rates []float64) {
	s, n := &f.stages[i], float64(f.counts[i])
	rates[i] = min(1, level*s.Slope())
	f.done |= 1 << i
	if f.cpus > 0 {
		f.cpus = max(f.cpus-n*rates[i]*s.Parallelism, tiny)
	}
	if f.bandwidth > 0 {
		f.bandwidth = max(f.bandwidth-n*rates[i]*s.Bandwidth, tiny)
	}
}

const tiny = 1e-9

// Slope is how fast the stage's rate rises with the level that all have in common.
func (s *Stage) Slope() float64 {
	if s.Parallelism == 0 {
		if s.Weight > 0 {
			return s.Weight
		}
		return 1
	}
	return s.weight() / s.Parallelism
}

// weight is the share when cores are short.
func (s *Stage) weight() float64 {
	if s.Weight == 0 || s.Parallelism == 0 {
		return s.Parallelism
	}
	return s.Weight
}
