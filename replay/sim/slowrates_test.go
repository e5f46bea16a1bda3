package sim_test

import "highwater/replay/pipeline"

// rates raises all rates together, by bisection, until something is used up; those that use it stay
// there and the others go on.
func (s *slow) rates() map[string]float64 {
	laws, counts := s.laws(), map[string]float64{}
	for _, p := range s.working() {
		counts[p.acts[0].stage]++
	}
	out, frozen := map[string]float64{"": 1}, map[string]bool{}
	use := func(level float64) (cores, moved float64) {
		for _, stage := range s.m.Stages { // in one order, so that sums are the same each time
			name, l := stage.Name, laws[stage.Name]
			r := min(1, level*l.Weight)
			if frozen[name] {
				r = out[name]
			}
			cores += counts[name] * l.Parallelism * r
			moved += counts[name] * l.Bandwidth * r
		}
		return cores, moved
	}
	for range 3 {
		low, high := 0.0, 1e9
		for range 100 {
			mid := (low + high) / 2
			if short, narrow := s.short(use(mid)); short || narrow {
				high = mid
			} else {
				low = mid
			}
		}
		short, narrow := s.short(use(low * (1 + 1e-6)))
		for name, l := range laws {
			if frozen[name] {
				continue
			}
			out[name] = min(1, low*l.Weight)
			if short && l.Parallelism > 0 || narrow && l.Bandwidth > 0 {
				frozen[name] = true
			}
		}
	}
	return s.pressed(laws, counts, out)
}

// short says whether more than all cores, or more than all bandwidth, would be used.
func (s *slow) short(cores, moved float64) (short, narrow bool) {
	// hardly more than sums of floats err: by what rates are off, events near each other change places
	const eps = 1e-12
	m := &s.m.Machine
	return m.CPUs > 0 && cores > m.CPUs*(1+eps),
		m.MemoryBandwidth > 0 && moved > m.MemoryBandwidth*(1+eps)
}

// pressed slows the rates down by the others' pressure.
func (s *slow) pressed(
	laws map[string]pipeline.Stage, counts, out map[string]float64,
) map[string]float64 {
	sum := 0.0
	for _, stage := range s.m.Stages {
		sum += counts[stage.Name] * laws[stage.Name].Pressure
	}
	for name, l := range laws {
		contends := s.m.Machine.CPUs > 0 && l.Parallelism > 0 ||
			s.m.Machine.MemoryBandwidth > 0 && l.Bandwidth > 0
		if !contends {
			out[name] = 1
		}
		if others := sum - l.Pressure; others > 0 {
			out[name] /= 1 + l.Sensitivity*others
		}
	}
	return out
}

// laws are the stages' laws by name, with the slope of the rate in place of the weight.
func (s *slow) laws() map[string]pipeline.Stage {
	out := map[string]pipeline.Stage{}
	for _, l := range s.m.Stages {
		switch {
		case l.Parallelism > 0 && l.Weight > 0:
			l.Weight /= l.Parallelism
		case l.Parallelism > 0 || l.Weight == 0:
			l.Weight = 1
		}
		out[l.Name] = l
	}
	return out
}
