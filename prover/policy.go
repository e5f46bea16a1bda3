package prover

import (
	"runtime"
	"strconv"

	"highwater/tracer/setting"
	"highwater/tracer/trace"
)

// releasePoint is when a partition gives its synthesis permit back.
type releasePoint string

const (
	releaseSynthEnd     releasePoint = "synth_end"
	releaseSendAccepted releasePoint = "send_accepted"
	releaseGPUPickup    releasePoint = "gpu_pickup"
	releaseFreed        releasePoint = "freed"
)

// policy is the scheduling settings, read once.
type policy struct {
	jobs, partitions int
	jobsInFlight     int64 // setting.Unbounded for none, as below
	partitionWorkers int64
	channelCapacity  int64
	byteBudget       int64
	gpuWorkers       int // a device
	devices          int // the CPU backend counts as one
	release          releasePoint
	order            order
	earlyFree        bool
	splitProving     bool
	stageThreads     int64 // CPU threads of stage_in, prove_start and b_g2
	startThreads     int64
	bG2Threads       int64
}

// policyOf reads the settings of v.
func policyOf(v *setting.Values) policy {
	return policy{
		jobs: int(v.Int("jobs")), partitions: int(v.Int("partitions")),
		jobsInFlight: v.Int("jobs_in_flight"), partitionWorkers: v.Int("partition_workers"),
		channelCapacity: v.Int("channel_capacity"), byteBudget: v.Int("byte_budget"),
		gpuWorkers: int(v.Int("gpu_workers")), devices: 1,
		release: releasePoint(v.Text("permit_release")), order: order(v.Text("queue_order")),
		earlyFree: v.Bool("early_free"), splitProving: v.Bool("split_proving"),
		stageThreads: trace.Null,
		startThreads: threads(v.Int("backend_threads")), bG2Threads: threads(v.Int("gpu_threads")),
	}
}

// threads resolves a number of threads: 0 means one a CPU.
func threads(n int64) int64 {
	if n == 0 {
		return int64(runtime.GOMAXPROCS(0))
	}
	return n
}

// resources are what partitions wait for.
type resources struct {
	jobSlots *semaphore
	budget   *semaphore   // bytes
	permits  *semaphore   // synthesis
	channel  *channel     // synthesis to GPU workers
	locks    []*semaphore // a device
}

// newResources makes the resources of p and registers each with queue.
func newResources(p policy, queue func(trace.Resource) queueLog) *resources {
	resource := func(name, kind, unit string, capacity int64, o order) queueLog {
		r := trace.Resource{Name: name, Kind: kind, Unit: unit, Order: string(o), Device: trace.None}
		if capacity != setting.Unbounded {
			r.Capacity = &capacity
		}
		return queue(r)
	}
	locks := make([]*semaphore, p.devices)
	for i := range locks {
		one := int64(1)
		r := trace.Resource{Name: "gpu_lock/" + strconv.Itoa(i), Kind: trace.ResourceLock,
			Unit: "lock", Capacity: &one, Order: string(orderFIFO), Device: int64(i)}
		locks[i] = newSemaphore(semaphoreSpec{log: queue(r), capacity: one, order: orderFIFO})
	}
	return &resources{
		jobSlots: newSemaphore(semaphoreSpec{
			log:      resource("job", trace.ResourceJob, "job", p.jobsInFlight, orderFIFO),
			capacity: p.jobsInFlight, order: orderFIFO}),
		budget: newSemaphore(semaphoreSpec{
			log:      resource("budget", trace.ResourceBudget, "byte", p.byteBudget, orderFIFO),
			capacity: p.byteBudget, order: orderFIFO}),
		permits: newSemaphore(semaphoreSpec{
			log:      resource("permit", trace.ResourcePermit, "permit", p.partitionWorkers, p.order),
			capacity: p.partitionWorkers, order: p.order, numbered: true}),
		channel: newChannel(
			resource("channel", trace.ResourceChannel, "item", p.channelCapacity, p.order),
			p.channelCapacity, p.order),
		locks: locks,
	}
}
