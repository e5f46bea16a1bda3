package device

import (
	"errors"
	"fmt"
	"strings"
)

// Status is what a call of the library ended with. It is an error, so that errors.Is(err,
// device.OutOfDeviceMemory) tells one failure from another.
type Status int32

// Statuses, as in highwater_native.h.
const (
	OK                Status = 0
	InvalidArgument   Status = 1
	NoDriver          Status = 2
	NoDevice          Status = 3
	OutOfDeviceMemory Status = 4
	OutOfHostMemory   Status = 5
	OutOfPinnedMemory Status = 6
	Failed            Status = 7 // the device refused or failed an operation; the job is lost
	Lost              Status = 8 // nothing works on this context any more
	Unsupported       Status = 9
	Internal          Status = 10
)

var statusTexts = map[Status]string{
	InvalidArgument: "invalid argument", NoDriver: "no GPU driver", NoDevice: "no such device",
	OutOfDeviceMemory: "out of device memory", OutOfHostMemory: "out of host memory",
	OutOfPinnedMemory: "out of pinned memory", Failed: "device error", Lost: "device lost",
	Unsupported: "not supported by this library", Internal: "mistake in the device library",
}

// Error is the status in words.
func (s Status) Error() string {
	if text, ok := statusTexts[s]; ok {
		return text
	}
	return fmt.Sprintf("status %d", int32(s))
}

// Error is a call of the library that failed.
type Error struct {
	Call    string // what was to be done, verb and object
	Status  Status
	Message string // the library's own: sizes, places
}

// Error says what failed and why.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s: %v", e.Call, e.Status)
	}
	if strings.Contains(e.Message, e.Status.Error()) {
		return fmt.Sprintf("%s: %s", e.Call, e.Message)
	}
	return fmt.Sprintf("%s: %v: %s", e.Call, e.Status, e.Message)
}

// Unwrap gives the status.
func (e *Error) Unwrap() error { return e.Status }

// Reasons why there is no library to use.
var (
	ErrMissing = errors.New("no device library") // there is no such file
	ErrVersion = errors.New("device library of another version")
	ErrBroken  = errors.New("device library cannot be loaded") // it is there, and no library, or not for this machine
	ErrNoCgo   = errors.New("this program was built without cgo, which devices need")
)

// LoadError says why no library could be loaded.
type LoadError struct {
	Reason error    // ErrMissing, ErrVersion, ErrBroken or ErrNoCgo
	Tried  []string // where it was looked for, the last one being where it failed
	Detail string
}

// Error says what was looked for, where, and what to do.
func (e *LoadError) Error() string {
	text := e.Reason.Error()
	if len(e.Tried) > 0 {
		text += ": tried " + strings.Join(e.Tried, ", ")
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if errors.Is(e.Reason, ErrMissing) {
		text += ": build it with `make native`, or name it in " + LibraryEnv
	}
	return text
}

// Unwrap gives the reason.
func (e *LoadError) Unwrap() error { return e.Reason }
