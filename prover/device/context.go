//go:build cgo && linux

package device

// #include "shim.h"
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

// Context is one device as this process uses it. Its methods may be called from several goroutines,
// but for ReadEvents, which has one caller at a time, and Close, which must come last.
type Context struct {
	lib    *Library
	c      *C.hw_context
	device int
	close  sync.Once
}

// NewContext makes the context of a device: it takes the arena and the page-locked pool. Too little
// memory is an *Error with status OutOfDeviceMemory, and nothing is left behind.
func (l *Library) NewContext(config Config) (*Context, error) {
	c := C.hw_config{
		struct_bytes: C.sizeof_hw_config, device: C.int32_t(config.Device),
		arena_bytes: C.uint64_t(config.ArenaBytes), pinned_pool_bytes: C.uint64_t(config.PoolBytes),
		msm_scratch_bytes: C.uint64_t(config.MSMScratchBytes), lanes: C.uint32_t(config.Lanes),
		ring_records:       C.uint32_t(config.RingRecords),
		fault_device_bytes: C.uint64_t(config.FaultDeviceBytes),
		fault_operation:    C.uint64_t(config.FaultOperation),
	}
	if config.NoEvents {
		c.flags |= C.HW_CONFIG_NO_EVENTS
	}
	ctx := &Context{lib: l, device: config.Device}
	var m message
	err := m.check(fmt.Sprintf("open device %d", config.Device),
		C.hwx_context_create(l.c, &c, &ctx.c, m.c()))
	if err != nil {
		return nil, err
	}
	return ctx, nil
}

// Close waits for the device and gives everything back. What the ring still held is gone.
func (c *Context) Close() error {
	c.close.Do(func() { C.hwx_context_destroy(c.lib.c, c.c) })
	return nil
}

// Memory is what the context holds now.
func (c *Context) Memory() (Memory, error) {
	i := C.hw_memory_info{struct_bytes: C.sizeof_hw_memory_info}
	var m message
	if err := m.check("read device memory", C.hwx_context_memory(c.lib.c, c.c, &i, m.c())); err != nil {
		return Memory{}, err
	}
	return Memory{
		DriverKnown: i.driver_known != 0, DriverUsed: int64(i.driver_used_bytes),
		DriverBase: int64(i.driver_base_bytes), DriverTotal: int64(i.driver_total_bytes),
		Context: int64(i.context_bytes), Arena: int64(i.arena_bytes),
		ArenaUsed: int64(i.arena_used_bytes), ArenaPeak: int64(i.arena_peak_bytes),
		Pool: int64(i.pool_bytes), PoolUsed: int64(i.pool_used_bytes),
		PoolPeak: int64(i.pool_peak_bytes), Registered: int64(i.registered_bytes),
		ClockErrorNS: int64(i.clock_error_ns),
	}, nil
}

// ResetPeaks starts the arena's and the pool's peaks anew from what is in use.
func (c *Context) ResetPeaks() error {
	var m message
	return m.check("reset peaks", C.hwx_reset_peaks(c.lib.c, c.c, m.c()))
}

// The Go and the C record are the same bytes, or this does not compile.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Event{})-C.sizeof_hw_event]
	_ = [1]struct{}{}[C.sizeof_hw_event-unsafe.Sizeof(Event{})]
)

// ReadEvents moves records from the ring into out and gives their number. It never blocks.
func (c *Context) ReadEvents(out []Event) (int, error) {
	if len(out) == 0 {
		return 0, nil
	}
	var n C.size_t
	var m message
	status := C.hwx_ring_read(c.lib.c, c.c, unsafe.Pointer(&out[0]), C.size_t(len(out)), &n, m.c())
	return int(n), m.check("read events", status)
}

// Ring is the state of the ring.
func (c *Context) Ring() (Ring, error) {
	i := C.hw_ring_info{struct_bytes: C.sizeof_hw_ring_info}
	var m message
	if err := m.check("read ring", C.hwx_ring_describe(c.lib.c, c.c, &i, m.c())); err != nil {
		return Ring{}, err
	}
	return Ring{Capacity: int64(i.capacity), Written: int64(i.written), Dropped: int64(i.dropped),
		Waiting: int64(i.waiting), PeakWaiting: int64(i.peak_waiting)}, nil
}

// HostAlloc cuts memory from the page-locked pool for a partition. It is not zeroed.
func (c *Context) HostAlloc(bytes int64, class string, job, partition int32) ([]byte, error) {
	name := C.CString(class)
	defer C.free(unsafe.Pointer(name))
	var out unsafe.Pointer
	var m message
	err := m.check(fmt.Sprintf("cut %d bytes for %s from the page-locked pool", bytes, class),
		C.hwx_host_alloc(c.lib.c, c.c, C.uint64_t(bytes), name, C.int32_t(job), C.int32_t(partition),
			&out, m.c()))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(out), bytes), nil
}

// HostFree gives memory of HostAlloc back.
func (c *Context) HostFree(mem []byte) error {
	var m message
	return m.check("give page-locked memory back",
		C.hwx_host_free(c.lib.c, c.c, unsafe.Pointer(unsafe.SliceData(mem)), m.c()))
}

// Register page-locks mem, which must not be of the Go heap, until Unregister.
func (c *Context) Register(mem []byte, class string, job, partition int32) error {
	name := C.CString(class)
	defer C.free(unsafe.Pointer(name))
	var m message
	return m.check(fmt.Sprintf("page-lock %d bytes of %s", len(mem), class),
		C.hwx_host_register(c.lib.c, c.c, unsafe.Pointer(unsafe.SliceData(mem)),
			C.uint64_t(len(mem)), name, C.int32_t(job), C.int32_t(partition), m.c()))
}

// Unregister gives the page lock back.
func (c *Context) Unregister(mem []byte) error {
	var m message
	return m.check("give page lock back",
		C.hwx_host_unregister(c.lib.c, c.c, unsafe.Pointer(unsafe.SliceData(mem)), m.c()))
}
