// Package device runs the prover's heavy part on GPUs by way of the library of native/, which it
// loads at run time: nothing of CUDA is needed to build this program, and without the library, a
// driver or a device every entry returns one clear error.
//
// Terms: the library is libhighwater_native.so (CUDA) or its twin on the CPU for tests; a context is
// one device as one process uses it, with an arena of device memory, from which all else is cut, and
// a pool of page-locked host memory; the ring is where the library writes what it does to memory and
// what it runs, and the drain is the goroutine that journals it, some milliseconds later, as buffers
// and spans of the trace.
package device
