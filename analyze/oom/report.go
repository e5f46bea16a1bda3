package oom

import "encoding/json"

// Report is everything that was found. Its JSON is the `--json` output of `highwater oom`.
type Report struct {
	Verdict string   `json:"verdict"` // one sentence
	Inputs  []Input  `json:"inputs"`
	Events  []*Event `json:"events"` // in order of time as far as the text tells it
	// DroppedEvents were counted and not kept: more than MaxEvents were found.
	DroppedEvents int64    `json:"dropped_events"`
	Warnings      []string `json:"warnings"` // doubts about the reading
	Join          *Join    `json:"join"`     // null without a trace
}

// Input says what was read.
type Input struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"` // as read, after decompression
	// Reversed: the newest line came first
	Reversed bool `json:"reversed"`
}

// Sources of an event.
const (
	SourceKernel  = "kernel"           // an OOM report of the kernel, or lines of one
	SourceKiller  = "userspace_killer" // systemd-oomd, earlyoom, lmkd
	SourceStatus  = "exit_status"      // an exit status, docker or Kubernetes
	SourceProgram = "program"          // what a program said when an allocation failed
)

// Event is one failure. A nil field is not given by the text, and is named in Missing.
type Event struct {
	Source string `json:"source"`
	// OutOfMemory: false for what is called out of memory and is not; null where the text does not
	// decide
	OutOfMemory *bool `json:"out_of_memory"`
	// Time is RFC 3339 where the text gives date and time (without zone where it gives none), else
	// the stamp as written.
	Time     Text   `json:"time"`
	TimeKind Text   `json:"time_kind"` // zoned | local | partial | boot | text
	UptimeNS *int64 `json:"uptime_ns"` // since boot, where the kernel's stamp gives it
	Host     Text   `json:"host"`
	Kernel   Text   `json:"kernel"`
	// Container, pod, unit or job that a status is of
	Container Text `json:"container"`

	Limit   Limit    `json:"limit"`
	Invoker *Invoker `json:"invoker"`
	Victims []Victim `json:"victims"`

	PageBytes      *int64 `json:"page_bytes"`
	PageSource     Text   `json:"page_source"` // how the page size is known
	RAMBytes       *int64 `json:"ram_bytes"`
	RAMSource      Text   `json:"ram_source"`
	ManagedBytes   *int64 `json:"managed_bytes"` // what the kernel manages of it
	FreeBytes      *int64 `json:"free_bytes"`    // on the whole host
	SwapTotalBytes *int64 `json:"swap_total_bytes"`
	SwapFreeBytes  *int64 `json:"swap_free_bytes"`

	// ExplainedBytes is what the counters add up to of AccountedBytes (managed memory of the host
	// or of the nodes shown; usage of the cgroup); UnexplainedBytes the rest.
	ExplainedBytes   *int64 `json:"explained_bytes"`
	UnexplainedBytes *int64 `json:"unexplained_bytes"`
	AccountedBytes   *int64 `json:"accounted_bytes"`
	// counters | node_counters | memcg_stats | victims
	ExplainedBy Text       `json:"explained_by"`
	Holders     []Holder   `json:"holders"`  // what held it, most first
	Programs    []Program  `json:"programs"` // tasks of the table by name, most first
	Usage       []Usage    `json:"usage"`    // of the cgroup's counters
	Zones       []ZoneFree `json:"zones"`

	Cause Cause `json:"cause"`
	// Numbers are further figures of the text, by name: requested_bytes, capacity_bytes …
	Numbers map[string]int64 `json:"numbers"`
	Missing []string         `json:"missing"` // the null fields above that such a report can give
	Fetch   []Fetch          `json:"fetch"`   // lines that would fill them, and how to get them
	Next    []string         `json:"next"`    // what to do
	Notes   []string         `json:"notes"`   // what else the text shows, or makes doubtful
	Lines   int              `json:"lines"`   // that the event was read from
	Input   string           `json:"input"`

	nobody bool // was killed
}

// Text is a word or a sentence; an empty one is not known, and null in JSON.
type Text string

// MarshalJSON writes the text, null where it is empty.
func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(t)) //nolint:wrapcheck // a string always has a JSON form
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return err //nolint:wrapcheck // the caller's decoder says where
	}
	*t = ""
	if s != nil {
		*t = Text(*s)
	}
	return nil
}

// Kinds of limit: the bound that the failing allocation met.
const (
	LimitHost      = "host"
	LimitMemcg     = "memcg"
	LimitMemcgSwap = "memcg+swap"
	LimitCpuset    = "cpuset"
	LimitMempolicy = "mempolicy"
	LimitZone      = "zone"
	LimitCMA       = "cma"
	LimitHugetlb   = "hugetlb"
	LimitKernel    = "kernel" // a cgroup's bound on kernel memory
	LimitUnknown   = "unknown"
)

// Limit is the bound that the failing allocation met.
type Limit struct {
	Kind   string `json:"kind"`
	Bytes  *int64 `json:"bytes"`
	Cgroup Text   `json:"cgroup"` // that sets it
	Node   *int64 `json:"node"`   // the one NUMA node it is about
	Nodes  Text   `json:"nodes"`  // the nodes allowed, as written
	Zones  Text   `json:"zones"`  // that the request may use, where they are the limit
	// Level of the cgroup: own (the task's), parent; null where not both are named
	Level Text `json:"level"`
	// Owner of the cgroup by its path: pod, container, service, session, slice, job; null where the
	// path does not tell
	Owner      Text   `json:"owner"`
	UsageBytes *int64 `json:"usage_bytes"`
	Failcnt    *int64 `json:"failcnt"` // how often the limit was met before
}

// Invoker is the task whose allocation failed.
type Invoker struct {
	PID         *int64 `json:"pid"`
	Comm        Text   `json:"comm"`
	GFPMask     Text   `json:"gfp_mask"` // as written
	GFP         Text   `json:"gfp"`      // names, as written
	Order       *int64 `json:"order"`
	OOMScoreAdj *int64 `json:"oom_score_adj"`
}

// Victim is a process that was killed, or reaped.
type Victim struct {
	PID        *int64 `json:"pid"`
	Comm       Text   `json:"comm"`
	UID        *int64 `json:"uid"`
	AnonBytes  *int64 `json:"anon_bytes"`
	FileBytes  *int64 `json:"file_bytes"`
	ShmemBytes *int64 `json:"shmem_bytes"`
	SwapBytes  *int64 `json:"swap_bytes"`
	// of the task table, else the sum of the kill line
	RSSBytes     *int64 `json:"rss_bytes"`
	VirtualBytes *int64 `json:"virtual_bytes"` // address space: not memory
	PgtableBytes *int64 `json:"page_table_bytes"`
	OOMScoreAdj  *int64 `json:"oom_score_adj"`
	Cgroup       Text   `json:"cgroup"`
	Killed       bool   `json:"killed"`              // a kill line names it
	KillLines    int    `json:"kill_lines"`          // one kill can be printed twice
	Reaped       bool   `json:"reaped"`              // the reaper took its memory
	ReapedNS     *int64 `json:"reaped_after_ns"`     // after the kill
	Share        *Share `json:"share"`               // of the limit, or of managed memory
	WasCause     *bool  `json:"was_cause"`           // whether it is what filled the limit
	OOMScore     *int64 `json:"oom_score,omitempty"` // older kernels print it
}

// Share is a part of something.
type Share struct {
	Of    string  `json:"of"` // limit | managed | ram
	Ratio float64 `json:"ratio"`
}

// Holder is one thing that holds memory.
type Holder struct {
	Name  string   `json:"name"`
	Bytes int64    `json:"bytes"`
	Ratio *float64 `json:"ratio"` // of AccountedBytes
}

// Program is the tasks of one name.
type Program struct {
	Comm      string `json:"comm"`
	Processes int64  `json:"processes"`
	RSSBytes  *int64 `json:"rss_bytes"`
	SwapBytes *int64 `json:"swap_bytes"`
}

// Usage is one counter of a cgroup.
type Usage struct {
	Counter    string `json:"counter"` // memory | memory+swap | kmem | swap
	UsageBytes int64  `json:"usage_bytes"`
	LimitBytes *int64 `json:"limit_bytes"` // null where it is unlimited
	Failcnt    int64  `json:"failcnt"`
}

// ZoneFree is one zone with what it has free and must keep.
type ZoneFree struct {
	Node         *int64 `json:"node"`
	Zone         string `json:"zone"`
	FreeBytes    *int64 `json:"free_bytes"`
	MinBytes     *int64 `json:"min_bytes"`
	ManagedBytes *int64 `json:"managed_bytes"`
	CMABytes     *int64 `json:"free_cma_bytes"`
	Usable       *bool  `json:"usable"` // by the failing request; null where its kind is not known
}

// Confidence of a cause.
const (
	Shown     = "shown"     // the text's numbers show it
	Suspected = "suspected" // they fit it, and do not exclude another
	Unknown   = "unknown"
)

// Cause is why the limit was met.
type Cause struct {
	Kind       string `json:"kind"` // docs/oom.md lists them
	Sentence   string `json:"sentence"`
	Confidence string `json:"confidence"`
}

// Fetch is a line that the text lacks.
type Fetch struct {
	Line    string   `json:"line"`  // how it looks
	Gives   []string `json:"gives"` // the fields it would fill
	Command string   `json:"command"`
}

// Join is what a trace adds to the events; cmd fills Survivors.
type Join struct {
	Trace string `json:"trace"`
	// Matches: the trace's process is a victim of the event; null where neither says enough
	Matches *bool `json:"matches"`
	// index into Events of the one explained; null where there is none
	Event    *int     `json:"event"`
	Warnings []string `json:"warnings"`
	// Live: the run was killed and its trace is not sealed yet
	Live bool `json:"live"`

	HeldBytes     *int64  `json:"held_bytes"`     // live bytes of the ledger at AtNS
	ResidentBytes *int64  `json:"resident_bytes"` // of them, touched
	AtNS          *int64  `json:"at_ns"`          // the moment explained, after the trace's anchor
	At            string  `json:"at"`             // kill | end | peak
	ByClass       []Held  `json:"by_class"`
	ByStage       []Held  `json:"by_stage"`
	ByPlace       []Place `json:"by_place"`
	// VictimRSSBytes less ResidentBytes is UnattributedBytes: what the ledger does not explain
	VictimRSSBytes    *int64 `json:"victim_rss_bytes"`
	UnattributedBytes *int64 `json:"unattributed_bytes"`
	// the finding that explains it; null where there is none
	Finding    *Finding `json:"finding"`
	LimitBytes *int64   `json:"limit_bytes"`
	// the first setting tried that stays under the limit
	Survivor *Survivor  `json:"survivor"`
	Tried    []Survivor `json:"tried"`
}

// Held is a part of what the ledger held.
type Held struct {
	Name          string  `json:"name"`
	Bytes         int64   `json:"bytes"`
	ResidentBytes int64   `json:"resident_bytes"`
	Ratio         float64 `json:"ratio"`
}

// Place is what waited at one place.
type Place struct {
	Held
	Partitions int64 `json:"partitions"`
}

// Finding is an analyzer's answer, shortened.
type Finding struct {
	ID       string            `json:"id"`
	Severity string            `json:"severity"`
	Sentence string            `json:"sentence"`
	Remedy   string            `json:"remedy"`
	WhatIf   map[string]string `json:"what_if"`
}

// Survivor is a replay of the trace under other settings.
type Survivor struct {
	Settings         map[string]string `json:"settings"`
	PeakRSSBytes     *int64            `json:"peak_rss_bytes"`
	PeakRSSBytesHigh *int64            `json:"peak_rss_bytes_high"`
	PeakLiveBytes    *int64            `json:"peak_live_bytes"`
	ProofIntervalNS  *int64            `json:"proof_interval_ns"`
	// OverLimitRatio is the share of draws that peak above the limit
	OverLimitRatio *float64 `json:"peak_over_limit_ratio"`
	Survives       *bool    `json:"survives"` // null where it could not be replayed
	Error          string   `json:"error,omitempty"`
}
