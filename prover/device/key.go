//go:build cgo && linux

package device

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"unsafe"

	curve "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"highwater/prover/groth16"
)

// srs is a key on a device.
type srs struct {
	c *Context
	h *C.hw_srs
}

// description fills a C description, but for the pointers to points, and pins what it points to.
func description(q groth16.Queries, pins *runtime.Pinner) C.hw_srs_desc {
	pins.Pin(unsafe.SliceData(q.InfinityA))
	pins.Pin(unsafe.SliceData(q.InfinityB))
	return C.hw_srs_desc{
		struct_bytes: C.sizeof_hw_srs_desc, log_domain: C.uint32_t(bits.Len(uint(q.Domain)) - 1),
		wires: C.uint64_t(q.Wires), public_wires: C.uint64_t(q.Public),
		a_points: C.uint64_t(len(q.A)), b_points: C.uint64_t(len(q.B)),
		infinity_a: (*C.uint64_t)(unsafe.SliceData(q.InfinityA)),
		infinity_b: (*C.uint64_t)(unsafe.SliceData(q.InfinityB)),
	}
}

// pinned is a pointer to v's elements that C may be handed inside a struct.
func pinned[T any](pins *runtime.Pinner, v []T) unsafe.Pointer {
	if len(v) == 0 {
		return nil
	}
	pins.Pin(unsafe.SliceData(v))
	return unsafe.Pointer(unsafe.SliceData(v))
}

// loadKey copies a key to the device; without g2, all but the G2 points.
func (c *Context) loadKey(q groth16.Queries, g2 bool) (*srs, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	d := description(q, &pins)
	d.z, d.k = pinned(&pins, q.Z), pinned(&pins, q.K)
	d.a, d.b_g1 = pinned(&pins, q.A), pinned(&pins, q.B)
	if g2 {
		d.b_g2 = pinned(&pins, q.B2)
	}
	s := &srs{c: c}
	var m message
	err := m.check(fmt.Sprintf("load key to device %d", c.device),
		C.hwx_srs_load(c.lib.c, c.c, &d, &s.h, m.c()))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *srs) bytes() int64 { return int64(C.hwx_srs_bytes(s.c.lib.c, s.h)) }

func (s *srs) free() {
	if s.h != nil {
		C.hwx_srs_destroy(s.c.lib.c, s.h)
		s.h = nil
	}
}

// vectors are an assignment's a, b, c, w wherever they lie.
type vectors struct{ a, b, c, w []byte }

// started is what a start gave.
type started struct {
	parts       groth16.Parts
	begin       int64 // CLOCK_MONOTONIC: lane got
	uploadEnd   int64 // last byte up
	nttEnd      int64 // h known
	end         int64
	deviceBytes int64 // the most of the arena, the key not counted
}

// proveStart runs a start for a partition.
func (s *srs) proveStart(v vectors, constraints int, job, partition int32, g2 bool) (started, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	a := C.hw_assignment{struct_bytes: C.sizeof_hw_assignment, constraints: C.uint64_t(constraints),
		job: C.int32_t(job), partition: C.int32_t(partition)}
	a.a, a.b = pinned(&pins, v.a), pinned(&pins, v.b)
	a.c, a.w = pinned(&pins, v.c), pinned(&pins, v.w)
	if g2 {
		a.flags = C.HW_PROVE_B_G2
	}
	p := C.hw_proof_parts{struct_bytes: C.sizeof_hw_proof_parts}
	var m message
	call := fmt.Sprintf("start proof on device %d", s.c.device)
	err := m.check(call, C.hwx_prove_start(s.c.lib.c, s.c.c, s.h, &a, &p, m.c()))
	if err != nil {
		return started{}, err
	}
	if g2 && p.has_b_g2 == 0 {
		return started{}, fmt.Errorf("%s: %w", call, errors.New("the library left b_g2 out"))
	}
	out := started{begin: int64(p.begin_ns), uploadEnd: int64(p.upload_end_ns),
		nttEnd: int64(p.ntt_end_ns), end: int64(p.end_ns), deviceBytes: int64(p.device_peak_bytes)}
	out.parts.H = *(*curve.G1Affine)(unsafe.Pointer(&p.h))
	out.parts.L = *(*curve.G1Affine)(unsafe.Pointer(&p.l))
	out.parts.A = *(*curve.G1Affine)(unsafe.Pointer(&p.a))
	out.parts.B1 = *(*curve.G1Affine)(unsafe.Pointer(&p.b_g1))
	if g2 {
		b2 := *(*curve.G2Affine)(unsafe.Pointer(&p.b_g2))
		out.parts.B2 = &b2
	}
	return out, nil
}

// setUpKey computes the points of a key from their logarithms; they go to the slices of q, and stay
// on the device until the result is freed.
func (c *Context) setUpKey(logs groth16.QueryLogs, q groth16.Queries) (*srs, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	d := description(q, &pins)
	d.z, d.k = pinned(&pins, logs.Z), pinned(&pins, logs.K)
	d.a, d.b_g1 = pinned(&pins, logs.A), pinned(&pins, logs.B)
	d.b_g2 = d.b_g1
	host := C.hw_srs_host{struct_bytes: C.sizeof_hw_srs_host}
	host.z, host.k = pinned(&pins, q.Z), pinned(&pins, q.K)
	host.a, host.b_g1 = pinned(&pins, q.A), pinned(&pins, q.B)
	host.b_g2 = pinned(&pins, q.B2)
	s := &srs{c: c}
	var m message
	err := m.check(fmt.Sprintf("set up key on device %d", c.device),
		C.hwx_srs_setup(c.lib.c, c.c, &d, &host, &s.h, m.c()))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// scalars, points: the layouts are the library's.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(fr.Element{})-32]
	_ = [1]struct{}{}[unsafe.Sizeof(curve.G1Affine{})-96]
	_ = [1]struct{}{}[unsafe.Sizeof(curve.G2Affine{})-192]
)
