package sim

import "math"

// fill computes the rates of the counts now under the whole law of pipeline.Machine.Rates: cores,
// memory bandwidth and pressure.
func (s *shares) fill(speeds []speed) {
	pressure := 0.0
	for i := range s.classes {
		c := &s.classes[i]
		pressure += c.n * c.pressure
	}
	s.rise(speeds)
	for i := range s.classes {
		c := &s.classes[i]
		v := &speeds[i]
		if others := pressure - c.pressure; c.sensitivity > 0 && others > 0 {
			v.rate /= 1 + c.sensitivity*others
		}
		v.inverse = 1 / v.rate
	}
}

// rise settles the rates of all classes: all rise together until the level of a class's full speed
// or a resource is used up, which stops those that use it.
func (s *shares) rise(speeds []speed) {
	left, cpus, bandwidth := 0, s.cpus, s.bandwidth
	for i := range s.classes {
		c := &s.classes[i]
		contends := s.cpus > 0 && c.parallelism > 0 || s.bandwidth > 0 && c.bandwidth > 0
		speeds[i].rate = 1
		if c.n > 0 && contends {
			speeds[i].rate = 0 // not settled
			left++
		}
	}
	for left > 0 {
		level, cores, moved := s.level(speeds, cpus, bandwidth)
		for i := range s.classes {
			c := &s.classes[i]
			full := level*c.slope >= 1-1e-12
			stops := full || cores && c.parallelism > 0 || moved && c.bandwidth > 0
			if speeds[i].rate != 0 || !stops {
				continue
			}
			rate := min(1, level*c.slope)
			speeds[i].rate = rate
			left--
			cpus = max(cpus-c.n*rate*c.parallelism, tiny)
			bandwidth = max(bandwidth-c.n*rate*c.bandwidth, tiny)
		}
	}
}

// tiny keeps what is left of a resource above 0.
const tiny = 1e-9

// level is where the next class stops, and whether cores or bandwidth stop it.
func (s *shares) level(
	speeds []speed, cpus, bandwidth float64,
) (level float64, cores, moved bool) {
	core, move := 0.0, 0.0
	level = math.Inf(1)
	for i := range s.classes {
		c := &s.classes[i]
		if speeds[i].rate != 0 {
			continue
		}
		core += c.n * c.parallelism * c.slope
		move += c.n * c.bandwidth * c.slope
		level = min(level, 1/c.slope)
	}
	if s.cpus > 0 && core*level > cpus {
		level, cores = cpus/core, true
	}
	if s.bandwidth > 0 && move*level > bandwidth {
		level, cores, moved = bandwidth/move, false, true
	}
	return level, cores, moved
}
