package prover

import (
	"errors"
	"fmt"
	"time"

	"highwater/tracer/setting"
)

// Config is everything a run depends on. The zero value runs the default settings without
// recording.
type Config struct {
	Settings *setting.Values // nil means every default
	Dir      string          // the trace directory to create; "" records nothing
	CacheDir string          // where keys are kept; "" means the user's cache directory
	Progress func(Progress)  // called often, never at the same time as itself; may be nil

	// BadWitness names partitions whose witness is made wrong, to see a job fail.
	BadWitness []JobPartition
	// SetupCommand is how to start the set-up child, to which SetupMain's arguments are appended.
	// nil means this executable with the argument SetupSubcommand.
	SetupCommand []string

	// For the manifest.
	Program  string
	Args     []string
	Commit   string
	Dirty    bool
	Versions map[string]string
	RunGroup string
}

// JobPartition names one partition of one job, both counted from 0.
type JobPartition struct{ Job, Partition int }

// Phases of a run, in order.
const (
	PhaseSetup = "setup" // compile and set up keys, in a child; left out when the cache has them
	PhaseLoad  = "load"
	PhaseProve = "prove"
	PhaseSeal  = "seal"
	PhaseDone  = "done"
)

// Progress is how far a run has come.
type Progress struct {
	Phase          string
	Elapsed        time.Duration // since the run began
	Jobs           int           // asked for
	JobsDone       int           // finished or failed
	JobsFailed     int
	Partitions     int    // of all jobs
	PartitionsDone int    // verified, or of a failed job; not those that an interrupt stopped
	Waiting        int    // synthesised and waiting for a GPU worker, in the channel or before it
	SetupStage     string // compile or setup, in PhaseSetup
	SetupDone      int64  // points computed, of SetupTotal (0 where not yet known)
	SetupTotal     int64
	Message        string
}

// ErrNoDevice says that the backend asked for needs a device and there is none: match it with
// errors.Is.
var ErrNoDevice = errors.New("no device")

// NoDeviceError says which setting asked for a device, and why there is none.
type NoDeviceError struct {
	Setting, Value string
	Err            error // nil where the settings contradict each other
}

func (e *NoDeviceError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s %s: no device: it needs backend device or auto", e.Setting, e.Value)
	}
	return fmt.Sprintf("%s %s: no device: %v", e.Setting, e.Value, e.Err)
}

// Is makes errors.Is(err, ErrNoDevice) true.
func (e *NoDeviceError) Is(target error) bool { return target == ErrNoDevice }

// Unwrap gives the reason.
func (e *NoDeviceError) Unwrap() error { return e.Err }
