package trace

import (
	"slices"
	"strconv"
	"strings"
)

// rebuilder makes anew, from the rows that pass through it, what a lost manifest listed: resources
// and metrics. (The heads of the journals name the sources.)
type rebuilder struct {
	sink
	resources []*Resource
	highest   map[string]int64 // level by resource
	metrics   []string
}

func newRebuilder(out sink) *rebuilder { return &rebuilder{sink: out, highest: map[string]int64{}} }

// Queue implements sink.
func (b *rebuilder) Queue(e *QueueEvent) error {
	at := slices.IndexFunc(b.resources, func(r *Resource) bool { return r.Name == e.Resource })
	if at < 0 {
		at = len(b.resources)
		b.resources = append(b.resources, guessedResource(e))
	}
	if r := b.resources[at]; e.Amount != 1 && r.Kind == ResourcePermit {
		r.Kind, r.Unit = ResourceBudget, "byte"
	}
	if e.LevelAfter != Null {
		b.highest[e.Resource] = max(b.highest[e.Resource], e.LevelAfter)
	}
	return b.sink.Queue(e)
}

// Sample implements sink.
func (b *rebuilder) Sample(s *Sample) error {
	if !slices.Contains(b.metrics, s.Metric) {
		b.metrics = append(b.metrics, s.Metric)
	}
	return b.sink.Sample(s)
}

// guessedResource tells a resource's kind by its name, which is by convention, or by the operation.
func guessedResource(e *QueueEvent) *Resource {
	r := &Resource{Name: e.Resource, Kind: ResourcePermit, Unit: "permit", Device: None}
	name, device, numbered := strings.Cut(e.Resource, "/")
	switch {
	case slices.Contains([]string{EventSend, EventSent, EventRecv}, e.Event):
		r.Kind, r.Unit = ResourceChannel, "item"
	case name == "job":
		r.Kind, r.Unit = ResourceJob, "job"
	case name == "budget":
		r.Kind, r.Unit = ResourceBudget, "byte"
	case name == "gpu_lock":
		r.Kind, r.Unit = ResourceLock, "lock"
	}
	if n, err := strconv.ParseInt(device, 10, 32); numbered && err == nil && n >= 0 {
		r.Device = n
	}
	return r
}

// fill puts what was found into the manifest. The capacity of a resource is the highest level that
// it had: the least that it can have been.
func (b *rebuilder) fill(m *Manifest) {
	for _, r := range b.resources {
		if level := b.highest[r.Name]; level > 0 {
			r.Capacity = &level
		}
		m.Resources = append(m.Resources, *r)
	}
	for _, name := range b.metrics {
		m.Metrics = append(m.Metrics, Metric{Name: name, Kind: "gauge"})
	}
}
