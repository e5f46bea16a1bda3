package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"highwater/tracer/setting"
)

// Points at which a partition gives its synthesis permit back.
const (
	ReleaseSynthEnd     = "synth_end"
	ReleaseSendAccepted = "send_accepted"
	ReleaseGPUPickup    = "gpu_pickup"
	ReleaseFreed        = "freed"
)

// Orders of the permit queue and the channel.
const (
	OrderFIFO     = "fifo"
	OrderPriority = "priority"
)

// Policy is the settings that a replay can vary, under the names of tracer/setting.
type Policy struct {
	Jobs             int64  `toml:"jobs"`
	Partitions       int64  `toml:"partitions"` // a job
	JobsInFlight     Bound  `toml:"jobs_in_flight"`
	PartitionWorkers int64  `toml:"partition_workers"`
	GPUWorkers       int64  `toml:"gpu_workers"` // a device
	Devices          int64  `toml:"devices"`
	ChannelCapacity  Bound  `toml:"channel_capacity"`
	PermitRelease    string `toml:"permit_release"`
	EarlyFree        bool   `toml:"early_free"`
	SplitProving     bool   `toml:"split_proving"`
	ByteBudget       Bound  `toml:"byte_budget"`
	QueueOrder       string `toml:"queue_order"`
}

// Bound is a count that may have no bound: in TOML a number or "unbounded".
type Bound int64

// Unbounded has no bound.
const Unbounded = Bound(setting.Unbounded)

// MarshalTOML writes the number, or the word.
func (b Bound) MarshalTOML() ([]byte, error) {
	if b == Unbounded {
		return []byte(`"unbounded"`), nil
	}
	return strconv.AppendInt(nil, int64(b), 10), nil
}

// UnmarshalTOML reads a number that is not negative, or "unbounded".
func (b *Bound) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case int64:
		if v < 0 {
			return fmt.Errorf("%d is below 0: write \"unbounded\" for no bound", v)
		}
		*b = Bound(v)
		return nil
	case string:
		if v == "unbounded" {
			*b = Unbounded
			return nil
		}
	}
	return fmt.Errorf("%v is neither a number nor \"unbounded\"", v)
}

// String is the setting's canonical text.
func (b Bound) String() string {
	if b == Unbounded {
		return "unbounded"
	}
	return strconv.FormatInt(int64(b), 10)
}

// AtMost says whether n is within the bound.
func (b Bound) AtMost(n int64) bool { return b == Unbounded || n <= int64(b) }

// field is how one setting reads and writes its place in a Policy.
type field struct {
	get func(*Policy) string
	set func(*Policy, string)
}

func intField(at func(*Policy) *int64) field {
	return field{
		get: func(p *Policy) string { return strconv.FormatInt(*at(p), 10) },
		set: func(p *Policy, t string) { *at(p), _ = strconv.ParseInt(t, 10, 64) },
	}
}

func boundField(at func(*Policy) *Bound) field {
	return field{
		get: func(p *Policy) string { return at(p).String() },
		set: func(p *Policy, t string) {
			n, err := strconv.ParseInt(t, 10, 64)
			if *at(p) = Bound(n); err != nil {
				*at(p) = Unbounded
			}
		},
	}
}

func boolField(at func(*Policy) *bool) field {
	return field{
		get: func(p *Policy) string { return strconv.FormatBool(*at(p)) },
		set: func(p *Policy, t string) { *at(p) = t == "true" },
	}
}

func wordField(at func(*Policy) *string) field {
	return field{
		get: func(p *Policy) string { return *at(p) },
		set: func(p *Policy, t string) { *at(p) = t },
	}
}

var fields = map[string]field{
	"jobs":              intField(func(p *Policy) *int64 { return &p.Jobs }),
	"partitions":        intField(func(p *Policy) *int64 { return &p.Partitions }),
	"jobs_in_flight":    boundField(func(p *Policy) *Bound { return &p.JobsInFlight }),
	"partition_workers": intField(func(p *Policy) *int64 { return &p.PartitionWorkers }),
	"gpu_workers":       intField(func(p *Policy) *int64 { return &p.GPUWorkers }),
	"devices":           intField(func(p *Policy) *int64 { return &p.Devices }),
	"channel_capacity":  boundField(func(p *Policy) *Bound { return &p.ChannelCapacity }),
	"permit_release":    wordField(func(p *Policy) *string { return &p.PermitRelease }),
	"early_free":        boolField(func(p *Policy) *bool { return &p.EarlyFree }),
	"split_proving":     boolField(func(p *Policy) *bool { return &p.SplitProving }),
	"byte_budget":       boundField(func(p *Policy) *Bound { return &p.ByteBudget }),
	"queue_order":       wordField(func(p *Policy) *string { return &p.QueueOrder }),
}

// Text is the canonical text of a setting of the policy, and whether the policy has it.
func (p *Policy) Text(name string) (string, bool) {
	f, ok := fields[name]
	if !ok {
		return "", false
	}
	return f.get(p), true
}

// SetText parses one setting into the policy. A setting that a replay cannot vary is an error that
// says so.
func (p *Policy) SetText(name, text string) error {
	s, err := setting.Lookup(name)
	if err != nil {
		return err
	}
	f, ok := fields[name]
	if !s.Replay || !ok {
		return fmt.Errorf("setting %s: replay cannot vary it: it changes the work itself, "+
			"which only a new recording shows (%s)",
			name, s.Doc)
	}
	canon, err := s.Parse(text)
	if err != nil {
		return fmt.Errorf("setting %w", err)
	}
	f.set(p, canon)
	return nil
}

// SettingNames are the settings of tracer/setting that a Policy has, sorted.
func SettingNames() []string { return slices.Sorted(maps.Keys(fields)) }
