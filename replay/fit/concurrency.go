package fit

import (
	"slices"
	"sort"

	"highwater/tracer/trace"
)

// Concurrency is, by stage, how many services of the stage ran at once, as each service saw it: the
// mean over its time, itself included, ascending. It counts the closed stage spans of jobs.
func Concurrency(spans []trace.Span) map[string][]float64 {
	byStage := map[string][]*trace.Span{}
	for i := range spans {
		s := &spans[i]
		if s.Kind == trace.KindStage && s.Job >= 0 && s.EndNS != trace.Null && s.EndNS > s.BeginNS {
			byStage[s.Stage] = append(byStage[s.Stage], s)
		}
	}
	out := map[string][]float64{}
	for stage, of := range byStage {
		c := crowdOf(of)
		for _, s := range of {
			out[stage] = append(out[stage], c.mean(s.BeginNS, s.EndNS))
		}
		slices.Sort(out[stage])
	}
	return out
}

// crowd is how many services ran at once over time: from times[i] on there were n[i], and sum[i] is
// the integral up to there.
type crowd struct {
	times []int64
	n     []int64
	sum   []float64
}

func crowdOf(spans []*trace.Span) crowd {
	change := map[int64]int64{}
	for _, s := range spans {
		change[s.BeginNS]++
		change[s.EndNS]--
	}
	var c crowd
	for t := range change {
		c.times = append(c.times, t)
	}
	slices.Sort(c.times)
	now, sum := int64(0), 0.0
	for i, t := range c.times {
		if i > 0 {
			sum += float64(now) * float64(t-c.times[i-1])
		}
		now += change[t]
		c.n, c.sum = append(c.n, now), append(c.sum, sum)
	}
	return c
}

// mean is over begin..end, both of which are times of the crowd.
func (c *crowd) mean(begin, end int64) float64 {
	at := func(t int64) float64 {
		i := sort.Search(len(c.times), func(i int) bool { return c.times[i] >= t })
		return c.sum[i]
	}
	return (at(end) - at(begin)) / float64(end-begin)
}

// leastWait is how long a partition must lie between send and receive to have waited: an idle GPU
// worker takes it at once, which takes a scheduler's time.
const leastWait = 1e6

// Backlog is the most partitions that had been sent and not yet received at once, for as long as a
// wait takes.
func Backlog(d *trace.Data) int64 {
	channels := map[string]bool{}
	for _, r := range d.Manifest.Resources {
		channels[r.Name] = r.Kind == trace.ResourceChannel
	}
	now, most, since := int64(0), int64(0), int64(0)
	for i := range d.Queues {
		q := &d.Queues[i]
		if !channels[q.Resource] || q.Event != trace.EventSend && q.Event != trace.EventRecv {
			continue
		}
		if q.TimeNS-since >= leastWait {
			most = max(most, now)
		}
		since = q.TimeNS
		if q.Event == trace.EventSend {
			now++
		} else {
			now--
		}
	}
	return most
}
