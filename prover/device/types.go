package device

import "runtime"

// One thread copies at 10 GB/s on the machine measured, four at 35, which is near what the rest of
// the memory's bandwidth leaves beside synthesis.
const stageThreads = 4

// StageThreads is how many CPU threads StageIn keeps busy under a setting of Options.Pinned.
func StageThreads(pinned string) int {
	if pinned == PinnedPool {
		return min(stageThreads, runtime.GOMAXPROCS(0))
	}
	return 1
}

// Info describes a device.
type Info struct {
	Number          int
	Name            string
	UUID            string // "" where unknown
	TotalBytes      int64
	L2Bytes         int64
	ComputeMajor    int
	ComputeMinor    int
	Multiprocessors int
	ClockMHz        int // 0 where unknown
	DriverVersion   int // 13000 is 13.0
	RuntimeVersion  int
}

// Config is how a context is made. Its zero value is device 0 with the library's defaults.
type Config struct {
	Device          int
	ArenaBytes      int64 // 0: nine tenths of what is free
	PoolBytes       int64 // of page-locked host memory; 0: none
	MSMScratchBytes int64 // bound of one MSM's scratch; 0: the arena is the bound
	Lanes           int   // calls that may use the device at once; 0: the library's default
	RingRecords     int   // a power of two; 0: the library's default
	NoEvents        bool  // nothing is recorded: what recording costs is measured against this
	// Faults, for tests: they come by the same ways as real ones. 0 is none.
	FaultDeviceBytes int64 // the device has only so much free
	FaultOperation   int64 // the n-th operation on the device fails, once
}

// Memory is what a context holds and what the driver says about it. Bytes.
type Memory struct {
	DriverKnown  bool  // the Driver figures were read
	DriverUsed   int64 // of the device, by all processes
	DriverBase   int64 // the same before this process came
	DriverTotal  int64
	Context      int64 // code, tables, streams, the driver's own
	Arena        int64
	ArenaUsed    int64
	ArenaPeak    int64
	Pool         int64
	PoolUsed     int64
	PoolPeak     int64
	Registered   int64 // host memory page-locked by Register now
	ClockErrorNS int64 // bound of the error of device times; -1 where unknown
}

// Ring is the state of a context's ring, in records.
type Ring struct {
	Capacity, Written, Dropped, Waiting, PeakWaiting int64
}

// MSMStats says what an MSM did; 0 where it does not apply.
type MSMStats struct {
	Points       int64
	Digits       int64 // non-zero ones over all windows
	Pairs        int64 // batch-affine additions
	XYZZ         int64 // additions in XYZZ form
	ScratchBytes int64
	WindowBits   int
	Windows      int
	Groups       int // of windows, as the scratch allowed
	Rounds       int
	BeginNS      int64
	EndNS        int64
}

// Numbers of highwater_native.h that callers name.
const (
	G1 = 1
	G2 = 2

	FieldFr  = 0
	FieldFp  = 1
	FieldFp2 = 2

	OpAdd      = 0
	OpSub      = 1
	OpMul      = 2
	OpSquare   = 3
	OpNeg      = 4
	OpInverse  = 5
	OpFromMont = 6
	OpToMont   = 7

	PointAdd    = 0
	PointSub    = 1
	PointDouble = 2
	PointNeg    = 3

	NTTInverse = 1
	NTTCoset   = 2

	OrderNN = 0
	OrderNR = 1
	OrderRN = 2
	OrderRR = 3

	PathAuto   = 0
	PathXYZZ   = 1
	PathAffine = 2

	BenchNTT       = 0
	BenchMSM       = 1
	BenchSpparkNTT = 2
	BenchSpparkMSM = 3
	BenchUpload    = 4
	BenchFixedBase = 5

	ScalarsUniform  = 0
	ScalarsLabel    = 1
	ScalarsOneValue = 2

	// MaxBenchRepeats is the most repeats of one benchmark.
	MaxBenchRepeats = 64
)

// MSMOptions are those of a single MSM; the zero value leaves all to the library.
type MSMOptions struct {
	Path, WindowBits int
	ScratchBytes     int64
}

// BenchSpec is one benchmark of the library, on inputs that it makes on the device.
type BenchSpec struct {
	What, LogSize    int
	Group, Profile   int
	Order, Flags     int
	Warmups, Repeats int
	Path, WindowBits int
	Seed             uint64
}

// BenchResult is what it gave.
type BenchResult struct {
	Nanos   []int64 // wall clock of each repeat
	Checked bool    // the result was compared with what is known of the inputs
	MSM     MSMStats
}

// How a partition's vectors reach a device: the words of the setting pinned.
const (
	PinnedPageable = "pageable" // from ordinary memory, slowly
	PinnedRegister = "register" // page-locked in their place, for the time
	PinnedPool     = "pool"     // copied to page-locked memory that was taken before the run
)

// Options are a backend's. The zero value is one device, ordinary memory, b_g2 on the CPU.
type Options struct {
	Devices  int    // from number 0 on; 0 is 1
	Workers  int    // GPU workers a device: the pool has room for a partition of each
	Pinned   string // "" is PinnedPageable
	BG2      bool   // on the device, within the start
	SampleHz float64
	// Context is how each device's context is made; the pool's size and Device are filled in.
	Context Config
}
