package sim

import (
	"fmt"
	"strconv"

	"highwater/replay/pipeline"
	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// Record simulates m once and returns the run as an ordinary trace: origin simulated, virtual time,
// the policy as settings with source model. The caller adds where the model came from. The error is
// a *DeadlockError, or says why the run cannot be kept.
func Record(m *pipeline.Model, d Draw) (*trace.Data, Stats, error) {
	if err := recordable(m); err != nil {
		return nil, Stats{}, err
	}
	s, err := new(Programs).simulator(m, withEvents)
	if err != nil {
		return nil, Stats{}, err
	}
	data, stats, err := s.record(d)
	if err != nil {
		return nil, stats, err
	}
	data.Manifest = manifest(m, d)
	if rss := s.predictedRSS(&stats); rss != trace.Null {
		data.Manifest.PeakRSS = &trace.PeakRSS{Bytes: rss, Source: "predicted"}
		base := m.Memory.BaseBytes
		data.Manifest.BaseBytes = &base
	}
	return data, stats, nil
}

// recordable says why a run of the model is too large to be kept.
func recordable(m *pipeline.Model) error {
	if n := m.Policy.Jobs * m.Policy.Partitions; n > maxRecorded {
		return fmt.Errorf("record simulation: %d partitions are more "+
			"than the %d that a simulated trace holds", n, maxRecorded)
	}
	return nil
}

// predictedRSS is the peak of the resident set by the model's law, trace.Null without one.
func (s *Simulator) predictedRSS(st *Stats) int64 { return st.PeakRSSBytes(&s.prog.model.Memory) }

func manifest(m *pipeline.Model, d Draw) trace.Manifest {
	anchor := trace.Anchor{Kind: trace.AnchorVirtual}
	out := trace.Manifest{
		SchemaVersion: trace.SchemaVersion, Origin: trace.OriginSimulated, Model: m.Name,
		Anchor:  anchor,
		Program: "highwater replay", Seed: d.Seed, Settings: map[string]trace.Setting{},
		Sources: []trace.Source{{
			Name: sourceName, Kind: "process", Device: trace.None,
			Anchor: anchor,
		}},
		Metrics:   []trace.Metric{{Name: RSSMetric, Unit: "By", Kind: "gauge"}},
		Resources: resources(m), SealedBy: trace.SealedByClose, ProcessEnd: trace.EndFinished,
	}
	for _, s := range setting.Table() {
		if text, ok := m.Policy.Text(s.Name); ok {
			out.Settings[s.Name] = trace.Setting{Value: text, Source: "model"}
		}
	}
	return out
}

func resources(m *pipeline.Model) []trace.Resource {
	p := &m.Policy
	bounded := func(b pipeline.Bound) *int64 {
		if b == pipeline.Unbounded {
			return nil
		}
		n := int64(b)
		return &n
	}
	out := []trace.Resource{
		{
			Name: "job", Kind: trace.ResourceJob, Unit: "job", Capacity: bounded(p.JobsInFlight),
			Order: pipeline.OrderFIFO,
		},
		{
			Name: "budget", Kind: trace.ResourceBudget, Unit: "byte", Capacity: bounded(p.ByteBudget),
			Order: pipeline.OrderFIFO,
		},
		{
			Name: "permit", Kind: trace.ResourcePermit, Unit: "permit",
			Capacity: bounded(pipeline.Bound(p.PartitionWorkers)), Order: p.QueueOrder,
		},
		{
			Name: "channel", Kind: trace.ResourceChannel, Unit: "item",
			Capacity: bounded(p.ChannelCapacity), Order: p.QueueOrder,
		},
	}
	for i := range out {
		out[i].Device = trace.None
	}
	for d := range p.Devices {
		if m.Machine.LockCapacity > 0 && (d == 0 || !m.Machine.OneLock) {
			capacity := m.Machine.LockCapacity
			out = append(out, trace.Resource{
				Name: lockName(d), Kind: trace.ResourceLock,
				Unit: "lock", Capacity: &capacity,
				Order: pipeline.OrderFIFO, Device: d,
			})
		}
	}
	return out
}

func lockName(device int64) string { return "gpu_lock/" + decimal(device) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
