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
	maxLoadGap                          float64
	minCostShare, maxCostShare          float64
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
	costShare     float64 // what the stage's threads lost together, at most, over systemS
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
//     own their threads, it is their CPU time, which other threads do not stretch. Else it is their
//     own time, waiting excluded, against that of runs outside that had as much company: windows lie
//     where much is going on, and a stage beside it waits for a CPU whoever faults.
//  5. The faults' CPU time was spent by the threads that touched the memory. A stage that lost but a
//     small share of it stood beside; of one that lost several times as much, the faults explain
//     little.
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
		f.compareStages(s, l)
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

// sides are a stage's runs inside and outside of the windows.
type sides struct{ in, out []*stageRun }

// compareStages finds the stage that lost the most time inside the windows.
func (f *facts) compareStages(s *storm, l stormLimits) {
	of := make([]sides, len(f.stages)+1)
	for i := range f.runs {
		r := &f.runs[i]
		if r.endNS <= r.beginNS {
			continue
		}
		x := &of[r.stage]
		switch share := s.inWindows(r); {
		case share >= 0.1:
			x.in = append(x.in, r)
		case share <= 0.02:
			x.out = append(x.out, r)
		}
	}
	for i := range of {
		if c := of[i].compare(l.maxLoadGap); len(c.inside) >= 2 && len(c.outside) >= 2 {
			c.stage, c.threads = f.stageName(uint16(i)), f.meanThreads(of[i].in)
			s.take(&c)
		}
	}
}

// comparison is the times of a stage's runs on both sides.
type comparison struct {
	stage           string
	inside, outside []float64
	cpuTime         bool
	threads         float64 // of a run inside, at most
}

// compare takes CPU times where every run has one, else own times, and outside only runs beside which
// at most gap fewer threads ran than beside those inside.
func (x *sides) compare(gap float64) comparison {
	c := comparison{cpuTime: ownThreads(x.in) && ownThreads(x.out)}
	least := math.Inf(-1)
	if !c.cpuTime {
		least = meanLoad(x.in) - gap
	}
	for _, r := range x.in {
		c.inside = append(c.inside, c.time(r))
	}
	for _, r := range x.out {
		if float64(r.load) >= least {
			c.outside = append(c.outside, c.time(r))
		}
	}
	return c
}

func (c *comparison) time(r *stageRun) float64 {
	if c.cpuTime {
		return float64(r.cpuNS)
	}
	return float64(r.ownNS)
}

func ownThreads(runs []*stageRun) bool {
	return !slices.ContainsFunc(runs, func(r *stageRun) bool { return r.cpuNS == trace.Null })
}

// meanLoad is the mean number of threads that ran beside the runs, 0 for none.
func meanLoad(runs []*stageRun) float64 {
	sum := 0.0
	for _, r := range runs {
		sum += float64(r.load)
	}
	return sum / math.Max(1, float64(len(runs)))
}

// meanThreads is how many threads a run has; one that does not say has as many as there are CPUs.
func (f *facts) meanThreads(runs []*stageRun) float64 {
	sum := 0.0
	for _, r := range runs {
		n := float64(r.threads)
		if r.anyThreads {
			n = math.Max(n, float64(f.manifest.Host.CPUs))
		}
		sum += n
	}
	return sum / math.Max(1, float64(len(runs)))
}

// take keeps the comparison where the stage lost more time than the one kept before.
func (s *storm) take(c *comparison) {
	in, _ := spread(c.inside)
	out, _ := spread(c.outside)
	lost := (in - out) * float64(len(c.inside))
	chance := !slower(c.inside, c.outside)
	if chance {
		lost = math.Min(lost, 0)
	}
	if s.slowdown > 0 && lost <= s.lostNS {
		return
	}
	s.stage, s.insideNS, s.outsideNS, s.lostNS = c.stage, in, out, lost
	s.inside, s.total, s.cpuTime = len(c.inside), len(c.inside)+len(c.outside), c.cpuTime
	s.slowdown = ratio(in, out)
	if chance {
		s.slowdown = math.Min(s.slowdown, 1)
	}
	threads := c.threads
	if c.cpuTime { // of all its threads
		threads = 1
	}
	s.costShare = ratio(lost*threads, s.systemS*1e9)
}

// holds says whether everything that makes a storm is there.
func (s *storm) holds(l stormLimits) bool {
	return len(s.missing) == 0 && len(s.windows) > 0 && s.faults >= l.minFaults &&
		s.systemRatio >= l.minSystemRatio && s.systemRatio-s.baseSystemRatio >= l.minSystemRise &&
		s.rssBytes >= l.minRSSRatio*s.peakRSS && s.slowdown >= l.minSlowdown &&
		s.costShare >= l.minCostShare && s.costShare <= l.maxCostShare
}
