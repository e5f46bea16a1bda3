package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"highwater/tracer/setting"
)

// modelRows are settings that only a model has: no prover of ours does.
var modelRows = []struct {
	setting.Setting
	field func(*Model) any // *int64 or *float64
}{
	{
		setting.Setting{
			Name: "dispatch_workers", Kind: setting.Int, Max: MaxWorkers,
			Doc: "Jobs that the dispatcher handles at once (cuzk: synthesis_concurrency); 0 is no bound.",
		},
		func(m *Model) any { return &m.Dispatch.Workers },
	},
	{
		setting.Setting{
			Name: "batch_size", Kind: setting.Int, Max: MaxPartitions,
			Doc: "Jobs that the batch collector waits for (cuzk: max_batch_size); 0 and 1 collect nothing.",
		},
		func(m *Model) any { return &m.Batch.Size },
	},
	{
		setting.Setting{
			Name: "queue_depth", Kind: setting.Int, Max: MaxPartitions,
			Doc: "Partitions between the dispatcher and their last free; 0 is no bound.",
		},
		func(m *Model) any { return &m.Admission.QueueDepth },
	},
	{
		setting.Setting{
			Name: "pacer_target", Kind: setting.Int, Max: MaxPartitions,
			Doc: "Partitions that the pacer wants in front of the GPU workers (cuzk: max_gpu_queue_depth); 0 is off.",
		},
		func(m *Model) any { return &m.Pacer.Target },
	},
	{
		setting.Setting{
			Name: "arrival_interval_ns", Kind: setting.Int, Max: 1 << 50,
			Doc: "Nanoseconds between jobs' arrivals (open loop); 0 submits all at once.",
		},
		func(m *Model) any { return &m.Arrivals.IntervalNS },
	},
}

// ModelSettings are the names that Apply knows, sorted.
func ModelSettings() []string {
	names := SettingNames()
	for i := range modelRows {
		names = append(names, modelRows[i].Name)
	}
	slices.Sort(names)
	return names
}

// OwnSettings are the rows of the settings that only models have.
func OwnSettings() []setting.Setting {
	out := make([]setting.Setting, len(modelRows))
	for i := range modelRows {
		out[i] = modelRows[i].Setting
	}
	return out
}

// Apply returns a copy of m with settings overridden, and those that follow from them. Names are
// those of tracer/setting and OwnSettings; an unknown one, one that replay cannot vary, one that the
// model fixes, and a set that contradicts itself or the model are refused with the reason. What no
// setting changes is not validated again: m is valid.
func (m *Model) Apply(overrides map[string]string) (*Model, error) {
	out := *m
	errs := make([]error, 0, len(overrides))
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		errs = append(errs, out.set(name, overrides[name]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out.follow(overrides)
	out.Jobs = out.arriving()
	if err := out.ValidateSettings(); err != nil {
		return nil, err
	}
	return &out, nil
}

// set sets one setting, unless the model fixes it.
func (m *Model) set(name, text string) error {
	for i := range m.Fixed {
		if f := &m.Fixed[i]; f.Setting == name {
			return fmt.Errorf("setting %s: model %s does not have it: %s", name, m.Name, f.Reason)
		}
	}
	for i := range modelRows {
		r := &modelRows[i]
		if r.Name != name {
			continue
		}
		canon, err := r.Parse(text)
		if err != nil {
			return fmt.Errorf("setting %w", err)
		}
		n, err := strconv.ParseInt(canon, 10, 64)
		if err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
		switch at := r.field(m).(type) {
		case *int64:
			*at = n
		case *float64:
			*at = float64(n)
		}
		m.settle(name)
		return nil
	}
	return m.Policy.SetText(name, text)
}

// Text is the canonical text of a setting of the model, of its own ones too, and whether it has it.
func (m *Model) Text(name string) (string, bool) {
	for i := range modelRows {
		if modelRows[i].Name != name {
			continue
		}
		switch at := modelRows[i].field(m).(type) {
		case *int64:
			return strconv.FormatInt(*at, 10), true
		case *float64:
			return strconv.FormatInt(int64(*at), 10), true
		}
	}
	return m.Policy.Text(name)
}

// settle gives what belongs to a setting of the model's own a value that goes with it.
func (m *Model) settle(name string) {
	switch {
	case name == "arrival_interval_ns" && m.Arrivals.IntervalNS == 0:
		m.Arrivals = Arrivals{}
	case name == "arrival_interval_ns" && m.Arrivals.Kind != ArrivePoisson:
		m.Arrivals = Arrivals{Kind: ArriveEvery, IntervalNS: m.Arrivals.IntervalNS}
	case name == "batch_size" && m.Batch.Size > 1 && m.Batch.WaitNS == 0:
		m.Batch.WaitNS = 10e9 // cuzk's max_batch_wait_ms
	}
}

// follow computes the settings that follow from others, unless they were set themselves.
func (m *Model) follow(set map[string]string) {
	for i := range m.Follows {
		f := &m.Follows[i]
		if _, ok := set[f.Setting]; ok {
			continue
		}
		n, ok := m.followed(f)
		if !ok {
			continue
		}
		switch f.Setting {
		case "channel_capacity":
			m.Policy.ChannelCapacity = Bound(n)
		case "handoff":
			m.Admission.Handoff = max(n, 1)
		case "dispatch_workers":
			m.Dispatch.Workers = max(n, 1)
		default:
			m.Policy.PartitionWorkers = max(n, 1)
		}
	}
}

// followed is what a setting that follows comes to; ok is false where nothing bounds it.
func (m *Model) followed(f *Follow) (n int64, ok bool) {
	switch {
	case f.Of == "partition_workers":
		n = m.Policy.PartitionWorkers
	case f.Of == "devices":
		n = m.Policy.Devices
	case m.Policy.ByteBudget != Unbounded:
		n = int64(m.Policy.ByteBudget) / max(m.reserve(), 1)
	case f.Most == 0:
		return 0, false
	default:
		n = f.Most // of an unbounded budget
	}
	n = max(n, f.Least)
	if f.Most > 0 {
		n = min(n, f.Most)
	}
	return n, true
}

// reserve is what a partition reserves of the byte budget, the most of the pool.
func (m *Model) reserve() (most int64) {
	for i := range m.Partitions {
		all, _ := m.Partitions[i].Reserves()
		most = max(most, all)
	}
	return most
}
