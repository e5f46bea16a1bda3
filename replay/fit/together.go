package fit

import (
	"cmp"
	"math"
	"slices"
)

// A moment at which the whole machine is slow makes all services that run then longer, those that
// run side by side alike. Were their solo times taken as luck of each, a simulation that deals
// partitions anew would pair a slow service with a fast one that it never ran beside: on real
// recordings b_g2's scratch, always freed before the next prove_start allocated its own, would then
// overlap it once a run. So the part that services at one moment have in common is taken out of
// their solo times. It is estimated as a random effect: services' residuals are a common part of
// that moment plus one of their own, whose variances follow from how residuals of services that
// overlap go together (best linear unbiased prediction; Henderson 1975).

// residual is by how much a service took longer than its like, in logarithms.
type residual struct {
	*stint
	x float64
}

// like are services that are compared: of one recording and stage, in about as much company, so that
// what the law errs by in a crowd counts as the stage's.
type like struct{ run, stage, beside int }

// leastAlike is how many services a mean takes to compare others with.
const leastAlike = 4

// residuals are those of all services that use cores and have others to be compared with, in order
// of their begins.
func (h *history) residuals(l *law, c *clocks) (out []residual) {
	groups := map[like][]residual{}
	for i := range h.spans {
		s := &h.spans[i]
		if l.stages[s.stage].Parallelism == 0 || s.end <= s.begin {
			continue
		}
		if solo := c.between(c.sum[s.stage], s.begin, s.end); solo > 0 {
			k := like{s.run, s.stage, h.beside(l, s)}
			groups[k] = append(groups[k], residual{s, math.Log(solo)})
		}
	}
	for _, members := range groups {
		mean := 0.0
		for _, m := range members {
			mean += m.x / float64(len(members))
		}
		for _, m := range members {
			if len(members) >= leastAlike {
				out = append(out, residual{m.stint, m.x - mean})
			}
		}
	}
	slices.SortFunc(out, func(a, b residual) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.stage, b.stage),
			cmp.Compare(a.end, b.end), cmp.Compare(a.x, b.x))
	})
	return out
}

// beside is how many times the machine's cores the others asked for while a service ran, to the
// nearest whole number of its mean.
func (h *history) beside(l *law, s *stint) int {
	in, sum := h.service(s), 0.0
	for i, c := range in.company {
		others := -l.stages[s.stage].Parallelism
		for k, n := range h.mix[c].counts {
			others += float64(n) * l.stages[k].Parallelism
		}
		sum += others * in.time[i]
	}
	return int(math.Round(sum / in.total / max(l.cpus, 1)))
}

// shared is the variance of the part that services of one moment have in common, and by stage that
// of the part of their own; ok is false where chance explains what they have in common.
type shared struct {
	common float64
	own    []float64
}

// sharedOf estimates them from the products of the residuals of services that overlap, weighted by
// how long they do.
func sharedOf(rs []residual, stages int) (v shared, ok bool) {
	spread := spreads(rs, stages)
	sum, weight, standard, chance := 0.0, 0.0, 0.0, 0.0
	var open []residual
	for _, r := range rs {
		open = slices.DeleteFunc(open, func(o residual) bool { return o.end <= r.begin })
		for _, o := range open {
			both := math.Sqrt(spread[o.stage] * spread[r.stage])
			if both == 0 {
				continue
			}
			w := float64(min(o.end, r.end) - r.begin)
			sum += w * o.x * r.x
			standard += w * o.x * r.x / both
			weight += w
			chance += w * w
		}
		open = append(open, r)
	}
	// Without anything in common, the standardised sum has the variance chance.
	if standard <= 3*math.Sqrt(chance) || sum <= 0 {
		return v, false
	}
	v.common = sum / weight
	for _, x := range spread {
		v.own = append(v.own, max(x-v.common, 0.05*v.common))
	}
	return v, true
}

// spreads are, by stage, the variance of residuals.
func spreads(rs []residual, stages int) []float64 {
	sum, n := make([]float64, stages), make([]float64, stages)
	for _, r := range rs {
		sum[r.stage] += r.x * r.x
		n[r.stage]++
	}
	for i := range sum {
		sum[i] /= max(n[i], 1)
	}
	return sum
}

// slowness is, by interval of the history, by how much longer everything took then: the common part
// as predicted from the services at that moment, of mean 1 over each recording's time.
func (h *history) slowness(rs []residual, v shared) []float64 {
	precision, sum := make([]float64, len(h.cuts)), make([]float64, len(h.cuts))
	run := make([]int, len(h.cuts))
	for _, r := range rs {
		for k := max(0, h.at(r.begin+1)-1); k < len(h.cuts)-1 && h.cuts[k] < r.end; k++ {
			precision[k] += 1 / v.own[r.stage]
			sum[k] += r.x / v.own[r.stage]
			run[k] = r.run
		}
	}
	total, time := map[int]float64{}, map[int]float64{}
	out := make([]float64, len(h.cuts))
	for k := range out {
		if precision[k] == 0 {
			continue
		}
		out[k] = sum[k] / (1/v.common + precision[k])
		dt := float64(h.cuts[k+1] - h.cuts[k])
		total[run[k]] += dt * out[k]
		time[run[k]] += dt
	}
	for k := range out {
		if precision[k] > 0 {
			out[k] -= total[run[k]] / time[run[k]]
		}
		out[k] = math.Exp(out[k])
	}
	return out
}

// together takes what services have in common out of the clocks of a law and returns its variance,
// 0 where they show nothing in common.
func (h *history) together(l *law, c *clocks) float64 {
	rs := h.residuals(l, c)
	v, ok := sharedOf(rs, len(h.names))
	if !ok {
		return 0
	}
	slow := h.slowness(rs, v)
	for i := range c.sum {
		if l.stages[i].Parallelism == 0 {
			continue
		}
		was := slices.Clone(c.sum[i])
		for k := 1; k < len(was); k++ {
			c.sum[i][k] = c.sum[i][k-1] + (was[k]-was[k-1])/slow[k-1]
		}
	}
	return v.common
}
