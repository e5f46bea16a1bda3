package pipeline

// Kinds of arrivals.
const (
	ArriveAtOnce  = ""        // all at 0, or at Job.SubmitNS; jobs_in_flight closes the loop
	ArriveEvery   = "every"   // one every IntervalNS
	ArrivePoisson = "poisson" // at random, IntervalNS apart in the mean
	ArriveTimes   = "times"   // at AtNS
)

// Arrivals is when jobs are submitted. Whatever the kind, jobs_in_flight bounds how many of them are
// admitted.
type Arrivals struct {
	Kind       string    `toml:"kind,omitempty"`
	IntervalNS float64   `toml:"interval_ns,omitempty"`
	AtNS       []float64 `toml:"at_ns,omitempty"` // by job; jobs beyond arrive with the last
}

// Batch is the collector in front of the dispatcher: it lets jobs go when Size are there, or WaitNS
// after the first of them came. The zero value collects nothing.
type Batch struct {
	Size   int64   `toml:"size,omitempty"`
	WaitNS float64 `toml:"wait_ns,omitempty"`
	// Merge makes one unit of a batch: its first job's partitions carry the buffers of all, do the
	// work of Stage.BatchShare for each, and finish for all.
	Merge bool `toml:"merge,omitempty"`
}

// Points at which a job gives its dispatcher back.
const (
	HoldParse = ""     // when its partitions have been let go
	HoldSend  = "send" // when the channel has accepted the last of them
	HoldFreed = "freed"
)

// Dispatch is the task that takes jobs from the queue, does their Before pieces (parsing, loading)
// and lets their partitions go.
type Dispatch struct {
	Workers int64  `toml:"workers,omitempty"` // jobs at once; 0 means no bound
	Hold    string `toml:"hold,omitempty"`
}

// Orders of the byte budget.
const (
	BudgetFIFO     = ""         // by arrival; a request that does not fit holds back those after it
	BudgetPriority = "priority" // by (job, partition), else as above
	BudgetRace     = "race"     // a release wakes all, in seeded random order: whoever fits
)

// Admission is how a partition comes to its synthesis: in which order it waits for what. By default
// for the byte budget, then for a permit.
type Admission struct {
	NoPermit    bool   `toml:"no_permit,omitempty"`    // synthesis takes no permit
	PermitFirst bool   `toml:"permit_first,omitempty"` // a worker is taken before bytes are reserved
	BudgetOrder string `toml:"budget_order,omitempty"`
	// Serial says that one dispatcher takes partitions one at a time through queue depth, pacer and
	// byte budget, and puts them on a hand-off channel with room for Handoff.
	Serial  bool  `toml:"serial,omitempty"`
	Handoff int64 `toml:"handoff,omitempty"`
	// QueueDepth bounds the partitions between here and their last free; 0 means no bound.
	QueueDepth int64 `toml:"queue_depth,omitempty"`
}

// Pacer lets partitions go at the pace at which the GPU workers take them: a PI controller on the
// queue in front of them. Target 0 is off; the other zeroes mean cuzk's values (PacerDefaults).
type Pacer struct {
	Target        float64 `toml:"target,omitempty"` // partitions wanted in the queue
	AlphaWaiting  float64 `toml:"alpha_waiting,omitempty"`
	AlphaGPU      float64 `toml:"alpha_gpu,omitempty"`
	KP            float64 `toml:"kp,omitempty"`
	KI            float64 `toml:"ki,omitempty"`
	IntegralMin   float64 `toml:"integral_min,omitempty"`
	IntegralMax   float64 `toml:"integral_max,omitempty"`
	RateMin       float64 `toml:"rate_min,omitempty"`
	RateMax       float64 `toml:"rate_max,omitempty"`
	IntervalMinNS float64 `toml:"interval_min_ns,omitempty"`
	IntervalMaxNS float64 `toml:"interval_max_ns,omitempty"`
	BootstrapNS   float64 `toml:"bootstrap_ns,omitempty"`   // between the first Target partitions
	RebootstrapNS float64 `toml:"rebootstrap_ns,omitempty"` // at least, when the queue ran dry
}

// Lock is held by a partition from the begin of stage From to the end of stage To. In the course of
// one partition From does not come after To.
type Lock struct {
	Name     string `toml:"name"`
	Capacity int64  `toml:"capacity"`
	From     string `toml:"from"`
	To       string `toml:"to"`
}

// Cached is something that jobs need, that is loaded for the first of them and shared: an SRS,
// precomputed matrices.
type Cached struct {
	Class  string  `toml:"class"`
	Space  string  `toml:"space"`
	Bytes  int64   `toml:"bytes"`
	LoadNS float64 `toml:"load_ns,omitempty"`
	// further bytes while it is loaded
	LoadBytes int64 `toml:"load_bytes,omitempty"`
	Preloaded bool  `toml:"preloaded,omitempty"` // there before the first job
	Budgeted  bool  `toml:"budgeted,omitempty"`  // its bytes are reserved from the byte budget
	// Evictable says that it goes when the byte budget is short and no job has used it for IdleNS.
	Evictable bool    `toml:"evictable,omitempty"`
	IdleNS    float64 `toml:"idle_ns,omitempty"`
	// Every says that only each Every-th job needs it, the first one too: jobs of another circuit than
	// the others. 0 and 1 mean all.
	Every  int64  `toml:"every,omitempty"`
	Source string `toml:"source,omitempty"`
	// Background says that no job waits for it. Each job that does not find it when it lets its
	// partitions go starts a load of its own, and goes on; the load that is done first is kept, later
	// ones are dropped. A load takes bytes of the budget only where they are free, and looks every
	// PollNS whether they are (0 means a second, as cuzk does): LoadReserveBytes while it loads, and
	// Bytes besides before it is kept, both held for the SaveNS that saving the object takes.
	Background       bool    `toml:"background,omitempty"`
	LoadReserveBytes int64   `toml:"load_reserve_bytes,omitempty"`
	PollNS           float64 `toml:"poll_ns,omitempty"`
	SaveNS           float64 `toml:"save_ns,omitempty"`
}

// Poll is how long a background load that found no bytes waits until it looks again.
func (c *Cached) Poll() float64 {
	if c.PollNS > 0 {
		return c.PollNS
	}
	return 1e9
}

// NeededBy says whether a job needs it.
func (c *Cached) NeededBy(job int64) bool { return c.Every <= 1 || job%c.Every == 0 }

// Pool keeps freed buffers of some classes for reuse: it grows when none fits and is never given
// back, unless Evictable and the byte budget is short. It is not reserved from the budget.
type Pool struct {
	Class     string   `toml:"class"` // of the pool itself
	Space     string   `toml:"space"`
	Classes   []string `toml:"classes"` // of the buffers cut from it
	Evictable bool     `toml:"evictable,omitempty"`
}

// Follow is a setting that follows from another one unless it is set itself: Of (partition_workers,
// devices, or byte_budget counted in partitions' reservations), not below Least nor, but for 0, above
// Most. Of an unbounded byte_budget it is Most, or stays as it is where Most is 0.
type Follow struct {
	Setting string `toml:"setting"` // channel_capacity | partition_workers | handoff | dispatch_workers
	Of      string `toml:"of"`      // partition_workers | byte_budget | devices
	Least   int64  `toml:"least,omitempty"`
	Most    int64  `toml:"most,omitempty"`
}

// Fixed is a setting that cannot be set, and why.
type Fixed struct {
	Setting string `toml:"setting"`
	Reason  string `toml:"reason"`
}

// WithDefaults fills what is 0 with cuzk's values.
func (p Pacer) WithDefaults() Pacer {
	fill := func(x *float64, value float64) {
		if *x == 0 {
			*x = value
		}
	}
	fill(&p.AlphaWaiting, 0.15)
	fill(&p.AlphaGPU, 0.2)
	fill(&p.KP, 0.5)
	fill(&p.KI, 0.001)
	fill(&p.IntegralMin, -20)
	fill(&p.IntegralMax, 100)
	fill(&p.RateMin, 0.3)
	fill(&p.RateMax, 3)
	fill(&p.IntervalMinNS, 50e6)
	fill(&p.IntervalMaxNS, 60e9)
	fill(&p.BootstrapNS, 3e9)
	fill(&p.RebootstrapNS, 2e9)
	return p
}
