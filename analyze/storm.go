package analyze

import (
	"cmp"
	"math"
	"slices"

	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// stormLimits are the thresholds that tell a page-fault storm.
type stormLimits struct {
	minFaults, minFaultsPerS, minFactor float64
	minSystemRatio, minSystemRise       float64
	minRSSRatio, minSlowdown            float64
}

// storm is what the counters say about the stretches with the most page faults.
type storm struct {
	missing []string // counters that the trace lacks
	windows []Window

	faults, durationNS   float64 // in the windows
	rate, baseRate       float64 // faults a second: in the windows, and the run's quiet quarter
	systemRatio          float64 // of the process's CPU time in the windows
	baseSystemRatio      float64 // outside of them
	rssBytes, rssPerS    float64 // growth in the windows
	baseRSSPerS, peakRSS float64
	systemS, costNS      float64 // system CPU time beyond the baseline; a fault's share of it

	stage         string // slowed the most
	inside, total int    // its runs in the windows, and all
	insideNS      float64
	outsideNS     float64 // means
	lostNS        float64
	slowdown      float64 // insideNS over outsideNS; 0 where nothing could be compared
	cpuTime       bool    // they are CPU time
}

// interval is what happened between two readings of the fault counter.
type interval struct {
	beginNS, endNS           int64
	faults, system, user, up float64
}

func (i *interval) seconds() float64 { return float64(i.endNS-i.beginNS) / 1e9 }
func (i *interval) rate() float64    { return i.faults / i.seconds() }

// judgeStorm looks for stretches in which pages were faulted in far faster than usual, and for a
// stage that was slower there.
//
//  1. The fault counter's readings cut the run into intervals. The quiet rate is the rate below
//     which a quarter of the run's time lies.
//  2. A window is a chain of intervals whose rate reaches both limits; one quiet interval between
//     two of them does not end it.
//  3. System CPU time, CPU time and RSS are read off at the windows' ends.
//  4. Of each stage, runs of which a tenth or more lies inside a window are compared with those of
//     which at most a fiftieth does: the stage that lost the most time counts. Where all its runs
//     own their threads, it is their CPU time, which other processes do not stretch; else their own
//     time, waiting excluded.
func (f *facts) judgeStorm(l stormLimits) *storm {
	s := &storm{}
	faults, system := f.curve(probe.FaultsMinor), f.curve(probe.CPUSystem)
	user, rss := f.curve(probe.CPUUser), f.curve(probe.RSS)
	for _, need := range []struct {
		c    *curve
		name string
	}{
		{faults, probe.FaultsMinor}, {system, probe.CPUSystem}, {user, probe.CPUUser},
		{rss, probe.RSS},
	} {
		if need.c.len() < 2 {
			s.missing = append(s.missing, need.name)
		}
	}
	if len(s.missing) > 0 {
		return s
	}
	all := intervals(faults, system, user, rss)
	s.baseRate = quietRate(all)
	s.peakRSS, _ = rss.highest()
	least := math.Max(l.minFaultsPerS, l.minFactor*s.baseRate)
	s.measure(all, least)
	if len(s.windows) > 0 {
		f.compareStages(s)
	}
	return s
}

func intervals(faults, system, user, rss *curve) []interval {
	var all []interval
	for i := 1; i < faults.len(); i++ {
		a, b := faults.at[i-1], faults.at[i]
		if b <= a {
			continue
		}
		all = append(all, interval{
			beginNS: a, endNS: b, faults: math.Max(0, faults.value[i]-faults.value[i-1]),
			system: system.rise(a, b), user: user.rise(a, b), up: rss.when(b) - rss.when(a),
		})
	}
	return all
}

// quietRate is the fault rate below which a quarter of the time lies.
func quietRate(all []interval) float64 {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b interval) int { return cmp.Compare(a.rate(), b.rate()) })
	total, seen := 0.0, 0.0
	for i := range sorted {
		total += sorted[i].seconds()
	}
	for i := range sorted {
		if seen += sorted[i].seconds(); seen >= total/4 {
			return sorted[i].rate()
		}
	}
	return 0
}

// measure finds the windows and adds up what happened inside and outside of them.
func (s *storm) measure(all []interval, least float64) {
	var in, out interval
	var inS, outS float64
	quiet := 2 // intervals since the last one of a window
	for i := range all {
		x := &all[i]
		sum, seconds := &out, &outS
		switch {
		case x.rate() < least:
			quiet++
		case quiet <= 1 && len(s.windows) > 0:
			s.windows[len(s.windows)-1].EndNS = x.endNS
		default:
			s.windows = append(s.windows, Window{BeginNS: x.beginNS, EndNS: x.endNS})
		}
		if x.rate() >= least {
			quiet, sum, seconds = 0, &in, &inS
		}
		sum.faults += x.faults
		sum.system += x.system
		sum.user += x.user
		sum.up += x.up
		*seconds += x.seconds()
	}
	if inS == 0 {
		return
	}
	s.faults, s.durationNS, s.rate = in.faults, inS*1e9, in.faults/inS
	s.systemRatio = ratio(in.system, in.system+in.user)
	s.baseSystemRatio = ratio(out.system, out.system+out.user)
	s.rssBytes, s.rssPerS = in.up, in.up/inS
	s.baseRSSPerS = ratio(out.up, outS)
	// What of the system time would have been spent in that time anyhow is not the faults'.
	s.systemS = math.Max(0, in.system-ratio(out.system, outS)*inS)
	s.costNS = ratio(s.systemS*1e9, s.faults)
}

// inWindows is the share of a run that lies in the windows, which are in order and apart.
func (s *storm) inWindows(r *stageRun) float64 {
	return ratio(overlap(s.windows, r.beginNS, r.endNS), float64(r.endNS-r.beginNS))
}

// sides are the times of a stage's runs inside and outside of the windows.
type sides struct {
	in, out       []float64 // own time
	inCPU, outCPU []float64 // of those that measured it
}

func (x *sides) add(r *stageRun, inside bool) {
	own, cpu := &x.out, &x.outCPU
	if inside {
		own, cpu = &x.in, &x.inCPU
	}
	*own = append(*own, float64(r.ownNS))
	if r.cpuNS != trace.Null {
		*cpu = append(*cpu, float64(r.cpuNS))
	}
}

// times are the values to compare: CPU time where every run has it.
func (x *sides) times() (in, out []float64, cpu bool) {
	if len(x.inCPU) == len(x.in) && len(x.outCPU) == len(x.out) {
		return x.inCPU, x.outCPU, true
	}
	return x.in, x.out, false
}

// compareStages finds the stage that lost the most time inside the windows.
func (f *facts) compareStages(s *storm) {
	of := make([]sides, len(f.stages)+1)
	for i := range f.runs {
		r := &f.runs[i]
		if r.endNS <= r.beginNS {
			continue
		}
		if share := s.inWindows(r); share >= 0.1 || share <= 0.02 {
			of[r.stage].add(r, share >= 0.1)
		}
	}
	for i := range of {
		inside, outside, cpu := of[i].times()
		if len(inside) < 2 || len(outside) < 2 {
			continue
		}
		in, _ := spread(inside)
		out, _ := spread(outside)
		lost := (in - out) * float64(len(inside))
		chance := !slower(inside, outside)
		if chance {
			lost = math.Min(lost, 0)
		}
		if s.slowdown == 0 || lost > s.lostNS {
			s.stage, s.insideNS, s.outsideNS, s.lostNS = f.stageName(uint16(i)), in, out, lost
			s.inside, s.total, s.cpuTime = len(inside), len(inside)+len(outside), cpu
			s.slowdown = ratio(in, out)
			if chance {
				s.slowdown = math.Min(s.slowdown, 1)
			}
		}
	}
}

// holds says whether everything that makes a storm is there.
func (s *storm) holds(l stormLimits) bool {
	return len(s.missing) == 0 && len(s.windows) > 0 && s.faults >= l.minFaults &&
		s.systemRatio >= l.minSystemRatio && s.systemRatio-s.baseSystemRatio >= l.minSystemRise &&
		s.rssBytes >= l.minRSSRatio*s.peakRSS && s.slowdown >= l.minSlowdown
}
