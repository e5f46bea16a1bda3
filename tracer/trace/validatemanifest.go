package trace

import "slices"

// Words that the manifest may use.
var (
	originWords    = []string{OriginRecorded, OriginSimulated, OriginImported}
	anchorWords    = []string{AnchorMonotonic, AnchorUnix, AnchorVirtual}
	sealWords      = []string{SealedByClose, SealedByRecover}
	endWords       = []string{EndFinished, EndFailed, EndInterrupted, EndKilled, EndUnknown}
	resourceWords  = []string{ResourceJob, ResourcePermit, ResourceChannel, ResourceLock, ResourceBudget}
	orderWords     = []string{"", "fifo", "priority"}
	sourceWords    = []string{"process", "cgroup", "host", "gpu"}
	metricWords    = []string{"gauge", "counter"}
	settingSources = []string{"default", "file", "env", "flag", "trace", "model", "set", "unknown"}
	rssWords       = []string{"vmhwm", "sampled", "predicted"}
)

// manifest checks the manifest and learns what it lists.
func (v *validator) manifest() {
	m := &v.t.Manifest
	v.manifestWord("origin", m.Origin, originWords)
	v.manifestWord("anchor kind", m.Anchor.Kind, anchorWords)
	if !v.t.Live {
		v.manifestWord("sealed_by", m.SealedBy, sealWords)
		v.manifestWord("process_end", m.ProcessEnd, endWords)
	}
	for _, name := range sortedKeys(m.Settings) {
		v.manifestWord("source of setting "+name, m.Settings[name].Source, settingSources)
	}
	if m.PeakRSS != nil {
		v.manifestWord("source of peak_rss", m.PeakRSS.Source, rssWords)
		v.notNegative("peak_rss", m.PeakRSS.Bytes)
	}
	for i := range m.Loss {
		v.notNegative("count of loss "+m.Loss[i].Reason, m.Loss[i].Count)
	}
	v.listResources(m)
	v.listSources(m)
	v.listMetrics(m)
}

func (v *validator) listResources(m *Manifest) {
	for i := range m.Resources {
		r := &m.Resources[i]
		v.manifestWord("kind of resource "+r.Name, r.Kind, resourceWords)
		v.manifestWord("order of resource "+r.Name, r.Order, orderWords)
		v.ownName("resource", r.Name, v.resources[r.Name] != nil)
		state := &resourceState{kind: r.Kind, unit: r.Unit, capacity: Null, last: Null, owners: map[owner]*claim{}}
		if r.Capacity != nil {
			state.capacity = *r.Capacity
			v.notNegative("capacity of resource "+r.Name, *r.Capacity)
		}
		v.resources[r.Name] = state
	}
}

func (v *validator) listSources(m *Manifest) {
	for i := range m.Sources {
		s := &m.Sources[i]
		v.manifestWord("kind of source "+s.Name, s.Kind, sourceWords)
		v.ownName("source", s.Name, v.sources[s.Name])
		v.sources[s.Name] = true
	}
}

func (v *validator) listMetrics(m *Manifest) {
	for i := range m.Metrics {
		x := &m.Metrics[i]
		v.manifestWord("kind of metric "+x.Name, x.Kind, metricWords)
		v.ownName("metric", x.Name, v.metrics[x.Name])
		v.metrics[x.Name] = true
	}
}

func (v *validator) manifestWord(what, word string, known []string) {
	if !slices.Contains(known, word) {
		v.report("manifest-word", "manifest", Null, "%s %q is not one of %v", what, word, known)
	}
}

func (v *validator) ownName(what, name string, taken bool) {
	if name == "" || taken {
		v.report("manifest-name", "manifest", Null, "%s name %q is empty or stands twice", what, name)
	}
}

func (v *validator) notNegative(what string, n int64) {
	if n < 0 {
		v.report("manifest-range", "manifest", Null, "%s is %d", what, n)
	}
}
