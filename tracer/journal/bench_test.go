package journal

import (
	"fmt"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// BenchmarkAppend is an event with its clock read while the background keeps ahead, as it does up to
// some hundred thousand events a second: between rounds of most of a segment the timer stands still until
// the next segment is there and its pages are present.
func BenchmarkAppend(b *testing.B) {
	eachCrowd(b, func(b *testing.B, writers int) {
		const segment = 16 << 20
		const round = segment / RecordBytes / 2
		j := create(b, Options{SegmentBytes: segment})
		b.ResetTimer()
		for left := b.N; left > 0; left -= round {
			b.StopTimer()
			nextSegment(j)
			b.StartTimer()
			appendAll(j, writers, min(left, round))
		}
		b.StopTimer()
		countIsRight(b, j)
	})
}

// BenchmarkAppendFlood is an event in a flood that outruns the background: making segments and their
// pages is part of it. cpu-ns/op is all CPU time of the process.
func BenchmarkAppendFlood(b *testing.B) {
	eachCrowd(b, func(b *testing.B, writers int) {
		j := create(b, Options{})
		before := cpuNanos(b)
		b.ResetTimer()
		appendAll(j, writers, b.N)
		b.StopTimer()
		b.ReportMetric(float64(cpuNanos(b)-before)/float64(b.N), "cpu-ns/op")
		countIsRight(b, j)
	})
}

func eachCrowd(b *testing.B, run func(b *testing.B, writers int)) {
	for _, writers := range []int{1, 2, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			b.ReportAllocs()
			run(b, writers)
		})
	}
}

func appendAll(j *Journal, writers, n int) {
	if writers == 1 {
		appendSome(j, 0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { appendSome(j, w, (n+w)/writers) })
	}
	wg.Wait()
}

func appendSome(j *Journal, writer, n int) {
	r := Record{Kind: KindQueue, ID: uint32(writer)}
	for range n {
		r.TimeNS = j.Now()
		j.Append(&r)
	}
}

// nextSegment makes appenders go on in a segment that is whole and present.
func nextSegment(j *Journal) {
	j.refill()
	j.mu.Lock()
	spare := j.spare
	j.mu.Unlock()
	prefault(spare.data) // again, should the background still be at it
	j.rotate(j.current.Load())
	j.leaveOldBlocks()
	j.unmapFinished()
}

func countIsRight(b *testing.B, j *Journal) {
	if st := j.Stats(); st.Lost != 0 || st.Events != int64(b.N) {
		b.Fatalf("%d of %d events, %d lost: %v", st.Events, b.N, st.Lost, st.LastError)
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
