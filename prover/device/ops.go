//go:build cgo && linux

package device

// #include "shim.h"
import "C"

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// elements are what single operations take: field elements or affine points in gnark-crypto's types,
// which are the library's bytes.

func data[T any](v []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(v)) }

// Field computes out[i] = a[i] op b[i] on the device; b may be nil for operations on one.
func Field[T any](c *Context, field, op int, a, b, out []T) error {
	var m message
	return m.check("compute in a field", C.hwx_op_field(c.lib.c, c.c, C.uint32_t(field), C.uint32_t(op),
		data(a), data(b), data(out), C.uint64_t(len(out)), m.c()))
}

// Points computes out[i] = a[i] op b[i] on affine points; b may be nil for operations on one.
func Points[T any](c *Context, group, op int, a, b, out []T) error {
	var m message
	return m.check("compute with points", C.hwx_op_point(c.lib.c, c.c, C.uint32_t(group), C.uint32_t(op),
		data(a), data(b), data(out), C.uint64_t(len(out)), m.c()))
}

// NTT transforms v, whose length is a power of two, in place.
func NTT[T any](c *Context, v []T, order, flags int) error {
	lg := bits.Len(uint(len(v))) - 1
	if len(v) != 1<<lg {
		return fmt.Errorf("transform %d elements: not a power of two", len(v))
	}
	var m message
	return m.check(fmt.Sprintf("transform 2^%d elements", lg), C.hwx_op_ntt(c.lib.c, c.c, data(v),
		C.uint32_t(lg), C.uint32_t(order), C.uint32_t(flags), m.c()))
}

// Quotient is the pointwise step of h: a = (a·b - c)/Z on the coset.
func Quotient[T any](c *Context, a, b, cc []T) error {
	var m message
	return m.check("compute quotient", C.hwx_op_quotient(c.lib.c, c.c, data(a), data(b), data(cc),
		C.uint32_t(bits.Len(uint(len(a)))-1), m.c()))
}

// MSM is the sum of scalars[i]·points[i].
func MSM[P, S any](c *Context, group int, points []P, scalars []S, o MSMOptions) (sum P, stats MSMStats, err error) {
	if len(points) != len(scalars) {
		return sum, stats, fmt.Errorf("multiply %d points by %d scalars", len(points), len(scalars))
	}
	options := C.hw_msm_options{struct_bytes: C.sizeof_hw_msm_options, path: C.uint32_t(o.Path),
		window_bits: C.uint32_t(o.WindowBits), scratch_bytes: C.uint64_t(o.ScratchBytes)}
	var s C.hw_msm_stats
	var m message
	err = m.check(fmt.Sprintf("multiply %d points of G%d", len(points), group),
		C.hwx_op_msm(c.lib.c, c.c, C.uint32_t(group), data(points), data(scalars),
			C.uint64_t(len(points)), &options, unsafe.Pointer(&sum), &s, m.c()))
	return sum, statsOf(&s), err
}

func statsOf(s *C.hw_msm_stats) MSMStats {
	return MSMStats{Points: int64(s.points), Digits: int64(s.digits), Pairs: int64(s.pairs),
		XYZZ: int64(s.xyzz), ScratchBytes: int64(s.scratch_bytes), WindowBits: int(s.window_bits),
		Windows: int(s.windows), Groups: int(s.groups), Rounds: int(s.rounds),
		BeginNS: int64(s.begin_ns), EndNS: int64(s.end_ns)}
}

// FixedBase computes out[i] = scalars[i]·base.
func FixedBase[P, S any](c *Context, group int, base *P, scalars []S, out []P) error {
	var m message
	return m.check(fmt.Sprintf("multiply one point of G%d by %d scalars", group, len(scalars)),
		C.hwx_op_fixed_base(c.lib.c, c.c, C.uint32_t(group), unsafe.Pointer(base), data(scalars),
			data(out), C.uint64_t(len(out)), m.c()))
}

// Bench runs one benchmark. A wrong result is an error.
func (c *Context) Bench(s BenchSpec) (BenchResult, error) {
	spec := C.hw_bench_spec{struct_bytes: C.sizeof_hw_bench_spec, what: C.uint32_t(s.What),
		log_size: C.uint32_t(s.LogSize), group: C.uint32_t(s.Group), profile: C.uint32_t(s.Profile),
		order: C.uint32_t(s.Order), flags: C.uint32_t(s.Flags), warmups: C.uint32_t(s.Warmups),
		repeats: C.uint32_t(s.Repeats), path: C.uint32_t(s.Path),
		window_bits: C.uint32_t(s.WindowBits), seed: C.uint64_t(s.Seed)}
	r := C.hw_bench_result{struct_bytes: C.sizeof_hw_bench_result}
	var m message
	if err := m.check("run benchmark", C.hwx_bench(c.lib.c, c.c, &spec, &r, m.c())); err != nil {
		return BenchResult{}, err
	}
	out := BenchResult{Checked: r.checked != 0, MSM: statsOf(&r.msm)}
	for _, ns := range r.ns[:min(int(r.repeats), MaxBenchRepeats)] {
		out.Nanos = append(out.Nanos, int64(ns))
	}
	return out, nil
}
