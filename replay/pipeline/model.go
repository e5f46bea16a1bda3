package pipeline

// Segments of a partition's way, in order.
const (
	SegmentDispatch  = "dispatch"
	SegmentSynthesis = "synthesis"
	SegmentPickup    = "pickup"
	SegmentGPU       = "gpu"
	SegmentSplit     = "split"
	SegmentFinalise  = "finalise"
	SegmentAfter     = "after"
)

// Segments lists the segments in the order in which a partition goes through them.
var Segments = []string{
	SegmentDispatch, SegmentSynthesis, SegmentPickup, SegmentGPU, SegmentSplit, SegmentFinalise,
	SegmentAfter,
}

// Model is a whole pipeline. Its zero value is not valid; see Validate.
type Model struct {
	Name      string    `toml:"name"`
	Source    string    `toml:"source,omitempty"` // where the numbers come from
	Policy    Policy    `toml:"policy"`
	Arrivals  Arrivals  `toml:"arrivals"`
	Batch     Batch     `toml:"batch"`
	Dispatch  Dispatch  `toml:"dispatch"`
	Admission Admission `toml:"admission"`
	Pacer     Pacer     `toml:"pacer"`
	Machine   Machine   `toml:"machine"`
	Memory    Memory    `toml:"memory"`
	Stages    []Stage   `toml:"stage"`
	Locks     []Lock    `toml:"lock,omitempty"`   // besides the devices' locks
	Cached    []Cached  `toml:"cached,omitempty"` // what jobs need in memory and share
	Pools     []Pool    `toml:"pool,omitempty"`   // what keeps freed buffers for reuse
	Follows   []Follow  `toml:"follow,omitempty"` // settings that follow from others
	Fixed     []Fixed   `toml:"fixed,omitempty"`  // settings that the variant does not have
	// pool of job ways; empty means jobs do nothing of their own
	Jobs       []Job       `toml:"job,omitempty"`
	Partitions []Partition `toml:"partition"` // the pool
}

// Machine is what partitions share besides the resources of the policy.
type Machine struct {
	// CPUs is how many cores the stages share; 0 means that nothing contends.
	CPUs float64 `toml:"cpus"`
	// LockCapacity is how many GPU workers may hold one device's lock at once; 0 means there is no
	// lock.
	LockCapacity int64 `toml:"lock_capacity"`
	// LockScope is from where to where a device's lock is held.
	LockScope string `toml:"lock_scope,omitempty"`
	// OneLock says that all devices share one lock.
	OneLock bool `toml:"one_lock,omitempty"`
	// MemoryBandwidth is what the stages share, in bytes a ns (GB/s); 0 means that it is not short.
	MemoryBandwidth float64 `toml:"memory_bandwidth,omitempty"`
	// FreeOffWorker says that without split_proving the worker is free after b_g2, not after the
	// last free.
	FreeOffWorker bool `toml:"free_off_worker,omitempty"`
	// Finalisers is how many partitions may be between the GPU worker and their last free at once.
	Finalisers Bound `toml:"finalisers"`
	// TurnaroundNS passes between a GPU worker's end of one partition and its next receive.
	TurnaroundNS float64 `toml:"turnaround_ns"`
}

// Scopes of a device's lock.
const (
	LockGPU = "" // the gpu segment, and split without split_proving
	// the gpu segment alone; without split_proving the worker does split after it
	LockKernels = "kernels"
	LockWorker  = "worker" // as long as the GPU worker holds the partition
)

// Stage is a stage's contention law. A service that would take d alone proceeds at rate 1 while
// cores and memory bandwidth suffice for all; else they are shared in proportion to Weight, no
// service getting more than Parallelism cores (see Rates). Besides, services slow each other down
// in proportion to Pressure, without a bound: a service's rate is divided by
// 1 + Sensitivity * (pressure of all services now - its own).
type Stage struct {
	Name string `toml:"name"`
	// cores a service uses alone; 0 means that it uses none and never slows
	Parallelism float64 `toml:"parallelism"`
	Weight      float64 `toml:"weight,omitempty"` // share when cores are short; 0 means Parallelism
	// further log-normal spread of a service: standard deviation over mean
	CV float64 `toml:"cv,omitempty"`
	// log-normal spread of the stage's mean between runs (drawn once a draw): what is not known of it
	Uncertainty float64 `toml:"uncertainty,omitempty"`
	// bytes a ns (GB/s) that a service moves alone; 0 means that it never waits for memory
	Bandwidth   float64 `toml:"bandwidth,omitempty"`
	Pressure    float64 `toml:"pressure,omitempty"`    // what a service adds to the load on memory
	Sensitivity float64 `toml:"sensitivity,omitempty"` // slow-down by one unit of others' pressure
	// services at once; 0 means no bound
	Workers int64 `toml:"workers,omitempty"`
	// share of the work that a merged batch does once for each of its jobs
	BatchShare float64 `toml:"batch_share,omitempty"`
	Source     string  `toml:"source,omitempty"` // where the stage's numbers come from
}

// Piece is one stage of one partition or job, or a gap (Stage is "").
type Piece struct {
	Segment string   `toml:"segment"`
	Stage   string   `toml:"stage,omitempty"`
	SoloNS  float64  `toml:"solo_ns"` // duration alone on the machine; of a gap, its duration
	Buffers []Change `toml:"buffer,omitempty"`
}

// Change is one buffer event inside a piece, in the order of At.
type Change struct {
	At        float64 `toml:"at"`     // share of the piece's work done before it, 0..1
	Event     string  `toml:"event"`  // a word of buffers.parquet, column event
	Buffer    int     `toml:"buffer"` // number of the buffer within its partition or job, from 0
	Class     string  `toml:"class"`
	Space     string  `toml:"space"`
	Capacity  int64   `toml:"capacity_bytes"` // after the event
	Resident  int64   `toml:"resident_bytes"` // after the event
	Estimated bool    `toml:"estimated,omitempty"`
}

// Partition is what one partition does and holds: its pieces in the order of Segments, and the
// buffers whose free the setting early_free places: after the gpu segment, or after finalise.
type Partition struct {
	Job          int64 `toml:"job"`       // as recorded, for frozen replays
	Partition    int64 `toml:"partition"` //
	SettledBytes int64 `toml:"settled_bytes"`
	// of these, given back to the budget after the gpu segment
	EarlyBytes int64 `toml:"early_bytes"`
	// what it reserves of the byte budget, and gives back of that after the gpu segment; 0 means
	// SettledBytes and EarlyBytes
	ReserveBytes      int64 `toml:"reserve_bytes,omitempty"`
	ReserveEarlyBytes int64 `toml:"reserve_early_bytes,omitempty"`
	// passes until the GPU worker that lets go of it receives again; 0 means the machine's
	TurnaroundNS float64 `toml:"turnaround_ns,omitempty"`
	EarlyFree    []int   `toml:"early_free,omitempty"` // buffers freed where early_free says
	Pieces       []Piece `toml:"piece"`                //
}

// Reserves is what the partition reserves of the byte budget, and gives back of that early.
func (p *Partition) Reserves() (all, early int64) {
	if p.ReserveBytes > 0 {
		return p.ReserveBytes, p.ReserveEarlyBytes
	}
	return p.SettledBytes, p.EarlyBytes
}

// Job is what a job does beside its partitions: before they are dispatched and after the last one's
// end.
type Job struct {
	Job      int64   `toml:"job"`
	SubmitNS float64 `toml:"submit_ns"` // after the first job's submit
	Before   []Piece `toml:"before,omitempty"`
	After    []Piece `toml:"after,omitempty"`
}

// Laws of the remainder RSS minus ledger.
const (
	// LawScratchHighWater: RSS = base + resident ledger without cpu_scratch + the largest
	// cpu_scratch so far.
	LawScratchHighWater = "scratch_high_water"
	// LawProportional: RSS = base + (1 + Slope) * resident ledger.
	LawProportional = "proportional"
	// LawNone: nothing is known; no RSS is predicted.
	LawNone = "none"
)

// Memory is what lies in memory besides the partitions' buffers, and how RSS follows from the
// ledger.
type Memory struct {
	Law       string  `toml:"law"`
	BaseBytes int64   `toml:"base_bytes"`
	Slope     float64 `toml:"slope,omitempty"`
	// largest cpu_scratch before the first job
	ScratchHigh int64 `toml:"scratch_high_bytes,omitempty"`
	// log-normal spread of RSS less Base between runs (drawn once a draw), and a spread in bytes
	Uncertainty      float64 `toml:"uncertainty,omitempty"`
	UncertaintyBytes int64   `toml:"uncertainty_bytes,omitempty"`
	// what RSS comes to for a moment before the first partition holds anything (loading); between the
	// two, nobody knows where: drawn evenly once a draw
	StartupBytes     int64 `toml:"startup_bytes,omitempty"`
	StartupBytesHigh int64 `toml:"startup_bytes_high,omitempty"`
	// ScratchPool says that cpu_scratch is cut from one pool that only grows, to the largest sum so
	// far, because the runtime keeps what it once needed: then live bytes count the pool instead of
	// what is cut from it.
	ScratchPool bool `toml:"scratch_pool,omitempty"`
	// allocs of what lives from before the first job to the end
	Resident []Change `toml:"resident,omitempty"`
	// changes of buffers without a job after the first submit
	Later []Later `toml:"later,omitempty"`
}

// Later is a buffer event that belongs to no job, at a time after the first submit.
type Later struct {
	AtNS float64 `toml:"at_ns"`
	Change
}
