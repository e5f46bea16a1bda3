package oom

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
)

// logOf is a log of about size bytes, of lines that fill gives.
func logOf(size int, fill func(i int) string) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		b.WriteString(fill(i))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// logs are of what one may be handed: a program's log, a kernel's with one report in the middle,
// one of nothing but reports, one of failed allocations.
func logs(t testing.TB, size int) []struct {
	name string
	text []byte
} {
	report := readCase(t, "A01-global-6.11-full.dmesg")
	short := strings.ReplaceAll(readCase(t, "host-3.10-rhel7-two-nodes.log"), "store01", "node-7")
	program := func(i int) string {
		return fmt.Sprintf("2026-11-29T14:55:%02d.%06dZ DEBUG cuzk_core::pipeline: buffer "+
			"flight counters event=\"synth_done\" synth=%d provers=%d est_gib=16",
			i/1000%60, i%1000*1000, i%7, i%5)
	}
	kernel := func(i int) string {
		return fmt.Sprintf("Nov 29 14:55:%02d node-7 kernel: [%d.%06d] usb 1-1: new high-speed "+
			"USB device number %d using xhci_hcd", i/1000%60, 900+i/1000, i%1000, i%100)
	}
	middle := append(logOf(size/2, kernel), report...)
	return []struct {
		name string
		text []byte
	}{
		{"program", logOf(size, program)},
		{"kernel", append(middle, logOf(size/2, kernel)...)},
		{"reports", logOf(size, func(i int) string {
			return strings.ReplaceAll(short, "20977",
				fmt.Sprint(20977+i))
		})},
		{"failures", logOf(size, func(i int) string {
			if i%20 == 0 {
				return "memory allocation of 8606711792 bytes failed"
			}
			return program(i)
		})},
		{"newlines", bytes.Repeat([]byte{'\n'}, size)},
		{"one line", bytes.Repeat([]byte("out of memory "), size/14)},
	}
}

// BenchmarkRead reads logs of 100 MB.
func BenchmarkRead(b *testing.B) {
	for _, l := range logs(b, 100_000_000) {
		b.Run(l.name, func(b *testing.B) {
			b.SetBytes(int64(len(l.text)))
			b.ReportAllocs()
			before := cpuTime()
			defer func() {
				b.ReportMetric(float64(cpuTime()-before)/1e6/float64(b.N),
					"cpu-ms/op")
			}()
			for range b.N {
				r := NewReader()
				if err := r.Read(l.name, onlyReader{bytes.NewReader(l.text)}); err != nil {
					b.Fatal(err)
				}
				if n := len(r.Report().Events); l.name != "program" && l.name != "newlines" &&
					l.name != "one line" && n == 0 {
					b.Fatal("no event")
				}
			}
		})
	}
}

// onlyReader hides what a reader can do besides.
type onlyReader struct{ io.Reader }

// cpuTime is the CPU time of this process so far, which says on a loaded machine what wall time
// does not.
func cpuTime() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
