//go:build cgo && linux

package device

/*
#cgo CFLAGS: -I${SRCDIR}/../../native/include
#cgo LDFLAGS: -ldl
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"
)

// Library is a loaded library. It stays loaded for the process's life. Its methods may be called
// from several goroutines.
type Library struct {
	path string
	c    *C.hwx_library // in C's memory
	mu   sync.Mutex
	word map[uint16]string
}

// Open loads the library at path, or of that name where the loader looks. The error is a *LoadError.
func Open(path string) (*Library, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	c := (*C.hwx_library)(C.calloc(1, C.sizeof_hwx_library))
	var message message
	reason := C.hwx_open(name, c, message.c())
	if reason == C.HWX_OK {
		return &Library{path: path, c: c, word: map[uint16]string{}}, nil
	}
	C.free(unsafe.Pointer(c))
	e := &LoadError{Reason: ErrBroken, Tried: []string{path}, Detail: message.text()}
	switch {
	case reason == C.HWX_OTHER_VERSION:
		e.Reason = ErrVersion
	case reason == C.HWX_NOT_LOADED && !exists(path):
		e.Reason, e.Detail = ErrMissing, ""
		if !strings.Contains(path, "/") {
			e.Tried[0] += " (the system's loader)"
		}
	}
	return nil, e
}

// exists says whether a path leads to a file; a bare name is the loader's business, which says that
// it found none.
func exists(path string) bool {
	if !strings.Contains(path, "/") {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}

// Path is what the library was opened as.
func (l *Library) Path() string { return l.path }

// Backend is "cuda", or "cpu" for the twin.
func (l *Library) Backend() string { return C.GoString(C.hwx_backend(l.c)) }

// BuildInfo names the versions of the library's parts, in one line.
func (l *Library) BuildInfo() string { return C.GoString(C.hwx_build_info(l.c)) }

// ClockNow is CLOCK_MONOTONIC by the library's reading.
func (l *Library) ClockNow() int64 { return int64(C.hwx_clock(l.c)) }

// Name is the text of a number in an event, "?" for one that the library does not know.
func (l *Library) Name(number uint16) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, ok := l.word[number]
	if ok {
		return text
	}
	c := C.hwx_name(l.c, C.uint16_t(number))
	if c == nil {
		return "?"
	}
	text = C.GoString(c)
	l.word[number] = text
	return text
}

// Devices describes every device. No driver and no device are errors.
func (l *Library) Devices() ([]Info, error) {
	var n C.uint32_t
	var m message
	if err := m.check("count devices", C.hwx_device_count(l.c, &n, m.c())); err != nil {
		return nil, err
	}
	infos := make([]Info, n)
	for i := range infos {
		var d C.hw_device_info
		d.struct_bytes = C.sizeof_hw_device_info
		status := C.hwx_device_describe(l.c, C.int32_t(i), &d, m.c())
		if err := m.check(fmt.Sprintf("describe device %d", i), status); err != nil {
			return nil, err
		}
		infos[i] = Info{
			Number: i, Name: C.GoString(&d.name[0]), UUID: C.GoString(&d.uuid[0]),
			TotalBytes: int64(d.total_bytes), L2Bytes: int64(d.l2_bytes),
			ComputeMajor: int(d.compute_major), ComputeMinor: int(d.compute_minor),
			Multiprocessors: int(d.multiprocessors), ClockMHz: int(d.clock_mhz),
			DriverVersion: int(d.driver_version), RuntimeVersion: int(d.runtime_version),
		}
	}
	if n == 0 {
		return nil, &Error{Call: "count devices", Status: NoDevice, Message: "the driver knows none"}
	}
	return infos, nil
}

// message takes the text that a failed call leaves.
type message [C.HWX_MESSAGE]byte

func (m *message) c() *C.char { return (*C.char)(unsafe.Pointer(&m[0])) }

func (m *message) text() string {
	text, _, _ := strings.Cut(string(m[:]), "\x00")
	return text
}

func (m *message) check(call string, status C.hw_status) error {
	if status == C.HW_OK {
		return nil
	}
	return &Error{Call: call, Status: Status(status), Message: m.text()}
}
