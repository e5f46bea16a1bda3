package compare

import (
	"math"
	"strings"

	"highwater/tracer/probe"
	"highwater/tracer/trace"
)

// counterObserver takes the growth of sampled counters over the jobs, and the mean of gauges of
// GPUs. Of processes only the one that ran the jobs counts.
type counterObserver struct {
	kinds   map[string]string // metric to gauge | counter
	sources map[string]string // source to its kind
	series  map[seriesKey]*sampled
	firstNS int64
	lastNS  int64
}

type seriesKey struct{ source, metric string }

type sampled struct {
	first, last float64
	sum         float64
	count       int64
}

// sourceProcess is the kind of source of a process in the manifest.
const sourceProcess = "process"

func newCounterObserver(m *trace.Manifest) *counterObserver {
	o := &counterObserver{
		kinds: map[string]string{}, sources: map[string]string{},
		series: map[seriesKey]*sampled{}, firstNS: trace.Null, lastNS: trace.Null,
	}
	for _, x := range m.Metrics {
		o.kinds[x.Name] = x.Kind
	}
	for _, s := range m.Sources {
		o.sources[s.Name] = s.Kind
	}
	return o
}

// startJobs makes the last value before the jobs the one that growth is counted from.
func (o *counterObserver) startJobs() {
	o.firstNS = o.lastNS
	for _, s := range o.series {
		*s = sampled{first: s.last, last: s.last}
	}
}

func (o *counterObserver) sample(s *trace.Sample) {
	k := seriesKey{s.Source, s.Metric}
	x := o.series[k]
	if x == nil {
		k = seriesKey{strings.Clone(k.source), strings.Clone(k.metric)}
		x = &sampled{first: s.Value}
		o.series[k] = x
	}
	if o.firstNS == trace.Null {
		o.firstNS = s.TimeNS
	}
	o.lastNS = s.TimeNS
	x.last = s.Value
	x.sum += s.Value
	x.count++
}

func (o *counterObserver) finish(r *Run, jobSource string) {
	r.counters = map[string]bool{}
	if o.firstNS != trace.Null {
		r.sampledNS = o.lastNS - o.firstNS
	}
	for k, x := range o.series {
		kind := o.sources[k.source]
		if x.count == 0 || kind == sourceProcess && jobSource != "" && k.source != jobSource {
			continue
		}
		subject := k.metric
		if kind != sourceProcess && kind != "" {
			subject = k.source + " " + k.metric
		}
		if k.metric == probe.Pace && k.source == jobSource && x.count >= minPaces && x.sum > 0 && !math.IsInf(x.sum, 0) {
			r.paceNS = x.sum / float64(x.count)
		}
		switch {
		case o.kinds[k.metric] == probe.Counter && x.last >= x.first:
			r.counters[k.metric] = true
			r.Values.set(Counter, subject, x.last-x.first)
		case kind == "gpu" && o.kinds[k.metric] == probe.Gauge:
			r.Values.set(GaugeMean, subject, x.sum/float64(x.count))
		}
	}
}
