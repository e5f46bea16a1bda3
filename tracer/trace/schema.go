package trace

import "math"

// Null stands for "not measured" in an int64 field; on disk it is a Parquet null, in JSON null.
// A null capacity is unbounded. It is never 0: 0 is a measured zero.
const Null int64 = math.MinInt64

// None is the job, partition, worker or device of an event that has none.
const None int64 = -1

// Words of buffers.parquet, column event.
const (
	EventAlloc   = "alloc"    // recorded after the allocation succeeded
	EventResize  = "resize"   // capacity changed in place
	EventFill    = "fill"     // resident bytes changed: pages touched or given back
	EventReclass = "reclass"  // same bytes, new class (an in-place NTT turns a into h)
	EventPin     = "pin"      // page-locked; adds no bytes
	EventUnpin   = "unpin"    //
	EventHandoff = "handoff"  // names the new owner
	EventLastUse = "last_use" // nothing reads the buffer after this
	EventFree    = "free"     // recorded before the memory is given back
)

// Words of column space.
const (
	SpaceHost   = "host"
	SpacePinned = "pinned" // host memory, page-locked
	SpaceFile   = "file"   // file-backed mapping
	SpaceDevice = "device"
)

// Words of queues.parquet, column event.
const (
	EventRequest = "request"
	EventAcquire = "acquire"
	EventRelease = "release"
	EventSend    = "send" // the sender arrived; it may block
	EventSent    = "sent" // accepted by the channel
	EventRecv    = "recv"
	EventCancel  = "cancel"
)

// AttrJobCancelled is an attribute of a job's root span, true where the job was admitted and then
// given up because the run was interrupted. A job that was given up before has a cancel of its
// request instead.
const AttrJobCancelled = "prover.job.cancelled"

// Kinds of resources in the manifest.
const (
	ResourceJob     = "job" // submitted = request, admitted = acquire, done = release
	ResourcePermit  = "permit"
	ResourceChannel = "channel"
	ResourceLock    = "lock" // named gpu_lock/DEVICE
	ResourceBudget  = "budget"
)

// Kinds of spans.
const (
	KindJob    = "job" // a job's root span
	KindStage  = "stage"
	KindOp     = "op" // one NTT or MSM
	KindKernel = "kernel"
	KindCopy   = "copy"
	KindWait   = "wait"
	KindFree   = "free"
	KindOther  = "other"
)

// Stages of the prover; a program may define its own.
const (
	StageCompile    = "compile"
	StageSetup      = "setup"
	StageKeyLoad    = "key_load"
	StageWitness    = "witness"
	StageSynthesis  = "synthesis"
	StageStageIn    = "stage_in"
	StageProveStart = "prove_start"
	StageBG2        = "b_g2"
	StageFinalise   = "finalise"
	StageDealloc    = "dealloc"
	StageVerify     = "verify"
)

// Buffer classes of the prover; a program may define its own.
const (
	ClassSRS        = "srs"
	ClassKey        = "key"
	ClassSystem     = "system"
	ClassPCE        = "pce"
	ClassA          = "a"
	ClassB          = "b"
	ClassC          = "c"
	ClassH          = "h"
	ClassAux        = "aux" // the full assignment, W
	ClassDensity    = "density"
	ClassSplit      = "split" // gathered scalars of the A and B queries
	ClassPending    = "pending"
	ClassBucket     = "bucket"
	ClassPinnedPool = "pinned_pool"
	ClassWitness    = "witness"
	ClassCPUScratch = "cpu_scratch" // by formula, estimated
	ClassContext    = "context"
	ClassRecorder   = "recorder"
)

// Span is a row of spans.parquet: a named interval on a track. begin_seq and end_seq place both ends in
// the one order of the trace; EndSeq and EndNS are Null for a span that was open at the end.
type Span struct {
	BeginSeq         int64
	EndSeq           int64 // Null while open
	Source           string
	SpanID           int64 // 1.., unique over the trace
	ParentID         int64 // 0 is none
	Kind             string
	Stage            string
	Name             string
	Track            string
	Job              int64
	Partition        int64
	Worker           int64
	Device           int64
	Stream           int64 // Null where there is none
	Threads          int64 // Null where unknown
	BeginNS          int64
	EndNS            int64  // Null while open
	CPUNS            int64  // Null unless the stage owns its threads
	Bytes            int64  // Null where it has no meaning
	Status           string // "", "ok", "error"
	Attributes       string // one JSON object, or ""
	OtelTraceID      string // 32 hex digits, or ""
	OtelSpanID       string // 16 hex digits, or ""
	OtelParentSpanID string
}

// BufferEvent is a row of buffers.parquet. Live bytes are the running sum of DeltaBytes over seq where
// Space is not device and ParentID is 0.
type BufferEvent struct {
	Seq                int64
	TimeNS             int64
	Source             string
	Event              string
	BufferID           int64 // 1.., never reused
	ParentID           int64 // the pool or arena it is cut from; 0 is none
	Class              string
	Space              string
	Device             int64
	CapacityBytes      int64 // after the event; what was reserved
	ResidentBytes      int64 // after the event; what was touched; Null where not measured
	DeltaBytes         int64 // alloc +capacity, resize the difference, free -capacity, else 0
	DeltaResidentBytes int64
	Estimated          bool // by formula, not by measurement
	Job                int64
	Partition          int64
	Worker             int64
	Stage              string
	SpanID             int64
}

// QueueEvent is a row of queues.parquet: one operation on a permit, channel, lock, budget or job, recorded
// inside the resource's own critical section.
type QueueEvent struct {
	Seq          int64
	TimeNS       int64
	Source       string
	Resource     string
	Event        string
	Job          int64
	Partition    int64
	Worker       int64
	Priority     int64
	Amount       int64 // 1, or bytes of a budget
	LevelAfter   int64 // permits held, items queued, bytes reserved
	WaitingAfter int64 // how many wait for the resource after the event; Null where unknown
	SpanID       int64
}

// Sample is a row of samples.parquet: one metric of one source read at one time.
type Sample struct {
	TimeNS int64
	Source string
	Metric string
	Value  float64
}

// Data is a whole trace in memory, each table in order (buffers and queues by Seq, spans by BeginSeq,
// samples by TimeNS).
type Data struct {
	Manifest Manifest
	Spans    []Span
	Buffers  []BufferEvent
	Queues   []QueueEvent
	Samples  []Sample
}
