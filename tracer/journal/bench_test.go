package journal

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 2, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			j := create(b, Options{})
			b.ReportAllocs()
			before := cpuNanos(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range writers {
				n := (b.N + w) / writers
				wg.Go(func() {
					r := Record{Kind: KindQueue, ID: uint32(w)}
					for range n {
						r.TimeNS = j.Now()
						j.Append(&r)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(cpuNanos(b)-before)/float64(b.N), "cpu-ns/op")
			if st := j.Stats(); st.Lost != 0 || st.Events != int64(b.N) {
				b.Fatalf("%d of %d events, %d lost: %v", st.Events, b.N, st.Lost, st.LastError)
			}
		})
	}
}

// cpuNanos is the CPU time of the process, the journal's background included: the figure that a
// busy machine does not spoil.
func cpuNanos(b *testing.B) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkScan(b *testing.B) {
	j := create(b, Options{})
	const events = 200_000
	for i := range events {
		j.Append(&Record{Kind: KindQueue, TimeNS: int64(i)})
	}
	for b.Loop() {
		if c := countAll(b, j.Dir()); c != events {
			b.Fatalf("%d events", c)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
}

func countAll(b *testing.B, dir string) (n int) {
	r, err := OpenReader(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	for r.Scan() {
		n++
	}
	return n
}
