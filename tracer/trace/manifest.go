package trace

// SchemaVersion is the version of the tables and the manifest that this package writes.
const SchemaVersion = 1

// Words of Manifest.Origin, SealedBy and ProcessEnd, and kinds of anchors.
const (
	OriginRecorded  = "recorded"
	OriginSimulated = "simulated"
	OriginImported  = "imported"

	SealedByClose   = "close"
	SealedByRecover = "recover"

	EndFinished    = "finished"
	EndFailed      = "failed"
	EndInterrupted = "interrupted"
	EndKilled      = "killed"
	EndUnknown     = "unknown"

	AnchorMonotonic = "monotonic"
	AnchorUnix      = "unix"
	AnchorVirtual   = "virtual"
)

// Manifest is manifest.json: what was run, where, under which settings, and what was lost. Unknown keys in
// a file are kept out, unknown schema versions refused.
type Manifest struct {
	SchemaVersion int                `json:"schema_version"`
	Origin        string             `json:"origin"`
	DerivedFrom   []Derivation       `json:"derived_from,omitempty"`
	Model         string             `json:"model,omitempty"`
	Fit           map[string]any     `json:"fit,omitempty"`
	Anchor        Anchor             `json:"anchor"`
	Host          Host               `json:"host"`
	Memory        MemoryLimit        `json:"memory"`
	Program       string             `json:"program"`
	Args          []string           `json:"args,omitempty"`
	Commit        string             `json:"commit,omitempty"`
	Dirty         bool               `json:"dirty,omitempty"`
	Versions      map[string]string  `json:"versions,omitempty"`
	Circuit       *Circuit           `json:"circuit,omitempty"`
	RunGroup      string             `json:"run_group,omitempty"`
	Settings      map[string]Setting `json:"settings,omitempty"`
	Seed          uint64             `json:"seed"`
	Resources     []Resource         `json:"resources,omitempty"`
	Sources       []Source           `json:"sources,omitempty"`
	Metrics       []Metric           `json:"metrics,omitempty"`
	Loss          []Loss             `json:"loss,omitempty"`
	// BaseBytes is RSS minus the resident ledger after loading, once the runtime's free pages went back:
	// what the program occupies besides its buffers. nil where it was not measured.
	BaseBytes *int64 `json:"base_bytes,omitempty"`
	// PeakRSS is the highest resident set of the proving phase, with where the figure comes from.
	PeakRSS    *PeakRSS     `json:"peak_rss,omitempty"`
	Recorder   RecorderCost `json:"recorder"`
	SealedBy   string       `json:"sealed_by,omitempty"` // "" while recording
	ProcessEnd string       `json:"process_end,omitempty"`
	EndReason  string       `json:"end_reason,omitempty"`
	// Tables lists the files of a sealed trace. Writing a trace sets it; a Trace does not show it:
	// it is about the files, not about what was recorded.
	Tables []Table `json:"tables,omitempty"`
	// Checksum stands last in the file: SHA-256 of the file's bytes with these digits as zeros. It is set in
	// files only, "" in memory. A file without one (made by hand) is read as it stands.
	Checksum string `json:"checksum,omitempty"`
}

// Derivation names a trace that this one was computed from.
type Derivation struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of its manifest.json
}

// Anchor says what time 0 of the trace is.
type Anchor struct {
	Kind        string `json:"kind"`
	MonotonicNS int64  `json:"monotonic_ns"`
	UnixNS      int64  `json:"unix_ns"`
}

// Host describes the machine.
type Host struct {
	Name     string   `json:"name,omitempty"`
	Kernel   string   `json:"kernel,omitempty"`
	CPUModel string   `json:"cpu_model,omitempty"`
	CPUs     int      `json:"cpus,omitempty"`
	RAMBytes int64    `json:"ram_bytes,omitempty"`
	GPUs     []string `json:"gpus,omitempty"`
}

// MemoryLimit is the smallest bound on the process at start and which one it was.
type MemoryLimit struct {
	EffectiveBytes int64  `json:"effective_bytes,omitempty"` // 0 where unknown
	Kind           string `json:"kind,omitempty"`            // cgroup | rlimit | numa | mem_available
	// Path is what sets it: the cgroup, the rlimit's name, or what leaves NUMA nodes out and which
	// are left.
	Path string `json:"path,omitempty"`
	// Nodes are the NUMA nodes that the process may use, whether or not they are the smallest bound;
	// nil where that is not known.
	Nodes *MemoryNodes `json:"nodes,omitempty"`
}

// MemoryNodes are NUMA nodes, as lists of the kernel: "0-1,4".
type MemoryNodes struct {
	Present      string `json:"present"`                 // that have memory
	Allowed      string `json:"allowed"`                 // of them, those that the process may use
	AllowedBytes int64  `json:"allowed_bytes,omitempty"` // what the kernel manages there; 0 where unknown
	SetBy        string `json:"set_by,omitempty"`        // cpuset | mempolicy; "" where none is left out
}

// Circuit describes what is proved.
type Circuit struct {
	Name        string `json:"name"`
	Constraints int64  `json:"constraints"`
	DomainSize  int64  `json:"domain_size"`
	KeyBytes    int64  `json:"key_bytes"`
	Wires       int64  `json:"wires,omitempty"`
}

// Setting is a setting as in effect and where its value came from.
type Setting struct {
	Value  string `json:"value"`
	Source string `json:"source"` // default | file | env | flag | trace | model | set | unknown
}

// Resource is something that events wait for.
type Resource struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Unit     string `json:"unit"`            // permit, item, byte, job
	Capacity *int64 `json:"capacity"`        // nil is unbounded
	Order    string `json:"order,omitempty"` // fifo | priority
	Device   int64  `json:"device"`          // None where there is none
}

// Source is one writer of events: a process, a cgroup, the host, a GPU.
type Source struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	PID    int    `json:"pid,omitempty"`
	Device int64  `json:"device"`
	Anchor Anchor `json:"anchor"`
}

// Metric describes a metric of samples.parquet.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Kind string `json:"kind"` // gauge | counter
}

// Loss is events that were not recorded, counted.
type Loss struct {
	Writer string `json:"writer"`
	FromNS int64  `json:"from_ns"`
	ToNS   int64  `json:"to_ns"`
	Count  int64  `json:"count"`
	Reason string `json:"reason"`
}

// PeakRSS is a peak with its source: vmhwm | sampled | predicted.
type PeakRSS struct {
	Bytes  int64  `json:"bytes"`
	Source string `json:"source"`
}

// RecorderCost is what recording itself cost: measured per unit at start, counted at the end.
type RecorderCost struct {
	EventNS       float64 `json:"event_ns,omitempty"`        // one event with its clock read, measured at start
	SampleNS      float64 `json:"sample_ns,omitempty"`       // CPU time of one probe tick, mean over the run
	SampleHz      float64 `json:"sample_hz,omitempty"`       // the rate asked for
	Events        int64   `json:"events,omitempty"`          // journal records acknowledged
	SampleTicks   int64   `json:"sample_ticks,omitempty"`    //
	OTLPSpans     int64   `json:"otlp_spans,omitempty"`      // spans handed to the OTLP exporter
	OTLPDropped   int64   `json:"otlp_dropped,omitempty"`    // of these, not delivered
	OTLPEndpoint  string  `json:"otlp_endpoint,omitempty"`   //
	OTLPLastError string  `json:"otlp_last_error,omitempty"` //
}
