package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"highwater/tracer/trace"
)

// levels checks what queues say of themselves: a level is never below zero nor above the capacity.
type levels struct {
	capacity map[string]int64 // resources with a bound
	wrong    map[string]*wrongLevel
}

type wrongLevel struct {
	below, above int64
	extreme      int64
	seqs         []int64
}

func newLevels(m *trace.Manifest) levels {
	l := levels{capacity: map[string]int64{}, wrong: map[string]*wrongLevel{}}
	for _, r := range m.Resources {
		if r.Capacity == nil {
			continue
		}
		l.capacity[r.Name] = *r.Capacity
		if r.Kind == trace.ResourceChannel {
			// A rendezvous holds an item while it hands it over.
			l.capacity[r.Name] = max(*r.Capacity, 1)
		}
	}
	return l
}

func (l *levels) observe(e *trace.QueueEvent) {
	bound, bounded := l.capacity[e.Resource]
	below := e.LevelAfter < 0 && e.LevelAfter != trace.Null
	above := bounded && e.LevelAfter > bound
	if !below && !above {
		return
	}
	w := l.wrong[e.Resource]
	if w == nil {
		w = &wrongLevel{}
		l.wrong[strings.Clone(e.Resource)] = w
	}
	if below {
		w.below++
		w.extreme = min(w.extreme, e.LevelAfter)
	} else {
		w.above++
		w.extreme = max(w.extreme, e.LevelAfter)
	}
	if len(w.seqs) < MaxExamples {
		w.seqs = append(w.seqs, e.Seq)
	}
}

func (l *levels) findings() []Finding {
	found := make([]Finding, 0, len(l.wrong))
	for name, w := range l.wrong {
		what := fmt.Sprintf("rose to %d with a capacity of %d", w.extreme, l.capacity[name])
		if w.below > 0 {
			what = fmt.Sprintf("fell to %d", w.extreme)
		}
		found = append(found, Finding{
			Check: "impossible_level", Severity: Error,
			Sentence: fmt.Sprintf("The level of %s %s, which cannot be; the first time at seq %d.",
				name, what, w.seqs[0]),
			Evidence: Evidence{Seqs: w.seqs, Numbers: Numbers{
				{"below_zero_events", float64(w.below)},
				{"above_capacity_events", float64(w.above)},
				{"extreme_level", float64(w.extreme)},
			}},
			Remedy: "Record operations of " + name + " inside its own critical section, with the " +
				"level after each.",
		})
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Sentence, b.Sentence) })
	return found
}

// counters checks samples: a counter never falls, nothing is below zero or not a number.
type counters struct {
	counter map[string]bool // metrics that only grow
	last    map[[2]string]float64
	wrong   map[string]*wrongCounter
}

type wrongCounter struct {
	falls, impossible int64
	source            string
	atNS              int64
}

func newCounters(m *trace.Manifest) counters {
	c := counters{
		counter: map[string]bool{},
		last:    map[[2]string]float64{},
		wrong:   map[string]*wrongCounter{},
	}
	for _, x := range m.Metrics {
		c.counter[x.Name] = x.Kind == "counter"
	}
	return c
}

func (c *counters) observe(s *trace.Sample) {
	impossible := math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Value < 0
	fell := false
	if c.counter[s.Metric] && !impossible {
		k := [2]string{s.Source, s.Metric}
		last, seen := c.last[k]
		fell = seen && s.Value < last
		if !seen {
			k = [2]string{strings.Clone(s.Source), strings.Clone(s.Metric)}
		}
		c.last[k] = s.Value
	}
	if !impossible && !fell {
		return
	}
	w := c.wrong[s.Metric]
	if w == nil {
		w = &wrongCounter{source: strings.Clone(s.Source), atNS: s.TimeNS}
		c.wrong[strings.Clone(s.Metric)] = w
	}
	if fell {
		w.falls++
	} else {
		w.impossible++
	}
}

func (c *counters) findings() []Finding {
	found := make([]Finding, 0, len(c.wrong))
	for name, w := range c.wrong {
		what := fmt.Sprintf("fell %s although it is a counter", times(w.falls))
		if w.impossible > 0 {
			what = "was below zero or not a number " + times(w.impossible)
		}
		found = append(found, Finding{
			Check: "impossible_counter", Severity: Warning,
			Sentence: fmt.Sprintf("%s of %s %s: it wrapped, was reset, or is not what it says.",
				name, w.source, what),
			Evidence: Evidence{
				Numbers: Numbers{
					{"falls", float64(w.falls)},
					{"impossible_values", float64(w.impossible)},
				},
				Window: &Window{BeginNS: w.atNS, EndNS: w.atNS},
			},
			Remedy: "Do not judge by " + name + " in this trace; find out what resets it.",
		})
	}
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Compare(a.Sentence, b.Sentence) })
	return found
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
